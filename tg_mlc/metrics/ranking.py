"""Metrics of scores that need no threshold, over the observed labels: ROC-AUC, average precision and the first k."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tg_mlc._options import check_count
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray, IntArray, Targets, read_scores, read_targets


def micro_roc_auc(y_true: ArrayLike, scores: ArrayLike) -> float:
    """The area under the ROC curve of all observed entries, pooled over samples and labels.

    NaN if the observed entries are all positive or all negative.

    Args:
        y_true (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Scores :math:`(N, L)`, larger for positive: probabilities or logits.

    Raises:
        ValueError: If the shapes differ, a value is not allowed, or no label is observed.
    """
    return _rank(y_true, scores).pooled.roc_auc


def macro_roc_auc(y_true: ArrayLike, scores: ArrayLike, *, min_positives: int = 1) -> float:
    """The mean over labels of the area under their ROC curves.

    Labels without both an observed positive and an observed negative are left out, because the curve is undefined; they
    are the NaN of :func:`roc_auc_per_label`, and :func:`evaluate` reports them by name. NaN if no label is left. Errors
    are those of :func:`micro_roc_auc`.

    Args:
        y_true, scores: As in :func:`micro_roc_auc`.
        min_positives (int, optional): Labels with fewer observed positives are left out too, as their curves are mostly
            chance. (default: :obj:`1`)
    """
    check_count("min_positives", min_positives)
    return _rank(y_true, scores).macro("roc_auc", min_positives)


def micro_average_precision(y_true: ArrayLike, scores: ArrayLike) -> float:
    r"""The average precision :math:`\sum_n (R_n - R_{n-1}) P_n` of all observed entries, over samples and labels.

    NaN if the observed entries are all positive or all negative. Args and errors are those of :func:`micro_roc_auc`.
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
    """The average precision of every label :math:`(L)`, NaN where only one class is observed.

    Args and errors are those of :func:`micro_roc_auc`.
    """
    return _rank(y_true, scores).per_label("average_precision")


def recall_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    r"""The mean over samples of the share of their labels that is among the :obj:`k` with the highest scores.

    .. math::
        \mathrm{R@}k = \frac{1}{N} \sum_{n=1}^N \frac{|\mathcal{Y}_n \cap \mathcal{T}_n^k|}{|\mathcal{Y}_n|}

    Samples without an observed positive label are left out; NaN if there are no others. Labels of equal scores keep
    their own order.

    Args:
        y_true (Tensor or numpy.ndarray): Targets: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Scores, larger for positive: probabilities or logits.
        k (int, optional): The number of labels. (default: :obj:`10`)

    Shapes:
        - **y_true, scores:** :math:`(N, L)`

    Raises:
        ValueError: If the shapes differ, a value is not allowed, no label is observed, or :obj:`k` is less than 1.
    """
    hits, num_positive = _hits(y_true, scores, k)
    return _mean(hits.sum(axis=1) / num_positive)


def ndcg_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    r"""The mean over samples of the normalised discounted cumulative gain of the :obj:`k` labels with the highest
    scores, whose gain is 1 for a label of the sample.

    .. math::
        \mathrm{NDCG@}k = \frac{1}{N} \sum_{n=1}^N \frac{\sum_{r=1}^k [t_{n,r} \in \mathcal{Y}_n] / \log_2(r + 1)}
        {\sum_{r=1}^{\min(k, |\mathcal{Y}_n|)} 1 / \log_2(r + 1)}

    Args, errors, ties and samples left out are those of :func:`recall_at_k`.
    """
    hits, num_positive = _hits(y_true, scores, k)
    discounts = 1 / np.log2(np.arange(hits.shape[1]) + 2)
    ideal = discounts.cumsum()[np.minimum(num_positive, hits.shape[1]) - 1]
    return _mean(hits @ discounts / ideal)


def hit_rate_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    """The share of samples that have one of the :obj:`k` labels with the highest scores.

    Args, errors, ties and samples left out are those of :func:`recall_at_k`.
    """
    hits, _ = _hits(y_true, scores, k)
    return _mean(np.asarray(hits.any(axis=1)))


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
        columns = zip(self._targets.positive.T, self._targets.observed.T, self._scores.T, strict=True)
        return [_curve(positive[observed], scores[observed]) for positive, observed, scores in columns]

    @cached_property
    def pooled(self) -> Curve:
        """Curve of all observed entries together."""
        return _curve(self._targets.positive[self._targets.observed], self._scores[self._targets.observed])

    def per_label(self, metric: Literal["roc_auc", "average_precision"]) -> FloatArray:
        """Metric of every label ``[num_labels]``, NaN where only one class is observed."""
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


def _hits(y_true: ArrayLike, scores: ArrayLike, k: int) -> tuple[BoolArray, IntArray]:
    """Whether each of the first k labels is positive, and the number of positive labels, of samples that have any."""
    check_count("k", k)
    positive, observed = targets = read_targets(y_true)
    ranked = np.where(observed, read_scores(scores, targets), -np.inf)
    some = positive.any(axis=1)
    top = np.argsort(-ranked[some], axis=1, kind="stable")[:, :k]
    return np.take_along_axis(positive[some], top, axis=1), positive[some].sum(axis=1)


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
