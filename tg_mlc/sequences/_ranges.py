"""Ranges of several rows, one after another."""

from __future__ import annotations

import numpy as np


def ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns for all numbers from ``start[i]`` to ``stop[i]`` (which is not among them) their :obj:`i` and themselves."""
    lengths = stop - start
    row = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    return row, np.arange(len(row)) + (start - first)[row]
