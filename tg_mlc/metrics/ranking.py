"""Metrics of scores without a threshold: ROC-AUC, average precision, and metrics at k."""

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
    read_scores,
    read_targets,
)


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
    hits, num_positive = _hits(y_true, scores, k)
    discounts = 1 / np.log2(np.arange(hits.shape[1]) + 2)
    ideal = discounts.cumsum()[np.minimum(num_positive, hits.shape[1]) - 1]
    return mean_of_defined(hits @ discounts / ideal)


def hit_rate_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    """The fraction of samples with a true label among the :obj:`k` highest scores.

    Arguments, errors, ties and skipped samples are those of :func:`recall_at_k`.
    """
    return mean_of_defined(np.asarray(_hits(y_true, scores, k)[0].any(axis=1)))


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
    (positive, observed), matrix = _read(y_true, scores)
    rows = positive.any(axis=1)
    ranked = np.where(observed, matrix, -np.inf)[rows]
    top = np.argsort(-ranked, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(positive[rows], top, axis=1), positive[rows].sum(axis=1)
