import json
from dataclasses import replace

import pytest

from benchmarks.accuracy import settings
from benchmarks.accuracy.settings import SETTINGS, values_of, with_setting
from tests.benchmarks.accuracy.test_cells import SPLIT, samples
from tg_mlc.papers.recipes.tables import TABLES


def test_every_value_other_than_that_of_the_recipe_is_tried_once():
    recipe = TABLES["bibtex"].as_published()
    values = list(values_of(recipe))
    assert values[0] == (None, None)
    num_values = 1 + sum(len(choices) - 1 for _, _, choices in SETTINGS.values())
    assert len(values) == len(set(values)) == num_values
    for setting, value in values[1:]:
        changed = with_setting(recipe, setting, value)
        assert changed != recipe
        assert getattr(changed, SETTINGS[setting][0])[SETTINGS[setting][1]] == value
    assert with_setting(recipe, None, None) == recipe


@pytest.fixture
def few(monkeypatch):
    """Reduces Bibtex to few samples and the settings to one change."""
    monkeypatch.setattr(settings, "SETTINGS", {"epochs": ("fit", "max_epochs", (1, 2))})
    recipe = TABLES["bibtex"]

    def put(*, other_test):
        load, split = (lambda root: samples(other_test=other_test)), (lambda *args: SPLIT)
        data = replace(recipe.data, load=load, split=split)
        published = {**recipe.published, "fit": {"max_epochs": 1}}
        reduced = replace(recipe, data=data, published=published)
        monkeypatch.setitem(TABLES, "bibtex", reduced)

    return put


def read_runs(folder):
    runs = json.loads((folder / "settings-bibtex.json").read_text())["runs"]
    return [{**run, "seconds": 0.0} for run in runs]


def test_main_writes_scores_of_validation_samples(few, own_runs, tmp_path):
    results = []
    for other_test in (False, True):
        few(other_test=other_test)
        settings.main(root=tmp_path / str(other_test), channels=8)
        results.append(read_runs(own_runs))
    assert results[0] == results[1]  # No test sample is used.
    trials = [(run["setting"], run["value"], run["epochs"]) for run in results[0]]
    assert trials == [(None, None, 1), ("epochs", 2, 2)]
    assert all(0 < run["validation"] < 1 for run in results[0])


def test_existing_runs_of_the_same_options_are_kept(few, own_runs, tmp_path, monkeypatch):
    few(other_test=False)
    settings.main(root=tmp_path, channels=8)

    def trial(*args):
        run = {"setting": args[3], "value": args[4], "seed": args[2], "validation": 0.5}
        return [{**run, "epochs": 1, "seconds": 1.0}]

    monkeypatch.setattr(settings, "trial", trial)
    earlier_runs = read_runs(own_runs)
    settings.main(root=tmp_path, channels=8, seeds=2)
    assert read_runs(own_runs)[:2] == earlier_runs
    assert [result["validation"] for result in read_runs(own_runs)[2:]] == [0.5, 0.5]
    settings.main(root=tmp_path, channels=16)
    assert [result["validation"] for result in read_runs(own_runs)] == [0.5, 0.5]
