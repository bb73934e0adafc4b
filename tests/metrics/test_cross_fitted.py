from __future__ import annotations

import numpy as np
import pytest

from tg_mlc.metrics import evaluate, tune_thresholds


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
