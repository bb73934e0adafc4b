"""Rows of a table as Python objects, numbers or cells by names of columns, each read by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tg_mlc._numbers import as_array, is_missing
from tg_mlc.inputs.schema import Schema, clean, repeated

#: A matrix with a row for each input, and why some of the inputs cannot be read, by rows.
ReadRows = tuple[np.ndarray, dict[int, str]]


def read_rows(
    rows: Sequence[Any], width: int, schema_of: Callable[[list[str]], Schema]
) -> ReadRows:
    """Reads rows of numbers, and rows by names of columns.

    Args:
        rows (Sequence): Lists of numbers, or dictionaries of cells.
        width (int): The number of columns of the matrix.
        schema_of (callable): Returns the schema of rows by the names of their columns.
    """
    is_named = [isinstance(row, Mapping) for row in rows]
    if not any(is_named):
        return _read_numbers(rows, width)
    if all(is_named):
        return _read_named(rows, width, schema_of)
    matrix, refused = np.full((len(rows), width), np.nan), dict[int, str]()
    for are_named in (True, False):
        places = [place for place, each in enumerate(is_named) if each == are_named]
        part = read_rows([rows[place] for place in places], width, schema_of)
        matrix[places] = part[0]
        refused |= {places[row]: reason for row, reason in part[1].items()}
    return matrix, dict(sorted(refused.items()))


def only_cell(row: Any, noun: str) -> Any:
    """Returns the only cell of a row by names of columns; any other input as it is.

    Raises:
        ValueError: If the row has more cells, or none.
    """
    if not isinstance(row, Mapping):
        return row
    if len(row) != 1:
        columns = f"the columns {[*row][:5]}" if row else "a row without columns"
        raise ValueError(f"Expected {noun}, or a row with one column (got {columns})")
    return next(iter(row.values()))


def _read_named(
    rows: Sequence[Mapping[Any, Any]], width: int, schema_of: Callable[[list[str]], Schema]
) -> ReadRows:
    """Reads rows by names of columns; those with the same columns are read at once."""
    matrix, refused = np.full((len(rows), width), np.nan), dict[int, str]()
    places_of: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(rows):
        places_of.setdefault(tuple(row), []).append(place)
    for columns, places in places_of.items():
        names, reasons = [clean(str(column)) for column in columns], dict[int, str]()
        try:
            if found := repeated(names):
                raise ValueError(
                    f"Expected every column to be used once (got {found[:5]} more than once)"
                )
            cells = {
                name: [rows[place][column] for place in places]
                for name, column in zip(names, columns, strict=True)
            }
            values = schema_of(names).matrix_of_rows(cells, reasons)
            if values.shape[1] != width:
                raise ValueError(
                    f"Expected a row of {width} columns (got the columns {names[:20]})"
                )
            matrix[places] = values
        except ValueError as error:
            reasons = dict.fromkeys(range(len(places)), str(error))
        refused |= {places[row]: reason for row, reason in reasons.items()}
    return matrix, dict(sorted(refused.items()))


def _read_numbers(rows: Sequence[Any], width: int) -> ReadRows:
    """Reads rows of numbers: at once if they make a matrix, else one by one."""
    try:
        values = as_array(rows)
    except (ValueError, TypeError):  # rows of several lengths
        values = np.empty(0)
    refused = dict[int, str]()
    if values.dtype.kind in "biuf" and values.shape == (len(rows), width):
        matrix = values.astype(np.float64)
    else:
        matrix = np.full((len(rows), width), np.nan)
        for place, row in enumerate(rows):
            try:
                matrix[place] = _read_row(row, width)
            except ValueError as error:
                refused[place] = str(error)
    too_large = np.abs(matrix) > np.finfo(np.float32).max
    for place in np.flatnonzero(too_large.any(axis=1)).tolist():
        column = int(too_large[place].argmax())
        got = f"{matrix[place, column]:g} in column {column}"
        refused[place] = f"Expected finite inputs that 32 bits can hold (got {got})"
    return matrix, dict(sorted(refused.items()))


def _read_row(row: Any, width: int) -> list[float]:
    cells = as_array(row).tolist() if hasattr(row, "shape") or hasattr(row, "iloc") else row
    if not isinstance(cells, (list, tuple)):
        got = "nothing" if is_missing(row) else type(row).__name__
        raise ValueError(f"Expected a row of {width} columns (got {got})")
    if len(cells) != width:
        raise ValueError(f"Expected a row of {width} columns (got {len(cells)})")
    numbers = []
    for column, cell in enumerate(cells):
        try:
            numbers.append(np.nan if is_missing(cell) else float(cell))
        except OverflowError:  # A whole number may have hundreds of digits.
            numbers.append(np.inf)
        except (ValueError, TypeError):
            raise ValueError(
                f"Expected inputs to be numbers (got {str(cell)[:40]!r} in column {column})"
            ) from None
    return numbers
