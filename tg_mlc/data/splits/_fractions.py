"""Sizes of the parts of a split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

import numpy as np

Fractions = tuple[float, float, float]
DEFAULT_FRACTIONS: Fractions = (0.8, 0.1, 0.1)
NUM_PARTS = 3


def part_sizes(num_samples: int, fractions: Sequence[float]) -> np.ndarray:
    """The sizes of the three parts: each fraction rounded down, what is left to the largest remainders."""
    try:
        num_samples = index(num_samples)
    except TypeError:
        got = f"{type(num_samples).__name__}); of a data set take 'len(dataset)'"
        raise ValueError(f"Expected 'num_samples' to be a whole number (got {got}") from None
    if not _are_three_numbers(fractions):
        raise ValueError(f"Expected 'fractions' to be three numbers of at least 0: train, val, test (got {fractions})")
    if abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(f"Expected 'fractions' to sum to 1 (got {fractions}, sum {sum(fractions):g})")
    exact = np.asarray(fractions, dtype=float) * num_samples
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    by_remainder = np.argsort(-(exact - sizes).round(9), kind="stable")
    sizes[by_remainder[: num_samples - sizes.sum()]] += 1
    if any(size == 0 and fraction > 0 for size, fraction in zip(sizes, fractions, strict=True)):
        got = f"{num_samples} samples for {fractions}, so parts of {sizes.tolist()}"
        raise ValueError(f"Expected enough samples for each part with a fraction above 0 (got {got})")
    return sizes


def _are_three_numbers(fractions: Sequence[float]) -> bool:
    try:
        return len(fractions) == NUM_PARTS and all(math.isfinite(f) and f >= 0 for f in fractions)
    except TypeError:
        return False
