from __future__ import annotations

import numpy as np
import pytest
import torch

from tg_mlc.metrics import ThresholdTuner, evaluate, tune_thresholds
from tg_mlc.metrics.tuning import STRENGTHS


def drawn(num_samples, scale, seed=0):
    """Labels with probabilities below a half; scores that are these, scaled by one factor for each label."""
    random = np.random.default_rng(seed)
    probability = random.random((num_samples, len(scale))) ** 2
    return (random.random(probability.shape) < probability).astype(float), probability * scale


def test_each_label_has_its_threshold_where_scores_differ_in_scale():
    y, scores = drawn(2000, np.array([1.0, 0.1, 0.5]))
    tuner = tune_thresholds(y, scores, "cross_fitted", metrics=["f1_macro"])["f1_macro"]
    ratio = tuner.fitted() / tuner.fitted()[0]
    np.testing.assert_allclose(ratio, [1.0, 0.1, 0.5], rtol=0.3)


def test_one_threshold_serves_all_labels_where_there_are_few_samples_of_each():
    y, scores = drawn(40, np.ones(200))
    assert tune_thresholds(y, scores, "cross_fitted", metrics=["f1_micro"])["f1_micro"].fitted().shape == (1,)


def test_new_samples_are_decided_as_well_as_with_the_best_of_one_kind():
    y, scores = drawn(3000, np.array([1.0, 0.2, 0.6, 0.4]))
    new = drawn(3000, np.array([1.0, 0.2, 0.6, 0.4]), seed=1)
    found, shared = (evaluate(*new, tune_thresholds(y, scores, method)) for method in ("cross_fitted", "shared"))
    assert found["f1_macro"] > shared["f1_macro"] + 0.02
    assert all(
        found[metric] > shared[metric] - 0.01
        for metric in ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro")
    )


def test_unknown_labels_are_left_out():
    y, scores = drawn(500, np.ones(3))
    y[::2, 0] = np.nan
    changed = np.where(np.isnan(y), 0.99, scores)
    for metric, tuner in tune_thresholds(y, scores, "cross_fitted").items():
        assert (tuner.fitted() == tune_thresholds(y, changed, "cross_fitted")[metric].fitted()).all()


def test_refuses_logits():
    with pytest.raises(ValueError, match="Expected probabilities"):
        tune_thresholds([[0, 1], [1, 0], [0, 1], [1, 0]], [[-3.0, 3], [1, 1], [0, 2], [4, 1]], "cross_fitted")


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


def rank_thresholds_drawn(num_samples, scale, seed=0):
    """Rare labels whose positives have the highest scores, on a scale of its own for each label."""
    random = np.random.default_rng(seed)
    y = (random.random((num_samples, len(scale))) < 0.02).astype(float)
    return y, np.clip(0.3 * y + random.random(y.shape) * 0.4, 0, 1) * scale


def test_labels_are_predicted_as_often_as_they_occur():
    y, scores = rank_thresholds_drawn(500, np.array([1.0, 0.5, 0.1]))
    tuner = tune_thresholds(y, scores, "rank", metrics=["f1_macro"])["f1_macro"]
    predicted = tuner.predict(scores).sum(axis=0)
    assert (abs(predicted - predicted.sum() / y.sum() * y.sum(axis=0)) <= 1).all()
    assert tuner.best_value == pytest.approx(evaluate(y, scores, tuner)["f1_macro"])


def test_a_positive_whose_score_held_out_is_low_does_not_lower_the_threshold():
    y, scores = np.zeros((9, 2)), np.full((9, 2), 0.1)
    y[:3, 0], scores[:3, 0] = 1, 0.9
    y[8, 1], scores[:, 1] = 1, np.linspace(0.2, 0.02, 9)
    assert 0.1 < tune_thresholds(y, scores, "rank")["f1_macro"].fitted()[1] <= 0.2
    assert tune_thresholds(y, scores, "per_label")["f1_macro"].fitted()[1] < 0.1


def test_labels_without_positives_are_not_predicted():
    y, scores = rank_thresholds_drawn(50, np.ones(3))
    y[:, 0], scores[:, 1], y[:, 2], scores[:, 2] = 0, 0.5, np.nan, 0.9
    assert not tune_thresholds(y, scores, "rank")["f1_macro"].predict(scores).any()


def test_rank_thresholds_unknown_labels_are_left_out():
    y, scores = rank_thresholds_drawn(500, np.ones(3))
    y[::2, 0] = np.nan
    changed = np.where(np.isnan(y), 0.99, scores)
    for metric, tuner in tune_thresholds(y, scores, "rank").items():
        assert (tuner.fitted() == tune_thresholds(y, changed, "rank")[metric].fitted()).all()


def test_rank_thresholds_refuses_logits():
    with pytest.raises(ValueError, match="Expected probabilities"):
        tune_thresholds([[0, 1], [1, 0]], [[-3.0, 3], [1, 1]], "rank")
