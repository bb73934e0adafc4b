"""Readers of raw inputs with rows: data frames, dictionaries of columns, and lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tg_mlc._numbers import as_array, as_list, is_blank, is_missing
from tg_mlc._warnings import check_abandoned
from tg_mlc.inputs.cells import LARGEST, array_of, clean
from tg_mlc.inputs.schema import Column, Schema, check_unique, match_names

#: A matrix with one row per input, and the reasons for unreadable inputs, by row.
ReadRows = tuple[np.ndarray, dict[int, str]]


def take_column(raw: Any, columns: Sequence[str]) -> Any:
    """Returns one cell per row (None if missing), from the training column if it is known, else
    from the only column. Inputs without rows are returned unchanged.
    """
    if hasattr(raw, "columns"):
        name = _find_column(columns, list(raw.columns))
        cells = np.empty(0) if name is None else array_of(raw[name])
        return [text_of(cell) for cell in cells.tolist()] if cells.dtype.kind in "OU" else raw
    raw = as_list(raw)
    if not isinstance(raw, (list, tuple)):
        return raw
    inputs = list[Any]()
    for row in raw:
        if isinstance(row, str):
            inputs.append(None if is_blank(row) else row)
        elif isinstance(row, Mapping):
            inputs.append(_cell_of(row, columns))
        else:
            inputs.append(None if is_missing(row) else row)
    return inputs


def _cell_of(row: Mapping[Any, Any], columns: Sequence[str]) -> Any:
    """Returns a row's cell if it is a text or in the training column; else the row."""
    name = _find_column(columns, list(row))
    is_known = name is not None and clean(str(name)) in columns
    # A number in another column may be the count of a word.
    is_text = name is not None and (is_known or isinstance(row[name], str) or is_missing(row[name]))
    return text_of(row[name]) if is_text else row


def _find_column(columns: Sequence[str], names: Sequence[Any]) -> Any:
    """Returns the name of the training column, else of the only column; None if there is none."""
    texts = [clean(str(name)) for name in names]
    if len(columns) == 1:
        with suppress(ValueError):
            return names[texts.index(match_names(columns, texts)[0])]
    return names[0] if len(names) == 1 else None


def text_of(cell: Any) -> Any:
    """Returns a cell as text, or None if it is missing; lists are returned unchanged."""
    if is_missing(cell) or (isinstance(cell, str) and is_blank(cell)):
        return None
    return cell if isinstance(cell, str) or np.ndim(cell) > 0 else str(cell)


def only_cell(row: Any, noun: str) -> Any:
    """Returns the only cell of a row that is a dictionary. Other inputs are unchanged."""
    if not isinstance(row, Mapping):
        return row
    if len(row) != 1:
        got = f"the columns {[*row][:5]}" if row else "a row without columns"
        raise ValueError(f"Expected {noun}, or a row with one column (got {got})")
    return next(iter(row.values()))


def read_rows(
    rows: Sequence[Any],
    width: int,
    schema_of: Callable[[list[str]], Schema],
    *,
    ordered: bool = False,
) -> ReadRows:
    """Reads rows: dictionaries by the schema for their columns, lists by the order of their cells.
    If :obj:`ordered`, dictionaries are also read in order, because training columns had no names.
    """
    if (values := _matrix_of(rows, width)) is not None:
        return values, {}
    matrix, refused = np.full((len(rows), width), np.nan), dict[int, str]()
    groups: dict[Any, list[int]] = {}  # Rows with the same columns are read together.
    lists, key_of = dict[int, list[Any]](), tuple if ordered else frozenset
    for index, row in enumerate(rows):
        is_named = isinstance(row, Mapping)
        try:
            if not is_named:
                lists[index] = _cells_of(row, width)
            groups.setdefault(key_of(row) if is_named else None, []).append(index)
        except ValueError as error:
            refused[index] = str(error)
    for key, indices in groups.items():
        check_abandoned()
        reasons = dict[int, str]()
        try:
            if key is None:
                names = list(map(str, range(width)))
                schema = Schema([Column(name, "number") for name in names])
                cells = [lists[index] for index in indices]
            else:
                columns = list(rows[indices[0]])
                names = [clean(str(column)) for column in columns]
                schema = schema_of(names)
                cells = [[rows[index][column] for column in columns] for index in indices]
                check_unique(names)
            by_column = map(list, zip(*cells, strict=True))
            table = dict(zip(names, by_column, strict=True))
            values = schema.matrix(table, refused=reasons)
            if values.shape != (len(indices), width):
                got = f"the columns {names[:20]}"
                raise ValueError(f"Expected a row of {width} columns (got {got})")
            matrix[indices] = values
        except ValueError as error:
            reasons = dict.fromkeys(range(len(indices)), str(error))
        refused |= {indices[row]: reason for row, reason in reasons.items()}
    return matrix, dict(sorted(refused.items()))


def _matrix_of(rows: Sequence[Any], width: int) -> np.ndarray | None:
    """Returns rows of numbers as a matrix; None for other cells or too large numbers."""
    try:
        values = as_array(rows)
    except (ValueError, TypeError):  # rows of several lengths
        return None
    if values.dtype.kind not in "biuf" or values.shape != (len(rows), width):
        return None
    matrix: np.ndarray = values.astype(np.float64)
    return None if (np.abs(matrix) > LARGEST).any() else matrix


def _cells_of(row: Any, width: int) -> list[Any]:
    is_array = hasattr(row, "shape") or hasattr(row, "iloc")
    cells = as_array(row).tolist() if is_array else row
    is_list = isinstance(cells, (list, tuple))
    if not is_list or len(cells) != width:
        got = len(cells) if is_list else "nothing" if is_missing(row) else type(row).__name__
        raise ValueError(f"Expected a row of {width} columns (got {got})")
    return list(cells)
