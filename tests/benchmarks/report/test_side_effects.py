from __future__ import annotations

import pytest

from benchmarks.accuracy.side_effects import AMOUNTS, DEFAULT, GIVEN, HIDDEN, METRICS, NEW
from benchmarks.files import describe_environment
from benchmarks.report.side_effects import page


def result(tasks, folds=3):
    """Metrics that rise by a tenth with the row, and by a hundredth with every fold."""
    runs = []
    names = (*METRICS, "precision_at_10")
    for task in tasks:
        amounts = AMOUNTS if task == GIVEN else ("",)
        for fold in range(folds):
            for place, model in enumerate(("low", "high")):
                values = dict.fromkeys(names, 0.5 + 0.1 * place + 0.01 * fold)
                shared = {"task": task, "fold": fold, "seed": 0, "model": model, **values}
                runs += [{**shared, "given": given} for given in amounts]
    dataset = {"sha256": "abcdef0123456789"}
    return {"runs": runs, "dataset": dataset, "environment": describe_environment()}


def test_all_three_tasks_have_a_table():
    lines = page(result((NEW, GIVEN, HIDDEN))).splitlines()
    assert lines.count("| high | " + " | ".join(["**0.610** ± 0.010"] * 3) + " |") == 2
    assert "| low | " + " | ".join(["0.510 / 0.510"] * len(AMOUNTS)) + " |" in lines
    assert "| high | " + " | ".join(["**0.610** / **0.610**"] * len(AMOUNTS)) + " |" in lines
    assert "| high | " + " | ".join(["**0.610**"] * len(AMOUNTS)) + " |" in lines


@pytest.mark.parametrize("tasks", [(NEW,), (NEW, GIVEN), (NEW, HIDDEN)])
def test_what_was_not_run_is_left_out(tasks):
    text = page(result(tasks))
    titles = {GIVEN: "A new drug of which", HIDDEN: "Missing pairs"}
    assert {task for task, title in titles.items() if f"## {title}" in text} == {*tasks} - {NEW}
    assert "sha256 abcdef012345;" in text


def test_rows_with_fewer_folds_are_named():
    found = result((NEW,))
    found["runs"].append({**found["runs"][0], "model": "rare"})
    assert "Mean and standard deviation of 3 folds and 1 seed (folds of rare 1)." in page(found)


def test_a_default_of_fewer_folds_stands_beside_the_last_row_on_these():
    found = result((NEW,))
    assert "The default, `tg_mlc.stacking.auto`, was not run." in page(found)
    first = found["runs"][0]
    values = dict.fromkeys(("roc_auc", "average_precision", "roc_auc_macro"), 0.4)
    default = {"model": DEFAULT, "settings": {"seconds": 150.0}}
    last = [run for run in found["runs"] if run["fold"] == first["fold"]][-1]["roc_auc"]
    found["runs"].append({**first, **values, **default})
    text = page(found)
    assert "with 150 seconds, was run on 1 of the folds only" in text
    ours, others = (" / ".join([f"{value:.3f}"] * 3) for value in (0.4, last))
    assert f"{NEW}: {ours} against {others}." in text
    assert f"| {DEFAULT}" not in text


def test_the_default_is_in_the_tables_if_it_was_run_on_all_of_their_folds():
    found = result((NEW, GIVEN))
    settings = {"model": DEFAULT, "settings": {"seconds": 150.0}}
    runs = result((NEW, GIVEN), folds=4)["runs"]
    found["runs"] += [{**run, **settings} for run in runs if run["model"] == "high"]
    text = page(found)
    assert "The default is `tg_mlc.stacking.auto` with 150 seconds" in text
    # The fourth fold, which the others lack, is left out.
    assert f"| {DEFAULT} | **0.610** ± 0.010 |" in text
    assert f"| {DEFAULT} | **0.610** / **0.610** |" in text
