"""Data frames: columns matched by name, and rows paired by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tg_mlc._names import check_names


def take_by_name(frame: Any, names: Sequence[str] | None, argument: str) -> Any:
    """The columns of a data frame in the order of its own names; with new names, or if it is none, unchanged."""
    columns = list(getattr(frame, "columns", ()))
    if names is None or len(columns) != len(names):
        return frame
    column_of = {str(column): column for column in columns}
    names = [str(name) for name in names]
    moved = [
        name
        for name, column in zip(names, columns, strict=True)
        if name in column_of and name != str(column)
    ]
    if moved and column_of.keys() != set(names):
        expected = (
            f"'{argument}' to be the columns of the data frame, in any order, or new names for them"
        )
        got = f"both: {moved[:5]} are names of other columns"
        raise ValueError(
            f"Expected {expected} (got {got}); choose columns by 'frame[names]', or rename them before"
        )
    return frame[[column_of[name] for name in names]] if moved else frame


def check_same_rows(X: Any, Y: Any) -> None:
    """Refuses two data frames, or series, whose shared rows stand in two orders: rows are paired by place."""
    if not (hasattr(X, "iloc") and hasattr(Y, "iloc")) or X.index.equals(Y.index):
        return
    ours, theirs = list(X.index), list(Y.index)
    if len(ours) == len(theirs) and not set(ours).isdisjoint(theirs):
        row = next(
            row for row, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]
        )
        raise ValueError(
            f"Expected 'X' and 'Y' to have the same rows in one order (got row {row} of index {ours[row]!r} in 'X' and "
            f"of {theirs[row]!r} in 'Y'); pass 'Y.loc[X.index]', or 'Y.to_numpy()' to pair rows by their places"
        )


def in_order(frame: Any, names: Sequence[str] | None, argument: str, old: str = "'like'") -> Any:
    """The columns of a data frame in the order of old names; anything without names, or without old ones, unchanged."""
    given = getattr(frame, "columns", None)
    if given is None or names is None:
        return frame
    columns = {str(column): column for column in given}
    check_names([str(column) for column in given], len(given), f"columns of {argument}")
    missing, others = (
        [name for name in names if name not in columns],
        sorted(columns.keys() - set(names)),
    )
    if missing or others:
        raise ValueError(
            f"Expected '{argument}' to have the columns of {old}, in any order (got {len(missing)} missing: "
            f"{missing[:5]}, {len(others)} too many: {others[:5]}); pass '{argument}.to_numpy()' to take columns by "
            f"their places instead of their names"
        )
    return frame[[columns[name] for name in names]]
