"""The next label set of an entity, given its earlier events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch_geometric.data import Batch

from tg_mlc.sequences._memory import MEMORY_FEATURES, LabelMemory
from tg_mlc.sequences._ranges import ranges
from tg_mlc.sequences._trend import LabelTrend
from tg_mlc.sequences.windows import WindowOptions

#: Numbers of events.
Targets = Sequence[int] | Tensor | np.ndarray


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
        - **position:** :math:`(n)`, 1 for the last event before the target, at most :obj:`tau`
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
        tau (int): The number of events in a window; :obj:`None` for whole histories.
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
        tau: int | None,
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
        self.tau = tau

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return len(self.label_names)

    @property
    def window(self) -> WindowOptions:
        """Options of :class:`WindowViews` for these windows; whole histories are as long as the longest."""
        longest = max(int(np.diff(self.ptr).max()) - 1, 1)
        return {"tau": longest if self.tau is None else self.tau, "num_bins": self.num_bins, "gaps": self.gaps}

    @cached_property
    def memory(self) -> LabelMemory:
        """The source of :obj:`memory` of a batch; made when one first needs it."""
        return LabelMemory(self.ptr, self.time, self.y)

    @cached_property
    def trends(self) -> tuple[LabelTrend, LabelTrend]:
        """The sources of :obj:`trend` of a batch: of all events, and of those of training."""
        among = self.is_training
        return LabelTrend(self.time, self.y), LabelTrend(self.time[among], self.y[among])

    def _trend(self, target: np.ndarray, has_history: np.ndarray) -> np.ndarray:
        now = np.where(has_history, self.time[target - 1], -np.inf)
        among = self.is_training[target][:, None, None]
        every, training = self.trends
        return np.where(among, training(now), every(now))

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
        start = first if self.tau is None else np.maximum(first, target - self.tau)
        sample, place = ranges(self.y.indptr[start], self.y.indptr[target])
        event = self._event[place]
        memory_label, memory_sample, memory = self.memory(entity, target)
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
            "trend": self._trend(target, target > first),
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
        sizes: dict[str, Any] = {"num_entities": len(self.ptr) - 1, "num_labels": self.num_labels, "tau": self.tau}
        return f"{type(self).__name__}({len(self)}, {', '.join(f'{key}={value}' for key, value in sizes.items())})"


def days_since_last(ptr: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The days between each event and the one before of its entity, 0 for a first event."""
    days = np.diff(time, prepend=time[:1])
    days[ptr[:-1]] = 0.0
    return days
