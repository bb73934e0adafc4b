from __future__ import annotations

import pytest

from tg_mlc.cli._inputs import make_inputs
from tg_mlc.cli._training import Run
from tg_mlc.cli.train import TrainOptions


def options(path, **changes):
    return TrainOptions(**{"csv": str(path / "table.csv"), "labels": "bound", "out": str(path / "model"), **changes})


@pytest.mark.parametrize(
    ("kind", "cells"), [("smiles", "C,CO"), ("dna", "ACGT,TTTT"), ("text", "a b,c"), (None, "1,2")]
)
@pytest.mark.parametrize(("given", "mark"), [(";", ";"), (r"\t", "\t"), ("\t", "\t")])
def test_what_stands_between_cells(kind, cells, given, mark, tmp_path):
    if kind == "smiles":
        pytest.importorskip("rdkit")
    lines = [f"site{mark}bound", *(f"{cell}{mark}1" for cell in cells.split(",") * 5)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    chosen = options(tmp_path, delimiter=given, **({kind: "site"} if kind else {}))
    assert make_inputs(chosen).delimiter == mark
    assert Run(chosen).dataset.y.tolist() == [[1]] * 10


@pytest.mark.parametrize("name", ["predicted", "liver;skin"])
def test_names_that_predictions_could_not_be_told_by_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match=f"Expected another name for the label '{name}', as 'predict --csv' lists"):
        make_inputs(options(tmp_path, labels=f"bound,{name}"))
    assert make_inputs(options(tmp_path, labels=name, label_separator="|")).labels == [name]  # of a column that lists
    (tmp_path / "table.csv").write_text(f"x,names\n1,bound|{name}\n" + "2,bound\n" * 9)
    run = Run(options(tmp_path, labels="names", label_separator="|"))
    if name == "predicted":
        with pytest.raises(ValueError, match="Expected another name for the label 'predicted'"):
            _ = run.dataset
    else:
        assert run.dataset.label_names == ["bound", name]
