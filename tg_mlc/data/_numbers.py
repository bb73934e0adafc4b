"""Matrices of numbers, out of those of Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_numbers(values: np.ndarray, columns: Any, what: str) -> np.ndarray:
    """Makes numbers of a matrix of Python objects, where None and pandas' NA mean NaN; numbers stay as they are.

    Raises:
        ValueError: If an entry is no number; the message names its row and column.
    """
    if values.dtype.kind in "biuf":
        return values
    numbers = np.empty(values.shape, dtype=np.float64)
    for (row, column), value in np.ndenumerate(values):
        missing = value is None or type(value).__name__ == "NAType"
        try:
            numbers[row, column] = np.nan if missing else float(value)
        except (TypeError, ValueError):
            name = column if columns is None else f"'{columns[column]}'"
            raise ValueError(f"Expected {what} to be numbers (got {value!r} in row {row}, column {name})") from None
    return numbers
