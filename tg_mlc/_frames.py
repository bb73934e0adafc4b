"""Data frames: columns matched by name, and rows paired by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tg_mlc._names import check_names
from tg_mlc._numbers import as_list
from tg_mlc._optional import require


def as_frame(values: Any) -> Any:
    """Converts dictionaries of columns, and tables of pyarrow, Hugging Face's datasets and others,
    to data frames of pandas; collects lazy frames of polars. Other values are unchanged.
    """
    # SciPy's dok_matrix is a dictionary with a shape.
    if isinstance(values, Mapping) and not hasattr(values, "shape"):
        return _of_columns(values)
    # Columns of polars have 'to_list'; tables of datasets and pyarrow have 'column_names'.
    is_column = hasattr(values, "to_list") and not hasattr(values, "column_names")
    if hasattr(values, "iloc") or is_column:
        return values
    if hasattr(values, "lazy"):  # a frame of polars
        return values.collect() if hasattr(values, "collect") else values
    if hasattr(values, "to_pandas"):
        return values.to_pandas()
    if hasattr(values, "__arrow_c_stream__"):
        return require("pyarrow", extra="parquet").table(values).to_pandas()
    return values


def _of_columns(columns: Mapping[Any, Any]) -> Any:
    cells, sizes = dict[Any, Any](), set[int]()
    for name, values in columns.items():
        column = as_list(values)
        cells[name] = column if isinstance(column, list) else np.asarray(column)
        sizes.add(len(column) if isinstance(column, list) or np.ndim(column) > 0 else -1)
    if len(sizes) != 1 or -1 in sizes:
        expected = "columns of one length in a dictionary"
        raise ValueError(f"Expected {expected} (got {[*columns][:5]}); pass one row as [row]")
    return require("pandas", extra="data").DataFrame(cells)


def take_by_name(frame: Any, names: Sequence[str] | None, argument: str) -> Any:
    """Reorders a data frame to ``names`` if these are its columns; other inputs stay unchanged."""
    columns = list(getattr(frame, "columns", ()))
    if names is None or len(columns) != len(names):
        return frame
    column_of = {str(column): column for column in columns}
    names = [str(name) for name in names]
    pairs = zip(names, map(str, columns), strict=True)
    moved = [name for name, column in pairs if name in column_of and name != column]
    if moved and column_of.keys() != set(names):
        expected = f"'{argument}' to be the columns of the data frame, or new names for them"
        got = f"both: {moved[:5]} are names of other columns"
        hint = "choose columns by 'frame[names]', or rename them before"
        raise ValueError(f"Expected {expected} (got {got}); {hint}")
    return frame[[column_of[name] for name in names]] if moved else frame


def check_same_rows(X: Any, Y: Any) -> None:
    """Raises ValueError if data frames or series have the same rows in different orders."""
    if not (hasattr(X, "iloc") and hasattr(Y, "iloc")) or X.index.equals(Y.index):
        return
    x_index, y_index = list(X.index), list(Y.index)
    if len(x_index) == len(y_index) and not set(x_index).isdisjoint(y_index):
        row = next(row for row, name in enumerate(x_index) if name != y_index[row])
        got = f"row {row} with index {x_index[row]!r} in 'X' and {y_index[row]!r} in 'Y'"
        hint = "pass 'Y.loc[X.index]', or 'Y.to_numpy()' to pair rows by position"
        raise ValueError(
            f"Expected 'X' and 'Y' to have the same rows in one order (got {got}); {hint}"
        )


def in_order(frame: Any, names: Sequence[str] | None, argument: str, old: str = "'like'") -> Any:
    """Reorders a data frame to ``names``, which must be its columns. Other inputs are unchanged."""
    frame = as_frame(frame)
    existing = getattr(frame, "columns", None)
    if existing is None or names is None:
        return frame
    columns = {str(column): column for column in existing}
    check_names([str(column) for column in existing], len(existing), f"columns of {argument}")
    missing = [name for name in names if name not in columns]
    others = sorted(columns.keys() - set(names))
    if missing or others:
        expected = f"'{argument}' to have the columns of {old}, in any order"
        got = f"{len(missing)} missing: {missing[:5]}, {len(others)} too many: {others[:5]}"
        hint = f"pass '{argument}.to_numpy()' to match columns by position"
        raise ValueError(f"Expected {expected} (got {got}); {hint}")
    return frame[[columns[name] for name in names]]
