"""Columns of a table of events, read with pandas, and errors that name the cell."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tg_mlc._numbers import MISSING
from tg_mlc._optional import require
from tg_mlc.inputs.notations import AmbiguousError
from tg_mlc.inputs.schema import read_numbers
from tg_mlc.inputs.tables import Table, check_columns, read_table

MAX_DAYS = 150_000  # in the year 2380; what is more is a date as 202401 or 20240131, or seconds


class EventTable:
    """The columns of a table that are used: a data frame, a parquet file or a CSV file, whose columns are named here if
    it has no header.
    """

    def __init__(
        self, table: Any, used: list[str], columns: Sequence[str] | None, delimiter: str | None, encoding: str | None
    ) -> None:
        self._pandas = require("pandas", extra="data")
        is_path = isinstance(table, (str, os.PathLike))
        self.source = f"'{table}'" if is_path else "the table"
        self._csv: Table | None = None
        if is_path:
            self._csv = read_table(table, delimiter, encoding, header=columns)
            check_columns(used, self._csv.header, self.source)
            table = {name: self._csv.frame[self._csv.header.index(name)].reset_index(drop=True) for name in used}
        elif columns is not None:
            raise ValueError(f"Expected 'columns' only for a CSV file without header (got them for {self.source})")
        else:
            if not hasattr(table, "columns"):
                raise ValueError(f"Expected a data frame, or the path of a file (got {type(table).__name__})")
            check_columns(used, list(table.columns), self.source)
            if len(table) == 0:
                raise ValueError(f"Expected at least one row in {self.source} (got none)")
        self.columns = {name: self._pandas.Series(table[name]) for name in used}
        for name, cells in self.columns.items():
            if cells.dtype == object:
                several = cells.map(self._pandas.api.types.is_list_like)
                self._refuse(several, name, "one value per cell", "; give each its row")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def names(self, column: str) -> tuple[list[str], np.ndarray]:
        """The names in a column, sorted, and the place of each row's name among them."""
        texts = self.columns[column].astype(str).str.strip()
        self._refuse(self.columns[column].isna() | texts.str.lower().isin(MISSING), column, "a name")
        places, names = self._pandas.factorize(texts, sort=True)
        return names.tolist(), places

    def amounts(self, column: str) -> np.ndarray:
        """A column of finite numbers, NaN where cells are blank."""
        values = self._written(column, "number", self._numbers(column))
        unknown = ~np.isfinite(values)
        cells = self.columns[column][unknown]
        unknown[unknown] = cells.notna() & ~cells.astype(str).str.strip().str.lower().isin({*MISSING, "-"})
        self._refuse(unknown, column, "a finite number or a blank cell")
        return values

    def days(self, column: str, time_format: str | None) -> np.ndarray:
        """The days since 1970-01-01 of a column of dates, or of numbers."""
        cells = self.columns[column]
        if time_format is None and cells.dtype.kind != "M" and not np.isnan(self._numbers(column, stop=1)[0]):
            days = self._numbers(column)
            self._refuse(~np.isfinite(days), column, "a finite number of days, because the first row has a number,")
            hint = (
                "; pass time_format='%Y%m%d' for dates such as 20240131, '%Y%m' for such as 202401, and divide seconds "
                "since 1970 by 86,400"
            )
            self._refuse(abs(days) > MAX_DAYS, column, f"a number of at most {MAX_DAYS:,} days", hint)
            return days
        texts = cells if time_format is None else cells.astype(str).str.strip()
        try:
            moments = self._pandas.to_datetime(texts, format=time_format or "ISO8601", utc=True, errors="coerce")
        except (ValueError, re.error):  # of a format that is none
            moments = self._pandas.Series(self._pandas.NaT, range(len(self)), dtype="datetime64[ns, UTC]")
        days = np.asarray((moments - self._pandas.Timestamp(0, tz="UTC")) / self._pandas.Timedelta(days=1))
        days = self._written(column, "date", days) if time_format is None else days
        expected = "a date as in ISO 8601" if time_format is None else f"a date written as '{time_format}'"
        self._refuse(np.isnan(days), column, expected, "; say with 'time_format' how dates are written")
        return days

    def months(self, year: str, month: str) -> np.ndarray:
        """The days since 1970-01-01 of the first days of months."""
        years, months = self._numbers(year), self._numbers(month)
        is_month = np.isin(months, range(1, 13)) & np.isin(years, range(1, 10_000))
        self._refuse(~is_month, f"{year}' and '{month}", "a year and a month from 1 to 12")
        first_days = ((years - 1970) * 12 + months - 1).astype("datetime64[M]").astype("datetime64[D]")
        return np.asarray(first_days.astype(np.float64))

    def _numbers(self, column: str, stop: int | None = None) -> np.ndarray:
        """A column of numbers, NaN where there is none."""
        values = self._pandas.to_numeric(self.columns[column][:stop], errors="coerce")
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))

    def _written(self, column: str, form: str, values: np.ndarray) -> np.ndarray:
        """The values of a column, of which some are unknown; those of the notation of all its cells, if it has one."""
        if np.isnan(values).any() and self.columns[column].dtype.kind not in "biufmM":
            cells = np.asarray(self.columns[column].to_numpy())
            try:
                found, read = read_numbers(column, cells, lambda row, _: self._place(row, column))
            except ValueError as error:
                if isinstance(error.__cause__, AmbiguousError):
                    raise
            else:
                return read if found == form else values
        return values

    def _place(self, row: int, column: str) -> str:
        where = f"row {row}" if self._csv is None else self._csv.where(row)
        return f"{where}, column '{column}' of {self.source}"

    def _refuse(self, is_wrong: Any, column: str, expected: str, hint: str = "") -> None:
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            cells = [self.columns[name].iloc[row] for name in column.split("' and '")]
            got = ", ".join(repr(cell) if isinstance(cell, str) else str(cell) for cell in cells)
            raise ValueError(f"Expected {expected} in {self._place(row, column)} (got {got[:80]}){hint}")
