"""Metrics of the labels with the highest scores of a sample, over the known labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tg_mlc._options import check_count
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, IntArray, read_scores, read_targets


def recall_at_k(y_true: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    r"""The mean over samples of the share of their labels that is among the :obj:`k` with the highest scores.

    .. math::
        \mathrm{R@}k = \frac{1}{N} \sum_{n=1}^N \frac{|\mathcal{Y}_n \cap \mathcal{T}_n^k|}{|\mathcal{Y}_n|}

    Samples without a known positive label are left out; NaN if there are no others. Labels of equal scores are taken
    in their own order.

    Args:
        y_true (Tensor or numpy.ndarray): Targets: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Scores, larger for positive: probabilities or logits.
        k (int, optional): The number of labels. (default: :obj:`10`)

    Shapes:
        - **y_true, scores:** :math:`(N, L)`

    Raises:
        ValueError: If the shapes differ, a value is not allowed, no label is known, or :obj:`k` is less than 1.
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


def _hits(y_true: ArrayLike, scores: ArrayLike, k: int) -> tuple[BoolArray, IntArray]:
    """Whether each of the first k labels is positive, and the number of positive labels, of samples that have any."""
    check_count("k", k)
    positive, known = targets = read_targets(y_true)
    ranked = np.where(known, read_scores(scores, targets), -np.inf)
    some = positive.any(axis=1)
    top = np.argsort(-ranked[some], axis=1, kind="stable")[:, :k]
    return np.take_along_axis(positive[some], top, axis=1), positive[some].sum(axis=1)


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
