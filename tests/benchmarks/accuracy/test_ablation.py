from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.accuracy import ablation
from benchmarks.accuracy.ablation import CHANGES, Change, changes_of
from benchmarks.accuracy.runs import Row, frame
from benchmarks.report.comparisons import Comparison, short, spreads
from benchmarks.report.statistics import paired_tests
from tg_mlc.graphs import fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import BagEncoder
from tg_mlc.papers.recipes.tables import TABLES
from tg_mlc.stacking.classifiers import PUBLISHED
from tg_mlc.training import BinaryObjective, MultiLabelModule

NAMES = {kind: search.title for kind, search in PUBLISHED.items()}


def test_a_change_changes_what_it_names() -> None:
    recipe = TABLES["bibtex"]
    changed = Change(parts={"model": {"num_steps": 1}, "fit": {"ema_decay": None}}).of(recipe)
    assert changed.model == {**recipe.model, "num_steps": 1}
    assert changed.fit == {**recipe.fit, "ema_decay": None}
    assert changed.module == recipe.module
    assert Change().of(recipe) == recipe


@pytest.mark.parametrize("name", TABLES)
def test_only_what_changes_a_recipe_is_tried(name: str) -> None:
    recipe = TABLES[name]
    classifiers = [NAMES[kind] for kind in recipe.settings["classifiers"]]
    changes = changes_of(recipe, classifiers, "complete")
    model = LaMP(BagEncoder(2, 8), fully_connected(1), num_feature_layers=0)
    assert {"no messages among labels", "no base scores", "no averaged weights"} <= set(changes)
    for change in changes.values():
        changed = change.of(recipe)
        MultiLabelModule(model, ["a"], BinaryObjective(**changed.objective), **changed.module)  # takes all of them
        assert change.of(recipe) != recipe or change.graph == "edgeless" or change.base_scores is not None
        assert {NAMES[kind] for kind in change.base_scores or ()} <= set(classifiers)
    assert "no messages among labels" not in changes_of(recipe, classifiers, "edgeless")


def test_parts_that_a_recipe_does_without_are_left_out() -> None:
    both = [NAMES["svm"], NAMES["ridge"]]
    assert "one step" in changes_of(TABLES["bibtex"], both, "complete")
    assert "one step" not in changes_of(TABLES["delicious"], both, "complete")
    without = replace(TABLES["bibtex"], model={**TABLES["bibtex"].model, "score_skip": False})
    assert "no base scores in the logits" in changes_of(TABLES["bibtex"], both, "complete")
    assert "no base scores in the logits" not in changes_of(without, both, "complete")
    assert "base scores of the SVM alone" not in changes_of(TABLES["nuswide"], [NAMES["svm"]], "complete")


@pytest.mark.usefixtures("needs_emotions")
def test_end_to_end(tmp_path: Path, results: Path, own_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ("no base scores", "base scores of the SVM alone", "no messages among labels")
    monkeypatch.setattr(ablation, "CHANGES", {name: CHANGES[name] for name in kept})
    ablation.main(dataset="emotions", seeds=2, root=tmp_path, max_epochs=3)
    written = own_runs / "ablation-emotions.json"
    runs = frame(json.loads(written.read_text())["runs"])
    rows, whole = dict(iter(runs.groupby("row", sort=False))), Row("LaMP", False, "complete", "best")
    assert {Row("kernel ridge regression, tuned"), whole, replace(whole, change="no base scores")} < set(rows)
    densities = [rows[row]["density"].mean() for row in (replace(whole, graph="edgeless", change=kept[2]), whole)]
    assert densities[0] < densities[1] == 1.0
    # Without base scores three epochs teach little.
    ours, without = (spreads(rows[row])["roc_auc_macro"]["mean"] for row in (whole, replace(whole, change=kept[0])))
    assert ours > without + 0.02
    assert {test.row.change for test in paired_tests(runs)} == set(kept)
    written.rename(results / written.name)
    changes = [
        line.split(" | ")[0] for line in short(Comparison.load("ablation-emotions")) if line.startswith("| LaMP")
    ]
    assert changes == ["| LaMP", *(f"| LaMP, {name}" for name in ablation.CHANGES)]
