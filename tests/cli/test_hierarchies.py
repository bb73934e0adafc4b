"""Tests hierarchies on the command line, from files of hierarchies to predictions."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import tg_mlc
from tests.cli.conftest import run
from tg_mlc.cli._inputs import inputs_of
from tg_mlc.cli._options import RowsFile
from tg_mlc.inputs import tables
from tg_mlc.inputs.tables import read_blocks

CLASSES = ["a/b", "a/b@c/d", "a@c/d/e", "c"]
CLUS = (
    "@relation r\n@attribute height numeric\n@attribute width numeric\n@attribute hue {red,green}\n"
)


@pytest.fixture(scope="module")
def clus(tmp_path_factory):
    """Returns a folder with a file in the format of Clus and a model trained on the file."""
    folder = tmp_path_factory.mktemp("clus")
    lines = ["@attribute class hierarchical a,a/b,c,c/d,c/d/e", "@data"]
    for i in range(60):
        height, width = i % 4 + 0.25 * (i % 3), "?" if i % 9 == 0 else i % 2
        hue, label = ("red", "green")[i % 2], CLASSES[(i + i // 7) % 4]
        lines.append(f"{height},{width},{hue},{label}")
    (folder / "genes.arff").write_text(CLUS + "\n".join(lines))
    assert run("train --seconds 0", arff=folder / "genes.arff", out=folder / "model") == 0
    return folder


def test_predictions_are_coherent(clus, capsys):
    model, file = clus / "model", clus / "genes.arff"
    assert run("evaluate", model, "--json", arff=file) == 0
    assert json.loads(capsys.readouterr().out)["average_precision_micro"] > 0.3
    assert run("predict", model, arff=file, out=clus / "p.csv") == 0
    frame = pd.read_csv(clus / "p.csv")
    for below, above in (("a/b", "a"), ("c/d", "c"), ("c/d/e", "c/d")):
        assert (frame[below] <= frame[above]).all()
        named = frame["predicted"].fillna("").str.split("@")
        assert all(above in names for names in named if below in names)


def test_targets_include_the_ancestors_of_labels(clus):
    model = tg_mlc.load(clus / "model")
    inputs = inputs_of(model, str(clus / "model"), RowsFile())
    y = inputs.targets(next(iter(read_blocks(clus / "genes.arff"))), model, {})
    columns = dict(zip(model.label_names, y.T, strict=True))
    assert columns["c/d/e"].any()
    for below, above in (("a/b", "a"), ("c/d", "c"), ("c/d/e", "c/d")):
        assert (columns[below] <= columns[above]).all()


def test_given_labels_determine_ancestors_and_descendants(clus):
    model = tg_mlc.load(clus / "model")
    rows = pd.DataFrame({"height": [1.0, 2], "width": [0.0, 1], "hue": ["red", "green"]})
    frame = model.predict(rows, given=[{"c/d/e": 1}, {"c": 0}])
    assert frame["probability"][["c", "c/d", "c/d/e"]].to_numpy().tolist() == [[1, 1, 1], [0, 0, 0]]
    assert frame["decision"][["c", "c/d", "c/d/e"]].to_numpy().tolist() == [[True] * 3, [False] * 3]
    with pytest.raises(
        ValueError, match=r"'given' to agree .*row 0, in which 'c/d' applies and 'c' above it"
    ):
        model.predict(rows, given={"c/d": 1, "c": 0})


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("root/a,b/c", "a", "below 'root' (got 'b' above 'c'"),
        ("root/a,a/b,b/a", "a", "without cycles"),
        ("a,a/b", "a/x", "line 7: Expected a path"),
    ],
)
def test_wrong_hierarchies_are_named(header, row, expected, tmp_path, capsys):
    text = f"{CLUS}@attribute class hierarchical {header}\n@data\n" + f"1,2,red,{row}\n" * 20
    (tmp_path / "a.arff").write_text(text)
    assert run("train", arff=tmp_path / "a.arff", out=tmp_path / "m") == 1
    assert expected in capsys.readouterr().err


def test_labels_that_contradict_their_ancestors_are_refused(tmp_path, capsys):
    rows = "".join(f"{i},{int(i % 3 > 0)},{int(i % 3 == 0)}\n" for i in range(20))
    (tmp_path / "a.csv").write_text(f"size,animal,dog\n{rows}")
    (tmp_path / "p.csv").write_text("child,parent\ndog,animal\n")
    files = {"csv": tmp_path / "a.csv", "hierarchy": tmp_path / "p.csv"}
    assert run("train --labels animal,dog", out=tmp_path / "m", **files) == 1
    assert "row 0, in which 'dog' applies and 'animal' above it does not" in capsys.readouterr().err


def test_labels_to_complete_that_contradict_their_ancestors_are_refused(
    tmp_path, capsys, monkeypatch
):
    rows = "".join(f"{i},{int(i % 2)},{int(i % 4 == 1)}\n" for i in range(20))
    (tmp_path / "a.csv").write_text(f"size,animal,dog\n{rows}")
    (tmp_path / "p.csv").write_text("child,parent\ndog,animal\n")
    files = {"csv": tmp_path / "a.csv", "hierarchy": tmp_path / "p.csv"}
    assert run("train --labels animal,dog --seconds 0", out=tmp_path / "m", **files) == 0
    monkeypatch.setattr(tables, "_BLOCK", 2)
    new = tmp_path / "new.csv"
    new.write_text("size,animal,dog\n1,1,\n2,,1\n3,,\n4,0,1\n")
    capsys.readouterr()
    assert run("complete", tmp_path / "m", csv=new, out=tmp_path / "out.csv") == 1
    assert f"Expected '{new}' to agree with its hierarchy (got row 3 (line 5), in which 'dog'" in (
        capsys.readouterr().err
    )
    assert not [*tmp_path.glob("out*")]


TERMS = ["GO:2;GO:3", "GO:2", "GO:3", "GO:4"]
OBO = "".join(
    f"[Term]\nid: GO:{child}\nis_a: GO:{parent}\n\n"
    for child, parent in [(1, "0008150"), (2, 1), (3, 1), (4, "0008150")]
)


@pytest.mark.parametrize("columns", [False, True])
def test_ancestors_become_labels_with_the_metrics_of_hierarchies(columns, tmp_path, capsys):
    """Both lists of terms and columns of terms get ancestors, in training and in evaluation."""
    pytest.importorskip("obonet")
    (tmp_path / "go.obo").write_text(f"[Term]\nid: GO:0008150\n\n{OBO}")
    frame = pd.DataFrame({"size": [row % 4 + row / 99 for row in range(60)]})
    terms = [TERMS[row % 4].split(";") for row in range(60)]
    if columns:
        for name in ("GO:2", "GO:3", "GO:4"):
            frame[name] = [int(name in row) for row in terms]
        options = "--labels GO:2,GO:3,GO:4"
    else:
        frame["terms"] = [";".join(row) for row in terms]
        options = "--labels terms --label_separator ;"
    path, model = tmp_path / "a.csv", tmp_path / "model"
    frame.to_csv(path, index=False)
    files = {"csv": path, "hierarchy": tmp_path / "go.obo", "out": model}
    assert run(f"train --seconds 0 --json {options}", **files) == 0
    trained = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in trained["by_label"]] == ["GO:2", "GO:3", "GO:4", "GO:1"]
    assert tg_mlc.load(model).facts["by_label"] == trained["by_label"]
    names = {"fmax", "smin", "auprc", "precision_at_1", "propensity_precision_at_3"}
    assert names <= {*trained["test"]}
    out = tmp_path / "labels.csv"
    assert run("evaluate", model, "--json", csv=path, by_label=out) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert evaluated["auprc"] == evaluated["average_precision_micro"] > 0.5
    assert names <= {*evaluated}
    results = pd.read_csv(out, index_col="label")
    assert results["positives"].to_dict() == {"GO:2": 30, "GO:3": 30, "GO:4": 15, "GO:1": 45}
    assert results["known"].eq(60).all()
    shown = pd.DataFrame(evaluated["by_label"]).set_index("label")
    pd.testing.assert_frame_equal(shown, results)
    assert run("evaluate", model, csv=path) == 0
    assert "GO:1      60         45" in capsys.readouterr().out
