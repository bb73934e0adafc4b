"""Sequences of label sets, from tables of dated events."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from tg_mlc._frames import as_frame
from tg_mlc._numbers import MISSING
from tg_mlc._optional import require
from tg_mlc._warnings import warn
from tg_mlc.inputs.notations import AmbiguousError
from tg_mlc.inputs.schema import read_numbers
from tg_mlc.inputs.tables import Table, check_columns, read_table

MAX_DAYS = 150_000  # In the year 2380; larger numbers are dates such as 202401, or seconds.


@dataclass(frozen=True, eq=False, repr=False)
class EventSequences:
    """Sequences of label sets: each entity has events ordered by time, and each event has
    labels with amounts. The events of entity :obj:`i` are ``ptr[i]`` to ``ptr[i + 1] - 1``.

    Shapes:
        - **ptr:** :math:`(N + 1)` for :math:`N` entities
        - **time:** :math:`(E)` for :math:`E` events
        - **y** and **amount:** :math:`(E, L)` for :math:`L` labels; both store the same entries,
          including labels whose amounts sum to zero
    """

    entities: list[str]  #: Sorted by name.
    ptr: Tensor
    time: Tensor  #: Days since 1970-01-01, in 64 bits; infinite for events of :meth:`with_next`.
    y: sp.csr_array  #: 1 for each label of an event.
    #: The sum of the amounts of a label in an event, NaN if all amounts are missing.
    amount: sp.csr_array
    label_names: list[str]

    @property
    def num_entities(self) -> int:
        """The number of entities."""
        return len(self.entities)

    @property
    def num_events(self) -> int:
        """The number of events of all entities."""
        return self.time.numel()

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return len(self.label_names)

    @property
    def cardinality(self) -> float:
        """The average number of labels of an event."""
        return float(self.y.nnz / self.num_events)

    def with_at_least(self, num_events: int) -> EventSequences:
        """Drops entities with few events, and warns of their number. All labels are kept.

        Args:
            num_events (int): The minimum number of events of an entity.

        Raises:
            ValueError: If no entity has so many events.
        """
        lengths = self.ptr.diff()
        keep = lengths >= num_events
        if not keep.any():
            got = f"at most {int(lengths.max())} events in {self.num_entities} entities"
            hint = "pass a smaller 'num_events'"
            expected = f"an entity with at least {num_events} events"
            raise ValueError(f"Expected {expected} (got {got}); {hint}")
        if not keep.all():
            few = f"{int((~keep).sum()):,} of {self.num_entities:,} entities"
            warn(f"{few} have fewer than {num_events} events and are left out")
        events = keep.repeat_interleave(lengths)
        ptr = torch.cat([self.ptr[:1], lengths[keep].cumsum(0)])
        entities, time = list(compress(self.entities, keep.tolist())), self.time[events]
        y, amount = self.y[events.numpy()], self.amount[events.numpy()]
        return EventSequences(entities, ptr, time, y, amount, self.label_names)

    def with_next(self) -> EventSequences:
        """Adds to each entity the event to predict: its next one, whose date and labels are
        unknown.

        The new event is the last one of each entity, at :obj:`ptr[1:] - 1`. Fit models on sequences
        without it.
        """
        is_next = torch.zeros(self.num_events + self.num_entities, dtype=torch.bool)
        ptr = self.ptr + torch.arange(self.num_entities + 1)
        is_next[ptr[1:] - 1] = True
        time = torch.full(is_next.shape, torch.inf, dtype=self.time.dtype)
        time[~is_next] = self.time
        rows = torch.cat([torch.zeros(1, dtype=torch.long), (~is_next).cumsum(0)]).numpy()
        shape = len(is_next), self.num_labels
        y, amount = (
            sp.csr_array((matrix.data, matrix.indices, matrix.indptr[rows]), shape=shape)
            for matrix in (self.y, self.amount)
        )
        return EventSequences(self.entities, ptr, time, y, amount, self.label_names)

    def __repr__(self) -> str:
        sizes = f"num_entities={self.num_entities}, num_events={self.num_events}"
        return f"{self.__class__.__name__}({sizes}, num_labels={self.num_labels})"


def from_events(
    table: Any,
    *,
    entity: str | None,
    time: str | Sequence[str],
    label: str,
    amount: str | None = None,
    time_format: str | None = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> EventSequences:
    """Makes sequences of label sets from a table that has one row for each label of an event.

    As in the `"Label Attention Network for Sequential Multi-Label Classification"
    <https://arxiv.org/abs/2303.00280>`_ paper, rows with the same entity and time are one event,
    in which the amounts of each label are summed. The paper drops entities of fewer than seven
    events; see :meth:`EventSequences.with_at_least`.

    Args:
        table (DataFrame, str or Path): A pandas or polars data frame, or a file that
            :func:`from_csv` can read, such as Parquet or CSV, plain or compressed.
        entity (str, optional): The column of entities, such as customers; :obj:`None` if
            all events belong to one entity, which is then named :obj:`"all"`.
        time (str or tuple): The column of dates, or of numbers of days up to 150,000; or the two
            columns of year and month.
        label (str): The column of names of labels.
        amount (str, optional): The column of amounts. Blank amounts are missing. The amount of a
            label is the sum of its known amounts, or NaN. (default: :obj:`None`, 1 in each row)
        time_format (str, optional): The format of dates, as in
            :meth:`datetime.datetime.strptime`. Dates without a time zone are in UTC.
            (default: :obj:`None`, inferred as in :func:`from_csv`, unless the first row has a
            number)
        columns (list of str, optional): The names of the columns of a CSV file without header.
            (default: :obj:`None`)
        delimiter, encoding: As in :func:`from_csv`.

    Raises:
        ValueError: If the file cannot be read, a column is missing, or a cell does not fit its
            column or is blank (except amounts); the message names the column and the first such
            row.
        ImportError: If pandas, or the reader of Parquet, is not installed (extra ``parquet``).
    """
    times = (time,) if isinstance(time, str) else tuple(time)
    if not isinstance(time, str) and (len(times) != 2 or time_format is not None):
        expected = "'time' to be one column, or those of year and month without 'time_format'"
        raise ValueError(f"Expected {expected} (got time={times}, time_format={time_format!r})")
    used = [name for name in (entity, *times, label, amount) if name is not None]
    cells = _EventTable(table, used, columns, delimiter, encoding)
    entities, entity_of = ["all"], np.zeros(len(cells), dtype=np.int64)
    if entity is not None:
        entities, entity_of = cells.names(entity)
    label_names, label_of = cells.names(label)
    days = cells.days(time, time_format) if isinstance(time, str) else cells.months(*times)
    amounts = np.ones(len(cells)) if amount is None else cells.amounts(amount)

    order = np.lexsort((days, entity_of))
    is_new = np.ones(len(cells), dtype=bool)
    is_new[1:] = (np.diff(entity_of[order]) != 0) | (np.diff(days[order]) != 0)
    event_of = np.empty(len(cells), dtype=np.int64)
    event_of[order] = np.cumsum(is_new) - 1
    first_rows = order[is_new]
    known, shape = ~np.isnan(amounts), (len(first_rows), len(label_names))
    entries = event_of, label_of
    summed = sp.csr_array((np.nan_to_num(amounts), entries), shape=shape)
    if not known.all():
        num_known = sp.csr_array((known.astype(np.int64), entries), shape=shape)
        summed.data[num_known.data == 0] = np.nan
    present = (np.ones(summed.nnz, dtype=np.float32), summed.indices.copy(), summed.indptr.copy())
    return EventSequences(
        entities,
        torch.from_numpy(np.searchsorted(entity_of[first_rows], np.arange(len(entities) + 1))),
        torch.from_numpy(days[first_rows]),
        sp.csr_array(present, shape=summed.shape),
        summed,
        label_names,
    )


class _EventTable:
    """The columns of a data frame or file from which events are made."""

    def __init__(
        self,
        table: Any,
        used: list[str],
        columns: Sequence[str] | None,
        delimiter: str | None,
        encoding: str | None,
    ) -> None:
        self._pandas = require("pandas", extra="data")
        is_path = isinstance(table, (str, os.PathLike))
        table = as_frame(table)
        self.source = f"'{table}'" if is_path else "the table"
        self._csv: Table | None = None
        if is_path:
            self._csv = read_table(table, delimiter, encoding, header=columns)
            table = self._csv.frame.reset_index(drop=True).set_axis(self._csv.header, axis=1)
        elif columns is not None:
            expected = "'columns' only for a CSV file without header"
            raise ValueError(f"Expected {expected} (got them for {self.source})")
        elif not hasattr(table, "columns"):
            expected = "a data frame, or the path of a file"
            raise ValueError(f"Expected {expected} (got {type(table).__name__})")
        check_columns(used, list(table.columns), self.source)
        if len(table) == 0:
            raise ValueError(f"Expected at least one row in {self.source} (got none)")
        self.columns = {name: self._pandas.Series(table[name]) for name in used}
        for name, cells in self.columns.items():
            if cells.dtype == object:
                has_several = cells.map(self._pandas.api.types.is_list_like)
                self._refuse(has_several, name, "one value per cell", "; give each its row")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def names(self, column: str) -> tuple[list[str], np.ndarray]:
        """Returns the sorted names in a column, and the index of each row's name."""
        texts = self.columns[column].astype(str).str.strip()
        is_missing = self.columns[column].isna() | texts.str.lower().isin(MISSING)
        self._refuse(is_missing, column, "a name")
        indices, names = self._pandas.factorize(texts, sort=True)
        return names.tolist(), indices

    def amounts(self, column: str) -> np.ndarray:
        """Reads a column of finite numbers, NaN where cells are blank."""
        values = self._reread(column, "number", self._numbers(column))
        is_wrong = ~np.isfinite(values)
        cells = self.columns[column][is_wrong]
        texts = cells.astype(str).str.strip().str.lower()
        is_wrong[is_wrong] = cells.notna() & ~texts.isin({*MISSING, "-"})
        self._refuse(is_wrong, column, "a finite number or a blank cell")
        return values

    def days(self, column: str, time_format: str | None) -> np.ndarray:
        """Reads a column of dates or numbers as days since 1970-01-01."""
        cells, pandas = self.columns[column], self._pandas
        may_be_days = time_format is None and cells.dtype.kind != "M"
        if may_be_days and not np.isnan(self._numbers(column, stop=1)[0]):
            days = self._numbers(column)
            expected = "a finite number of days, because the first row has a number,"
            self._refuse(~np.isfinite(days), column, expected)
            hint = "; pass time_format='%Y%m%d' for dates such as 20240131, '%Y%m' for such as "
            hint += "202401, and divide seconds since 1970 by 86,400"
            expected = f"a number of at most {MAX_DAYS:,} days"
            self._refuse(abs(days) > MAX_DAYS, column, expected, hint)
            return days
        texts = cells if time_format is None else cells.astype(str).str.strip()
        options = {"format": time_format or "ISO8601", "utc": True, "errors": "coerce"}
        try:
            moments = pandas.to_datetime(texts, **options)
        except (ValueError, re.error):  # The format is invalid.
            moments = pandas.Series(pandas.NaT, range(len(self)), dtype="datetime64[ns, UTC]")
        days = np.asarray((moments - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1))
        days = self._reread(column, "date", days) if time_format is None else days
        expected_format = "as in ISO 8601" if time_format is None else f"written as '{time_format}'"
        hint = "; say with 'time_format' how dates are written"
        self._refuse(np.isnan(days), column, f"a date {expected_format}", hint)
        return days

    def months(self, year: str, month: str) -> np.ndarray:
        """Returns the days since 1970-01-01 of the first day of each month."""
        years, months = self._numbers(year), self._numbers(month)
        is_month = np.isin(months, range(1, 13)) & np.isin(years, range(1, 10_000))
        self._refuse(~is_month, f"{year}' and '{month}", "a year and a month from 1 to 12")
        months_since_1970 = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
        return np.asarray(months_since_1970.astype("datetime64[D]").astype(np.float64))

    def _numbers(self, column: str, stop: int | None = None) -> np.ndarray:
        """Reads a column as numbers, NaN where a cell is not a number."""
        values = self._pandas.to_numeric(self.columns[column][:stop], errors="coerce")
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))

    def _reread(self, column: str, form: str, values: np.ndarray) -> np.ndarray:
        """Reads the column again in the notation inferred from all cells if some values are NaN."""
        if np.isnan(values).any() and self.columns[column].dtype.kind not in "biufmM":
            cells = np.asarray(self.columns[column].to_numpy())
            try:
                notation, numbers = read_numbers(
                    column, cells, lambda row, _: self._location(row, column)
                )
            except ValueError as error:
                if isinstance(error.__cause__, AmbiguousError):
                    raise
            else:
                return numbers if notation == form else values
        return values

    def _location(self, row: int, column: str) -> str:
        where = f"row {row}" if self._csv is None else self._csv.where(row)
        return f"{where}, column '{column}' of {self.source}"

    def _refuse(self, is_wrong: Any, column: str, expected: str, hint: str = "") -> None:
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            cells = [self.columns[name].iloc[row] for name in column.split("' and '")]
            got = ", ".join(repr(cell) if isinstance(cell, str) else str(cell) for cell in cells)
            where = self._location(row, column)
            raise ValueError(f"Expected {expected} in {where} (got {got[:80]}){hint}")
