from __future__ import annotations

import pytest

from tg_mlc.cli._inputs import make_inputs
from tg_mlc.cli._options import InputColumns, TableOptions, TrainOptions
from tg_mlc.cli._training import Run


def table(path, labels="bound", **options):
    return TableOptions(csv=str(path / "table.csv"), labels=labels, **options)


@pytest.mark.parametrize(
    ("kind", "cells"), [("smiles", "C,CO"), ("dna", "ACGT,TTTT"), ("text", "a b,c"), (None, "1,2")]
)
@pytest.mark.parametrize(("value", "delimiter"), [(";", ";"), (r"\t", "\t"), ("\t", "\t")])
def test_delimiters_are_specified_or_recognized(kind, cells, value, delimiter, tmp_path):
    if kind == "smiles":
        pytest.importorskip("rdkit")
    lines = [f"site{delimiter}bound", *(f"{cell}{delimiter}1" for cell in cells.split(",") * 5)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    columns = InputColumns.declared()(**({kind: "site"} if kind else {}))
    for options in ({}, {"delimiter": value}):
        run = Run(TrainOptions(out=str(tmp_path / "model")), columns, table(tmp_path, **options))
        assert run.dataset.y.tolist() == [[1]] * 10


@pytest.mark.parametrize("name", ["predicted", "reason", "liver;skin"])
def test_ambiguous_names_of_labels_are_refused(name, tmp_path):
    columns = InputColumns.declared()()
    with pytest.raises(
        ValueError, match=f"Expected another name for the label '{name}' .*'predict --csv'"
    ):
        make_inputs(columns, table(tmp_path, f"bound,{name}"))
    # A column that lists names may have any name.
    inputs, _ = make_inputs(columns, table(tmp_path, name, label_separator="|"))
    assert inputs.labels == [name]
    (tmp_path / "table.csv").write_text(f"x,names\n1,bound|{name}\n" + "2,bound\n" * 9)
    options = table(tmp_path, "names", label_separator="|")
    run = Run(TrainOptions(out=str(tmp_path / "model")), columns, options)
    if name == "liver;skin":
        assert run.dataset.label_names == ["bound", name]
    else:
        with pytest.raises(ValueError, match=f"Expected another name for the label '{name}'"):
            _ = run.dataset
