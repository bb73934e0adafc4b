"""Counts of hits, for one set of decisions or for a whole grid of thresholds at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tg_mlc.metrics._inputs import BoolArray, FloatArray, IntArray, Targets

SAMPLES, LABELS = 0, 1


class Counts(NamedTuple):
    """Counts per item (sample or label) over known entries; a leading axis, if any, runs over thresholds."""

    hits: IntArray  # [..., num_items]
    predicted: IntArray  # [..., num_items]
    positive: IntArray  # [num_items]
    known: IntArray  # [num_items]

    @property
    def wrong(self) -> IntArray:
        return self.predicted + self.positive - 2 * self.hits


def count(targets: Targets, decisions: BoolArray, per: int) -> Counts:
    """Counts per sample (``per=SAMPLES``) or per label (``per=LABELS``)."""
    axis = 1 - per
    return Counts(
        hits=(decisions & targets.positive).sum(axis),
        predicted=(decisions & targets.known).sum(axis),
        positive=targets.positive.sum(axis),
        known=targets.known.sum(axis),
    )


class GridCounts:
    """The counts at every threshold of an increasing grid, from one pass over the scores.

    A score is replaced by the number of thresholds that it reaches. The histogram of these numbers per sample or label,
    summed from the top, then says how many entries reach each threshold.

    The grid [num_thresholds] serves all labels; or each has its own row [num_labels, num_thresholds].
    """

    def __init__(self, targets: Targets, scores: FloatArray, grid: Sequence[float] | FloatArray) -> None:
        self.targets = targets
        self.grid = np.asarray(grid)
        if self.grid.ndim == 1:
            self.reached = np.searchsorted(self.grid, scores, side="right")
        else:
            columns = zip(self.grid, scores.T, strict=True)
            self.reached = np.stack([np.searchsorted(row, column, side="right") for row, column in columns], axis=1)
        self._counts: dict[int, Counts] = {}

    def per(self, per: int) -> Counts:
        """Returns the counts [num_thresholds, num_items] per sample or per label."""
        if per not in self._counts:
            self._counts[per] = Counts(
                hits=self._count_reaching(self.targets.positive, per),
                predicted=self._count_reaching(self.targets.known, per),
                positive=self.targets.positive.sum(1 - per),
                known=self.targets.known.sum(1 - per),
            )
        return self._counts[per]

    def thresholds(self, place: int) -> FloatArray:
        """The threshold at a place of the grid: one for all labels [1], or one for each [num_labels]."""
        return np.atleast_1d(self.grid[..., place])

    def _count_reaching(self, where: BoolArray, per: int) -> IntArray:
        num_items, num_bins = where.shape[per], self.grid.shape[-1] + 1
        items = np.expand_dims(np.arange(num_items), 1 - per)
        bins = (self.reached + num_bins * items)[where]
        histogram = np.bincount(bins, minlength=num_items * num_bins).reshape(num_items, num_bins)
        # Bin g holds what reaches exactly g thresholds, so threshold g (from 0) is reached by the bins above g.
        return histogram[:, :0:-1].cumsum(axis=1)[:, ::-1].T
