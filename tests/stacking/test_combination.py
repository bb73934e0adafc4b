from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from tg_mlc.metrics import macro_average_precision
from tg_mlc.stacking import combination
from tg_mlc.stacking.combination import STRENGTHS, LogitStacking, learnable_labels

#: Scales the logits of one classifier for one label by ten.
SCALED = np.where(np.arange(12).reshape(4, 3) == 0, 10.0, 1.0)


@pytest.fixture
def drawn():
    """Returns logits of three classifiers, and labels that depend on the first two."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(4000, 4, 3))
    truth = logits @ [2.0, 0.5, 0.0] + [-1.0, 0.0, 0.5, 1.0]
    return logits, (random.random(truth.shape) < expit(truth)).astype(float)


def test_fit_recovers_the_true_weights_and_no_negative_weights(drawn):
    logits, y = drawn
    combination = LogitStacking().fit(logits, y)
    expected = np.broadcast_to([2.0, 0.5, 0.0], (4, 3))
    np.testing.assert_allclose(combination.weight, expected, atol=0.1)
    np.testing.assert_allclose(combination.bias, [-1.0, 0.0, 0.5, 1.0], atol=0.2)
    opposite = LogitStacking().fit(logits * [1, 1, 0] - logits[..., :1] * [0, 0, 1], y)
    assert (opposite.weight >= 0).all()


def test_logits_of_unknown_labels_do_not_matter(drawn):
    logits, y = drawn
    unknown = np.random.default_rng(1).random(y.shape) < 0.3
    expected = LogitStacking().fit(logits, np.where(unknown, np.nan, y))
    changed = np.where(unknown[..., None], 100.0, logits)
    stacking = LogitStacking().fit(changed, np.where(unknown, np.nan, y))
    np.testing.assert_allclose(stacking.weight, expected.weight, atol=1e-3)


def test_bias_of_a_label_without_positives_is_the_mean_of_other_biases(drawn):
    logits, y = drawn
    y[:, 0] = 0
    combination = LogitStacking().fit(logits, y)
    np.testing.assert_allclose(combination.bias[0], combination.bias[1:].mean(), atol=0.1)


@pytest.mark.parametrize("value", [0, 1, np.nan])
def test_a_label_with_one_value_gets_a_constant_logit(drawn, value):
    logits, y = drawn
    logits[:, 0] += {0: -6, 1: 6}.get(value, 0)
    y[:, 0] = value
    new = np.random.default_rng(1).normal(size=logits.shape)
    combined = LogitStacking().fit(logits, y).decision_function(new)
    assert np.ptp(combined[:, 0]) == 0
    assert np.ptp(combined[:, 1]) > 1
    expected = {0: -15, 1: 15}.get(value, 0)
    assert combined[0, 0] == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("reliable", [0, 1])
def test_rare_labels_get_the_strength_that_ranks_best(drawn, reliable, monkeypatch):
    logits, y = drawn
    y[:, 2:] = 0
    # One classifier knows the rare labels; frequent labels rely on it much or little.
    for label in (2, 3):
        y[np.argsort(logits[:, label, reliable])[-(8 * label) :], label] = 1
    chosen, stackings = LogitStacking().fit(logits, y), []
    for strength in STRENGTHS:
        monkeypatch.setattr(combination, "STRENGTHS", (strength,))
        stackings.append(LogitStacking().fit(logits, y))
    scores = [stacking.decision_function(logits) for stacking in stackings]
    values = [macro_average_precision(y, score) for score in scores]
    assert len({*values}) == len(STRENGTHS)
    best = stackings[values.index(max(values))]
    np.testing.assert_array_equal(chosen.weight, best.weight)


def test_labels_with_few_positives_are_not_learnable():
    y = np.zeros((20, 3))
    y[:4, 0], y[:5, 1], y[:, 2] = 1, 1, np.nan
    assert learnable_labels(y).tolist() == [False, True, False]
    assert learnable_labels(y[:, :1]).tolist() == [True]


def test_the_scale_of_logits_does_not_change_the_ranking_of_a_rare_label(drawn, monkeypatch):
    logits, y = drawn
    y[5:, 0] = 0
    monkeypatch.setattr(combination, "STRENGTHS", (1.0,))
    orders = []
    for scaled in (logits, logits * SCALED):
        orders.append(np.argsort(LogitStacking().fit(scaled, y).decision_function(scaled)[:, 0]))
    np.testing.assert_array_equal(*orders)


def test_a_copy_of_a_classifier_does_not_change_the_logits(drawn):
    logits, y = drawn
    y[40:, 0] = 0
    single = LogitStacking().fit(logits[..., :1], y).decision_function(logits[..., :1])
    doubled = LogitStacking().fit(logits[..., [0, 0]], y).decision_function(logits[..., [0, 0]])
    np.testing.assert_allclose(doubled, single, atol=0.05)


def test_state_predicts_the_same_and_wrong_calls_are_refused(drawn):
    logits, y = drawn
    with pytest.raises(RuntimeError, match="'fit' to be called"):
        LogitStacking().predict_proba(logits)
    combination = LogitStacking().fit(logits, y)
    restored = LogitStacking().load_state_dict(combination.state_dict())
    assert (restored.predict_proba(logits) == combination.predict_proba(logits)).all()
    message = r"'logits' of shape \[4000, 4, 'C'\] \(got \[10, 4, 3\]\)"
    with pytest.raises(ValueError, match=message):
        LogitStacking().fit(logits[:10], y)


def test_a_module_computes_the_combined_logits(drawn):
    logits, y = drawn
    combination = LogitStacking().fit(logits, y)
    combined = combination.module()(torch.from_numpy(logits).float())
    np.testing.assert_allclose(combined, combination.decision_function(logits), atol=1e-5)
    with pytest.raises(RuntimeError, match="'fit' to be called before 'module'"):
        LogitStacking().module()
