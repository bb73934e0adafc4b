"""Ranges of several rows, one after another."""

from __future__ import annotations

import numpy as np


def ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers from each ``start[i]`` up to ``stop[i] - 1``, after the :obj:`i` of each."""
    lengths = stop - start
    row = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    return row, np.arange(len(row)) + (start - first)[row]
