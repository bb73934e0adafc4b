"""The next label set of an entity, given its earlier events, and the split of events by time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch_geometric.data import Batch

from tg_mlc.data import Split
from tg_mlc.inputs.events import EventSequences
from tg_mlc.sequences.history import MEMORY_FEATURES, LabelMemory, LabelTrend, ranges
from tg_mlc.sequences.windows import WindowOptions

#: Numbers of events.
Targets = Sequence[int] | Tensor | np.ndarray
#: Shares of the events of each entity, as in the LANET paper.
TIME_FRACTIONS = (0.70, 0.17, 0.13)


class NextSetDataset(Dataset[Batch]):
    r"""Events as targets, each with the events of the same entity before it.

    Sample :math:`t` asks for the labels of event :math:`t`. Nothing is copied: a batch is gathered from the arrays of
    all events. :class:`EventPreprocessor` makes such data sets. The date of the target is part of what is not known,
    so no time is counted up to it.

    Shapes:
        A batch of :math:`B` targets, in whose windows there are :math:`n` labels and in whose histories :math:`m`
        different ones, is a :class:`~torch_geometric.data.Batch` of

        - **y:** :math:`(B, L)`, 1 for the labels of the target and else 0
        - **entity:** :math:`(B)`, the place among entities of training, or their number for one that is not among them
        - **label** and **sample:** :math:`(n)`, one for each label of each event in the windows, in the order of
          sample and time
        - **position:** :math:`(n)`, 1 for the last event before the target, at most :obj:`window_size`
        - **dt:** :math:`(n)`, days since the event before (which may lie outside of the window), 0 for a first event
        - **bin:** :math:`(n)`, the quantile bin of the amount from 1, or 0 for an amount that is missing (NaN)
        - **amount:** :math:`(n)`, :math:`\mathrm{asinh}(a / \bar{a}_l)` with the mean :math:`\bar{a}_l` of the
          absolute amounts of the label in training, or 0 for one that is missing
        - **memory_label**, **memory_sample** and **memory:** :math:`(m)`, :math:`(m)` and :math:`(m, F)`, what
          :attr:`memory_features` says of all labels in the whole history, in the order of sample and label
        - **trend:** :math:`(B, L, 3)`, the share of the events of all entities that have each label, in the 7, 28 and
          84 days up to the last event before the target; of training events alone for a target of training

    Attributes:
        y (scipy.sparse.csr_array): The labels of all events, :math:`(N, L)`.
        entity_of (numpy.ndarray): The entity of each event.
        entity_index (numpy.ndarray): What :obj:`entity` of a batch says of each entity.
        label_names (list of str): The labels, those of training.
        num_entities (int): The number of entities of training.
        num_bins (int): The number of bins, the one of missing amounts included.
        gaps (list of int): The whole days between events of training, ascending.
        is_training (numpy.ndarray): Which events are training events.
        window_size (int): The number of events in a window; :obj:`None` for whole histories.
    """

    memory_features = MEMORY_FEATURES

    def __init__(
        self,
        ptr: np.ndarray,
        time: np.ndarray,
        y: sp.csr_array,
        amount: np.ndarray,
        bins: np.ndarray,
        entity_index: np.ndarray,
        is_training: np.ndarray,
        *,
        label_names: list[str],
        num_entities: int,
        num_bins: int,
        gaps: list[int],
        window_size: int | None,
    ) -> None:
        self.ptr, self.time, self.y = ptr, time, y
        self._amount, self._bin = amount, bins
        self.entity_of = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        self.entity_index = entity_index
        self.is_training = is_training
        self._event = np.repeat(np.arange(len(time)), np.diff(y.indptr))
        self._dt = days_since_last(ptr, time).astype(np.float32)
        self.label_names = label_names
        self.num_entities = num_entities
        self.num_bins = num_bins
        self.gaps = gaps
        self.window_size = window_size

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return len(self.label_names)

    @property
    def window(self) -> WindowOptions:
        """Options of :class:`WindowViews` for these windows; whole histories are as long as the longest."""
        longest = max(int(np.diff(self.ptr).max()) - 1, 1)
        return {
            "window_size": longest if self.window_size is None else self.window_size,
            "num_bins": self.num_bins,
            "gaps": self.gaps,
        }

    @cached_property
    def memory(self) -> LabelMemory:
        """The source of :obj:`memory` of a batch; made when one first needs it."""
        return LabelMemory(self.ptr, self.time, self.y)

    @cached_property
    def trends(self) -> tuple[LabelTrend, LabelTrend]:
        """The sources of :obj:`trend` of a batch: of all events, and of those of training."""
        among = self.is_training
        return LabelTrend(self.time, self.y), LabelTrend(self.time[among], self.y[among])

    def batch(self, targets: Targets) -> Batch:
        """Makes a batch of targets, in the given order.

        Args:
            targets (list, torch.Tensor or numpy.ndarray): The numbers of events.

        Raises:
            IndexError: If there is no such event.
        """
        target = np.asarray(targets, dtype=np.int64)
        wrong = target[(target < 0) | (target >= len(self))]
        if wrong.size:
            raise IndexError(f"Expected 'targets' to be events from 0 to {len(self) - 1} (got {wrong[0]})")
        entity = self.entity_of[target]
        first = self.ptr[entity]
        start = first if self.window_size is None else np.maximum(first, target - self.window_size)
        sample, place = ranges(self.y.indptr[start], self.y.indptr[target])
        event = self._event[place]
        memory_label, memory_sample, memory = self.memory(entity, target)
        now = np.where(target > first, self.time[target - 1], -np.inf)
        every, training = self.trends
        arrays = {
            "y": self.y[target].toarray(),
            "entity": self.entity_index[entity],
            "label": self.y.indices[place].astype(np.int64),
            "sample": sample,
            "position": target[sample] - event,
            "dt": self._dt[event],
            "bin": self._bin[place],
            "amount": self._amount[place],
            "memory_label": memory_label,
            "memory_sample": memory_sample,
            "memory": memory,
            "trend": np.where(self.is_training[target][:, None, None], training(now), every(now)),
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
        sizes = f"num_entities={len(self.ptr) - 1}, num_labels={self.num_labels}, window_size={self.window_size}"
        return f"{type(self).__name__}({len(self)}, {sizes})"


def days_since_last(ptr: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The days between each event and the one before of its entity, 0 for a first event."""
    days = np.diff(time, prepend=time[:1])
    days[ptr[:-1]] = 0.0
    return days


def time_split(
    events: EventSequences,
    fractions: tuple[float, float, float] = TIME_FRACTIONS,
    *,
    min_history: int = 0,
    cross_borders: bool = True,
) -> Split:
    r"""Splits the events of every entity by time: the first ones train, the next validate, the last test.

    Event :math:`r` of the :math:`n` events of an entity, counted from zero, trains if :math:`r < 0.7 n`, and tests if
    :math:`r \geq 0.87 n`. A date is in one part alone, and an entity of fewer than eight events has no test event.

    The samples that the split divides are events as targets, of :class:`NextSetDataset`.

    Args:
        events (EventSequences): The events.
        fractions (tuple, optional): The shares of training, validation and test.
            (default: :obj:`(0.70, 0.17, 0.13)`, those of the LANET paper)
        min_history (int, optional): The number of earlier events that a target needs; others are in no part.
            (default: :obj:`0`)
        cross_borders (bool, optional): If set to :obj:`False`, only earlier events of the same part count for
            :obj:`min_history`. With :math:`\tau` of them no window of :math:`\tau` events crosses a border, which is
            the rule of the authors' code. (default: :obj:`True`)

    Raises:
        ValueError: If the fractions are not three numbers of at least zero that sum to 1.
    """
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(f"Expected 'fractions' to be three numbers that sum to 1: train, val, test (got {fractions})")
    lengths = events.ptr.diff().numpy()
    rank = np.arange(events.num_events) - np.repeat(events.ptr[:-1].numpy(), lengths)
    # Rounded up, as a share of 0.7 of ten events is seven of them, whatever the last bit of the product.
    borders = np.ceil(np.outer(np.cumsum((0.0, *fractions[:2])), lengths) - 1e-9).astype(np.int64)
    starts = np.repeat(borders, lengths, axis=1)
    part = (rank >= starts[1:]).sum(axis=0)
    history = rank if cross_borders else rank - np.take_along_axis(starts, part[None], axis=0)[0]
    name = f"by time, {'/'.join(f'{share:g}' for share in fractions)}"
    return Split.from_assignment(np.where(history >= min_history, part, -1), name)
