import pytest

from benchmarks.accuracy.side_effects import AMOUNTS, DEFAULT, GIVEN, HIDDEN, METRICS, NEW
from benchmarks.files import describe_environment
from benchmarks.report.side_effects import page


def result(tasks, folds=3):
    """Returns a result whose metrics rise by 0.1 with every row and by 0.01 with every fold."""
    runs = []
    names = (*METRICS, "precision_at_10")
    for task in tasks:
        amounts = AMOUNTS if task == GIVEN else ("",)
        for fold in range(folds):
            for index, model in enumerate(("low", "high")):
                values = dict.fromkeys(names, 0.5 + 0.1 * index + 0.01 * fold)
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
def test_tasks_without_runs_are_left_out(tasks):
    text = page(result(tasks))
    titles = {GIVEN: "A new drug of which", HIDDEN: "Missing pairs"}
    assert {task for task, title in titles.items() if f"## {title}" in text} == {*tasks} - {NEW}
    assert "sha256 abcdef012345;" in text


def test_rows_with_fewer_folds_are_named():
    content = result((NEW,))
    content["runs"].append({**content["runs"][0], "model": "rare"})
    assert "Mean and standard deviation of 3 folds and 1 seed (folds of rare 1)." in page(content)


def test_a_default_of_fewer_folds_is_compared_with_the_last_row():
    content = result((NEW,))
    assert "The default, `tg_mlc.stacking.auto`, was not run." in page(content)
    first = content["runs"][0]
    values = dict.fromkeys(("roc_auc", "average_precision", "roc_auc_macro"), 0.4)
    default = {"model": DEFAULT, "settings": {"seconds": 150.0}}
    last = [run for run in content["runs"] if run["fold"] == first["fold"]][-1]["roc_auc"]
    content["runs"].append({**first, **values, **default})
    text = page(content)
    assert "with 150 seconds, was run on 1 of the folds only" in text
    default_values, last_values = (" / ".join([f"{value:.3f}"] * 3) for value in (0.4, last))
    assert f"{NEW}: {default_values} against {last_values}." in text
    assert f"| {DEFAULT}" not in text


def test_tables_contain_a_default_that_was_run_on_all_folds():
    content = result((NEW, GIVEN))
    settings = {"model": DEFAULT, "settings": {"seconds": 150.0}}
    runs = result((NEW, GIVEN), folds=4)["runs"]
    content["runs"] += [{**run, **settings} for run in runs if run["model"] == "high"]
    text = page(content)
    assert "The default is `tg_mlc.stacking.auto` with 150 seconds" in text
    # The fourth fold is left out because other rows lack it.
    assert f"| {DEFAULT} | **0.610** ± 0.010 |" in text
    assert f"| {DEFAULT} | **0.610** / **0.610** |" in text
