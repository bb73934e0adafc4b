"""Decisions for all labels of a sample at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import logit
from torch import Tensor
from typing_extensions import Self

from tg_mlc._options import check_choice
from tg_mlc.metrics._inputs import ArrayLike, read_matrix, read_scores, read_targets
from tg_mlc.metrics.decisions import DECISION_METRICS, DEFAULT_ZERO_DIVISION, value_of
from tg_mlc.metrics.thresholds import PAPER_GRID, check_scale

#: What :meth:`LabelSets.tuned` tries: from all label sets alike to as often as they occur.
PRIORS: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0)

_EDGE = 1e-4
_CHUNK = 2**24  # likelihoods at a time


class LabelSets:
    r"""Predicts the likeliest of the label sets that training samples have.

    .. math::
        \hat{Y} = \arg\max_{Y} \; \sum_{i \in Y} \log p_i + \sum_{i \notin Y} \log (1 - p_i) + \gamma \log n_Y

    over the sets :math:`Y` of training samples, of which :math:`n_Y` have this one, with probabilities within
    :math:`[10^{-4}, 1 - 10^{-4}]`: no label alone may outvote all others. Subset accuracy asks for the likeliest set as
    a whole, not for the likely labels (Dembczyński et al. 2012, doi:10.1007/s10994-012-5285-8). Where most sets of new
    samples occur among training ones, as topics of news are, this finds more of them than any thresholds do.

    .. code-block:: python

        sets = LabelSets.tuned(y_train, y_val, scores_val)
        y_pred = sets.predict(scores_test)

    Args:
        y_train (Tensor or numpy.ndarray): Targets :math:`(N, L)` of training samples: 0, 1, or NaN for unknown;
            samples with unknown labels are left out.
        prior (float, optional): The strength :math:`\gamma` of how often sets occur. (default: :obj:`0.0`)

    Attributes:
        sets (scipy.sparse.csr_array): The label sets :math:`(S, L)`.
        counts (numpy.ndarray): How many training samples have each, of shape :math:`(S)`.

    Raises:
        ValueError: If no training sample has all its labels observed.
    """

    def __init__(self, y_train: ArrayLike, prior: float = 0.0) -> None:
        positive, observed = read_targets(y_train, "y_train")
        rows = positive[observed.all(axis=1)]
        if not len(rows):
            raise ValueError("Expected 'y_train' to have samples without unknown labels (got none)")
        _, first, counts = np.unique(np.packbits(rows, axis=1), axis=0, return_index=True, return_counts=True)
        self.sets = sp.csr_array(rows[first], dtype=np.float64)
        self.counts = counts
        self.prior = prior

    @classmethod
    def tuned(
        cls,
        y_train: ArrayLike,
        y: ArrayLike,
        scores: ArrayLike,
        *,
        priors: Sequence[float] = PRIORS,
        metric: str = "subset_accuracy",
    ) -> Self:
        """Chooses the strength of the prior on validation data.

        Args:
            y_train: As in :class:`LabelSets`.
            y, scores (Tensor or numpy.ndarray): Targets and probabilities of validation samples.
            priors (Sequence[float], optional): The candidates, of which the first of the best is taken.
                (default: :obj:`PRIORS`)
            metric (str, optional): As in :class:`ThresholdTuner`. (default: :obj:`"subset_accuracy"`)

        Raises:
            ValueError: If the metric is unknown, there is no candidate, or shapes or values are not allowed.
        """
        check_choice("metric", metric, DECISION_METRICS)
        if not priors:
            raise ValueError("Expected 'priors' to hold at least one number (got none)")
        targets = read_targets(y, "y")
        scores = read_scores(scores, targets)
        sets, values = cls(y_train), []
        for prior in priors:
            sets.prior = prior
            values.append(value_of(metric, targets, sets.predict(scores).astype(bool), DEFAULT_ZERO_DIVISION))
        sets.prior = priors[int(np.argmax(values))]
        return sets

    def predict(self, scores: ArrayLike) -> Any:
        """Returns decisions 0 and 1 for probabilities :math:`(N, L)`: a tensor for a tensor, else an array.

        Raises:
            ValueError: If the number of labels differs from that of the training samples, or scores are not
                probabilities.
        """
        matrix = check_scale(read_matrix(scores, "scores"), PAPER_GRID)
        if matrix.shape[1] != self.sets.shape[1]:
            raise ValueError(f"Expected 'scores' of {self.sets.shape[1]} labels (got {matrix.shape[1]})")
        size = max(1, _CHUNK // len(self.counts))
        chosen = []
        for start in range(0, len(matrix), size):
            odds = logit(np.clip(matrix[start : start + size], _EDGE, 1 - _EDGE))
            likelihood = self.sets @ odds.T
            likelihood += self.prior * np.log(self.counts)[:, None]
            chosen.append(likelihood.argmax(axis=0))
        decisions = self.sets[np.concatenate(chosen)].toarray().astype(np.int64)
        if isinstance(scores, Tensor):
            return torch.from_numpy(decisions).to(scores.device)
        return decisions

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sets.shape[0]} sets of {self.sets.shape[1]} labels, prior={self.prior})"
