from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from tg_mlc.metrics import hit_rate_at_k, ndcg_at_k, recall_at_k

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]])
SCORES = np.array([[0.9, 0.8, 0.1, 0.7], [0.9, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])


def test_values_by_hand():
    assert recall_at_k(Y, SCORES, 2) == pytest.approx((1 / 2 + 0 + 2 / 3) / 3)
    assert hit_rate_at_k(Y, SCORES, 2) == pytest.approx(2 / 3)
    assert ndcg_at_k(Y, SCORES, 2) == pytest.approx((1 / (1 + 1 / math.log2(3)) + 0 + 1) / 3)


@pytest.mark.parametrize("k", [1, 3, 10, 40])
def test_ndcg_is_that_of_scikit_learn(k):
    random = np.random.default_rng(0)
    y, scores = random.integers(2, size=(50, 20)), random.normal(size=(50, 20))
    assert ndcg_at_k(y, scores, k) == pytest.approx(ndcg_score(y, scores, k=k))


def test_unknown_labels_are_left_out():
    random = np.random.default_rng(0)
    y, scores = random.integers(2, size=(9, 6)).astype(float), random.normal(size=(9, 6))
    hidden = y.copy()
    hidden[:, [1, 4]] = np.nan
    for metric in (recall_at_k, ndcg_at_k, hit_rate_at_k):
        assert metric(hidden, scores, 2) == metric(y[:, [0, 2, 3, 5]], scores[:, [0, 2, 3, 5]], 2)
        assert metric(hidden, scores, 6) == metric(y[:, [0, 2, 3, 5]], scores[:, [0, 2, 3, 5]], 6)


def test_equal_scores_are_taken_in_the_order_of_labels():
    assert [hit_rate_at_k(np.eye(4)[[label]], np.zeros((1, 4)), 2) for label in range(4)] == [1, 1, 0, 0]


def test_without_positives_there_is_no_value():
    assert math.isnan(recall_at_k(np.zeros((2, 3)), np.zeros((2, 3))))


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_other_numbers_are_refused(k):
    with pytest.raises(ValueError, match="'k' to be a whole number of at least 1"):
        recall_at_k(Y, SCORES, k)
