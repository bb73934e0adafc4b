from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from tg_mlc.metrics import macro_average_precision
from tg_mlc.stacking import combination
from tg_mlc.stacking.combination import STRENGTHS, LogitStacking, learnable_labels

#: The logits of one classifier for one label are ten times as large.
SCALED = np.where(np.arange(12).reshape(4, 3) == 0, 10.0, 1.0)


@pytest.fixture
def drawn():
    """Logits of three classifiers, of which the labels depend on the first two."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(4000, 4, 3))
    truth = logits @ [2.0, 0.5, 0.0] + [-1.0, 0.0, 0.5, 1.0]
    return logits, (random.random(truth.shape) < expit(truth)).astype(float)


def test_finds_the_weights_that_made_the_labels_without_negative_ones(drawn):
    logits, y = drawn
    combination = LogitStacking().fit(logits, y)
    expected = np.broadcast_to([2.0, 0.5, 0.0], (4, 3))
    np.testing.assert_allclose(combination.weight, expected, atol=0.1)
    np.testing.assert_allclose(combination.bias, [-1.0, 0.0, 0.5, 1.0], atol=0.2)
    opposite = LogitStacking().fit(logits * [1, 1, 0] - logits[..., :1] * [0, 0, 1], y)
    assert (opposite.weight >= 0).all()


def test_unknown_labels_have_no_say(drawn):
    logits, y = drawn
    unknown = np.random.default_rng(1).random(y.shape) < 0.3
    expected = LogitStacking().fit(logits, np.where(unknown, np.nan, y))
    changed = np.where(unknown[..., None], 100.0, logits)
    found = LogitStacking().fit(changed, np.where(unknown, np.nan, y))
    np.testing.assert_allclose(found.weight, expected.weight, atol=1e-3)


def test_bias_of_a_label_without_positives_is_that_of_the_others(drawn):
    logits, y = drawn
    y[:, 0] = 0
    combination = LogitStacking().fit(logits, y)
    np.testing.assert_allclose(combination.bias[0], combination.bias[1:].mean(), atol=0.1)


@pytest.mark.parametrize("value", [0, 1, np.nan])
def test_a_label_with_one_value_gets_a_constant_on_its_side_of_the_others(drawn, value):
    logits, y = drawn
    logits[:, 0] += {0: -6, 1: 6}.get(value, 0)
    y[:, 0] = value
    new = np.random.default_rng(1).normal(size=logits.shape)
    found = LogitStacking().fit(logits, y).decision_function(new)
    assert np.ptp(found[:, 0]) == 0
    assert np.ptp(found[:, 1]) > 1
    expected = {0: -15, 1: 15}.get(value, 0)
    assert found[0, 0] == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("reliable", [0, 1])
def test_rare_labels_go_as_far_from_the_weights_of_frequent_ones_as_ranks_best(
    drawn, reliable, monkeypatch
):
    logits, y = drawn
    y[:, 2:] = 0
    # which one classifier knows, of those that frequent labels rely on much or little
    for label in (2, 3):
        y[np.argsort(logits[:, label, reliable])[-(8 * label) :], label] = 1
    chosen, stackings = LogitStacking().fit(logits, y), []
    for strength in STRENGTHS:
        monkeypatch.setattr(combination, "STRENGTHS", (strength,))
        stackings.append(LogitStacking().fit(logits, y))
    scores = [stacking.decision_function(logits) for stacking in stackings]
    values = [macro_average_precision(y, each) for each in scores]
    assert len({*values}) == len(STRENGTHS)
    best = stackings[values.index(max(values))]
    np.testing.assert_array_equal(chosen.weight, best.weight)


def test_labels_of_few_positives_are_not_learned_from():
    y = np.zeros((20, 3))
    y[:4, 0], y[:5, 1], y[:, 2] = 1, 1, np.nan
    assert learnable_labels(y).tolist() == [False, True, False]
    assert learnable_labels(y[:, :1]).tolist() == [True]


def test_the_scale_of_the_logits_of_a_rare_label_does_not_matter_to_weights_for_rare_ones(
    drawn, monkeypatch
):
    logits, y = drawn
    y[5:, 0] = 0
    monkeypatch.setattr(combination, "STRENGTHS", (1.0,))
    orders = []
    for each in (logits, logits * SCALED):
        orders.append(np.argsort(LogitStacking().fit(each, y).decision_function(each)[:, 0]))
    np.testing.assert_array_equal(*orders)


def test_labels_have_the_mean_and_the_spread_of_the_likeliest_weights(drawn):
    logits, y = drawn
    y[40:, 0] = 0
    one = LogitStacking().fit(logits[..., :1], y).decision_function(logits[..., :1])
    same = LogitStacking().fit(logits[..., [0, 0]], y).decision_function(logits[..., [0, 0]])
    np.testing.assert_allclose(same, one, atol=0.05)


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
