import json
import sys
import time
from dataclasses import replace as changed
from importlib import import_module

import numpy as np
import pytest

from benchmarks.accuracy import paper_tables
from benchmarks.accuracy.cells import Cell, recipe_of, stored, without_own_steps
from benchmarks.accuracy.paper_tables import DATASETS, OTHER, Grid, estimate, main
from benchmarks.accuracy.runs import Row, Run
from tg_mlc.papers import pooled_mlp
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY
from tg_mlc.papers.recipes.recipe import Member

FC, EL, SVM = Row("lamp", False, "complete"), Row("lamp", False, "edgeless"), Row("linear SVM")
CELL = Cell("bibtex", FC, 10)


class NoSamples:
    """Stands in for the data sets, and loads no samples."""

    def describe(self, name):
        return {"name": name, "sha256": "0"}

    def trial(self, name, recipe, seed):
        return recipe, None


def fake_cell(cell, *_):
    if cell.row == EL:
        raise RuntimeError("does not train")
    names = ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro")
    metrics = dict.fromkeys(names, 0.5)
    return {"run": Run(cell.row, cell.seed, "", 60.0, {**metrics}, []).to_dict(), "epochs": 1}


def settings(cell, recipe, *_):
    return {"fit": recipe.fit}


@pytest.fixture(autouse=True)
def no_training(monkeypatch):
    monkeypatch.setattr(paper_tables, "run_cell", fake_cell)
    monkeypatch.setattr(paper_tables, "settings_of", settings)


def grid(**options):
    return Grid(NoSamples(), **options)


def test_an_existing_cell_is_kept(own_runs):
    assert grid().make(CELL, None) == "made"
    written_at = CELL.path(tracked=False).stat().st_mtime_ns
    assert grid().make(CELL, None) == "there"
    assert CELL.path(tracked=False).stat().st_mtime_ns == written_at
    assert not CELL.path(tracked=True).exists()
    assert grid(tracked=True).make(CELL, None) == "made"
    (fields,) = stored(tracked=True)[["dataset", "row", "seed"]].to_numpy()
    assert Cell(*fields) == CELL


def test_a_cell_of_other_settings_is_replaced_only_on_request(own_runs):
    grid(epochs=1).make(CELL, None)
    assert grid().make(CELL, None) == OTHER
    assert json.loads(CELL.path(tracked=False).read_text())["settings"]["fit"]["max_epochs"] == 1
    assert grid(again=True).make(CELL, None) == "made"
    assert grid().make(CELL, None) == "there"


def test_a_failed_cell_leaves_no_file(own_runs):
    assert grid().make(Cell("bibtex", EL, 10), None) == "failed"
    assert stored(tracked=False).empty


def test_a_cell_starts_only_if_its_estimated_time_is_left(own_runs):
    soon, later = time.perf_counter() + 30, time.perf_counter() + 90
    assert grid().make(CELL, soon) == "made"  # The time of the first cell is unknown.
    other_seed = Cell("bibtex", FC, 11)
    assert grid().make(other_seed, soon) == "left out because time is up"
    assert grid().make(CELL, soon) == "there"
    assert grid().make(other_seed, later) == "made"


def test_times_are_estimated_from_the_most_similar_cells():
    seconds = {CELL: 5.0, Cell("bibtex", EL, 10): 20.0}
    seconds |= {Cell("sider", FC, 10): 90.0, Cell("bibtex", SVM, 10): 1.0}
    assert estimate(Cell("bibtex", FC, 11), seconds) == 5.0
    assert estimate(Cell("bibtex", Row("lamp", True, "prior"), 10), seconds) == 20.0
    assert estimate(Cell("reuters", FC, 10), seconds) == 0.0


def test_cells_are_sorted_by_the_time_of_their_row(own_runs):
    example = grid()
    example.seconds = {Cell("sider", FC, 10): 9.0, Cell("sider", SVM, 10): 1.0}
    example.seconds[Cell("bibtex", EL, 11)] = 4.0
    cells = [Cell("bibtex", row, 10) for row in (FC, EL, SVM)]
    assert [cell.row for cell in sorted(cells, key=example.cost)] == [SVM, FC, EL]


@pytest.fixture
def said(own_runs, monkeypatch, capsys):
    """Returns the printed lines of a grid that prints cell names instead of training."""
    monkeypatch.setattr(Grid, "make", lambda self, cell, end: print(cell.name) or "made")

    def lines(**options):
        main(**{"datasets": "bibtex", "seeds": 1, **options})
        return capsys.readouterr().out.splitlines()

    return lines


def cells_of(lines):
    return [line.removeprefix("cells/") for line in lines if line.startswith("cells/")]


def test_cells_are_ordered_by_seed_and_then_by_data_set(said):
    chosen = cells_of(said(datasets="sider,bibtex", models="linear SVM", seeds=2))[:4]
    expected = [f"{name}/linear-SVM-s{seed}" for seed in (10, 11) for name in ("sider", "bibtex")]
    assert chosen == expected


def test_the_prior_of_mped_needs_wordnet_and_meaningful_label_names(monkeypatch, tmp_path):
    row = Row("mped", True, "wordnet")
    assert paper_tables._suits("bibtex", row)
    assert not paper_tables._suits("yeast", row)
    monkeypatch.setattr(paper_tables, "find_folder", lambda: tmp_path)
    assert paper_tables._can_be_made(row)


def test_rows_with_missing_requirements_are_reported(own_runs, monkeypatch, capsys):
    monkeypatch.setattr(import_module("tg_mlc.graphs.wordnet"), "USUAL", ())
    for variable, value in {"WNSEARCHDIR": "", "NLTK_DATA": "", "HOME": str(own_runs)}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setitem(sys.modules, "napkinxc", None)
    options = {"datasets": "bibtex", "models": "mped,label trees", "graphs": "wordnet", "seeds": 1}
    with pytest.raises(SystemExit, match=r"to choose a cell \(got none\)"):
        main(table="mped-2", **options)
    lines = capsys.readouterr().out.split("\n\n")[0].splitlines()
    expected = ["label trees: left out. ", "MPED wordnet: left out. "]
    assert [line.split("Expected")[0] for line in lines] == expected
    assert "tg_mlc[extreme]" in lines[0]


@pytest.mark.parametrize(
    ("options", "cells"),
    [
        (
            {"table": "lamp-1", "models": "lamp", "node_messages": "false"},
            [f"lamp-{g}" for g in ("edgeless", "complete", "prior", "learned", "wordnet")],
        ),
        (
            {"models": "mped", "graphs": "complete", "steps": "1,3"},
            ["mped-node-messages-complete-T=1", "mped-node-messages-complete"],
        ),
        (
            {"models": "lamp", "node_messages": "false", "label_dropout": "0.30,.5"}
            | {"graphs": "edgeless,complete"},
            [f"lamp-complete-label-dropout-{dropout}" for dropout in ("0.3", "0.5")],
        ),
    ],
    ids=["all graphs", "steps", "label dropout"],
)
def test_options_choose_cells(options, cells, said, own_runs, monkeypatch):
    monkeypatch.setattr(paper_tables, "find_folder", lambda: own_runs)
    assert cells_of(said(**options)) == [f"bibtex/{cell}-s10" for cell in cells]


@pytest.mark.parametrize("name", DATASETS)
def test_the_number_of_steps_of_the_recipe_is_no_change(name):
    num_steps = RECIPES[name].as_published().model["num_steps"]
    assert without_own_steps(name, changed(FC, change=f"T={num_steps}")) == FC
    assert without_own_steps(name, longer := changed(FC, change=f"T={num_steps + 1}")) == longer
    for model in ("mped", "graph2graph"):
        row = Row(model, True, "complete", change="T=3")
        assert without_own_steps(name, row) == Row(model, True, "complete")
        assert without_own_steps(name, shorter := changed(row, change="T=2")) == shorter


def test_options_choose_rows():
    def rows(**changed):
        options = {"models": "", "node_messages": "false,true", "changes": []}
        options["graphs"] = ["edgeless", "complete"]
        return paper_tables._rows(["lamp-1"], **{**options, **changed})

    assert {SVM, FC, EL, Row("lamp", True, "complete")} <= set(rows())
    assert rows(models="linear SVM") == [SVM]
    steps = {"node_messages": "true", "graphs": ["complete"], "changes": ["T=1", "T=2"]}
    full_row = Row("lamp", True, "complete")
    assert rows(models="lamp", **steps) == [changed(full_row, change=f"T={t}") for t in (1, 2)]
    message = r"'--models' to be some of label frequency, linear SVM.*\(got 'nothing'\)"
    with pytest.raises(SystemExit, match=message):
        rows(models="nothing")


def test_a_rival_in_the_family_is_a_model_of_the_tables(said, monkeypatch):
    with pytest.raises(SystemExit, match=r"'--models' to be some of .*\(got 'mine'\)"):
        said(models="mine")
    changes = {"objective": {"intermediate_weight": 0.0}}
    monkeypatch.setitem(FAMILY, "mine", Member(pooled_mlp, changes))
    lines = said(models="mine,gaml", node_messages="true")
    assert cells_of(lines) == [f"bibtex/{name}-node-messages-s10" for name in ("gaml", "mine")]
    assert any(line.startswith("| mine fmp |") for line in lines)
    recipe = recipe_of("bibtex", Row("mine", True), channels=8)
    assert (recipe.build, recipe.model["channels"]) == (pooled_mlp, 8)


def test_emotions_end_to_end(needs_emotions, root, own_runs, monkeypatch, capsys):
    monkeypatch.undo()  # This test trains models.
    monkeypatch.setattr("benchmarks.files.RUNS", own_runs)
    options = {"table": "lamp-1", "datasets": "emotions", "graphs": "complete"}
    options |= {"models": "lamp,label frequency,linear SVM", "node_messages": "false"}
    options |= {"root": root, "epochs": 1, "channels": 16, "seeds": 1}
    assert main(**options) == 0
    printed = capsys.readouterr().out
    assert "| LaMP emb fc | 0." in printed
    smaller = "d=16 instead of 512, learning rate 0.002 instead of 0.0002, 1 epoch"
    assert f"- {smaller}: emotions (LaMP emb fc)" in printed
    assert "3 made" in printed
    content = stored(tracked=False).set_index("row")["content"][FC]
    assert content["epochs"] == 1
    assert 0 < content["seconds_per_epoch"]["test"] < content["run"]["seconds"]
    assert np.isfinite(content["seconds_per_epoch"]["train"])
    assert content["run"]["on_validation"]["f1_micro"] > 0
    assert main(**options, budget=0.0) == 0
    assert "3 there" in capsys.readouterr().out
