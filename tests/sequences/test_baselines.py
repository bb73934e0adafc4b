from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.sequences.histories import split_histories
from tg_mlc.sequences import (
    TIFUKNN,
    GlobalFrequency,
    LastSet,
    LogisticHistory,
    PersonalFrequency,
)
from tg_mlc.sequences.baselines import past_events

BASELINES = [GlobalFrequency, LastSet, PersonalFrequency, TIFUKNN, LogisticHistory]


@pytest.fixture
def data():
    return split_histories()


def predictions(baseline, data, targets=None):
    """Returns the scores of the given targets, or of those of the test part."""
    dataset, split = data
    fitted = baseline.fit(dataset, split.train)
    return fitted.predict_proba(dataset, split.test if targets is None else targets)


def past_labels(dataset, target):
    return dataset.y.toarray()[dataset.ptr[dataset.entity_of[target]] : target]


@pytest.mark.parametrize("make", BASELINES)
def test_targets_are_predicted_one_by_one_and_without_their_own_labels(data, make):
    dataset, split = data
    fitted, last = make().fit(dataset, split.train), split.test[-1:].numpy()
    scores = fitted.predict_proba(dataset, np.arange(len(dataset)))
    assert scores.shape == (len(dataset), dataset.num_labels)
    assert 0 <= scores.min() <= scores.max() <= 1  # even without history
    dataset.y.data[dataset.y.indptr[last[0]] :] = 0.0
    np.testing.assert_allclose(fitted.predict_proba(dataset, last), scores[last], rtol=1e-5)


def test_frequencies_are_those_of_training(data):
    dataset, split = data
    expected = dataset.y.toarray()[split.train].mean(axis=0)
    scores, last = predictions(GlobalFrequency(), data), predictions(LastSet(), data)
    np.testing.assert_allclose(scores, np.tile(expected, (len(split.test), 1)), rtol=1e-6)
    expected = (dataset.y.toarray()[split.test - 1] + expected) / 2
    np.testing.assert_allclose(last, expected, rtol=1e-6)


def test_personal_frequencies_decay_and_back_off_to_global_frequencies(data):
    dataset, split = data
    baseline = PersonalFrequency(decay=0.8, backoff=2.0)
    for target, scores in zip(split.test.tolist(), predictions(baseline, data), strict=True):
        past = past_labels(dataset, target)
        weight = 0.8 ** np.arange(len(past))[::-1]
        expected = (weight @ past + 2 * baseline.frequency) / (weight.sum() + 2)
        np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_groups_of_a_history_are_weighted(data):
    dataset, split = data
    baseline = TIFUKNN(group_size=3, within_decay=0.9, group_decay=0.5, alpha=1.0)
    for target, scores in zip(split.test.tolist(), predictions(baseline, data), strict=True):
        past = past_labels(dataset, target)[::-1]
        groups = [past[start : start + 3] for start in range(0, len(past), 3)]
        within = [0.9 ** np.arange(len(group)) / len(group) for group in groups]
        weights = [0.5**g * weight for g, weight in enumerate(within)]
        expected = sum(weight @ group for weight, group in zip(weights, groups, strict=True))
        np.testing.assert_allclose(scores, expected / np.concatenate(weights).sum(), rtol=1e-6)


def test_neighbours_are_histories_of_training(data):
    dataset, split = data
    train = split.train.numpy()
    ends = np.array([train[dataset.entity_of[train] == entity].max() + 1 for entity in range(6)])
    own = predictions(TIFUKNN(alpha=1.0), data, ends)
    others = predictions(TIFUKNN(num_neighbors=100, alpha=0.0), data)
    expected = np.tile(own.mean(axis=0), (len(split.test), 1))
    np.testing.assert_allclose(others, expected, rtol=1e-6)
    nearest = predictions(TIFUKNN(num_neighbors=1, alpha=0.0), data, ends)
    np.testing.assert_allclose(nearest, own, rtol=1e-6)


def test_logistic_history_equals_the_regression_of_scikit_learn(data):
    dataset, split = data
    train, test = split.train.numpy(), split.test.numpy()
    baseline = LogisticHistory(window_size=2, decay=1.0, weight_decay=0.5, max_iter=200)
    x = []
    for past in (past_events(dataset, targets, window_size=2) for targets in (train, test)):
        x.append(np.sqrt((past @ dataset.y).toarray() / np.maximum(past.sum(axis=1), 1)[:, None]))
    regression = LogisticRegression(C=2.0, tol=1e-8, max_iter=1000)
    expected = regression.fit(x[0], dataset.y[train].toarray()[:, 0]).predict_proba(x[1])[:, 1]
    np.testing.assert_allclose(predictions(baseline, data)[:, 0], expected, atol=1e-3)


@pytest.mark.parametrize(
    ("make", "option", "value", "expected"),
    [
        (PersonalFrequency, "decay", 1.5, r"a number in \[0, 1\]"),
        (PersonalFrequency, "backoff", 0.0, "above 0"),
        (TIFUKNN, "group_size", 0, "a whole number"),
        (TIFUKNN, "num_neighbors", 0, "a whole number"),
        (TIFUKNN, "alpha", -1, r"a number in \[0, 1\]"),
        (LogisticHistory, "window_size", 0, "a whole number"),
        (LogisticHistory, "weight_decay", -1.0, "a finite number of at least 0"),
    ],
)
def test_malformed_options_are_refused(make, option, value, expected):
    with pytest.raises(ValueError, match=f"'{option}' to be {expected}"):
        make(**{option: value})
