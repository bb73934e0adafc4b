"""Decisions for all labels of a sample at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import logit, softmax
from torch import Tensor
from typing_extensions import Self

from tg_mlc._options import check_choice
from tg_mlc.metrics._inputs import (
    ArrayLike,
    BoolArray,
    FloatArray,
    check_scale,
    read_matrix,
    read_scores,
    read_targets,
)
from tg_mlc.metrics.decisions import DECISION_METRICS, DEFAULT_ZERO_DIVISION, value_of

#: Priors of :meth:`LabelSets.tuned`, from uniform to the frequencies of sets.
PRIORS: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0)

_MIN_PROBABILITY = 1e-4
_CHUNK = 2**24  # likelihoods per chunk of samples
_NEVER = -1e9  # log-likelihood of sets that no other training sample has


class LabelSets:
    r"""Decides for whole label sets, by their probability and frequency in training samples.

    .. math::
        \log P(Y) = \sum_{i \in Y} \log p_i + \sum_{i \notin Y} \log (1 - p_i) + \gamma \log n_Y +
        \textrm{const}

    for each set :math:`Y` of :math:`n_Y` training samples, with probabilities within
    :math:`[10^{-4}, 1 - 10^{-4}]`, so that no single label decides alone. The likeliest set
    maximises subset accuracy (Dembczyński et al. 2012, doi:10.1007/s10994-012-5285-8). For
    :obj:`"f1_samples"`, the decision is the set of labels, new or not, with the highest expected F1
    (Waegeman et al. 2014, *On the Bayes-Optimality of F-Measure Maximizers*).

    .. code-block:: python

        sets = LabelSets.tuned(y_train, y_val, scores_val)
        y_pred = sets.predict(scores_test)

    Args:
        y_train (Tensor or numpy.ndarray): Targets :math:`(N, L)`; samples with NaN are skipped.
        prior (float, optional): The strength :math:`\gamma` of frequencies. (default: :obj:`0.0`)
        metric (str, optional): One of :obj:`DECISION_METRICS`; all but :obj:`"f1_samples"` take the
            likeliest set. (default: :obj:`"subset_accuracy"`)

    Attributes:
        sets (scipy.sparse.csr_array): The label sets :math:`(S, L)`.
        counts (numpy.ndarray): The number of training samples per set :math:`(S)`.
        best_value (float): The value of the metric on validation data, after :meth:`tuned`.

    Raises:
        ValueError: If no training sample has all its labels observed, or the metric is unknown.
    """

    def __init__(
        self, y_train: ArrayLike, prior: float = 0.0, metric: str = "subset_accuracy"
    ) -> None:
        check_choice("metric", metric, DECISION_METRICS)
        positive, observed = read_targets(y_train, "y_train")
        known: BoolArray = np.asarray(observed.all(axis=1))
        if not known.any():
            raise ValueError("Expected 'y_train' to have samples without unknown labels (got none)")
        rows = positive[known]
        packed, options = np.packbits(rows, axis=1), ("index", "inverse", "counts")
        returned: Any = {f"return_{name}": True for name in options}
        _, first_rows, set_of_row, self.counts = np.unique(packed, axis=0, **returned)
        self.sets = sp.csr_array(rows[first_rows], dtype=np.float64)
        self.prior, self.metric = prior, metric
        self.best_value: float | None = None
        self._set_of_row = np.full(len(known), -1)  # index of each sample's set, or -1
        self._set_of_row[known] = set_of_row.ravel()

    @classmethod
    def tuned(
        cls,
        y_train: ArrayLike,
        y: ArrayLike,
        scores: ArrayLike,
        *,
        metric: str = "subset_accuracy",
    ) -> Self:
        """Chooses the strength of the prior on validation data.

        Args:
            y_train: As in :class:`LabelSets`.
            y, scores (Tensor or numpy.ndarray): Targets and probabilities of validation samples.
            metric (str, optional): As in :class:`LabelSets`. (default: :obj:`"subset_accuracy"`)

        Raises:
            ValueError: If an argument is not allowed.
        """
        targets, sets = read_targets(y, "y"), cls(y_train, metric=metric)
        decisions = sets.decide(read_scores(scores, targets), PRIORS)
        values = [value_of(metric, targets, y_pred, DEFAULT_ZERO_DIVISION) for y_pred in decisions]
        return sets.choose(values)

    def choose(self, values: Sequence[float]) -> Self:
        """Sets the prior to the first of :obj:`PRIORS` with the best value."""
        best = int(np.argmax(values))
        self.prior, self.best_value = PRIORS[best], float(values[best])
        return self

    def predict(self, scores: ArrayLike) -> Any:
        """Returns decisions 0 and 1 for probabilities :math:`(N, L)`, as a tensor or an array.

        Raises:
            ValueError: If the number of labels differs, or scores are not probabilities.
        """
        decisions = self.decide(read_matrix(scores, "scores"), [self.prior])[0].astype(np.int64)
        if isinstance(scores, Tensor):
            return torch.from_numpy(decisions).to(scores.device)
        return decisions

    def decide(
        self, scores: FloatArray, priors: Sequence[float], *, of_training: bool = False
    ) -> list[BoolArray]:
        """Returns decisions :math:`(N, L)` per prior. Training samples do not count themselves."""
        check_scale(scores, (0.0, 1.0))
        if scores.shape[1] != self.sets.shape[1]:
            message = f"Expected 'scores' of {self.sets.shape[1]} labels (got {scores.shape[1]})"
            raise ValueError(message)
        all_decisions: list[BoolArray] = [np.zeros(scores.shape, dtype=bool) for _ in priors]
        size = max(1, _CHUNK // max(self.sets.shape))
        for start in range(0, len(scores), size):
            rows = slice(start, start + size)
            logits = logit(np.clip(scores[rows], _MIN_PROBABILITY, 1 - _MIN_PROBABILITY))
            log_likelihood = (self.sets @ logits.T).T
            for decisions, prior in zip(all_decisions, priors, strict=True):
                values = log_likelihood + prior * np.log(self.counts)
                if of_training:
                    known = np.flatnonzero(self._set_of_row[rows] >= 0)
                    own_set = self._set_of_row[rows][known]
                    count = self.counts[own_set] - 1
                    value = log_likelihood[known, own_set] + prior * np.log(np.maximum(count, 1))
                    values[known, own_set] = np.where(count > 0, value, _NEVER)
                decisions[rows] = self._best(values)
        return all_decisions

    def _best(self, values: FloatArray) -> BoolArray:
        """Returns the best decisions for log-values ``[num_samples, num_sets]`` of label sets."""
        if self.metric != "f1_samples":
            return np.asarray(self.sets[values.argmax(axis=1)].toarray() > 0)
        probability = softmax(values, axis=1)
        sizes = self.sets.sum(axis=1)
        decisions = np.zeros((len(values), self.sets.shape[1]), dtype=bool)
        best = probability[:, sizes == 0].sum(axis=1)  # the expected F1 of the empty set
        set_sizes = np.unique(sizes[sizes > 0])
        if not len(set_sizes):
            return decisions
        # P(label is in the set, size of the set) gives a label's share of the expected F1.
        masks = [sizes == size for size in set_sizes]
        products = [(self.sets[mask].T @ probability[:, mask].T).T for mask in masks]
        joint = np.stack(products, axis=-1)
        for k in range(1, int(set_sizes[-1]) + 1):
            contributions = joint @ (2 / (set_sizes + k))
            labels = np.argpartition(-contributions, k - 1, axis=1)[:, :k]
            value = np.take_along_axis(contributions, labels, axis=1).sum(axis=1)
            rows = np.flatnonzero(value > best)
            best[rows], decisions[rows] = value[rows], False
            decisions[rows[:, None], labels[rows]] = True
        return decisions

    def state_dict(self) -> dict[str, Any]:
        """Returns sets, counts and settings as arrays and plain data."""
        return {
            "metric": self.metric,
            "prior": self.prior,
            "best_value": self.best_value,
            "num_labels": self.sets.shape[1],
            "labels": self.sets.indices.astype(np.int64),
            "sizes": np.diff(self.sets.indptr).astype(np.int64),
            "counts": self.counts,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restores label sets from the result of :meth:`state_dict`."""
        labels, sizes, counts = (np.asarray(state[name]) for name in ("labels", "sizes", "counts"))
        rows = (np.ones(len(labels)), labels, np.append(0, sizes.cumsum()))
        sets = sp.csr_array(rows, shape=(len(sizes), state["num_labels"]))
        sets.check_format()
        restored = cls(np.zeros((1, state["num_labels"])), state["prior"], state["metric"])
        restored.sets, restored.counts, restored.best_value = sets, counts, state["best_value"]
        return restored

    def __repr__(self) -> str:
        size = f"{self.sets.shape[0]} sets of {self.sets.shape[1]} labels"
        return f"{type(self).__name__}({size}, prior={self.prior})"
