import json
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from benchmarks.accuracy import given_labels
from benchmarks.accuracy.given_labels import LOGISTIC, PLAIN, ROWS, SHARES, WITH_MASKS, Trial
from benchmarks.accuracy.runs import FREQUENCY, Task
from tg_mlc.data import ArrayDataset, random_split
from tg_mlc.data.bags import inputs_of
from tg_mlc.data.records import Records
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY

NAMES = ["a", "b", "twin of a", "twin of b"]


@pytest.fixture
def twins():
    """Returns words independent of the labels. The last two labels repeat the first two."""
    rng = np.random.default_rng(0)
    words = (rng.random((120, 12)) < 0.4).astype(np.float32)
    y = (rng.random((120, 2)) < 0.5).astype(np.float32)
    return ArrayDataset(Records(sp.csr_array(words), np.hstack([y, y]), NAMES).to_samples())


def make_trial(dataset, seed=0):
    recipe = RECIPES["bookmarks"].as_member(FAMILY["lamp-given"])
    task, split = Task("bookmarks", dataset, recipe), random_split(len(dataset), seed=seed)
    return Trial(task, split, seed, {"max_epochs": 1}, dataset, 0.0)


def test_larger_fractions_include_the_given_labels_of_smaller_fractions(twins):
    test = torch.arange(60)
    matrices = [make_trial(twins).given(test, fraction) for fraction in SHARES]
    assert matrices[0].isnan().all()
    for fewer, more in pairwise(matrices):
        assert torch.equal(more[~fewer.isnan()], fewer[~fewer.isnan()])
    half, known = matrices[5], ~matrices[5].isnan()
    assert known.float().mean() == pytest.approx(0.5, abs=0.1)
    assert torch.equal(half[known], twins.y[test][known])
    assert not torch.equal(make_trial(twins, seed=1).given(test, 0.5).isnan(), ~known)


def test_the_regression_uses_given_values_of_other_labels(twins):
    trial = make_trial(twins)
    predict, settings = ROWS[LOGISTIC](trial)
    y = twins.y[trial.split.test]
    scores = predict(torch.where(torch.arange(4) == 0, y, torch.nan))
    assert ((scores[:, 2] > 0.5) == (y[:, 2] > 0).numpy()).all()
    assert settings["encoding"] in given_labels.ENCODINGS
    assert settings["best_value"] > 0.6


@pytest.mark.parametrize("row", ROWS)
def test_training_and_tuning_see_no_test_label(row, twins):
    learned, from_other_tests = learned_twice(row, twins)
    assert learned == from_other_tests


@pytest.mark.parametrize("encoding", given_labels.ENCODINGS)
def test_encodings_of_known_labels_see_no_test_label(encoding, twins, monkeypatch):
    monkeypatch.setattr(given_labels, "ENCODINGS", {encoding: given_labels.ENCODINGS[encoding]})
    learned, from_other_tests = learned_twice(LOGISTIC, twins)
    assert learned == from_other_tests


def learned_twice(row, dataset):
    """Returns scores and settings of a row with original and with inverted test labels."""
    y, test = dataset.y.clone(), make_trial(dataset).split.test
    y[test] = 1.0 - y[test]
    changed = ArrayDataset(Records(sp.csr_array(inputs_of(dataset)), y.numpy(), NAMES).to_samples())
    results = []
    for samples in (dataset, changed):
        trial = make_trial(samples)
        prepared = trial.task.recipe.prepare(samples, trial.split)
        predict, settings = ROWS[row](make_trial(prepared))
        results.append((np.asarray(predict(None)).tolist(), settings))
    return results


def test_main_writes_scores_of_labels_that_are_not_given(twins, tmp_path, own_runs, monkeypatch):
    monkeypatch.setattr(type(RECIPES["bookmarks"]), "load_dataset", lambda self, root: twins)
    given_labels.main(dataset="bookmarks", seeds=1, root=tmp_path, max_epochs=1, seconds=0.0)
    result = json.loads((own_runs / "given_labels-bookmarks.json").read_text())
    points = {(run["model"], run["share"], run["given"]): run for run in result["runs"]}
    for row in (FREQUENCY, PLAIN):
        assert not any(key[0] == row and key[2] for key in points)
    with_given, without = (points[LOGISTIC, 0.9, given] for given in (True, False))
    assert with_given["roc_auc_macro"] > without["roc_auc_macro"]
    for share in SHARES[1:]:
        assert points[FREQUENCY, share, False]["roc_auc_macro"] == 0.5
    assert points[WITH_MASKS, 0.5, True] != points[WITH_MASKS, 0.5, False]
    assert result["recipes"]["lamp-given"]["module"]["max_given"] == 0.75
    assert result["recipes"]["lamp-given"]["fit"]["max_epochs"] == 1
    assert result["seeds"] == [10]
