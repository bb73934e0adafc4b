"""Metrics of scores that need no threshold: ROC-AUC and average precision, over the known labels."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from tg_mlc._options import check_count
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray, IntArray, Targets, read_scores, read_targets


def micro_roc_auc(y_true: ArrayLike, scores: ArrayLike) -> float:
    """The area under the ROC curve of all known entries, pooled over samples and labels.

    NaN if the known entries are all positive or all negative.

    Args:
        y_true (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Scores :math:`(N, L)`, larger for positive: probabilities or logits.

    Raises:
        ValueError: If the shapes differ, a value is not allowed, or no label is known.
    """
    return _rank(y_true, scores).pooled.roc_auc


def macro_roc_auc(y_true: ArrayLike, scores: ArrayLike, *, min_positives: int = 1) -> float:
    """The mean over labels of the area under their ROC curves.

    Labels without both a known positive and a known negative are left out, as the curve is undefined; they are the NaN
    of :func:`roc_auc_per_label`, and :func:`evaluate` reports them by name. NaN if no label is left. Errors are those
    of :func:`micro_roc_auc`.

    Args:
        y_true, scores: As in :func:`micro_roc_auc`.
        min_positives (int, optional): Labels with fewer known positives are left out too, as their curves are mostly
            chance. (default: :obj:`1`)
    """
    check_count("min_positives", min_positives)
    return _rank(y_true, scores).macro("roc_auc", min_positives)


def micro_average_precision(y_true: ArrayLike, scores: ArrayLike) -> float:
    r"""The average precision :math:`\sum_n (R_n - R_{n-1}) P_n` of all known entries, pooled over samples and labels.

    NaN if the known entries are all positive or all negative. Args and errors are those of :func:`micro_roc_auc`.
    """
    return _rank(y_true, scores).pooled.average_precision


def macro_average_precision(y_true: ArrayLike, scores: ArrayLike) -> float:
    """The mean over labels of their average precision.

    The labels left out are those of :func:`macro_roc_auc`. Args and errors are those of :func:`micro_roc_auc`.
    """
    return _rank(y_true, scores).macro("average_precision")


def roc_auc_per_label(y_true: ArrayLike, scores: ArrayLike) -> FloatArray:
    """The area under the ROC curve of every label :math:`(L)`, NaN where it is undefined.

    Args and errors are those of :func:`micro_roc_auc`.
    """
    return _rank(y_true, scores).per_label("roc_auc")


def average_precision_per_label(y_true: ArrayLike, scores: ArrayLike) -> FloatArray:
    """The average precision of every label :math:`(L)`, NaN where only one class is known.

    Args and errors are those of :func:`micro_roc_auc`.
    """
    return _rank(y_true, scores).per_label("average_precision")


class Curve(NamedTuple):
    """Numbers of entries above a threshold that goes down, one for every distinct score."""

    hits: IntArray
    false_alarms: IntArray

    @property
    def is_defined(self) -> bool:
        """:obj:`True` if both classes occur."""
        return self.hits.size > 0 and self.hits[-1] > 0 and self.false_alarms[-1] > 0

    @property
    def roc_auc(self) -> float:
        """Area under the ROC curve; NaN unless both classes occur."""
        if not self.is_defined:
            return float("nan")
        new_hits = np.diff(self.hits, prepend=0)
        new_false_alarms = np.diff(self.false_alarms, prepend=0)
        # The trapezoid rule, doubled: as integers, ties give exactly one half.
        area = ((2 * self.hits - new_hits) * new_false_alarms).sum()
        return float(area / (2.0 * self.hits[-1] * self.false_alarms[-1]))

    @property
    def average_precision(self) -> float:
        """Average precision; NaN unless both classes occur."""
        if not self.is_defined:
            return float("nan")
        precision = self.hits / (self.hits + self.false_alarms)
        return float((np.diff(self.hits, prepend=0) * precision).sum() / self.hits[-1])


class Ranking:
    """The curves of every label and of all entries together, sorted once for all ranking metrics."""

    def __init__(self, targets: Targets, scores: FloatArray) -> None:
        self._targets, self._scores = targets, scores

    @cached_property
    def labels(self) -> list[Curve]:
        """Curves of the labels."""
        columns = zip(self._targets.positive.T, self._targets.known.T, self._scores.T, strict=True)
        return [_curve(positive[known], scores[known]) for positive, known, scores in columns]

    @cached_property
    def pooled(self) -> Curve:
        """Curve of all known entries together."""
        return _curve(self._targets.positive[self._targets.known], self._scores[self._targets.known])

    def per_label(self, metric: Literal["roc_auc", "average_precision"]) -> FloatArray:
        """Metric of every label ``[num_labels]``, NaN where only one class is known."""
        return np.array([getattr(curve, metric) for curve in self.labels])

    def macro(self, metric: Literal["roc_auc", "average_precision"], min_positives: int = 1) -> float:
        """Mean of a metric over the labels for which it is defined, and that have so many positives."""
        values = [getattr(curve, metric) for curve in self.labels if curve.is_defined]
        frequent = [curve.hits[-1] >= min_positives for curve in self.labels if curve.is_defined]
        return float(np.mean(np.array(values)[frequent])) if any(frequent) else float("nan")


def _rank(y_true: ArrayLike, scores: ArrayLike) -> Ranking:
    targets = read_targets(y_true)
    return Ranking(targets, read_scores(scores, targets))


def _curve(positive: BoolArray, scores: FloatArray) -> Curve:
    order = np.argsort(-scores)
    ordered = scores[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))[: len(scores)]
    hits = positive[order].cumsum()[ends]
    return Curve(hits, ends + 1 - hits)
