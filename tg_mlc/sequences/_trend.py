"""Trends: the frequencies of labels among all entities of late."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

#: The last days that count.
TREND_DAYS = (7, 28, 84)
#: How many events the share of a label in all days so far counts for.
BACKOFF = 20.0


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
        recent = [self._share(np.searchsorted(self._days, now - days, side="right"), stop, ever) for days in TREND_DAYS]
        return np.stack(recent, axis=-1).astype(np.float32)

    def _share(self, start: np.ndarray, stop: np.ndarray, ever: np.ndarray) -> np.ndarray:
        labels, events = self._labels[stop] - self._labels[start], self._events[stop] - self._events[start]
        return np.asarray((labels + BACKOFF * ever) / (events + BACKOFF))
