import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from tg_mlc.metrics import (
    hit_rate_at_k,
    macro_average_precision,
    macro_roc_auc,
    micro_average_precision,
    micro_roc_auc,
    ndcg_at_k,
    precision_at_k,
    propensity_precision_at_k,
    recall_at_k,
)
from tg_mlc.metrics._inputs import read_targets
from tg_mlc.metrics.ranking import areas_per_label, roc_auc_interval, roc_auc_per_label

NAN = float("nan")


def precision_per_label(y, scores):
    return areas_per_label(read_targets(y), np.asarray(scores))[1]


PRECISION = (micro_average_precision, macro_average_precision, precision_per_label)
ROC_AUC = (micro_roc_auc, macro_roc_auc, roc_auc_per_label)
METRICS = [(roc_auc_score, *ROC_AUC), (average_precision_score, *PRECISION)]

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]])
SCORES = np.array([[9, 8, 1, 7], [9, 2, 3, 4], [1, 2, 3, 4], [4, 3, 2, 1]]) / 10


@st.composite
def targets_and_scores(draw):
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=8))
    y = draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, NAN])))
    few_values = st.sampled_from([-3.0, 0.1, 0.5, 0.5 + 1e-12, 40.0])
    scores = draw(arrays(np.float64, shape, elements=few_values | st.floats(-1e6, 1e6)))
    return np.where(np.isnan(y).all(), 0.0, y), scores


def oracle(sklearn_metric, y, scores):
    observed = ~np.isnan(y)
    both_classes = len(np.unique(y[observed])) == 2
    return sklearn_metric(y[observed], scores[observed]) if both_classes else np.nan


@pytest.mark.parametrize(("sklearn_metric", "micro", "macro", "per_label"), METRICS)
@given(data=targets_and_scores())
def test_areas_equal_sklearn_on_observed_entries(sklearn_metric, micro, macro, per_label, data):
    y, scores = data
    columns = zip(y.T, scores.T, strict=True)
    expected = np.array([oracle(sklearn_metric, *column) for column in columns])
    mean = np.nan if np.isnan(expected).all() else np.nanmean(expected)
    for predictions in (scores, torch.from_numpy(np.where(np.isnan(y), 100.0, scores))):
        assert_allclose(per_label(y, predictions), expected, rtol=1e-9)
        assert_allclose(micro(y, predictions), oracle(sklearn_metric, y, scores), rtol=1e-9)
        assert_allclose(macro(y, predictions), mean, rtol=1e-9)


def test_infinite_scores_are_ordered():
    assert macro_roc_auc([[1], [0], [1]], [[np.inf], [-np.inf], [0]]) == 1.0


def test_labels_with_few_positives_can_be_skipped():
    y = [[1, 1, NAN], [0, 1, 1], [0, 0, 1], [0, 0, 0]]
    scores = [[0.1, 0.9, 0.9], [0.5, 0.2, 0.8], [0.2, 0.5, 0.7], [0.3, 0.1, 0.6]]
    first, second, third = roc_auc_per_label(y, scores)
    assert macro_roc_auc(y, scores, min_positives=2) == (second + third) / 2
    assert macro_roc_auc(y, scores) == np.mean([first, second, third]) != (second + third) / 2
    assert np.isnan(macro_roc_auc(y, scores, min_positives=3))


def test_values_equal_a_calculation_by_hand():
    assert recall_at_k(Y, SCORES, 2) == pytest.approx((1 / 2 + 0 + 2 / 3) / 3)
    assert hit_rate_at_k(Y, SCORES, 2) == pytest.approx(2 / 3)
    assert ndcg_at_k(Y, SCORES, 2) == pytest.approx((1 / (1 + 1 / math.log2(3)) + 0 + 1) / 3)


def test_ndcg_equals_scikit_learn():
    random = np.random.default_rng(0)
    y, scores = random.integers(2, size=(50, 20)), random.normal(size=(50, 20))
    for k in (1, 3, 10, 40):
        assert ndcg_at_k(y, scores, k) == pytest.approx(ndcg_score(y, scores, k=k))


def test_unknown_labels_do_not_count_among_the_first_k():
    random, known = np.random.default_rng(0), [0, 2, 3, 5]
    y, scores = random.integers(2, size=(9, 6)).astype(float), random.normal(size=(9, 6))
    hidden = np.where(np.isin(np.arange(6), known), y, NAN)
    for metric, k in product((recall_at_k, ndcg_at_k, hit_rate_at_k), (2, 6)):
        assert metric(hidden, scores, k) == metric(y[:, known], scores[:, known], k)
        assert math.isnan(metric(np.zeros((2, 3)), np.zeros((2, 3)), k))


def test_ties_are_ranked_in_the_order_of_labels():
    rates = [hit_rate_at_k(np.eye(4)[[label]], np.zeros((1, 4)), 2) for label in range(4)]
    assert rates == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: macro_roc_auc([[1], [0]], [[0.5], [NAN]]), r"'scores' to hold numbers.*\(got nan"),
        (lambda: macro_roc_auc([[1], [0]], [[0.5, 0.5]]), "shape of the targets"),
        (lambda: macro_roc_auc(Y, SCORES, min_positives=0), "'min_positives' to be a whole number"),
        *((lambda k=k: recall_at_k(Y, SCORES, k), "'k' to be a whole") for k in (0, -1, 2.5)),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_precision_at_k_counts_known_labels_only():
    assert precision_at_k(Y, SCORES, 2) == pytest.approx(np.mean([1 / 2, 0, 0, 2 / 2]))
    y = np.where([[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], NAN, Y)
    # The first sample has one known label, and the third none.
    assert precision_at_k(y, SCORES, 2) == pytest.approx(np.mean([0 / 1, 0, 2 / 2]))
    samples = [0, 1, 3]
    expected = ndcg_score(Y[samples][:, :3], SCORES[samples][:, :3], k=2)
    y = np.column_stack([Y[:, :3], [NAN] * 4])
    assert ndcg_at_k(y, SCORES, 2) == pytest.approx(expected)


def test_rare_labels_weigh_more_in_the_propensity_scored_precision():
    y, scores = np.array([[1, 1, 0], [0, 1, 0]]), np.array([[3, 2, 1], [3, 1, 2]])
    propensities = np.array([0.5, 0.1, 1.0])
    # Of 2 + 10 and 10 possible gains, the first labels give 2 and 0; only one counts at k=1.
    assert propensity_precision_at_k(y, scores, propensities, 1) == pytest.approx(2 / 20)
    assert propensity_precision_at_k(y, scores, propensities, 2) == pytest.approx(12 / 22)
    assert propensity_precision_at_k(y, scores, propensities, 9) == 1
    ones = np.ones(3)
    assert propensity_precision_at_k([[0, NAN, 1]], [[1, 9, 2]], ones, 1) == 1
    assert math.isnan(propensity_precision_at_k([[0, 0, NAN]], [[1, 9, 2]], ones, 1))


def test_the_interval_of_an_area_covers_it_as_often_as_it_says():
    """Of normal scores with an area of 0.8, for 8 positives, 2,000 times; about 95 % are covered,
    and areas of 1 have an interval, too.
    """
    rng, (num_positive, num_negative) = np.random.default_rng(0), (8, 120)
    positive = rng.normal(1.19, 1, (num_positive, 2000))
    negative = rng.normal(0, 1, (num_negative, 2000))
    y = np.repeat([1, 0], [num_positive, num_negative])[:, None].repeat(2000, axis=1)
    areas = roc_auc_per_label(y, np.concatenate([positive, negative]))
    low, high = roc_auc_interval(areas, y.sum(axis=0), (1 - y).sum(axis=0))
    assert 0.93 < np.mean((low <= 0.8) & (high >= 0.8)) < 0.995
    ends = roc_auc_interval(np.array([1.0, 0.0, NAN]), *np.array([[3, 3, 3], [50, 50, 0]]))
    assert_allclose(ends[:, 2], NAN)
    assert ends[1, 0] == 1
    assert 0.4 < ends[0, 0] < 0.9
    assert_allclose(ends[:, 1], 1 - ends[::-1, 0])
    wider = roc_auc_interval(np.array([0.8, 0.8]), np.array([5, 500]), np.array([500, 5]))
    assert_allclose(wider[:, 0], wider[:, 1])
