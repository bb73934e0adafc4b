from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import ablation
import environment
from ablation import CHANGES, WHOLE, Change
from render import table
from tg_mlc.recipes import TABLES


def test_a_change_changes_what_it_names() -> None:
    recipe = TABLES["bibtex"]
    changed = Change(parts={"model": {"num_steps": 1}, "fit": {"ema_decay": None}}).of(recipe)
    assert changed.model == {**recipe.model, "num_steps": 1}
    assert changed.fit == {**recipe.fit, "ema_decay": None}
    assert changed.module == recipe.module
    assert Change().of(recipe) == recipe


def test_every_change_names_arguments_of_the_recipe() -> None:
    recipe = TABLES["bibtex"]
    for name, change in CHANGES.items():
        for part, values in change.parts.items():
            assert set(values) <= set(getattr(recipe, part)), name
            assert getattr(recipe, part) != {**getattr(recipe, part), **values}, f"{name} changes nothing"


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
