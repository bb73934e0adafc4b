from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import environment
from benchmarks.accuracy import ablation
from benchmarks.accuracy.ablation import CHANGES, WHOLE, Change, changes_of
from benchmarks.report.render import table
from tg_mlc.graphs import fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import BagEncoder
from tg_mlc.recipes import TABLES
from tg_mlc.recipes._evidence import NAMES
from tg_mlc.training import MultiLabelModule


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
    changes = changes_of(recipe, classifiers, "fc")
    model = LaMP(BagEncoder(2, 8), fully_connected(1), "emb")
    assert {WHOLE, "no messages among labels", "no evidence", "no averaged weights"} <= set(changes)
    for change in list(changes.values())[1:]:
        MultiLabelModule(model, ["a"], **change.of(recipe).module)  # takes all these arguments
        assert change.of(recipe) != recipe or change.graph == "el" or change.evidence is not None
        assert {NAMES[kind] for kind in change.evidence or ()} <= set(classifiers)
    assert "no messages among labels" not in changes_of(recipe, classifiers, "el")


def test_parts_that_a_recipe_does_without_are_left_out() -> None:
    both = [NAMES["svm"], NAMES["ridge"]]
    assert "one step" in changes_of(TABLES["bibtex"], both, "fc")
    assert "one step" not in changes_of(TABLES["delicious"], both, "fc")
    without = replace(TABLES["bibtex"], model={**TABLES["bibtex"].model, "evidence_skip": False})
    assert "no evidence in the logits" in changes_of(TABLES["bibtex"], both, "fc")
    assert "no evidence in the logits" not in changes_of(without, both, "fc")
    assert "evidence of the SVM alone" not in changes_of(TABLES["nuswide"], [NAMES["svm"]], "fc")


def test_data_sets_without_a_table_are_refused() -> None:
    with pytest.raises(SystemExit, match="--dataset to be one of bibtex"):
        ablation.main(dataset="sider")


def test_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (Path(os.environ.get("TG_MLC_DATA", "")) / "emotions" / "raw").is_dir():
        pytest.skip("TG_MLC_DATA does not name a folder with emotions/raw")
    monkeypatch.setattr(environment, "RESULTS", tmp_path)
    kept = ("no evidence", "evidence of the SVM alone", "no messages among labels")
    monkeypatch.setattr(ablation, "CHANGES", {name: CHANGES[name] for name in (WHOLE, *kept)})
    ablation.main(dataset="emotions", seeds=2, root=tmp_path, max_epochs=3)
    result = json.loads((tmp_path / "ablation-emotions.json").read_text())
    rows = result["summary"]
    assert {WHOLE, *kept, "kernel ridge regression, tuned"} < set(rows)
    assert rows["no messages among labels"]["density"] < rows[WHOLE]["density"] == 1.0
    # Without evidence three epochs teach little.
    assert rows[WHOLE]["metrics"]["maAUC"]["mean"] > rows["no evidence"]["metrics"]["maAUC"]["mean"] + 0.02
    assert {test["row"] for test in result["tests"]} == set(kept)
    assert "no evidence against the recipe, maAUC" in table(result)
