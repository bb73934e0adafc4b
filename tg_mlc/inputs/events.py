"""Sequences of label sets, from tables of dated events."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from tg_mlc.inputs._event_table import EventTable


@dataclass(frozen=True, eq=False, repr=False)
class EventSequences:
    """Sequences of label sets: each entity has events in the order of time, and each event has labels with amounts.

    The events of entity :obj:`i` are those from ``ptr[i]`` to ``ptr[i + 1]``, which is not among them.

    Shapes:
        - **ptr:** :math:`(N + 1)` for :math:`N` entities
        - **time:** :math:`(E)` for :math:`E` events
        - **y** and **amount:** :math:`(E, L)` for :math:`L` labels; both store the same entries, so that a label whose
          amounts sum to zero is still there
    """

    entities: list[str]  #: sorted by name
    ptr: Tensor
    time: Tensor  #: days since 1970-01-01, in 64 bits; infinite for events of :meth:`with_next`
    y: sp.csr_array  #: 1 where an event has a label
    amount: sp.csr_array  #: the sum of the amounts of a label in an event, NaN where all of them are missing
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
        """Drops entities that have few events, with a warning that counts them; labels stay, even if no event is left
        that has them.

        Args:
            num_events (int): The number of events that an entity needs to stay.

        Raises:
            ValueError: If there is no such entity.
        """
        lengths = self.ptr.diff()
        keep = lengths >= num_events
        if not keep.any():
            got = f"at most {int(lengths.max())} events in {self.num_entities} entities"
            hint = "pass a smaller 'num_events'"
            raise ValueError(f"Expected an entity with at least {num_events} events (got {got}); {hint}")
        if not keep.all():
            few = f"{int((~keep).sum()):,} of {self.num_entities:,} entities have fewer than {num_events} events"
            warnings.warn(f"{few} and are left out", stacklevel=2)
        events = keep.repeat_interleave(lengths)
        ptr = torch.cat([self.ptr[:1], lengths[keep].cumsum(0)])
        entities = [name for name, kept in zip(self.entities, keep.tolist(), strict=True) if kept]
        rows = events.numpy()
        return EventSequences(entities, ptr, self.time[events], self.y[rows], self.amount[rows], self.label_names)

    def with_next(self) -> EventSequences:
        """Adds to each entity the event to predict: its next one, whose date and labels are unknown.

        It is the last event of each entity, at :obj:`ptr[1:] - 1`. Models are fitted on events without it.
        """
        is_next = torch.zeros(self.num_events + self.num_entities, dtype=torch.bool)
        ptr = self.ptr + torch.arange(self.num_entities + 1)
        is_next[ptr[1:] - 1] = True
        time = torch.full(is_next.shape, torch.inf, dtype=self.time.dtype).masked_scatter(~is_next, self.time)
        rows = torch.cat([torch.zeros(1, dtype=torch.long), (~is_next).cumsum(0)]).numpy()
        y, amount = (
            sp.csr_array((old.data, old.indices, old.indptr[rows]), shape=(len(is_next), self.num_labels))
            for old in (self.y, self.amount)
        )
        return EventSequences(self.entities, ptr, time, y, amount, self.label_names)

    def __repr__(self) -> str:
        sizes = f"num_entities={self.num_entities}, num_events={self.num_events}, num_labels={self.num_labels}"
        return f"{self.__class__.__name__}({sizes})"


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
    """Makes sequences of label sets of a table that has one row for each label of an event.

    As in the `"Label Attention Network for Sequential Multi-Label Classification" <https://arxiv.org/abs/2303.00280>`_
    paper, rows of one entity and time are one event, in which the amounts of a label are summed. The paper drops
    entities of fewer than seven events: :meth:`EventSequences.with_at_least`.

    Args:
        table (DataFrame, str or Path): The table, of pandas or polars, or its file: ``.parquet``, or else CSV,
            plain or compressed, as in :func:`from_csv`.
        entity (str, optional): The column that names what has the events, such as a customer; :obj:`None` if all of
            them belong to one entity, which is then called :obj:`"all"`.
        time (str or tuple): The column of dates, or of numbers, which are taken as days and may be at most 150,000;
            or those of year and month.
        label (str): The column of names of labels.
        amount (str, optional): The column of amounts. Blank ones are missing: the amount of a label is the sum of those
            that are known, or NaN. (default: :obj:`None`, 1 in each row)
        time_format (str, optional): How dates are written, as for :meth:`datetime.datetime.strptime`. Time zones count;
            dates without one are in UTC. (default: :obj:`None`, as inferred for :func:`from_csv`, unless the first row
            has a number)
        columns (list of str, optional): The names of the columns of a CSV file without header. (default: :obj:`None`)
        delimiter, encoding: As of :func:`from_csv`.

    Raises:
        ValueError: If the file cannot be read, a column is missing, or a cell is not what its column holds, or blank
            and no amount; the message names the column and the first such row.
        ImportError: If pandas, or what reads parquet files, is not installed (extra ``parquet``).
    """
    times = (time,) if isinstance(time, str) else tuple(time)
    if not isinstance(time, str) and (len(times) != 2 or time_format is not None):
        expected = "'time' to be one column, or those of year and month without 'time_format'"
        raise ValueError(f"Expected {expected} (got time={times}, time_format={time_format!r})")
    used = [name for name in (entity, *times, label, amount) if name is not None]
    cells = EventTable(table, used, columns, delimiter, encoding)
    entities, entity_of = (["all"], np.zeros(len(cells), dtype=np.int64)) if entity is None else cells.names(entity)
    label_names, label_of = cells.names(label)
    days = cells.days(time, time_format) if isinstance(time, str) else cells.months(*times)
    amounts = np.ones(len(cells)) if amount is None else cells.amounts(amount)

    order = np.lexsort((days, entity_of))
    is_new = np.ones(len(cells), dtype=bool)
    is_new[1:] = (np.diff(entity_of[order]) != 0) | (np.diff(days[order]) != 0)
    event_of = np.empty(len(cells), dtype=np.int64)
    event_of[order] = np.cumsum(is_new) - 1
    first = order[is_new]
    known, places, shape = ~np.isnan(amounts), (event_of, label_of), (len(first), len(label_names))
    summed = sp.csr_array((np.nan_to_num(amounts), places), shape=shape)
    if not known.all():
        summed.data[sp.csr_array((known.astype(np.int64), places), shape=shape).data == 0] = np.nan
    present = (np.ones(summed.nnz, dtype=np.float32), summed.indices.copy(), summed.indptr.copy())
    return EventSequences(
        entities,
        torch.from_numpy(np.searchsorted(entity_of[first], np.arange(len(entities) + 1))),
        torch.from_numpy(days[first]),
        sp.csr_array(present, shape=summed.shape),
        summed,
        label_names,
    )
