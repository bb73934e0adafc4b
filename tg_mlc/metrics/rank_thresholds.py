"""Thresholds between the scores that a label's share of the samples has, and those of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tg_mlc.metrics._counts import GridCounts
from tg_mlc.metrics._inputs import ArrayLike, FloatArray, Targets, read_scores, read_targets
from tg_mlc.metrics.decisions import DECISION_METRICS, ZeroDivisions
from tg_mlc.metrics.thresholds import PAPER_GRID, ThresholdTuner, check_scale

#: From four times as many predictions as there are positives to a quarter of them, in steps of about 9%.
RATES: tuple[float, ...] = tuple(2.0 ** (step / 8) for step in range(16, -17, -1))


def tune_by_rank(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    metrics: Sequence[str] = tuple(DECISION_METRICS),
    zero_division: ZeroDivisions = None,
) -> dict[str, ThresholdTuner]:
    """Chooses, for every metric, thresholds that predict each label as often as it occurs, times a rate that all labels
    share: proportional thresholds (PCut) of the `"A Study of Thresholding Strategies for Text Categorization"
    <https://doi.org/10.1145/383952.383975>`_ paper, which serve labels of few positives best.

    Only the order of a label's scores counts, so that it does not matter that classifiers give lower scores to the
    positives of rare labels the fewer of these they were fitted to. Each threshold is half-way between the scores of
    neighbouring ranks.

    .. code-block:: python

        tuners = tune_by_rank(y_val, scores_val)
        print(evaluate(y_test, scores_test, tuners))

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)` of validation samples: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Their probabilities :math:`(N, L)`.
        metrics, zero_division (optional): As in :func:`tune_per_metric`, with its errors.
    """
    targets = read_targets(y, "y")
    matrix = check_scale(read_scores(scores, targets), PAPER_GRID)
    counts = GridCounts(targets, matrix, _thresholds(targets, matrix))
    tuners = {metric: ThresholdTuner(metric, zero_division=zero_division).fit_counts(counts) for metric in metrics}
    for tuner in tuners.values():
        tuner.per_label = True
    return tuners


def _thresholds(targets: Targets, scores: FloatArray) -> FloatArray:
    """The threshold of every label at every rate, [num_labels, num_rates]."""
    columns = zip(targets.positive.T, targets.known.T, scores.T, strict=True)
    return np.stack([_of_label(positive[known].sum(), column[known]) for positive, known, column in columns])


def _of_label(num_positives: int, scores: FloatArray) -> FloatArray:
    ordered = np.sort(scores) if len(scores) else np.ones(1)
    wanted = num_positives * np.array(RATES)
    last = len(ordered) - 1
    between = np.interp(last + 0.5 - wanted, np.arange(len(ordered)), ordered)
    # Equal scores are of one rank, the lower one: a label of constant scores is not predicted for all.
    beyond = ordered[np.maximum(last - np.ceil(wanted).astype(int), 0)]
    return np.maximum(between, np.where(wanted < len(ordered), np.nextafter(beyond, 2.0), between))
