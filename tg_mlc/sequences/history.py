"""The past of an entity and of all entities: running counts of every label, and how frequent it is of late."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

IntArray = np.ndarray
#: By how much an occurrence counts less with every further event.
DECAYS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
#: Shares far below this are as good as none.
RARE = 0.01
#: The features of a label that an entity had before.
MEMORY_FEATURES = (
    "log_count",
    *(f"log_share_decay_{decay:g}" for decay in DECAYS),
    "log_days_since",
    "log_events_since",
    "log_last_gap",
    "log_mean_gap",
    "share_of_events",
)
#: The last days whose shares are a trend.
TREND_DAYS = (7, 28, 84)
#: How many events the share of a label in all days so far counts for.
BACKOFF = 20.0


def ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers from each ``start[i]`` up to ``stop[i] - 1``, after the :obj:`i` of each."""
    lengths = stop - start
    row = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    return row, np.arange(len(row)) + (start - first)[row]


class LabelMemory:
    """The labels that an entity had before an event, with counts and times since.

    Occurrences are kept in the order of entity, label and event, each with the counts up to itself. The history before
    an event is then one binary search for each label that the entity ever has, however long it is.

    Args:
        ptr (numpy.ndarray): The first event of each entity, and the number of events.
        time (numpy.ndarray): The day of each event.
        y (scipy.sparse.csr_array): The labels of each event.
    """

    def __init__(self, ptr: IntArray, time: np.ndarray, y: sp.csr_array) -> None:
        self.ptr, self.time = ptr, time
        event = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
        pair = np.repeat(np.arange(len(ptr) - 1), np.diff(y.indptr[ptr])) * y.shape[1] + y.indices
        order = np.argsort(pair, kind="stable")
        self._event, pair = event[order], pair[order]
        is_first = np.diff(pair, prepend=-1) != 0
        self._start = np.flatnonzero(is_first)
        self._label = pair[is_first] % y.shape[1]
        self._pairs = np.searchsorted(pair[is_first] // y.shape[1], np.arange(len(ptr)))
        run = np.cumsum(is_first) - 1
        self._key = run * (y.shape[0] + 1) + self._event  # ascending, as pairs are, and the events of each
        self._decayed = _decayed_counts(np.arange(len(run)) - self._start[run], self._event)

    def __call__(self, entity: IntArray, target: IntArray) -> tuple[IntArray, IntArray, np.ndarray]:
        """Returns labels and samples, sorted by sample and label, and features :math:`(m, F)` in single precision."""
        sample, pair = ranges(self._pairs[entity], self._pairs[entity + 1])
        at = target[sample]
        last = np.searchsorted(self._key, pair * (len(self.time) + 1) + at) - 1
        seen = last >= self._start[pair]
        sample, pair, at, last = sample[seen], pair[seen], at[seen], last[seen]
        count = last - self._start[pair] + 1
        num_events = (at - self.ptr[entity[sample]])[:, None]
        events_since = at - 1 - self._event[last]
        days = self.time[at - 1] - self.time[self._event[last]]
        decayed = self._decayed[last] * np.power(DECAYS, events_since[:, None])
        shares = decayed * (1.0 - np.array(DECAYS)) / (1.0 - np.power(DECAYS, num_events)) / RARE
        # The events from an occurrence to the next, the last time and on average; 0 for an only one.
        first = self._start[pair]
        last_gap = self._event[last] - self._event[np.maximum(last - 1, first)]
        mean_gap = (self._event[last] - self._event[first]) / np.maximum(last - first, 1)
        logs = np.log1p(np.column_stack([count, shares, days, events_since, last_gap, mean_gap]))
        return self._label[pair], sample, np.column_stack([logs, count[:, None] / num_events]).astype(np.float32)


def _decayed_counts(rank: IntArray, event: IntArray) -> np.ndarray:
    """For each occurrence, the sum of ``decay ** (events since)`` over those of its run up to itself."""
    decayed = np.ones((len(rank), len(DECAYS)), dtype=np.float32)
    by_rank = np.argsort(rank, kind="stable")
    for level in np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])[1:]:
        gap = event[level] - event[level - 1]
        decayed[level] += decayed[level - 1] * np.power(DECAYS, gap[:, None])
    return decayed


class LabelTrend:
    """The share of the events of the last days that had each label, backed off to that of all events so far.

    Counts are kept for every day that has events, and every label.

    Args:
        time (numpy.ndarray): The days of events; a part of a day counts from the next day on.
        y (scipy.sparse.csr_array): The labels of each event.
    """

    def __init__(self, time: np.ndarray, y: sp.csr_array) -> None:
        self._days, row = np.unique(np.ceil(time), return_inverse=True)
        by_day = sp.csr_array((np.ones(len(time), np.float32), (row, np.arange(len(time)))))
        self._labels = np.cumsum(np.pad((by_day @ y).toarray(), ((1, 0), (0, 0))), axis=0)
        self._events = np.append(0, np.cumsum(np.bincount(row)))[:, None]

    def __call__(self, now: np.ndarray) -> np.ndarray:
        """Returns shares :math:`(n, L, 3)` in single precision at each of these days, that day included."""
        stop = np.searchsorted(self._days, now, side="right")
        ever = self._labels[stop] / np.maximum(self._events[stop], 1)
        recent = []
        for days in TREND_DAYS:
            start = np.searchsorted(self._days, now - days, side="right")
            labels, events = self._labels[stop] - self._labels[start], self._events[stop] - self._events[start]
            recent.append((labels + BACKOFF * ever) / (events + BACKOFF))
        return np.stack(recent, axis=-1).astype(np.float32)
