from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.sequences.histories import histories
from tg_mlc.sequences import (
    TIFUKNN,
    EventPreprocessor,
    GlobalFrequency,
    LastSet,
    LogisticHistory,
    PersonalFrequency,
    time_split,
)
from tg_mlc.sequences.baselines import past_events

BASELINES = [GlobalFrequency, LastSet, PersonalFrequency, TIFUKNN, LogisticHistory]


@pytest.fixture
def data():
    events = histories()
    split = time_split(events)
    return EventPreprocessor().fit_transform(events, split), split


def before(dataset, target):
    return dataset.y.toarray()[dataset.ptr[dataset.entity_of[target]] : target]


@pytest.mark.parametrize("make", BASELINES)
def test_scores_are_between_0_and_1_even_without_history(data, make):
    dataset, split = data
    scores = make().fit(dataset, split.train).predict_proba(dataset, np.arange(len(dataset)))
    assert scores.shape == (len(dataset), dataset.num_labels)
    assert (scores >= 0).all()
    assert (scores <= 1).all()


@pytest.mark.parametrize("make", BASELINES)
def test_targets_are_predicted_one_by_one_and_without_their_own_labels(data, make):
    dataset, split = data
    fitted = make().fit(dataset, split.train)
    scores = fitted.predict_proba(dataset, split.test)
    dataset.y.data[dataset.y.indptr[int(split.test[-1])] :] = 0.0
    np.testing.assert_allclose(
        fitted.predict_proba(dataset, split.test[-1:]), scores[-1:], rtol=1e-5
    )


def test_frequencies(data):
    dataset, split = data
    expected = dataset.y.toarray()[split.train].mean(axis=0)
    scores = GlobalFrequency().fit(dataset, split.train).predict_proba(dataset, split.test)
    np.testing.assert_allclose(scores, np.tile(expected, (len(split.test), 1)), rtol=1e-6)
    last = LastSet().fit(dataset, split.train).predict_proba(dataset, split.test)
    np.testing.assert_allclose(
        last, (dataset.y.toarray()[split.test - 1] + expected) / 2, rtol=1e-6
    )


def test_personal_frequencies(data):
    dataset, split = data
    baseline = PersonalFrequency(decay=0.8, backoff=2.0).fit(dataset, split.train)
    for target, scores in zip(
        split.test.tolist(), baseline.predict_proba(dataset, split.test), strict=True
    ):
        past = before(dataset, target)
        weight = 0.8 ** np.arange(len(past))[::-1]
        expected = (weight @ past + 2 * baseline.frequency) / (weight.sum() + 2)
        np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_groups_of_a_history(data):
    dataset, split = data
    alone = TIFUKNN(group_size=3, within_decay=0.9, group_decay=0.5, alpha=1.0).fit(
        dataset, split.train
    )
    for target, scores in zip(
        split.test.tolist(), alone.predict_proba(dataset, split.test), strict=True
    ):
        past = before(dataset, target)[::-1]
        groups = [past[start : start + 3] for start in range(0, len(past), 3)]
        weights = [
            0.5**g * 0.9 ** np.arange(len(group)) / len(group) for g, group in enumerate(groups)
        ]
        expected = sum(weight @ group for weight, group in zip(weights, groups, strict=True))
        np.testing.assert_allclose(scores, expected / np.concatenate(weights).sum(), rtol=1e-6)


def test_neighbours_are_histories_of_training(data):
    dataset, split = data
    own = TIFUKNN(alpha=1.0).fit(dataset, split.train)
    ends = (
        np.array(
            [
                max(t for t in split.train.tolist() if dataset.entity_of[t] == entity)
                for entity in range(6)
            ]
        )
        + 1
    )
    histories_of_all = own.predict_proba(dataset, ends)
    others = (
        TIFUKNN(num_neighbors=100, alpha=0.0)
        .fit(dataset, split.train)
        .predict_proba(dataset, split.test)
    )
    np.testing.assert_allclose(
        others, np.tile(histories_of_all.mean(axis=0), (len(split.test), 1)), rtol=1e-6
    )
    nearest = (
        TIFUKNN(num_neighbors=1, alpha=0.0).fit(dataset, split.train).predict_proba(dataset, ends)
    )
    np.testing.assert_allclose(nearest, histories_of_all, rtol=1e-6)


def test_logistic_regression_is_that_of_scikit_learn(data):
    dataset, split = data
    train, test = split.train.numpy(), split.test.numpy()
    fitted = LogisticHistory(window_size=2, decay=1.0, weight_decay=0.5, max_iter=200).fit(
        dataset, train
    )
    x = []
    for past in (past_events(dataset, targets, window_size=2) for targets in (train, test)):
        x.append(np.sqrt((past @ dataset.y).toarray() / np.maximum(past.sum(axis=1), 1)[:, None]))
    expected = LogisticRegression(C=2.0, tol=1e-8, max_iter=1000).fit(
        x[0], dataset.y[train].toarray()[:, 0]
    )
    found = fitted.predict_proba(dataset, test)[:, 0]
    np.testing.assert_allclose(found, expected.predict_proba(x[1])[:, 1], atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PersonalFrequency(decay=1.5), r"'decay' to be a number in \[0, 1\]"),
        (lambda: PersonalFrequency(backoff=0.0), "'backoff' to be above 0"),
        (lambda: TIFUKNN(group_size=0), "'group_size' to be a whole number"),
        (lambda: TIFUKNN(num_neighbors=0), "'num_neighbors' to be a whole number"),
        (lambda: TIFUKNN(alpha=-1), r"'alpha' to be a number in \[0, 1\]"),
        (lambda: LogisticHistory(window_size=0), "'window_size' to be a whole number"),
        (
            lambda: LogisticHistory(weight_decay=-1.0),
            "'weight_decay' to be a finite number of at least 0",
        ),
    ],
)
def test_malformed_options_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
