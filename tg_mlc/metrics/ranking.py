"""Metrics of scores without a threshold: ROC-AUC and its interval, average precision, and metrics
at k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tg_mlc._options import check_count
from tg_mlc.metrics._inputs import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    Targets,
    read_array,
    read_scores,
    read_targets,
)

_Z = 1.959964  # The quantile of the normal distribution for intervals of 95 %.
_NUM_HALVINGS = 50


def micro_roc_auc(y_true: ArrayLike, scores: ArrayLike) -> float:
    """The area under the ROC curve of all observed entries; NaN if only one class is observed.

    Args:
        y_true (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Scores :math:`(N, L)`, larger for positives.

    Raises:
        ValueError: If the shapes differ, a value is not allowed, or no label is observed.
    """
    return pooled_areas(*_read(y_true, scores))[0]


def macro_roc_auc(y_true: ArrayLike, scores: ArrayLike, *, min_positives: int = 1) -> float:
    """The mean area under the ROC curves of labels. Labels with only one observed class are skipped
    (:func:`evaluate` names them); NaN if all labels are skipped.

    Args:
        y_true, scores: As in :func:`micro_roc_auc`, with the same errors.
        min_positives (int, optional): Labels with fewer positives are skipped. (default: :obj:`1`)
    """
    check_count("min_positives", min_positives)
    targets, matrix = _read(y_true, scores)
    frequent = targets.positive.sum(axis=0) >= min_positives
    return mean_of_defined(areas_per_label(targets, matrix)[0][frequent])


def micro_average_precision(y_true: ArrayLike, scores: ArrayLike) -> float:
    r"""The average precision of all observed entries. Arguments as in :func:`micro_roc_auc`."""
    return pooled_areas(*_read(y_true, scores))[1]


def macro_average_precision(y_true: ArrayLike, scores: ArrayLike) -> float:
    """The mean average precision of labels. Skips the same labels as :func:`macro_roc_auc`."""
    return mean_of_defined(areas_per_label(*_read(y_true, scores))[1])


def roc_auc_per_label(y_true: ArrayLike, scores: ArrayLike) -> FloatArray:
    """The ROC-AUC of every label :math:`(L)`; NaN if only one class is observed."""
    return np.asarray(areas_per_label(*_read(y_true, scores))[0])


def recall_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    r"""The mean over samples of the fraction of true labels among the :obj:`k` highest scores.

    .. math::
        \mathrm{R@}k = \frac{1}{N} \sum_{n=1}^N \frac{|\mathcal{Y}_n \cap
        \mathcal{T}_n^k|}{|\mathcal{Y}_n|}

    Samples without an observed positive are skipped; NaN if all are skipped. Ties keep their order.

    Args:
        y_true, scores: As in :func:`micro_roc_auc`, with its errors.
        k (int, optional): The number of labels. (default: :obj:`10`)

    Raises:
        ValueError: If :obj:`k` is less than 1.
    """
    hits, num_positive = _hits(y_true, scores, k)
    return mean_of_defined(hits.sum(axis=1) / num_positive)


def ndcg_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    r"""The mean over samples of the normalised discounted cumulative gain of the :obj:`k` labels
    with the highest scores.

    .. math::
        \mathrm{NDCG@}k = \frac{1}{N} \sum_{n=1}^N \frac{\sum_{r=1}^k [t_{n,r} \in \mathcal{Y}_n] /
        \log_2(r + 1)} {\sum_{r=1}^{\min(k, |\mathcal{Y}_n|)} 1 / \log_2(r + 1)}

    Arguments, errors, ties and skipped samples are those of :func:`recall_at_k`.
    """
    check_count("k", k)
    targets, matrix = _read(y_true, scores)
    return gain_of(targets, top_labels(targets, matrix, k))


def precision_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 5) -> float:
    r"""The mean over samples of the fraction of true labels among the :obj:`k` highest scores.

    Unknown labels are not ranked; a sample with fewer than :obj:`k` known labels counts these.
    Samples without a known label are skipped. Arguments, errors and ties are those of
    :func:`recall_at_k`.
    """
    check_count("k", k)
    targets, matrix = _read(y_true, scores)
    return precision_of(targets, top_labels(targets, matrix, k))


def propensity_precision_at_k(
    y_true: ArrayLike, scores: ArrayLike, propensities: ArrayLike, k: int = 5
) -> float:
    r"""The propensity-scored precision of the `"Extreme Multi-label Loss Functions"
    <https://doi.org/10.1145/2939672.2939756>`_ paper, relative to its largest possible value.

    .. math::
        \mathrm{PSP@}k = \sum_{n=1}^N \sum_{l \in \mathcal{T}_n^k \cap \mathcal{Y}_n} \frac{1}{p_l}
        \bigg/ \sum_{n=1}^N \max_{|\mathcal{S}| = k} \sum_{l \in \mathcal{S} \cap \mathcal{Y}_n}
        rac{1}{p_l}

    Unknown labels are not ranked. NaN if no label applies to any sample.

    Args:
        y_true, scores, k: As in :func:`recall_at_k`, with the same errors.
        propensities (Tensor or numpy.ndarray): The propensity :math:`p_l` of each label, as of
            :meth:`LabelCounts.propensities
            <tg_mlc.metrics.label_counts.LabelCounts.propensities>`.
    """
    check_count("k", k)
    targets, matrix = _read(y_true, scores)
    return propensity_precision_of(
        targets, top_labels(targets, matrix, k), read_array(propensities)
    )


def hit_rate_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    """The fraction of samples with a true label among the :obj:`k` highest scores.

    Arguments, errors, ties and skipped samples are those of :func:`recall_at_k`.
    """
    return mean_of_defined(np.asarray(_hits(y_true, scores, k)[0].any(axis=1)))


def roc_auc_interval(
    roc_auc: FloatArray, num_positive: IntArray, num_negative: IntArray
) -> FloatArray:
    r"""Returns the bounds of the 95 % interval of each ROC-AUC, ``[2, num_labels]``.

    The interval holds each area :math:`\theta` from which the measured one is at most 1.96 standard
    errors away, with the standard error at :math:`\theta` (a score interval, as in `Newcombe, 2006
    <https://doi.org/10.1002/sim.2324>`_) of `Hanley and McNeil, 1982
    <https://doi.org/10.1148/radiology.143.1.7063747>`_. Unlike intervals of variances that are
    measured, it has a width for labels of few positives, and for an area of 1.

    Args:
        roc_auc (numpy.ndarray): The ROC-AUC of each label; NaN gives NaN.
        num_positive, num_negative (numpy.ndarray): The numbers of samples of each label.
    """
    bounds = []
    for end in (np.zeros_like(roc_auc), np.ones_like(roc_auc)):
        inside, outside = roc_auc.copy(), end
        for _ in range(_NUM_HALVINGS):
            middle = (inside + outside) / 2
            errors = _standard_error(middle, num_positive, num_negative)
            is_inside = np.abs(roc_auc - middle) <= _Z * errors
            inside, outside = np.where(is_inside, [middle, outside], [inside, middle])
        bounds.append(np.where(np.isnan(roc_auc), np.nan, inside))
    return np.array(bounds)


def _standard_error(area: FloatArray, num_positive: IntArray, num_negative: IntArray) -> FloatArray:
    """Returns Hanley and McNeil's standard error of areas, the larger one of both classes' orders,
    because which class varies more is unknown.
    """
    more, fewer = np.maximum(num_positive, num_negative), np.minimum(num_positive, num_negative)
    first, second = (1 - area) / (2 - area), area / (1 + area)
    of_pairs = (more - 1) * np.maximum(first, second) + (fewer - 1) * np.minimum(first, second)
    variance = area * (1 - area) * (1 + of_pairs) / np.maximum(more * fewer, 1)
    return np.asarray(np.sqrt(variance))


def pooled_areas(targets: Targets, scores: FloatArray) -> tuple[float, float]:
    """Returns the ROC-AUC and the average precision over all observed entries."""
    return _areas(targets.positive[targets.observed], scores[targets.observed])


def areas_per_label(targets: Targets, scores: FloatArray) -> FloatArray:
    """Returns the ROC-AUC and the average precision of every label, ``[2, num_labels]``."""
    columns = zip(targets.positive.T, targets.observed.T, scores.T, strict=True)
    return np.array([_areas(positive[rows], column[rows]) for positive, rows, column in columns]).T


def mean_of_defined(values: npt.NDArray[Any]) -> float:
    """Returns the mean of the values that are not NaN; NaN if all are NaN."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def _areas(positive: BoolArray, scores: FloatArray) -> tuple[float, float]:
    """Returns ROC-AUC and average precision, from one sort; NaN unless both classes occur."""
    order = np.argsort(-scores)
    ordered = scores[order]
    # True and false positives at each distinct score as threshold, in descending order.
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))[: len(scores)]
    hits = positive[order].cumsum()[ends]
    false_alarms = ends + 1 - hits
    if not (hits.size and hits[-1] and false_alarms[-1]):
        return float("nan"), float("nan")
    new_hits = np.diff(hits, prepend=0)
    # Twice the trapezoid rule, in integers, so that constant scores give exactly one half.
    area = ((2 * hits - new_hits) * np.diff(false_alarms, prepend=0)).sum()
    precision = (new_hits * (hits / (ends + 1))).sum() / hits[-1]
    return float(area / (2.0 * hits[-1] * false_alarms[-1])), float(precision)


def _read(y_true: ArrayLike, scores: ArrayLike) -> tuple[Targets, FloatArray]:
    targets = read_targets(y_true)
    return targets, read_scores(scores, targets)


def _hits(y_true: ArrayLike, scores: ArrayLike, k: int) -> tuple[BoolArray, IntArray]:
    """Returns hits among the top k labels, and counts of positives, of samples with positives."""
    check_count("k", k)
    targets, matrix = _read(y_true, scores)
    return hits_of(targets, top_labels(targets, matrix, k))


def top_labels(targets: Targets, scores: FloatArray, k: int) -> IntArray:
    """Returns the indices of the k labels with the highest scores, unknown labels last."""
    ranked = np.where(targets.observed, scores, -np.inf)
    return np.argsort(-ranked, axis=1, kind="stable")[:, :k]


def hits_of(targets: Targets, top: IntArray) -> tuple[BoolArray, IntArray]:
    """Returns hits among the top labels, and counts of positives, of samples with positives."""
    rows = targets.positive.any(axis=1)
    positive = targets.positive[rows]
    return np.take_along_axis(positive, top[rows], axis=1), positive.sum(axis=1)


def precision_of(targets: Targets, top: IntArray) -> float:
    """Returns :func:`precision_at_k` for the indices of the top labels."""
    num_known = targets.observed.sum(axis=1)
    rows = num_known > 0
    hits = np.take_along_axis(targets.positive[rows], top[rows], axis=1).sum(axis=1)
    return float((hits / np.minimum(num_known[rows], top.shape[1])).mean())


def gain_of(targets: Targets, top: IntArray) -> float:
    """Returns :func:`ndcg_at_k` for the indices of the top labels."""
    hits, num_positive = hits_of(targets, top)
    discounts = 1 / np.log2(np.arange(hits.shape[1]) + 2)
    ideal = discounts.cumsum()[np.minimum(num_positive, hits.shape[1]) - 1]
    return mean_of_defined(hits @ discounts / ideal)


def propensity_precision_of(targets: Targets, top: IntArray, propensities: FloatArray) -> float:
    """Returns :func:`propensity_precision_at_k` for the indices of the top labels."""
    gains, k = targets.positive / propensities, top.shape[1]
    best = np.partition(gains, gains.shape[1] - k, axis=1)[:, -k:].sum()
    return float(np.take_along_axis(gains, top, axis=1).sum() / best) if best else float("nan")
