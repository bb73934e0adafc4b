"""Cells of files, data frames and requests, and their conversion to numbers and categories."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from tg_mlc._names import shorten
from tg_mlc._numbers import is_blank, is_missing, parse_number
from tg_mlc._warnings import note, warn
from tg_mlc.inputs.notations import PLAIN, Date, Notation, Number, Truth, looks_like, plain_numbers

#: A function that describes the location of a cell, by row and column, for messages.
Where: TypeAlias = Callable[[int, str], str]
WHERE: Where = "row {}, column '{}'".format
LARGEST = float(np.finfo(np.float32).max)
_NESTED = (list, tuple, dict, set, frozenset, np.ndarray)  # types of cells with several values


def clean(text: str) -> str:
    """Returns the text without outer spaces, in Unicode's normal form NFC."""
    text = text.strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def texts_of(cells: np.ndarray) -> list[str]:
    """Returns the cells as texts, blank where missing."""
    values = cells.tolist()
    return [v if type(v) is str else "" if is_missing(v) else str(v) for v in values]


def array_of(column: Any) -> np.ndarray:
    """Returns the cells of a column of a pandas or polars data frame; times are in UTC."""
    kind, options = getattr(column.dtype, "kind", "O"), dict[str, Any]()
    if kind == "M" and getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    elif kind in "biuf" and not isinstance(column.dtype, np.dtype) and hasattr(column, "isna"):
        options = {"dtype": np.float64, "na_value": np.nan} if column.isna().any() else {}
    return np.asarray(column.to_numpy(**options))


def numbers_of(
    name: str,
    notation: Notation,
    cells: np.ndarray,
    where: Where = WHERE,
    refused: dict[int, str] | None = None,
) -> np.ndarray:
    """Returns the numbers of a column, NaN where unknown. A cell with a type that fits the notation
    is used as it is, and any other cell is read as text. Unreadable cells raise, or add a reason
    to :obj:`refused` by row.
    """
    numbers, misread = _parse(notation, cells)
    note("blank", name, int(np.isnan(numbers).sum()) - len(misread))
    large = np.flatnonzero(np.abs(numbers) > LARGEST).tolist()
    descriptions = dict[str, str]()  # Describing a cell takes 1,000 times as long as reading it.
    for row in sorted({*misread, *large}):
        if row in (refused or ()):
            continue
        expected, got = "numbers that 32 bits can hold", f"{numbers[row]:g}"
        if row in misread:
            expected, text = f"{notation}, or blank (missing),", misread[row]
            if text not in descriptions:
                descriptions[text] = f"{text[:80]!r}, {looks_like(text)}"
            got = descriptions[text]
        if refused is None:
            raise ValueError(f"Expected {expected} in {where(row, name)} (got {got})")
        refused[row] = f"Expected {expected} in column '{name}' (got {got})"
    return numbers


def are_numbers(notation: Notation, cells: Sequence[Any]) -> bool:
    """Returns whether all cells are Python numbers that need no conversion."""
    is_number = isinstance(notation, Number) and {*map(type, cells)} <= {int, float}
    # NumPy cannot compare integers of hundreds of digits.
    return is_number and all(-LARGEST <= cell <= LARGEST for cell in cells)


def single_cells(
    name: str, cells: Any, where: Where = WHERE, refused: dict[int, str] | None = None
) -> np.ndarray:
    """Returns the cells of a column as an array. Refuses cells with several values."""
    array: np.ndarray = cells
    if not isinstance(cells, np.ndarray):
        array = np.fromiter(cells, dtype=object, count=len(cells))
    if array.dtype.kind != "O" or not any(issubclass(t, _NESTED) for t in {*map(type, array)}):
        return array
    array = array.copy()
    for row, cell in enumerate(cells):
        if isinstance(cell, _NESTED):
            array[row] = None
            got = f"a {type(cell).__name__}"
            if refused is None:
                location = where(row, name)
                raise ValueError(f"Expected one value in every cell (got {got} in {location})")
            refused.setdefault(row, f"Expected one value in column '{name}' (got {got})")
    return array


def one_hot(name: str, values: Sequence[str], cells: np.ndarray) -> np.ndarray:
    """Returns columns of 0 and 1 for the values of a category; rows without a match are 0. A cell
    matches an equal value, else a value that differs in case only, else the only equal number, as
    spreadsheets drop leading zeros. Of texts, only digits are such numbers.
    """
    texts = [clean(text) for text in texts_of(cells)]
    written = {clean(cell) for cell in cells.tolist() if isinstance(cell, str)}
    index, by_number = {value: i for i, value in enumerate(values)}, dict[float, list[int]]()
    by_casefold = {value.casefold(): i for value, i in reversed(index.items())}
    for value, i in index.items():
        if (number := parse_number(value)) is not None:
            by_number.setdefault(number, []).append(i)
    codes, unseen, guessed = dict[str, int](), set[str](), set[str]()
    for text in {*texts}:
        code = index.get(text, -1 if is_blank(text) else by_casefold.get(text.casefold()))
        number = parse_number(text) if code is None and by_number else None
        matching = [] if number is None else by_number.get(number, [])
        if text in written:
            digits = text.lstrip("0") if text.isdecimal() else None
            matching = [i for i in matching if values[i].lstrip("0") == digits]
        if len(matching) == 1:
            code = matching[0]
            guessed |= {f"{text} for {values[code]!r}"} - {f"{values[code]}.0 for {values[code]!r}"}
        if code is None:
            unseen.add(text)
        codes[text] = len(values) if code in (None, -1) else int(code or 0)
    note("blank", name, sum(map(is_blank, texts)))
    if unseen:
        note("new category", name, sum(text in unseen for text in texts))
        names = ", ".join(shorten(repr(text)) for text in sorted(unseen)[:5])
        message = "has values that did not occur in training and are ignored"
        warn(f"Column '{name}' {message}: {names}")
    if guessed:
        names = ", ".join(sorted(guessed)[:5])
        hint = "write them as in training"
        warn(f"Column '{name}' has numbers where training had texts, taken as {names}; {hint}")
    return np.eye(len(values) + 1)[[codes[text] for text in texts], :-1]


def _parse(notation: Notation, cells: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
    """Returns the numbers of cells, and the texts of unreadable cells by row."""
    kind, form = cells.dtype.kind, notation.form
    if kind == "O" and not {*map(type, cells.tolist())} <= {str}:
        return _parse_objects(notation, cells.tolist())
    if kind == "M" and isinstance(notation, Date):
        # Nanoseconds would overflow before 1678 and after 2262.
        days = cells.astype("datetime64[us]").astype(np.int64) / 1e6 / 86_400 - notation.since
        return np.where(np.isnat(cells), np.nan, days), {}
    if kind == "m" and form == "duration":
        return np.where(np.isnat(cells), np.nan, cells / np.timedelta64(1, "D")), {}
    # Numbers are never read as dates: 05.01.2022 may have been parsed as 5012022.
    if kind in "biuf" and isinstance(notation, (Number, Truth)):
        numbers = cells.astype(np.float64)
        is_wrong = ~(np.isnan(numbers) | np.isin(numbers, (0, 1)) | isinstance(notation, Number))
        return numbers, {int(row): str(cells[row]) for row in np.flatnonzero(is_wrong)}
    return _parse_texts(notation, [clean(text) for text in texts_of(cells)])


def _parse_texts(notation: Notation, texts: list[str]) -> tuple[np.ndarray, dict[int, str]]:
    unique = dict.fromkeys(texts)
    number_of: dict[str, float | None] = {
        text: np.nan for text in unique if text == "-" or is_blank(text)
    }
    filled = [text for text in unique if text not in number_of]
    parsed = plain_numbers(filled) if notation == PLAIN else None
    number_of |= zip(filled, map(notation.parse, filled) if parsed is None else parsed, strict=True)
    misread = dict[int, str]()
    if None in number_of.values():
        misread = {row: text for row, text in enumerate(texts) if number_of[text] is None}
    values = [number_of[text] for text in texts]
    return np.array([np.nan if n is None else n for n in values], dtype=np.float64), misread


def _parse_objects(notation: Notation, cells: list[Any]) -> tuple[np.ndarray, dict[int, str]]:
    """Reads a column of Python objects in groups of one dtype."""
    types = np.array([_dtype_of(cell, notation) for cell in cells])
    numbers, misread = np.full(len(cells), np.nan), dict[int, str]()
    for dtype in dict.fromkeys(types.tolist()):
        rows = np.flatnonzero(types == dtype).tolist()
        if dtype == "O":
            texts = [clean(str(cells[row])) for row in rows]
            numbers[rows], unreadable = _parse_texts(notation, texts)
        else:
            values = np.fromiter((_plain(cells[row], dtype) for row in rows), dtype, len(rows))
            numbers[rows], unreadable = _parse(notation, values)
        misread |= {rows[row]: text for row, text in unreadable.items()}
    return numbers, misread


def _dtype_of(cell: Any, notation: Notation) -> str:
    """Returns the dtype as which a cell is read."""
    takes_numbers = isinstance(notation, (Number, Truth))
    if is_missing(cell) or (takes_numbers and isinstance(cell, (Real, Decimal, np.bool_))):
        return "f8"
    if isinstance(notation, Date) and isinstance(cell, (date, np.datetime64)):
        return "M8[us]"
    is_duration = notation.form == "duration" and isinstance(cell, (timedelta, np.timedelta64))
    return "m8[us]" if is_duration else "O"


def _plain(cell: Any, dtype: str) -> Any:
    """Converts a cell for NumPy: missing cells to NaN, zoned times to naive UTC."""
    if dtype == "f8":
        try:
            return np.nan if is_missing(cell) else float(cell)
        except OverflowError:  # A whole number may have hundreds of digits.
            return np.inf
    if isinstance(cell, datetime) and cell.tzinfo is not None:
        return cell.astimezone(timezone.utc).replace(tzinfo=None)
    return cell
