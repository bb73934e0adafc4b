"""The history of every label of an entity, as running counts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tg_mlc.sequences._ranges import ranges

IntArray = np.ndarray
#: By how much an occurrence counts less with every further event.
DECAYS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
#: Shares far below this are as good as none.
RARE = 0.01
#: What is said of a label that an entity had before.
MEMORY_FEATURES = (
    "log_count",
    *(f"log_share_decay_{decay:g}" for decay in DECAYS),
    "log_days_since",
    "log_events_since",
    "log_last_gap",
    "log_mean_gap",
    "share_of_events",
)


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
        logs = np.log1p(np.column_stack([count, shares, days, events_since, *self._gaps(last, self._start[pair])]))
        return self._label[pair], sample, np.column_stack([logs, count[:, None] / num_events]).astype(np.float32)

    def _gaps(self, last: IntArray, first: IntArray) -> tuple[np.ndarray, np.ndarray]:
        """The number of events from an occurrence to the next, the last time and on average; 0 for an only one."""
        before = np.maximum(last - 1, first)
        mean = (self._event[last] - self._event[first]) / np.maximum(last - first, 1)
        return self._event[last] - self._event[before], mean


def _decayed_counts(rank: IntArray, event: IntArray) -> np.ndarray:
    """For each occurrence, the sum of ``decay ** (events since)`` over those of its run up to itself."""
    decayed = np.ones((len(rank), len(DECAYS)), dtype=np.float32)
    by_rank = np.argsort(rank, kind="stable")
    for level in np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])[1:]:
        gap = event[level] - event[level - 1]
        decayed[level] += decayed[level - 1] * np.power(DECAYS, gap[:, None])
    return decayed
