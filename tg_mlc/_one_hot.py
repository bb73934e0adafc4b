"""Nominal columns: a column of 0 and 1, named ``column=value``, for each value that they have."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import numpy as np

MAX_VALUES = 100  #: of a column; one with more is likely to name samples
MIN_NAMED = 20  #: samples; fewer may have other values by chance
#: What a cell without a value may hold, in lower case; C writes signs.
MISSING = {"", "na", "nan", "-nan", "+nan", "null"}


def value_names(column: str, cells: Iterable[str]) -> list[str] | None:
    """The names of the columns of a nominal one, in which no cell is a number; nothing for any other.

    Raises:
        ValueError: If there are more than :obj:`MAX_VALUES`.
    """
    found: set[str] = set()
    number = 0
    for number, value in enumerate(map(str.strip, cells), start=1):  # noqa: B007
        if value not in found and value.lower() not in MISSING:
            if _like_a_number(value):
                return None
            found.add(value)
    values = sorted(found)
    if len(values) > MAX_VALUES:
        expected = f"numbers, or at most {MAX_VALUES} different values, in column '{column}'"
        raise ValueError(f"Expected {expected} (got {len(values)}, such as {values[0][:40]!r}); leave the column out")
    if len(values) == number >= MIN_NAMED:
        warnings.warn(
            f"Column '{column}' has another value in each of {number} rows, as names of samples have, which say "
            f"nothing of new ones; leave it out of the inputs",
            stacklevel=2,
        )
    return [f"{column}={value}" for value in values] or None


def one_hot(column: str, cells: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """The columns of these names; where a value is missing, or has no column, all are 0."""
    place = {name: i for i, name in enumerate(names)}
    of_cell = {cell: place.get(f"{column}={cell.strip()}", -1) for cell in set(cells)}
    return np.eye(len(names) + 1)[[of_cell[cell] for cell in cells], :-1]


def column_of(name: str, columns: Sequence[str]) -> str:
    """The column that one of :func:`value_names` is of, which may be missing; the name itself if it is a column."""
    if name in columns:
        return name
    return next((one for one in columns if name.startswith(f"{one}=")), name.partition("=")[0])


def named_columns(
    names: Sequence[str],
    columns: Sequence[str],
    numbers: Callable[[list[str]], np.ndarray],
    cells: Callable[[str], Sequence[str]],
) -> np.ndarray:
    """A matrix of columns by their own names, as numbers, or by those of :func:`value_names`, as 0 and 1."""
    groups = [(column, list(group)) for column, group in groupby(names, lambda name: column_of(name, columns))]
    return np.concatenate(
        [numbers(group) if group == [column] else one_hot(column, cells(column), group) for column, group in groups],
        axis=1,
    )


def _like_a_number(text: str) -> bool:
    """Whether Python reads a number, with 1_000 and inf, which are refused as numbers and meant as such."""
    try:
        float(text)
    except ValueError:
        return False
    return True
