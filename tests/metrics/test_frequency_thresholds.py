from __future__ import annotations

import numpy as np
import pytest
import torch

from tg_mlc.metrics import ThresholdTuner, evaluate, tune_thresholds
from tg_mlc.metrics.tuning import STRENGTHS

rng = np.random.default_rng(0)
FREQUENCIES = np.array([0.5, 0.2, 0.05, 0.01])
Y_TRAIN = (rng.random((4000, 4)) < FREQUENCIES).astype(float)


def labels_and_scores(num_samples=4000):
    """Labels whose true log odds shrink towards their frequencies, as those of a cautious model do."""
    y = (rng.random((num_samples, 4)) < FREQUENCIES).astype(float)
    base_scores = 3 * (2 * y - 1) + 2 * rng.standard_normal(y.shape)
    return y, 1 / (1 + np.exp(-0.5 * base_scores - np.log(FREQUENCIES)))


def test_rare_labels_get_lower_thresholds_and_macro_f1_gains():
    (y, scores), (y_test, scores_test) = labels_and_scores(), labels_and_scores()
    one = tune_thresholds(y, scores)
    several = tune_thresholds(y, scores, "frequency", y_train=Y_TRAIN)
    thresholds = several["f1_macro"].thresholds
    assert (np.diff(thresholds) < 0).all()
    assert several["f1_macro"].best_value > one["f1_macro"].best_value + 0.05
    gained = evaluate(y_test, scores_test, several)["f1_macro"] - evaluate(y_test, scores_test, one)["f1_macro"]
    assert gained > 0.05


@pytest.mark.parametrize("strengths", [(0.0,), STRENGTHS])
@pytest.mark.parametrize("steps", [None, 20])
def test_the_value_is_that_of_the_thresholds(strengths, steps):
    y, scores = labels_and_scores(500)
    if steps:  # votes of a few trees lie on the very thresholds that are tried
        scores = np.round(scores * steps) / steps
    for name, tuner in tune_thresholds(y, scores, "frequency", y_train=Y_TRAIN, strengths=strengths).items():
        assert tuner.best_value == pytest.approx(evaluate(y, scores, tuner)[name])


def test_without_strength_there_is_one_threshold():
    y, scores = labels_and_scores(500)
    for name, tuner in tune_thresholds(y, scores, "frequency", y_train=Y_TRAIN, strengths=(0.0,)).items():
        reference = ThresholdTuner(name).fit(y, scores)
        np.testing.assert_array_equal(tuner.thresholds, np.full(4, reference.threshold))
        assert tuner.best_value == reference.best_value


def test_ties_keep_the_weakest_strength():
    y = np.array([[1.0, 1.0], [0.0, 0.0]])
    scores = np.array([[0.99, 0.99], [0.001, 0.001]])
    tuner = tune_thresholds(y, scores, "frequency", y_train=np.array([[1.0, 0.0]] * 9))["subset_accuracy"]
    assert tuner.best_value == 1.0
    assert tuner.thresholds[0] == tuner.thresholds[1]


def test_unknown_labels_count_neither_as_frequency_nor_as_error():
    y, scores = labels_and_scores(500)
    holes = np.where(rng.random(Y_TRAIN.shape) < 0.5, np.nan, Y_TRAIN)
    reference = np.where(np.isnan(holes), 0.0, holes)
    assert not np.array_equal(np.nanmean(holes, axis=0), reference.mean(axis=0))
    thresholds = tune_thresholds(y, scores, "frequency", y_train=holes, strengths=(0.5,))["f1_macro"].thresholds
    odds = np.log(thresholds / (1 - thresholds))
    frequencies = (np.nansum(holes, axis=0) + 1) / ((~np.isnan(holes)).sum(axis=0) + 2)
    np.testing.assert_allclose(np.diff(odds), 0.5 * np.diff(np.log(frequencies)))


def test_they_are_kept_like_others():
    y, scores = labels_and_scores(500)
    options = {"y_train": Y_TRAIN, "metrics": ["f1_macro"]}
    tuner = tune_thresholds(torch.from_numpy(y), torch.from_numpy(scores), "frequency", **options)["f1_macro"]
    again = ThresholdTuner().load_state_dict(tuner.state_dict())
    np.testing.assert_array_equal(again.predict(scores), tuner.predict(scores))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_train": Y_TRAIN[:, :3]}, "'y_train' with 4 labels"),
        ({"strengths": ()}, "'strengths' to hold at least one"),
        ({"scores": np.full((9, 4), 3.0)}, "Expected probabilities"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"y": np.eye(9, 4), "scores": np.full((9, 4), 0.5), "y_train": Y_TRAIN, **change}
    with pytest.raises(ValueError, match=message):
        tune_thresholds(method="frequency", **arguments)
