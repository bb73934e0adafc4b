"""Thresholds that turn scores into decisions, chosen on validation data."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from tg_mlc.metrics._counts import LABELS, GridCounts
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray, read_matrix, read_scores, read_targets
from tg_mlc.metrics.decisions import (
    DECISION_METRICS,
    ZeroDivision,
    ZeroDivisions,
    check_metric,
    f1_per_item,
    resolve_zero_division,
)

#: 0.01 to 0.10 by 0.01 and 0.15 to 0.95 by 0.05, the grid of the LaMP, MPED and Graph2Graph papers.
PAPER_GRID: tuple[float, ...] = tuple(percent / 100 for percent in (*range(1, 11), *range(15, 100, 5)))

# Means of the same numbers may differ in the last digits; such thresholds are ties.
_TIE = 1e-12


class ThresholdTuner:
    r"""Chooses, on validation data, the threshold from which a score means yes.

    A label is predicted where its score is at least the threshold. One threshold for all labels is the one of the grid
    that maximises the metric. With one per label, each maximises the F1 of its label; where that is zero at every
    threshold (for one, without known positives), the label takes the one that is best for all together. Of equally good
    thresholds, the middle of the longest run is taken (the lower of two middles, the lowest of equally long runs): the
    choice that is least sensitive to small changes of the scores.

    .. code-block:: python

        tuner = ThresholdTuner("f1_micro").fit(y_val, scores_val)
        y_pred = tuner.predict(scores_test)

    Args:
        metric (str, optional): One of :obj:`"subset_accuracy"`, :obj:`"hamming_accuracy"`, :obj:`"f1_samples"`,
            :obj:`"f1_micro"` and :obj:`"f1_macro"`.
            (default: :obj:`"f1_micro"`)
        per_label (bool, optional): If set to :obj:`True`, chooses one threshold per label. (default: :obj:`False`)
        grid (Sequence[float], optional): The increasing candidates. (default: :obj:`PAPER_GRID`)
        zero_division (0, 1, "drop" or dict, optional): As in :func:`evaluate`. (default: :obj:`None`)

    Attributes:
        thresholds (numpy.ndarray): The thresholds after :meth:`fit`, of shape :math:`(1)` or :math:`(L)`.
        best_value (float): The value of the metric on validation data at the best threshold for all labels.

    Raises:
        ValueError: If the metric is not known or the grid is empty or not strictly increasing.
    """

    def __init__(
        self,
        metric: str = "f1_micro",
        *,
        per_label: bool = False,
        grid: Sequence[float] = PAPER_GRID,
        zero_division: ZeroDivisions = None,
    ) -> None:
        check_metric(metric)
        self.metric = metric
        self.per_label = per_label
        self.grid = check_grid(grid)
        self.zero_division: ZeroDivision = resolve_zero_division(zero_division).get(metric, 0)
        self.thresholds: FloatArray | None = None
        self.best_value: float | None = None

    @property
    def threshold(self) -> float:
        """The one threshold for all labels; a :obj:`RuntimeError` if there is one per label, or none yet."""
        thresholds = self.fitted()
        if self.per_label:
            raise RuntimeError("Expected one threshold for all labels (got per_label=True); read 'thresholds' instead")
        return float(thresholds[0])

    def fit(self, y: ArrayLike, scores: ArrayLike) -> Self:
        """Chooses the thresholds.

        Args:
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)` of validation samples: 0, 1, or NaN for unknown.
            scores (Tensor or numpy.ndarray): Their scores :math:`(N, L)`, on the scale of the grid.

        Raises:
            ValueError: If the shapes differ, a value is not allowed, no label is known, scores are not probabilities
                while the grid is one of probabilities, or the metric is undefined at every threshold.
        """
        return self.fit_counts(_count_over_grid(y, scores, self.grid))

    def predict(self, scores: ArrayLike) -> Any:
        """Returns decisions 0 and 1 for scores :math:`(N, L)`: a tensor for a tensor, else an array.

        Raises:
            RuntimeError: If called before :meth:`fit`.
            ValueError: If the number of labels differs from that in :meth:`fit`, or scores are not probabilities.
        """
        decisions = decide(check_scale(read_matrix(scores, "scores"), self.grid), self.fitted())
        if isinstance(scores, Tensor):
            return torch.from_numpy(decisions).to(device=scores.device, dtype=torch.long)
        return decisions.astype(np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Returns settings and thresholds as plain data, which a person can read."""
        return {
            "metric": self.metric,
            "per_label": self.per_label,
            "grid": list(self.grid),
            "zero_division": self.zero_division,
            "thresholds": None if self.thresholds is None else self.thresholds.tolist(),
            "best_value": self.best_value,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Self:
        """Takes settings and thresholds from :meth:`state_dict`, replacing those of this object.

        Raises:
            KeyError: If an entry is missing.
        """
        options = {name: state_dict[name] for name in ("metric", "per_label", "zero_division")}
        restored, thresholds = type(self)(**options, grid=state_dict["grid"]), state_dict["thresholds"]
        restored.thresholds = None if thresholds is None else np.array(thresholds, dtype=float)
        restored.best_value = state_dict["best_value"]
        vars(self).update(vars(restored))
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metric!r}, per_label={self.per_label}, thresholds={self.thresholds})"

    def fit_counts(self, counts: GridCounts) -> Self:
        """Chooses the thresholds from counts at every one of a grid."""
        per, formula = DECISION_METRICS[self.metric]
        values = formula(counts.per(per), self.zero_division)
        if np.isnan(values).all():
            raise ValueError(
                f"Expected {self.metric} to be defined at some threshold (got neither positives nor predictions, and "
                f"zero_division='drop')"
            )
        best = _middle_of_best(values)
        self.best_value = float(values[best])
        self.thresholds = self._per_label(counts, best) if self.per_label else counts.thresholds(best)
        return self

    def _per_label(self, counts: GridCounts, fallback: int) -> FloatArray:
        values = f1_per_item(counts.per(LABELS), 0)
        best = [_middle_of_best(column) if column.max() > 0.0 else fallback for column in values.T]
        return cast("FloatArray", counts.grid[best])

    def fitted(self) -> FloatArray:
        """Thresholds, of shape :math:`(1)` or :math:`(L)`; a :obj:`RuntimeError` before :meth:`fit`."""
        if self.thresholds is None:
            raise RuntimeError("Expected 'fit' to be called first (got a tuner without thresholds)")
        return self.thresholds


def decide(scores: FloatArray, thresholds: FloatArray) -> BoolArray:
    """Returns where scores [num_samples, num_labels] reach one threshold, or one per label."""
    if thresholds.shape not in {(), (1,), scores.shape[1:]}:
        raise ValueError(f"Expected one threshold or {scores.shape[1]}, one per label (got shape {thresholds.shape})")
    if np.isnan(thresholds).any():
        raise ValueError("Expected 'thresholds' to be numbers (got NaN)")
    return np.asarray(scores >= thresholds)


def _count_over_grid(y: ArrayLike, scores: ArrayLike, grid: Sequence[float]) -> GridCounts:
    targets = read_targets(y, "y")
    return GridCounts(targets, check_scale(read_scores(scores, targets), grid), grid)


def check_grid(grid: Sequence[float]) -> tuple[float, ...]:
    """Refuses candidates that do not increase."""
    values = tuple(map(float, grid))
    if not values or not all(map(operator.lt, values, values[1:])):
        raise ValueError(f"Expected 'grid' to be strictly increasing and not empty (got {values})")
    return values


def check_scale(scores: FloatArray, grid: Sequence[float]) -> FloatArray:
    """Refuses logits where thresholds are probabilities: the mistake would go unnoticed."""
    low, high = scores.min(), scores.max()
    if grid[0] >= 0.0 and grid[-1] <= 1.0 and not (low >= 0.0 and high <= 1.0):
        raise ValueError(
            f"Expected probabilities, as the thresholds are (got scores from {low:.3g} to {high:.3g}); apply a sigmoid "
            f"to logits, or give 'thresholds' (to tuners a 'grid') on the scale of the scores"
        )
    return scores


def _middle_of_best(values: FloatArray) -> int:
    """The index in the middle of the longest run of maxima of [num_thresholds]; NaN is never a maximum."""
    tied = values >= np.nanmax(values) - _TIE
    steps = np.diff(tied.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    longest = int(np.argmax(ends - starts))
    return int(starts[longest] + ends[longest] - 1) // 2
