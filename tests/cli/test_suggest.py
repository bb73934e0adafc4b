from __future__ import annotations

import io
from importlib import import_module

import pytest

import tg_mlc
from tests.cli.conftest import run

pd = pytest.importorskip("pandas")
# The package's attribute "suggest" is a function, so the module is imported by name.
suggesting = import_module("tg_mlc.cli.suggest")

NEW = "height,width,tall,broad\n9,5,,\n1,2,0,\n"


def test_suggestions_are_those_of_the_model(rows, write, tmp_path, capsys):
    new, out = write("new.csv", NEW), tmp_path / "suggestions.csv"
    assert run("suggest --k 2 --cost broad=4", rows / "model", csv=new) == 0
    printed = capsys.readouterr().out
    inputs, given = pd.read_csv(new)[["height", "width"]], pd.read_csv(new)[["tall", "broad"]]
    model = tg_mlc.load(rows / "model")
    expected = model.suggest(inputs, given=given, k=2, cost={"broad": 4}).round(6)
    frame = pd.read_csv(io.StringIO(printed))
    assert frame.to_dict("list") == expected.to_dict("list")
    assert frame["label"][frame["row"] == 1].tolist() == ["broad"]
    assert run("suggest --k 2 --cost broad=4", rows / "model", csv=new, out=out) == 0
    assert capsys.readouterr().out == ""
    assert out.read_text() == printed


def test_targets_candidates_and_a_budget_restrict_suggestions(rows, write, capsys):
    new = write("new.csv", "height,width\n9,5\n1,2\n")
    options = "--targets tall --candidates tall,broad --budget 1"
    assert run(f"suggest {options}", rows / "model", csv=new) == 0
    assert pd.read_csv(io.StringIO(capsys.readouterr().out))["label"].tolist() == ["tall"]


def test_rows_that_cannot_be_read_are_skipped(rows, write, capsys):
    new = write("new.csv", "height,width,tall,broad\nmuch,5,1,\n9,5,1,\n")
    assert run("suggest", rows / "model", csv=new) == 1
    out, error = capsys.readouterr()
    assert pd.read_csv(io.StringIO(out))[["row", "label"]].to_numpy().tolist() == [[1, "broad"]]
    assert "cannot read row 0 (line 2)" in error
    assert error.endswith("1 row could not be read as an input and is skipped\n")
    new.write_text("height,width\nmuch,5\n")
    assert run("suggest", rows / "model", csv=new) == 1
    assert "at least one row that can be read" in capsys.readouterr().err


def test_names_of_labels_with_commas_have_costs():
    costs = {"cysts, polyps": 2.0, "a=b": 0.5}
    assert suggesting._costs("cysts, polyps=2,a=b=.5") == costs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--cost broad", "--cost as in liver=20,skin=0.5"),
        ("--cost broad=much", "(got 'broad=much')"),
        ("--cost broad=2,", "(got 'broad=2,')"),
        ("--cost wide=2", "'cost' among labels of the model"),
        ("--targets wide", "'targets' among labels of the model"),
        ("--k 0", "whole number of at least 1 (got 0)"),
        ("--out {}", "another --out than --csv"),
    ],
)
def test_wrong_options_are_refused(options, message, rows, write, capsys):
    new = write("new.csv", NEW)
    assert run(f"suggest {options.format(new)}", rows / "model", csv=new) == 1
    assert message in capsys.readouterr().err
    assert new.read_text() == NEW
