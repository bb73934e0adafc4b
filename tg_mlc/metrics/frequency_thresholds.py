"""Thresholds that follow how frequent labels are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from scipy.special import expit, logit

from tg_mlc.metrics._counts import GridCounts
from tg_mlc.metrics._inputs import ArrayLike, FloatArray, read_scores, read_targets
from tg_mlc.metrics.decisions import DECISION_METRICS, ZeroDivisions
from tg_mlc.metrics.thresholds import PAPER_GRID, ThresholdTuner, check_grid, check_scale

#: From one threshold for all labels to what balanced classes would make of the scores.
STRENGTHS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def tune_by_frequency(
    y: ArrayLike,
    scores: ArrayLike,
    y_train: ArrayLike,
    *,
    strengths: Sequence[float] = STRENGTHS,
    metrics: Sequence[str] = tuple(DECISION_METRICS),
    grid: Sequence[float] = PAPER_GRID,
    zero_division: ZeroDivisions = None,
) -> dict[str, ThresholdTuner]:
    r"""Chooses, for every metric, thresholds that are lower for rare labels.

    .. math::
        \operatorname{logit} \theta_i = \operatorname{logit} \theta +
        \tau \Big( \log \pi_i - \frac{1}{L} \sum_j \log \pi_j \Big)

    with :math:`\pi_i` the frequency of label :math:`i` among training samples (one positive and one negative added).
    This is the logit adjustment of Menon et al. 2021 (arXiv 2007.07314), of which :math:`\theta` and :math:`\tau` are
    chosen on validation data: two numbers, where a threshold for each label needs :math:`L` and overfits rare labels.

    .. code-block:: python

        tuners = tune_by_frequency(y_val, scores_val, y_train)
        print(evaluate(y_test, scores_test, tuners))

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)` of validation samples: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Their probabilities :math:`(N, L)`.
        y_train (Tensor or numpy.ndarray): Targets :math:`(N_{train}, L)` of training samples.
        strengths (Sequence[float], optional): The candidates for :math:`\tau`; of equally good ones the first is taken.
            (default: :obj:`STRENGTHS`)
        metrics, grid, zero_division (optional): As in :func:`tune_per_metric`, with :obj:`grid` for :math:`\theta`.

    Raises:
        ValueError: If there is no strength, the numbers of labels differ, or as :func:`tune_per_metric` does.
    """
    if not strengths:
        raise ValueError("Expected 'strengths' to hold at least one number (got none)")
    targets = read_targets(y, "y")
    grid = check_grid(grid)
    matrix = check_scale(read_scores(scores, targets), grid)
    rarity = _log_frequencies(y_train, targets.known.shape[1])
    best: dict[str, ThresholdTuner] = {}
    for strength in strengths:
        counts = GridCounts(targets, matrix, _shifted(np.asarray(grid), strength * rarity))
        for metric in metrics:
            tuner = ThresholdTuner(metric, grid=grid, zero_division=zero_division).fit_counts(counts)
            if metric not in best or cast(float, tuner.best_value) > cast(float, best[metric].best_value):
                tuner.per_label = True
                best[metric] = tuner
    return best


def _shifted(grid: FloatArray, odds: FloatArray) -> FloatArray:
    """A row of thresholds for each label, exactly the grid where its odds are not shifted."""
    rows = expit(logit(grid) + odds[:, None])
    return np.where(odds[:, None] == 0, grid, rows)


def _log_frequencies(y_train: ArrayLike, num_labels: int) -> FloatArray:
    """The centred logarithms of the frequencies."""
    positive, known = read_targets(y_train, "y_train")
    if known.shape[1] != num_labels:
        raise ValueError(f"Expected 'y_train' with {num_labels} labels, as 'y' has (got {known.shape[1]})")
    logs = np.log((positive.sum(axis=0) + 1) / (known.sum(axis=0) + 2))
    return np.asarray(logs - logs.mean())
