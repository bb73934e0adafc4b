from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import base_scores
from benchmarks.accuracy.base_scores import ALPHAS, SHARES, fitted
from tests.benchmarks.accuracy.twins import twins, with_test_labels_inverted
from tg_mlc.data import random_split
from tg_mlc.metrics import macro_roc_auc


@pytest.fixture
def everything():
    return np.arange(40)


def test_held_out_scores_are_those_of_fits_without_the_sample(everything, monkeypatch):
    """Without a calibration, they would be scores; here its fold is the sample alone."""
    monkeypatch.setattr(base_scores, "ALPHAS", (0.3,))
    monkeypatch.setattr(base_scores, "_calibrated", lambda scores, y, new_scores: new_scores)
    inputs = twins(40)
    kernels = inputs.kernels(everything, everything[:0])[:1]
    held_out, _, _ = fitted(inputs.y, kernels, 0)
    others = everything[everything != 7]
    kernel = inputs.kernels(others, everything[7:8])[0]
    frequency = inputs.y.mean(axis=0)
    inverse = kernel.vectors @ np.diag(1 / (kernel.values + 0.3)) @ kernel.vectors.T
    expected = kernel.cross @ inverse @ (inputs.y[others] - frequency)
    np.testing.assert_allclose(held_out[7], expected[0], atol=1e-8)


def test_labels_that_follow_the_inputs_are_predicted(everything):
    inputs = twins()
    everything = np.arange(len(inputs.y))
    logits, _, chosen = fitted(inputs.y, inputs.kernels(everything, everything[:0]), 0)
    assert macro_roc_auc(inputs.y[:, :2], logits[:, :2]) > 0.9
    assert 0.3 < macro_roc_auc(inputs.y[:, 2:], logits[:, 2:]) < 0.7
    view, gamma, alpha = chosen.split(", ")
    assert view == "vector"
    assert float(gamma) in base_scores.GAMMAS
    assert float(alpha) in ALPHAS


def test_base_scores_see_no_test_label(monkeypatch):
    inputs, scores = twins(), []
    test = random_split(len(inputs.y), SHARES, 3).test.numpy()
    for samples in (inputs, with_test_labels_inverted(inputs, test)):
        monkeypatch.setattr(base_scores, "load", lambda name, root, samples=samples: samples)
        base_scores.base_scores.cache_clear()
        scores.append(base_scores.base_scores("twins", 3, Path()))
    base_scores.base_scores.cache_clear()
    first, second = scores
    assert (first.test_logits == second.test_logits).all()
    assert (first.logits == second.logits).all()
    assert (first.y_test == inputs.y[test]).all()
    assert first.about["base"] == second.about["base"]


def test_a_label_without_both_values_gets_its_frequency(everything):
    inputs = twins(40)
    y = inputs.y.copy()
    y[:, 1], y[:20, 2] = 0.0, np.nan
    logits, test_logits, _ = fitted(y, inputs.kernels(everything, everything[:3]), 0)
    assert np.isfinite(logits).all()
    assert test_logits.shape == (3, 4)
    assert (logits[:, 1] < -3).all()
