from __future__ import annotations

import numpy as np
import pytest

from tg_mlc.metrics import evaluate, tune_thresholds


def drawn(num_samples, scale, seed=0):
    """Rare labels whose positives have the highest scores, on a scale of its own for each label."""
    random = np.random.default_rng(seed)
    y = (random.random((num_samples, len(scale))) < 0.02).astype(float)
    return y, np.clip(0.3 * y + random.random(y.shape) * 0.4, 0, 1) * scale


def test_labels_are_predicted_as_often_as_they_occur():
    y, scores = drawn(500, np.array([1.0, 0.5, 0.1]))
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
    y, scores = drawn(50, np.ones(3))
    y[:, 0], scores[:, 1], y[:, 2], scores[:, 2] = 0, 0.5, np.nan, 0.9
    assert not tune_thresholds(y, scores, "rank")["f1_macro"].predict(scores).any()


def test_unknown_labels_are_left_out():
    y, scores = drawn(500, np.ones(3))
    y[::2, 0] = np.nan
    changed = np.where(np.isnan(y), 0.99, scores)
    for metric, tuner in tune_thresholds(y, scores, "rank").items():
        assert (tuner.fitted() == tune_thresholds(y, changed, "rank")[metric].fitted()).all()


def test_refuses_logits():
    with pytest.raises(ValueError, match="Expected probabilities"):
        tune_thresholds([[0, 1], [1, 0]], [[-3.0, 3], [1, 1]], "rank")
