from __future__ import annotations

import json
import sys
import time
from dataclasses import replace as changed
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.accuracy import paper_tables
from benchmarks.accuracy.cells import Cell, stored, without_own_steps
from benchmarks.accuracy.paper_tables import DATASETS, OTHER, Grid, estimate, main
from benchmarks.accuracy.runs import Row, Run
from tg_mlc.papers.recipes import RECIPES, Recipe

FC, EL, SVM = Row("lamp", False, "complete"), Row("lamp", False, "edgeless"), Row("linear SVM")
CELL = Cell("bibtex", FC, 10)


class NoSamples:
    """In place of data sets."""

    def describe(self, name: str) -> dict[str, Any]:
        return {"name": name, "sha256": "0"}

    def trial(self, name: str, recipe: Recipe, seed: int) -> tuple[Recipe, None]:
        return recipe, None


def made(cell: Cell, *_: Any) -> dict[str, Any]:
    if cell.row == EL:
        raise RuntimeError("does not train")
    metrics = dict.fromkeys(
        ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro"), 0.5
    )
    return {"run": Run(cell.row, cell.seed, "", 60.0, {**metrics}, []).to_dict(), "epochs": 1}


def settings(cell: Cell, recipe: Recipe, *_: Any) -> dict[str, Any]:
    return {"fit": recipe.fit}


@pytest.fixture(autouse=True)
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_tables, "run_cell", made)
    monkeypatch.setattr(paper_tables, "settings_of", settings)


def grid(**options: Any) -> Grid:
    return Grid(NoSamples(), **options)  # type: ignore[arg-type]


def test_a_cell_that_is_there_is_kept(own_runs: Path) -> None:
    assert grid().make(CELL, None) == "made"
    before = CELL.path(tracked=False).stat().st_mtime_ns
    assert grid().make(CELL, None) == "there"
    assert CELL.path(tracked=False).stat().st_mtime_ns == before
    assert not CELL.path(tracked=True).exists()
    assert grid(tracked=True).make(CELL, None) == "made"
    (there,) = stored(tracked=True)[["dataset", "row", "seed"]].to_numpy()
    assert Cell(*there) == CELL


def test_a_cell_with_other_settings_is_made_again_on_request_alone(own_runs: Path) -> None:
    grid(epochs=1).make(CELL, None)
    assert grid().make(CELL, None) == OTHER
    assert json.loads(CELL.path(tracked=False).read_text())["settings"]["fit"]["max_epochs"] == 1
    assert grid(again=True).make(CELL, None) == "made"
    assert grid().make(CELL, None) == "there"


def test_a_failed_cell_leaves_no_file(own_runs: Path) -> None:
    assert grid().make(Cell("bibtex", EL, 10), None) == "failed"
    assert stored(tracked=False).empty


def test_a_cell_is_begun_only_if_it_should_be_complete_in_time(own_runs: Path) -> None:
    soon, later = time.perf_counter() + 30, time.perf_counter() + 90
    assert grid().make(CELL, soon) == "made"  # nothing is known of it
    other_seed = Cell("bibtex", FC, 11)
    assert grid().make(other_seed, soon) == "left out because time is up"
    assert grid().make(CELL, soon) == "there"
    assert grid().make(other_seed, later) == "made"


def test_times_are_estimated_from_the_most_similar_cells() -> None:
    seconds = {
        CELL: 5.0,
        Cell("bibtex", EL, 10): 20.0,
        Cell("sider", FC, 10): 90.0,
        Cell("bibtex", SVM, 10): 1.0,
    }
    assert estimate(Cell("bibtex", FC, 11), seconds) == 5.0
    assert estimate(Cell("bibtex", Row("lamp", True, "prior"), 10), seconds) == 20.0
    assert estimate(Cell("reuters", FC, 10), seconds) == 0.0


def test_rows_that_took_least_time_elsewhere_come_first(own_runs: Path) -> None:
    some = grid()
    some.seconds = {
        Cell("sider", FC, 10): 9.0,
        Cell("sider", SVM, 10): 1.0,
        Cell("bibtex", EL, 11): 4.0,
    }
    cells = [Cell("bibtex", row, 10) for row in (FC, EL, SVM)]
    assert [cell.row for cell in sorted(cells, key=some.cost)] == [SVM, FC, EL]


def test_seeds_come_one_after_another_and_data_sets_in_their_order(
    own_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        Grid, "make", lambda self, cell, end: print(cell.dataset, cell.seed) or "made"
    )
    main(datasets="sider,bibtex", models="linear SVM", seeds=2)
    assert capsys.readouterr().out.splitlines()[:4] == [
        "sider 10",
        "bibtex 10",
        "sider 11",
        "bibtex 11",
    ]


def test_the_prior_of_mped_needs_wordnet_and_names_that_mean_something(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = Row("mped", True, "wordnet")
    assert paper_tables._suits("bibtex", row)
    assert not paper_tables._suits("yeast", row)
    monkeypatch.setattr(paper_tables, "find_folder", lambda: tmp_path)
    assert paper_tables._can_be_made(row)


def test_rows_that_lack_something_here_are_said(
    own_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_module("tg_mlc.graphs.wordnet"), "USUAL", ())
    for variable, value in {"WNSEARCHDIR": "", "NLTK_DATA": "", "HOME": str(own_runs)}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setitem(sys.modules, "napkinxc", None)
    monkeypatch.setattr(Grid, "make", lambda self, cell, end: print(cell.name) or "made")
    with pytest.raises(SystemExit, match=r"to choose a cell \(got none\)"):
        main(
            table="mped-2", datasets="bibtex", models="mped,label trees", graphs="wordnet", seeds=1
        )
    said = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert [line.split("Expected")[0] for line in said] == [
        "label trees: left out. ",
        "MPED wordnet: left out. ",
    ]
    assert "tg_mlc[extreme]" in said[0]


def test_all_graphs_are_run_by_default(
    own_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Grid, "make", lambda self, cell, end: print(cell.name) or "made")
    monkeypatch.setattr(paper_tables, "find_folder", lambda: own_runs)
    main(table="lamp-1", datasets="bibtex", models="lamp", node_messages="false", seeds=1)
    names = capsys.readouterr().out.splitlines()[:5]
    assert names == [
        f"cells/bibtex/lamp-{graph}-s10"
        for graph in ("edgeless", "complete", "prior", "learned", "wordnet")
    ]


def test_steps_of_a_grid(
    own_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Grid, "make", lambda self, cell, end: print(cell.name) or "made")
    main(models="mped", graphs="complete", steps="1,3", datasets="bibtex", seeds=1)
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"cells/bibtex/mped-node-messages-complete{t}-s10" for t in ("-T=1", "")
    ]


def test_label_dropout_of_a_grid(
    own_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Grid, "make", lambda self, cell, end: print(cell.name) or "made")
    main(
        models="lamp",
        node_messages="false",
        graphs="edgeless,complete",
        label_dropout="0.30,.5",
        datasets="bibtex",
        seeds=1,
    )
    names = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cells/")]
    assert names == [
        f"cells/bibtex/lamp-complete-label-dropout-{share}-s10" for share in ("0.3", "0.5")
    ]


@pytest.mark.parametrize("name", DATASETS)
def test_the_recipes_own_number_of_steps_is_no_change(name: str) -> None:
    own = RECIPES[name].as_published().model["num_steps"]
    assert without_own_steps(name, changed(FC, change=f"T={own}")) == FC
    assert without_own_steps(name, three := changed(FC, change=f"T={own + 1}")) == three
    for model in ("mped", "graph2graph"):
        row = Row(model, True, "complete", change="T=3")
        assert without_own_steps(name, row) == Row(model, True, "complete")
        assert without_own_steps(name, two := changed(row, change="T=2")) == two


def test_rows_of_a_grid() -> None:
    def rows(**changed: Any) -> list[Row]:
        options = {
            "models": "",
            "node_messages": "false,true",
            "graphs": ["edgeless", "complete"],
            "changes": [],
            **changed,
        }
        return paper_tables._rows(["lamp-1"], **options)

    assert {SVM, FC, EL, Row("lamp", True, "complete")} <= set(rows())
    assert rows(models="linear SVM") == [SVM]
    assert rows(
        models="lamp", node_messages="true", graphs=["complete"], changes=["T=1", "T=2"]
    ) == [
        Row("lamp", True, "complete", change="T=1"),
        Row("lamp", True, "complete", change="T=2"),
    ]
    with pytest.raises(
        SystemExit, match=r"'--models' to be some of label frequency, linear SVM.*\(got 'nothing'\)"
    ):
        rows(models="nothing")


def test_emotions_end_to_end(
    needs_emotions: None,
    root: Path,
    own_runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.undo()  # trains
    monkeypatch.setattr("benchmarks.files.RUNS", own_runs)
    options: dict[str, Any] = {
        "table": "lamp-1",
        "datasets": "emotions",
        "graphs": "complete",
        "node_messages": "false",
        "root": root,
    }
    options |= {
        "models": "lamp,label frequency,linear SVM",
        "epochs": 1,
        "channels": 16,
        "seeds": 1,
    }
    assert main(**options) == 0
    printed = capsys.readouterr().out
    assert "| LaMP emb fc | 0." in printed
    assert (
        "- d=16 instead of 512, learning rate 0.002 instead of 0.0002, 1 epoch: emotions (LaMP emb fc)"
        in printed
    )
    assert "3 made" in printed
    network = stored(tracked=False).set_index("row")["content"][FC]
    assert network["epochs"] == 1
    assert 0 < network["seconds_per_epoch"]["test"] < network["run"]["seconds"]
    assert np.isfinite(network["seconds_per_epoch"]["train"])
    assert network["run"]["on_validation"]["f1_micro"] > 0
    assert main(**options, budget=0.0) == 0
    assert "3 there" in capsys.readouterr().out
