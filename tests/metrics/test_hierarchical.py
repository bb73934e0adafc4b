import math

import numpy as np
import pytest

from tg_mlc.metrics import fmax, smin

NAN = float("nan")
Y = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, NAN, 1]])
SCORES = np.array([[0.9, 0.4, 0.4], [0.6, 0.3, 0.1], [0.9, 0.9, 0.9], [0.2, 0.9, 0.1]])
INFORMATION = np.array([0.5, 1.0, 2.0])


def brute_force(value):
    """Returns the values at all thresholds, sample by sample, as the papers define them."""
    values = []
    for threshold in np.arange(1, 101) / 100:
        rows = []
        for y, scores in zip(Y, SCORES, strict=True):
            known, true = ~np.isnan(y), y == 1
            if true.any():
                predicted = (scores >= threshold) & known
                rows.append((true, predicted))
        values.append(value(rows))
    return values


def test_fmax_is_the_best_f1_of_mean_precision_and_recall():
    def f1(rows):
        precisions = [(t & p).sum() / p.sum() for t, p in rows if p.any()]
        precision = np.mean(precisions) if precisions else 0.0
        recall = np.mean([(t & p).sum() / t.sum() for t, p in rows])
        return 2 * precision * recall / (precision + recall) if recall else 0.0

    assert fmax(Y, SCORES) == pytest.approx(max(brute_force(f1)))
    assert fmax([[1, 0]], [[0.7, 0.2]]) == 1
    assert math.isnan(fmax([[0, NAN]], [[0.7, 0.2]]))
    with pytest.raises(ValueError, match="Expected probabilities"):
        fmax(Y, 9 * SCORES)


def test_smin_is_the_least_distance_of_missed_and_wrong_information():
    def distance(rows):
        uncertainty = np.mean([INFORMATION[t & ~p].sum() for t, p in rows])
        return np.hypot(uncertainty, np.mean([INFORMATION[p & ~t].sum() for t, p in rows]))

    assert smin(Y, SCORES, INFORMATION) == pytest.approx(min(brute_force(distance)))
    assert smin([[1, 0]], [[0.7, 0.2]], [1, 1]) == 0
    assert math.isnan(smin([[0, NAN]], [[0.7, 0.2]], [1, 1]))
