"""Metrics of hierarchies: Fmax and Smin, as in the CAFA challenges."""

from __future__ import annotations

import numpy as np

from tg_mlc.metrics._inputs import (
    ArrayLike,
    FloatArray,
    Targets,
    check_scale,
    read_array,
    read_scores,
    read_targets,
)
from tg_mlc.metrics.decisions import LABELS, SAMPLES, GridCounts

THRESHOLDS = np.arange(1, 101) / 100  #: The thresholds of CAFA.


def fmax(y_true: ArrayLike, scores: ArrayLike) -> float:
    r"""The largest F1 over thresholds, as in `"A large-scale evaluation of computational protein
    function prediction" <https://doi.org/10.1038/nmeth.2340>`_.

    .. math::
        F_{\max} = \max_\tau \frac{2 \, \mathrm{pr}(\tau) \, \mathrm{rc}(\tau)}{\mathrm{pr}(\tau) +
        \mathrm{rc}(\tau)}

    The recall is the mean over samples with a true label, and the precision the mean over those of
    them with a predicted label.

    Args:
        y_true (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Probabilities :math:`(N, L)`.

    Raises:
        ValueError: If the shapes differ, a value is not allowed, or no label is observed.
    """
    targets = read_targets(y_true)
    return fmax_of(targets, read_scores(scores, targets))


def smin(y_true: ArrayLike, scores: ArrayLike, information: ArrayLike) -> float:
    r"""The smallest semantic distance over thresholds, as in `"An expanded evaluation of protein
    function prediction methods" <https://doi.org/10.1186/s13059-016-1037-6>`_.

    .. math::
        S_{\min} = \min_\tau \sqrt{\mathrm{ru}(\tau)^2 + \mathrm{mi}(\tau)^2}

    The remaining uncertainty is the mean information of missed labels, the misinformation that of
    wrongly predicted labels, over samples with a true label.

    Args:
        y_true, scores: As in :func:`fmax`, with the same errors.
        information (Tensor or numpy.ndarray): The information of each label :math:`(L)`, as of
            :meth:`LabelCounts.of <tg_mlc.metrics.label_counts.LabelCounts.of>`.
    """
    targets = read_targets(y_true)
    return smin_of(targets, read_scores(scores, targets), read_array(information))


def fmax_of(targets: Targets, scores: FloatArray) -> float:
    """Returns :func:`fmax`; NaN if no sample has a true label."""
    if (grid := _count(targets, scores)) is None:
        return float("nan")
    counts = grid.per(SAMPLES)
    recall = (counts.hits / counts.positive).mean(axis=1)
    has_predictions = counts.predicted > 0
    precisions = counts.hits / np.maximum(counts.predicted, 1)
    precision = precisions.sum(axis=1) / np.maximum(has_predictions.sum(axis=1), 1)
    total = precision + recall
    return float((2 * precision * recall / np.where(total > 0, total, 1)).max())


def smin_of(targets: Targets, scores: FloatArray, information: FloatArray) -> float:
    """Returns :func:`smin`; NaN if no sample has a true label."""
    if (grid := _count(targets, scores)) is None:
        return float("nan")
    counts, num_samples = grid.per(LABELS), len(grid.targets.positive)
    uncertainty = (counts.positive - counts.hits) @ information / num_samples
    misinformation = (counts.predicted - counts.hits) @ information / num_samples
    return float(np.hypot(uncertainty, misinformation).min())


def _count(targets: Targets, scores: FloatArray) -> GridCounts | None:
    """Returns the counts over samples with a true label; None if there are none."""
    check_scale(scores, (0.5,))
    rows = targets.positive.any(axis=1)
    if not rows.any():
        return None
    return GridCounts(Targets(*(mask[rows] for mask in targets)), scores[rows], THRESHOLDS)
