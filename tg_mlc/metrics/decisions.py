"""Metrics of decisions over observed labels: subset accuracy, Hamming accuracy and three F1s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from tg_mlc.metrics._inputs import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    Targets,
    read_decisions,
    read_targets,
)

ZeroDivision = Literal[0, 1, "drop"]
ZeroDivisions = ZeroDivision | Mapping[str, ZeroDivision] | None

#: The value of an F1 without positives and predicted positives.
DEFAULT_ZERO_DIVISION: dict[str, ZeroDivision] = {"f1_samples": 1, "f1_micro": 0, "f1_macro": 0}
SAMPLES, LABELS = 0, 1
#: The decision metrics, and whether each counts per sample or per label.
DECISION_METRICS = {
    "subset_accuracy": SAMPLES,
    "hamming_accuracy": LABELS,
    "f1_samples": SAMPLES,
    "f1_micro": LABELS,
    "f1_macro": LABELS,
}


def subset_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """The fraction of samples whose observed labels are all right.

    Args:
        y_true (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        y_pred (Tensor or numpy.ndarray): Decisions :math:`(N, L)`: 0 or 1.

    Raises:
        ValueError: If the shapes differ, a value is not allowed, or no label is observed.
    """
    return _measure("subset_accuracy", y_true, y_pred)


def hamming_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """The fraction of observed entries that are right. Arguments as in :func:`subset_accuracy`."""
    return _measure("hamming_accuracy", y_true, y_pred)


def example_f1(y_true: ArrayLike, y_pred: ArrayLike, *, zero_division: ZeroDivision = 1) -> float:
    """The mean F1 over samples with observed labels (f1_samples).

    Args:
        y_true, y_pred: As in :func:`subset_accuracy`, with the same errors.
        zero_division (0, 1 or "drop", optional): The F1 of samples without positives and predicted
            positives; :obj:`"drop"` skips them (NaN if all are skipped). (default: :obj:`1`)
    """
    return _measure("f1_samples", y_true, y_pred, zero_division)


def micro_f1(y_true: ArrayLike, y_pred: ArrayLike, *, zero_division: ZeroDivision = 0) -> float:
    """The F1 over all observed entries. Arguments as in :func:`example_f1`."""
    return _measure("f1_micro", y_true, y_pred, zero_division)


def macro_f1(y_true: ArrayLike, y_pred: ArrayLike, *, zero_division: ZeroDivision = 0) -> float:
    """The mean F1 over labels with observed entries. Arguments as in :func:`example_f1`."""
    return _measure("f1_macro", y_true, y_pred, zero_division)


class Counts(NamedTuple):
    """Counts over observed entries per sample or label. A leading axis holds thresholds."""

    hits: IntArray  # [..., num_items]
    predicted: IntArray  # [..., num_items]
    positive: IntArray  # [num_items]
    observed: IntArray  # [num_items]

    @property
    def wrong(self) -> IntArray:
        """The number of wrong decisions [..., num_items]."""
        return self.predicted + self.positive - 2 * self.hits


def count(targets: Targets, decisions: BoolArray, per: int) -> Counts:
    """Returns counts per sample (``per=SAMPLES``) or per label (``per=LABELS``)."""
    (positive, observed), axis = targets, 1 - per
    hits, predicted = (decisions & positive).sum(axis), (decisions & observed).sum(axis)
    return Counts(hits, predicted, positive.sum(axis), observed.sum(axis))


class GridCounts:
    """The counts at every threshold of an increasing grid, from one pass over the scores. Labels
    share a grid [num_thresholds], or have one row each in a grid [num_labels, num_thresholds].
    """

    def __init__(
        self, targets: Targets, scores: FloatArray, grid: Sequence[float] | FloatArray
    ) -> None:
        self.targets, self.grid = targets, np.asarray(grid)
        grids = np.broadcast_to(self.grid, (scores.shape[1], self.grid.shape[-1]))
        columns = zip(grids, scores.T, strict=True)
        reached = [np.searchsorted(row, column, side="right") for row, column in columns]
        self.reached = np.stack(reached, axis=1)
        self._counts: dict[int, Counts] = {}

    def per(self, per: int) -> Counts:
        """Returns the counts [num_thresholds, num_items] per sample or per label."""
        if per not in self._counts:
            reaching = [self._count_reaching(mask, per) for mask in self.targets]
            self._counts[per] = Counts(*reaching, *(mask.sum(1 - per) for mask in self.targets))
        return self._counts[per]

    def _count_reaching(self, mask: BoolArray, per: int) -> IntArray:
        num_items, num_bins = mask.shape[per], self.grid.shape[-1] + 1
        items = np.expand_dims(np.arange(num_items), 1 - per)
        bins = (self.reached + num_bins * items)[mask]
        histogram = np.bincount(bins, minlength=num_items * num_bins).reshape(num_items, num_bins)
        # Bin g counts scores that reach exactly g thresholds, so scores in bins above g reach
        # threshold g (counted from 0).
        return histogram[:, :0:-1].cumsum(axis=1)[:, ::-1].T


def resolve_zero_division(zero_division: ZeroDivisions = None) -> dict[str, ZeroDivision]:
    """Returns ``zero_division`` by metric, from one value for all F1s or from values by name."""
    by_name = {} if zero_division is None else zero_division
    if not isinstance(by_name, Mapping):
        by_name = dict.fromkeys(DEFAULT_ZERO_DIVISION, by_name)
    if unknown := sorted(set(by_name) - set(DEFAULT_ZERO_DIVISION)):
        expected = f"'zero_division' only for {list(DEFAULT_ZERO_DIVISION)}"
        raise ValueError(f"Expected {expected} (got {unknown})")
    for value in by_name.values():
        if value not in (0, 1, "drop"):
            raise ValueError(f"Expected 'zero_division' to be 0, 1 or 'drop' (got {value!r})")
    return {**DEFAULT_ZERO_DIVISION, **by_name}


def f1_per_item(counts: Counts, zero_division: ZeroDivision) -> FloatArray:
    """Returns the F1 of every item of the counts; NaN marks an item to drop."""
    total = np.asarray(counts.predicted + counts.positive)
    values = np.full(total.shape, np.nan if zero_division == "drop" else float(zero_division))
    np.divide(2.0 * counts.hits, total, out=values, where=total > 0)
    return values


def values_of(name: str, counts: Counts, zero_division: ZeroDivision) -> FloatArray:
    """Returns the values [...] of a metric from the counts [..., num_items] per sample or label."""
    if name == "hamming_accuracy":
        return np.asarray(1.0 - counts.wrong.sum(axis=-1) / counts.observed.sum())
    if name == "f1_micro":
        pooled = Counts(*(np.asarray(field.sum(axis=-1)) for field in counts))
        return f1_per_item(pooled, zero_division)
    exact = name == "subset_accuracy"
    values = (counts.wrong == 0).astype(np.float64) if exact else f1_per_item(counts, zero_division)
    mask = (counts.observed > 0) & ~np.isnan(values)
    num_items = np.asarray(mask.sum(axis=-1))
    mean = np.full(num_items.shape, np.nan)
    np.divide(np.where(mask, values, 0.0).sum(axis=-1), num_items, out=mean, where=num_items > 0)
    return mean


def value_of(
    name: str, targets: Targets, decisions: BoolArray, zero_division: Mapping[str, ZeroDivision]
) -> float:
    """Returns the value of a metric. :func:`resolve_zero_division` makes the last argument."""
    counts = count(targets, decisions, DECISION_METRICS[name])
    return float(values_of(name, counts, zero_division.get(name, 0)))


def _measure(
    name: str, y_true: ArrayLike, y_pred: ArrayLike, zero_division: ZeroDivision | None = None
) -> float:
    divisions, targets = resolve_zero_division(zero_division), read_targets(y_true)
    return value_of(name, targets, read_decisions(y_pred, targets), divisions)
