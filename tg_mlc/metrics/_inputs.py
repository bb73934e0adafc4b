"""Reads and checks targets, scores and decisions once for all metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

ArrayLike = Tensor | npt.ArrayLike
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Targets(NamedTuple):
    """Positive and observed entries, [num_samples, num_labels]. Positive entries are observed."""

    positive: BoolArray
    observed: BoolArray


def read_targets(y: ArrayLike, name: str = "y_true") -> Targets:
    """Returns the positive and the observed entries of a matrix of 0, 1 and NaN (unknown)."""
    values = read_matrix(y, name)
    observed, positive = ~np.isnan(values), values == 1.0
    _check_entries(name, values, positive | (values == 0.0) | ~observed, "0, 1 or NaN (unknown)")
    if not observed.any():
        raise ValueError(f"Expected {name!r} to have at least one observed label (got only NaN)")
    return Targets(positive, observed)


def read_scores(scores: ArrayLike, targets: Targets) -> FloatArray:
    """Returns scores as float64, with the shape of the targets and without NaN."""
    values = read_matrix(scores, "scores", targets)
    _check_entries("scores", values, ~np.isnan(values), "numbers, one for every sample and label")
    return values


def read_decisions(y_pred: ArrayLike, targets: Targets) -> BoolArray:
    """Returns decisions as bool, with the shape of the targets."""
    values = read_matrix(y_pred, "y_pred", targets)
    positive: BoolArray = values == 1.0
    expected = "0 or 1 (apply a threshold to scores first)"
    _check_entries("y_pred", values, positive | (values == 0.0), expected)
    return positive


def read_matrix(values: ArrayLike, name: str, targets: Targets | None = None) -> FloatArray:
    """Returns a non-empty float64 matrix. Raises if targets have another shape."""
    matrix, expected = read_array(values), ""
    if matrix.ndim != 2 or matrix.size == 0:
        expected = f"{name!r} of shape [num_samples, num_labels], not empty"
    elif targets is not None and matrix.shape != targets.observed.shape:
        expected = f"{name!r} to have the shape of the targets, {list(targets.observed.shape)}"
    if expected:
        raise ValueError(f"Expected {expected} (got {list(matrix.shape)})")
    return matrix


def read_array(values: ArrayLike) -> FloatArray:
    """Returns a float64 array of any shape from a tensor, an array or nested lists."""
    if isinstance(values, Tensor):
        return values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


def check_scale(scores: FloatArray, grid: Sequence[float]) -> FloatArray:
    """Raises ValueError for logits if thresholds are probabilities; else returns the scores."""
    low, high = scores.min(), scores.max()
    if grid[0] >= 0.0 and grid[-1] <= 1.0 and not (low >= 0.0 and high <= 1.0):
        got = f"scores from {low:.3g} to {high:.3g}"
        hint = "apply a sigmoid to logits, or give 'thresholds' or a 'grid' on their scale"
        raise ValueError(f"Expected probabilities, as the thresholds are (got {got}); {hint}")
    return scores


def _check_entries(name: str, values: FloatArray, valid: BoolArray, expected: str) -> None:
    if not valid.all():
        sample, label = np.argwhere(~valid)[0]
        got = f"{values[sample, label]} at [{sample}, {label}]"
        raise ValueError(f"Expected {name!r} to hold {expected} (got {got})")
