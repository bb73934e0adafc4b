"""Data set for predicting next label sets from earlier events, and splits of events by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from torch_geometric.data import Batch
from typing_extensions import Self

from tg_mlc._options import check_count
from tg_mlc.data import Split
from tg_mlc.inputs import Preprocessor
from tg_mlc.inputs.components import Components
from tg_mlc.inputs.events import EventSequences
from tg_mlc.sequences.windows import Events, WindowOptions

Targets = Sequence[int] | Tensor | np.ndarray  #: Indices of target events.
#: Fractions of training, validation and test events of an entity, as in the LANET paper.
TIME_FRACTIONS = (0.70, 0.17, 0.13)
#: Decays: factors by which the weight of an occurrence shrinks with every later event.
DECAYS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
RARE = 0.01  #: Decayed fractions are divided by this number before log1p is taken.
TREND_DAYS = (7, 28, 84)  #: Lengths, in days, of the periods of a :class:`LabelTrend`.
BACKOFF = 20.0  #: Weight of the fraction over all earlier days, as a number of events.


def ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concatenates ``range(start[i], stop[i])``. Returns ``i`` and the value of each element."""
    lengths = stop - start
    row = np.repeat(np.arange(len(lengths)), lengths)
    offset = np.cumsum(lengths) - lengths
    return row, np.arange(len(row)) + (start - offset)[row]


class LabelMemory:
    """Features of labels that an entity had before an event, such as counts and recency.

    Occurrences of labels are sorted by entity, label and event, and store cumulative features. A
    binary search per label of the entity finds the label's last occurrence before an event.
    """

    def __init__(self, ptr: np.ndarray, time: np.ndarray, y: sp.csr_array) -> None:
        self.ptr, self.time = ptr, time
        event = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
        pair = np.repeat(np.arange(len(ptr) - 1), np.diff(y.indptr[ptr])) * y.shape[1] + y.indices
        order = np.argsort(pair, kind="stable")
        self._event, pair = event[order], pair[order]
        is_first = np.diff(pair, prepend=-1) != 0
        self._start = np.flatnonzero(is_first)
        self._label = pair[is_first] % y.shape[1]
        self._pair_ptr = np.searchsorted(pair[is_first] // y.shape[1], np.arange(len(ptr)))
        pair_index = np.cumsum(is_first) - 1
        # Keys ascend over all pairs of entity and label, as the binary search requires.
        self._key = pair_index * (y.shape[0] + 1) + self._event
        # Sums of "decay ** events_since" over all occurrences of a pair up to an occurrence.
        self._decayed = np.ones((len(pair_index), len(DECAYS)), dtype=np.float32)
        rank = np.arange(len(pair_index)) - self._start[pair_index]
        levels = np.split(np.argsort(rank, kind="stable"), np.cumsum(np.bincount(rank))[:-1])
        for level in levels[1:]:
            gap = self._event[level] - self._event[level - 1]
            self._decayed[level] += self._decayed[level - 1] * np.power(DECAYS, gap[:, None])

    def __call__(
        self, entity: np.ndarray, target: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns labels and samples, sorted by sample and label, and features :math:`(m, F)`."""
        sample, pair = ranges(self._pair_ptr[entity], self._pair_ptr[entity + 1])
        last = np.searchsorted(self._key, pair * (len(self.time) + 1) + target[sample]) - 1
        has_occurred = last >= self._start[pair]
        sample, pair, last = sample[has_occurred], pair[has_occurred], last[has_occurred]
        event = target[sample]
        count = last - self._start[pair] + 1
        num_events = (event - self.ptr[entity[sample]])[:, None]
        events_since = event - 1 - self._event[last]
        days = self.time[event - 1] - self.time[self._event[last]]
        decayed = self._decayed[last] * np.power(DECAYS, events_since[:, None])
        fractions = decayed * (1.0 - np.array(DECAYS)) / (1.0 - np.power(DECAYS, num_events)) / RARE
        # Number of events between the last two occurrences, and mean number between occurrences.
        first = self._start[pair]
        last_gap = self._event[last] - self._event[np.maximum(last - 1, first)]
        mean_gap = (self._event[last] - self._event[first]) / np.maximum(last - first, 1)
        logs = np.log1p(np.column_stack([count, fractions, days, events_since, last_gap, mean_gap]))
        features = np.column_stack([logs, count[:, None] / num_events]).astype(np.float32)
        return self._label[pair], sample, features


class LabelTrend:
    """The fraction of events with each label in recent periods, smoothed towards the fraction over
    all earlier events. Event times are rounded up to whole days.
    """

    def __init__(self, time: np.ndarray, y: sp.csr_array) -> None:
        self._days, day = np.unique(np.ceil(time), return_inverse=True)
        by_day = sp.csr_array((np.ones(len(time), np.float32), (day, np.arange(len(time)))))
        self._label_counts = np.cumsum(np.pad((by_day @ y).toarray(), ((1, 0), (0, 0))), axis=0)
        self._event_counts = np.append(0, np.cumsum(np.bincount(day)))[:, None]

    def __call__(self, now: np.ndarray) -> np.ndarray:
        """Returns fractions :math:`(n, L, 3)` in the periods that end on the days :obj:`now`."""
        stop = np.searchsorted(self._days, now, side="right")
        overall = self._label_counts[stop] / np.maximum(self._event_counts[stop], 1)
        recent = []
        for days in TREND_DAYS:
            start = np.searchsorted(self._days, now - days, side="right")
            num_positive = self._label_counts[stop] - self._label_counts[start]
            num_events = self._event_counts[stop] - self._event_counts[start]
            recent.append((num_positive + BACKOFF * overall) / (num_events + BACKOFF))
        return np.stack(recent, axis=-1).astype(np.float32)


@dataclass(eq=False, repr=False)
class NextSetDataset(Dataset[Batch]):
    r"""A data set of target events, each with the earlier events of the same entity.

    The labels of event :math:`t` are the target of sample :math:`t`. Batches are gathered from
    arrays of all events. Inputs do not depend on the date of the target, which is unknown.
    :class:`EventPreprocessor` makes such data sets.

    Shapes:
        A batch of :math:`B` targets, with :math:`n` labels in their windows and :math:`m` different
        labels in their histories, is a :class:`~torch_geometric.data.Batch` of

        - **y:** :math:`(B, L)`, 1 for labels of the target, 0 for others
        - **entity:** :math:`(B)`, index of a training entity, or :attr:`num_entities` for others
        - **label** and **sample:** :math:`(n)`, the indices of label and target of every occurrence
          of a label in the windows, in the order of sample and time
        - **position:** :math:`(n)`, 1 for the last event before the target
        - **dt:** :math:`(n)`, days since the previous event of the entity (even if it is outside of
          the window), 0 for a first event
        - **bin:** :math:`(n)`, the quantile bin of the amount from 1, or 0 for a missing amount
        - **amount:** :math:`(n)`, :math:`\mathrm{asinh}(a / \bar{a}_l)` with the mean
          :math:`\bar{a}_l` of the absolute amounts of the label in training, or 0 if missing
        - **memory_label**, **memory_sample** and **memory:** :math:`(m)`, :math:`(m)` and
          :math:`(m, F)`, :attr:`memory_features` of all labels in the whole history, in the order
          of sample and label
        - **trend:** :math:`(B, L, 3)`, the fraction of the events of all entities that have each
          label, in the 7, 28 and 84 days up to the last event before the target; for training
          targets, only training events count
    """

    ptr: np.ndarray  #: index of the first event of each entity, then the number of events
    time: np.ndarray  #: the day of each event
    y: sp.csr_array  #: the labels of all events, :math:`(N, L)`
    amount: np.ndarray  #: the scaled amount of each label of each event
    bins: np.ndarray  #: the bin of each amount
    entity_index: np.ndarray  #: for each entity, the value of :obj:`entity` in batches
    is_training: np.ndarray  #: mask of training events
    _: KW_ONLY
    label_names: list[str]  #: the labels of training events
    num_entities: int  #: the number of training entities
    num_bins: int  #: the number of bins, including the bin of missing amounts
    gaps: list[int]  #: numbers of whole days between training events, ascending
    window_size: int | None  #: the number of events in a window; :obj:`None` for whole histories

    #: Names of the features of a label in the history of an entity.
    memory_features: ClassVar[tuple[str, ...]] = (
        "log_count",
        *(f"log_share_decay_{decay:g}" for decay in DECAYS),
        "log_days_since",
        "log_events_since",
        "log_last_gap",
        "log_mean_gap",
        "share_of_events",
    )

    def __post_init__(self) -> None:
        #: the entity of each event
        self.entity_of = np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))
        self._event = np.repeat(np.arange(len(self.time)), np.diff(self.y.indptr))
        self._dt = days_since_last(self.ptr, self.time).astype(np.float32)

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return len(self.label_names)

    @property
    def window(self) -> WindowOptions:
        """Options of :class:`WindowViews`. Windows of all events get the longest history's size."""
        longest = max(int(np.diff(self.ptr).max()) - 1, 1)
        size = longest if self.window_size is None else self.window_size
        return {"window_size": size, "num_bins": self.num_bins, "gaps": self.gaps}

    @cached_property
    def memory(self) -> LabelMemory:
        """The lookup that computes :obj:`memory` of batches."""
        return LabelMemory(self.ptr, self.time, self.y)

    @cached_property
    def trends(self) -> tuple[LabelTrend, LabelTrend]:
        """The lookups that compute :obj:`trend` of batches, from all and from training events."""
        train = self.is_training
        return LabelTrend(self.time, self.y), LabelTrend(self.time[train], self.y[train])

    def components_for(self, network: nn.Module) -> Components:
        """Returns the components of targets: events of a window, and the network's memory."""
        return Events(self.label_names, network)

    def batch(self, targets: Targets) -> Batch:
        """Returns a batch of targets in any order. Raises IndexError if one is out of range."""
        target = np.asarray(targets, dtype=np.int64)
        invalid = target[(target < 0) | (target >= len(self))]
        if invalid.size:
            last = len(self) - 1
            raise IndexError(f"Expected 'targets' to be events from 0 to {last} (got {invalid[0]})")
        entity = self.entity_of[target]
        first = self.ptr[entity]
        start = first if self.window_size is None else np.maximum(first, target - self.window_size)
        sample, entry = ranges(self.y.indptr[start], self.y.indptr[target])
        event = self._event[entry]
        memory_label, memory_sample, memory = self.memory(entity, target)
        now = np.where(target > first, self.time[target - 1], -np.inf)
        overall, training = self.trends
        arrays = {
            "y": self.y[target].toarray(),
            "entity": self.entity_index[entity],
            "label": self.y.indices[entry].astype(np.int64),
            "sample": sample,
            "position": target[sample] - event,
            "dt": self._dt[event],
            "bin": self.bins[entry],
            "amount": self.amount[entry],
            "memory_label": memory_label,
            "memory_sample": memory_sample,
            "memory": memory,
            "trend": np.where(self.is_training[target][:, None, None], training(now), overall(now)),
        }
        batch = Batch(**{name: torch.from_numpy(array) for name, array in arrays.items()})
        batch._num_graphs = len(target)
        return batch

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, index: int) -> Batch:
        return self.batch([index])

    def __getitems__(self, indices: list[int]) -> Batch:
        return self.batch(indices)

    def __repr__(self) -> str:
        sizes = f"num_entities={len(self.ptr) - 1}, num_labels={self.num_labels}"
        return f"{type(self).__name__}({len(self)}, {sizes}, window_size={self.window_size})"


def days_since_last(ptr: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Returns days between each event and the entity's previous event, 0 for a first event."""
    days = np.diff(time, prepend=time[:1])
    days[ptr[:-1]] = 0.0
    return days


class EventPreprocessor(Preprocessor):
    """Makes a :class:`NextSetDataset` of events. Labels, entities and bins of amounts come from
    training events, up to each entity's last training target. Labels that only occur later are
    dropped from windows and targets; :meth:`left_out` counts them. New entities share one index.

    Args:
        window_size (int, optional): The number of events in a window; :obj:`None` for all.
            (default: :obj:`3`)
        num_bins (int, optional): The number of quantile bins of amounts; equal quantiles are
            merged. (default: :obj:`10`)
    """

    def __init__(self, window_size: int | None = 3, num_bins: int = 10) -> None:
        check_count("window_size", window_size, or_none=True)
        check_count("num_bins", num_bins)
        self.window_size, self.num_bins = window_size, num_bins
        self.label_names: list[str] = []
        self.entities: list[str] = []
        self.last_days: list[float] = []
        self.gaps: list[int] = [0]
        self.edges = self.scale = np.empty(0)

    def fit(self, dataset: Any, split: Split) -> Self:
        """Fits to the training events of :class:`EventSequences`. Raises ValueError if the
        split does not fit the events or has no training target, or an event has no date.
        """
        events: EventSequences = dataset
        split.check_fits(events.num_events, "'dataset'")
        if split.train.numel() == 0:
            raise ValueError(f"Expected a split with training events (got {split})")
        if not events.time.isfinite().all():
            got = "(got dateless events of 'with_next'); call 'fit' before 'with_next'"
            raise ValueError(f"Expected each event to have a date {got}")
        # Index of the last training event of each entity, or -1 if it has none.
        entity_of = np.repeat(np.arange(events.num_entities), events.ptr.diff().numpy())
        last, train = np.full(events.num_entities, -1), split.train.numpy()
        last[entity_of[train]] = train  # Indices ascend, so the last event wins.
        in_training = np.arange(events.num_events) <= last[entity_of]
        entities = np.flatnonzero(last >= 0)
        amount = events.amount[in_training]
        labels = np.unique(amount.indices)
        self.label_names = [events.label_names[label] for label in labels]
        self.entities = [events.entities[entity] for entity in entities]
        self.last_days = events.time[last[entities]].tolist()
        # The last training event of an entity is only a target, and not in a training window.
        in_windows = in_training & ~np.isin(np.arange(events.num_events), last)
        days = days_since_last(events.ptr.numpy(), events.time.numpy())[in_windows]
        self.gaps = [int(gap) for gap in np.unique(np.append(0, days // 1))]
        has_amount = ~np.isnan(amount.data)
        amounts, label = amount.data[has_amount], amount.indices[has_amount]
        # Each edge is the smallest amount of its bin, so no bin is empty. Bin 1 has no edge.
        probs = np.linspace(0, 1, self.num_bins + 1)[1:-1]
        edges = np.unique(np.quantile(amounts, probs, method="higher")) if amounts.size else amounts
        self.edges = np.asarray(edges[edges > amounts.min(initial=np.inf)])
        # The scale of a label is its mean absolute amount, or 1 if that is 0.
        counts = np.bincount(label, minlength=events.num_labels)
        mean_amount = np.bincount(label, np.abs(amounts), events.num_labels) / np.maximum(counts, 1)
        self.scale = np.where(mean_amount > 0, mean_amount, 1.0)[labels]
        return self

    def transform(self, raw: Any) -> Any:
        """Makes a :class:`NextSetDataset` of :class:`EventSequences`, even of new entities."""
        if not self.label_names:
            raise RuntimeError("Expected 'fit' to be called before 'transform'")
        events: EventSequences = raw
        # Keep amounts of training labels, including explicit zeros.
        col_of = {name: i for i, name in enumerate(self.label_names)}
        col = np.array([col_of.get(name, -1) for name in events.label_names])[events.amount.indices]
        indptr = np.concatenate([[0], np.cumsum(col >= 0)])[events.amount.indptr]
        csr_arrays = events.amount.data[col >= 0], col[col >= 0], indptr
        amount = sp.csr_array(csr_arrays, shape=(events.num_events, len(col_of)))
        amount.sort_indices()
        missing = np.isnan(amount.data)
        scaled = np.arcsinh(np.nan_to_num(amount.data) / self.scale[amount.indices])
        bins = np.where(missing, 0, np.searchsorted(self.edges, amount.data, side="right") + 1)
        index_of = {name: i for i, name in enumerate(self.entities)}
        entity = np.array([index_of.get(name, len(index_of)) for name in events.entities])
        ptr, time = events.ptr.numpy(), events.time.numpy()
        last_day = np.append(self.last_days, -np.inf)[entity].repeat(np.diff(ptr))
        y = amount.astype(np.float32)
        y.data[:] = 1.0
        arrays = ptr, time, y, scaled.astype(np.float32), bins, entity, time <= last_day
        return NextSetDataset(
            *arrays,
            label_names=self.label_names,
            num_entities=len(self.entities),
            num_bins=len(self.edges) + 2,
            gaps=self.gaps,
            window_size=self.window_size,
        )

    def left_out(self, events: EventSequences) -> dict[str, int]:
        """Returns, by name, the number of events with each label that training events lack."""
        known = set(self.label_names)
        counts = np.bincount(events.y.indices, minlength=events.num_labels).tolist()
        label_counts = zip(events.label_names, counts, strict=True)
        return {name: count for name, count in label_counts if count and name not in known}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        arrays = {key: np.asarray(state[key]) for key in ("edges", "scale")}
        vars(self).update({**state, **arrays})
        return self


def time_split(
    events: EventSequences,
    fractions: tuple[float, float, float] = TIME_FRACTIONS,
    *,
    min_history: int = 0,
    cross_borders: bool = True,
) -> Split:
    r"""Splits the events of every entity by time, into training, validation and test events in
    this order.

    By default, event :math:`r` of :math:`n` events of an entity, counted from zero, is a training
    event if :math:`r < 0.7 n`, and a test event if :math:`r \geq 0.87 n`. Entities with fewer than
    eight events have no test event. The split contains targets of a :class:`NextSetDataset`.

    Args:
        events (EventSequences): The events.
        fractions (tuple, optional): The fractions of training, validation and test.
            (default: :obj:`(0.70, 0.17, 0.13)`, as in the LANET paper)
        min_history (int, optional): Targets with fewer earlier events are skipped.
            (default: :obj:`0`)
        cross_borders (bool, optional): If set to :obj:`False`, only earlier events of the same part
            count for :obj:`min_history`. Windows of that size then stay within a part, as in the
            authors' code. (default: :obj:`True`)

    Raises:
        ValueError: If the fractions are not three numbers of at least zero that sum to 1.
    """
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        expected = "'fractions' of train, val and test to be three numbers that sum to 1"
        raise ValueError(f"Expected {expected} (got {fractions})")
    lengths = events.ptr.diff().numpy()
    rank = np.arange(events.num_events) - np.repeat(events.ptr[:-1].numpy(), lengths)
    # The tolerance keeps 0.7 of ten events at seven despite rounding errors.
    borders = np.ceil(np.outer(np.cumsum((0.0, *fractions[:2])), lengths) - 1e-9).astype(np.int64)
    starts = np.repeat(borders, lengths, axis=1)
    split = (rank >= starts[1:]).sum(axis=0)
    history = rank if cross_borders else rank - np.take_along_axis(starts, split[None], axis=0)[0]
    name = f"by time, {'/'.join(f'{fraction:g}' for fraction in fractions)}"
    return Split.from_assignment(np.where(history >= min_history, split, -1), name)
