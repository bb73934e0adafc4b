"""Data frames: columns matched by name, nominal ones, and rows that are paired by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tg_mlc._numbers import as_array, is_missing, to_numbers
from tg_mlc._one_hot import named_columns, value_names


def take_by_name(frame: Any, names: Sequence[str] | None, argument: str) -> Any:
    """The columns of a data frame in the order of names that are its own; under new names, and of anything else, as
    they are.
    """
    columns = list(getattr(frame, "columns", ()))
    if names is None or len(columns) != len(names):
        return frame
    column_of = {str(column): column for column in columns}
    names = [str(name) for name in names]
    moved = [name for name, column in zip(names, columns, strict=True) if name in column_of and name != str(column)]
    if moved and column_of.keys() != set(names):
        expected = f"'{argument}' to be the columns of the data frame, in any order, or new names for them"
        got = f"both: {moved[:5]} are names of other columns"
        raise ValueError(f"Expected {expected} (got {got}); choose columns by 'frame[names]', or rename them before")
    return frame[[column_of[name] for name in names]] if moved else frame


def nominal_names(frame: Any, names: Sequence[str] | None = None) -> list[str] | None:
    """The names of columns with one for each value of nominal ones, in which all cells are strings or missing; nothing
    for a data frame without any, and for anything else.
    """
    if not (hasattr(frame, "columns") and hasattr(frame, "dtypes")):
        return None
    own = [str(column) for column in frame.columns]
    called = own if names is None else list(names)
    if len(set(own)) < len(own) or len(called) != len(own):
        return None  # which others refuse
    objects = [getattr(dtype, "kind", "O") in "OU" for dtype in frame.dtypes]
    values = [
        value_names(name, cells) if is_object and (cells := _cells(frame[column])) is not None else None
        for name, column, is_object in zip(called, frame.columns, objects, strict=True)
    ]
    if not any(values):
        return None
    return [name for given, several in zip(called, values, strict=True) for name in several or [given]]


def matrix_of(frame: Any, names: Sequence[str], columns: Sequence[str] | None = None) -> np.ndarray:
    """The columns of a data frame by the names of :func:`nominal_names`, with other names for its own if given."""
    columns = [str(column) for column in frame.columns] if columns is None else columns
    series = {name: frame[column] for name, column in zip(columns, frame.columns, strict=True)}
    return named_columns(
        names,
        columns,
        lambda group: to_numbers(as_array(series[group[0]])[:, None], group, "inputs"),
        lambda column: ["" if is_missing(cell) else str(cell) for cell in series[column].to_numpy()],
    )


def _cells(series: Any) -> list[str] | None:
    """Strings, blank where missing, or nothing if there is anything else."""
    cells = series.to_numpy()
    if not all(isinstance(cell, str) or is_missing(cell) for cell in cells):
        return None
    return ["" if is_missing(cell) else cell for cell in cells]


def check_same_rows(X: Any, Y: Any) -> None:
    """Refuses two data frames, or series, that share rows which would be paired with others, as pairs go by place."""
    if not (hasattr(X, "iloc") and hasattr(Y, "iloc")) or X.index.equals(Y.index):
        return
    ours, theirs = list(X.index), list(Y.index)
    if len(ours) == len(theirs) and not set(ours).isdisjoint(theirs):
        row = next(row for row, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
        raise ValueError(
            f"Expected 'X' and 'Y' to have the same rows in one order (got row {row} of index {ours[row]!r} in 'X' and "
            f"of {theirs[row]!r} in 'Y'); pass 'Y.loc[X.index]', or 'Y.to_numpy()' to pair rows by their places"
        )
