"""Columns of a table of events, and errors that name the cell."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tg_mlc._csv_table import check_columns, read_csv_table
from tg_mlc._numbers import parse_number
from tg_mlc._optional import require

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY = timedelta(days=1)
MAX_DAYS = 1_000_000  # in the year 4707; what is more is a date as 20240131, or seconds
#: What is raised for a cell of another kind, and by strptime for a format that it cannot use.
_UNREADABLE = (ValueError, TypeError, OverflowError, re.error)


@dataclass(frozen=True)
class EventTable:
    """The columns of a table that are used."""

    source: str
    columns: dict[str, list[Any] | np.ndarray]  #: lists, or arrays if a data frame knows that they are dates
    lines: Sequence[int] | None = None  #: where in a file each row ends

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def names(self, column: str) -> tuple[list[str], np.ndarray]:
        """The names in a column, sorted, and the place of each row's name among them."""
        found, codes = self._distinct(self.columns[column], f"'{column}'", _name, "a name")
        names = sorted(set(found))
        place = {name: i for i, name in enumerate(names)}
        return names, np.array([place[name] for name in found])[codes]

    def numbers(self, column: str) -> np.ndarray:
        """A column of finite numbers."""
        return self._values(self.columns[column], f"'{column}'", _number, "a finite number")

    def days(self, column: str, time_format: str | None) -> np.ndarray:
        """The days since 1970-01-01 of a column of dates, or of numbers."""
        cells = self.columns[column]
        expected = "a date as in ISO 8601" if time_format is None else f"a date written as '{time_format}'"
        if isinstance(cells, np.ndarray):
            self._refuse(np.isnat(cells), column, expected)
            days: np.ndarray = cells.astype("datetime64[us]").astype(np.int64) / (_DAY / timedelta(microseconds=1))
            return days
        if time_format is None and _is_number(cells[0]):
            expected = "a finite number of days, as the first row has a number,"
            days = self._values(cells, f"'{column}'", _number, expected)
            hint = "; pass time_format='%Y%m%d' for dates such as 20240131, and divide seconds since 1970 by 86,400"
            self._refuse(abs(days) > MAX_DAYS, column, f"a number of at most {MAX_DAYS:,} days", hint)
            return days
        hint = "; say with 'time_format' how dates are written"
        return self._values(cells, f"'{column}'", lambda cell: _day(cell, time_format), expected, hint)

    def months(self, year: str, month: str) -> np.ndarray:
        """The days since 1970-01-01 of the first days of months."""
        cells = zip(self.columns[year], self.columns[month], strict=True)
        return self._values(cells, f"'{year}' and '{month}'", _month, "a year and a month from 1 to 12")

    def _values(
        self, cells: Iterable[Any], column: str, convert: Callable[[Any], float], expected: str, hint: str = ""
    ) -> np.ndarray:
        found, codes = self._distinct(cells, column, convert, expected, hint)
        values: np.ndarray = np.array(found)[codes]
        return values

    def _distinct(
        self, cells: Iterable[Any], column: str, convert: Callable[[Any], T], expected: str, hint: str = ""
    ) -> tuple[list[T], np.ndarray]:
        """What distinct cells are converted to, and which of them each row has."""
        code: dict[tuple[type, Any], int] = {}  # as 1 and True are equal, but have two names
        try:
            each = (code.setdefault((type(cell), cell), len(code)) for cell in cells)
            codes = np.fromiter(each, dtype=np.int64, count=len(self))
        except TypeError as error:
            raise ValueError(
                f"Expected one value per cell in column {column} of {self.source} (got an {error}); give each its row"
            ) from error
        converted = []
        for i, (_, cell) in enumerate(code):
            try:
                converted.append(convert(cell))
            except _UNREADABLE as error:
                raise self._wrong(int(np.argmax(codes == i)), repr(cell), column, expected, hint) from error
        return converted, codes

    def _refuse(self, is_wrong: np.ndarray, column: str, expected: str, hint: str = "") -> None:
        if is_wrong.any():
            row = int(is_wrong.argmax())
            raise self._wrong(row, str(self.columns[column][row]), f"'{column}'", expected, hint)

    def _wrong(self, row: int, got: str, column: str, expected: str, hint: str = "") -> ValueError:
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        return ValueError(
            f"Expected {expected} in row {row}{line}, column {column} of {self.source} (got {got[:80]}){hint}"
        )


def read_event_table(table: Any, used: list[str], columns: Sequence[str] | None) -> EventTable:
    """Reads columns of a data frame, a parquet file or a CSV file, whose columns are named here if it has no header."""
    is_path = isinstance(table, (str, os.PathLike))
    source = f"'{table}'" if is_path else "the table"
    if is_path and Path(table).suffix.lower() != ".parquet":
        csv = read_csv_table(table, header=columns)
        check_columns(used, csv.header, source)
        return EventTable(source, {name: csv.texts(name) for name in used}, csv.lines)
    if columns is not None:
        raise ValueError(f"Expected 'columns' only for a CSV file without header (got them for {source})")
    frame = _read_parquet(Path(table)) if is_path else table
    if not hasattr(frame, "columns"):
        raise ValueError(f"Expected a data frame, or the path of a file (got {type(frame).__name__})")
    check_columns(used, list(frame.columns), source)
    if len(frame) == 0:
        raise ValueError(f"Expected at least one row in {source} (got none)")
    return EventTable(source, {name: _cells(frame[name]) for name in used})


def _cells(column: Any) -> list[Any] | np.ndarray:
    """The cells of a column of pandas or polars; dates stay an array, as a million objects of pandas take seconds."""
    cells: Any = (column.dt.tz_convert(None) if hasattr(column.dtype, "tz") else column).to_numpy()
    found: list[Any] | np.ndarray = cells if cells.dtype.kind == "M" else column.to_list()
    return found


def _read_parquet(path: Path) -> Any:
    pandas = require("pandas", extra="parquet")
    require("pyarrow.parquet", extra="parquet")
    if not path.is_file():
        raise FileNotFoundError(f"Expected the parquet file '{path}' (got no such file in '{path.parent.absolute()}')")
    try:
        return pandas.read_parquet(path, engine="pyarrow")
    except (ValueError, OSError, NotImplementedError) as error:
        raise ValueError(f"Expected '{path}' to be a parquet file (got {type(error).__name__}: {error})") from error


def _name(cell: Any) -> str:
    # NaN and NaT differ from themselves; pandas' NA raises a TypeError here, which says no less.
    if cell is None or cell != cell or not (text := str(cell).strip()):  # noqa: PLR0124
        raise ValueError("blank")
    return text


def _as_float(cell: Any) -> float:
    number = parse_number(cell.strip()) if isinstance(cell, str) else float(cell)
    if number is None:
        raise ValueError("not a number")
    return number


def _number(cell: Any) -> float:
    value = _as_float(cell)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _is_number(cell: Any) -> bool:
    try:
        _as_float(cell)
    except _UNREADABLE:
        return False
    return True


def _day(cell: Any, time_format: str | None) -> float:
    if isinstance(cell, datetime):
        moment = cell
    elif time_format is None or isinstance(cell, date):
        moment = datetime.fromisoformat(str(cell).strip())
    else:
        moment = datetime.strptime(str(cell).strip(), time_format)
    aware = moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment
    return _number((aware - _EPOCH) / _DAY)  # which is NaN for pandas' NaT


def _month(cell: tuple[Any, Any]) -> float:
    year, month = map(_as_float, cell)
    if not (year.is_integer() and month.is_integer()):
        raise ValueError("not whole")
    return _day(datetime(int(year), int(month), 1), None)
