"""Histories of label sets as explanations see them: events of the past are components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Subset
from torch_geometric.data import Batch, Data

from tg_mlc.explanations.subject import Subject
from tg_mlc.inputs.events import EventSequences
from tg_mlc.sequences import NextSetDataset
from tg_mlc.sequences.windows import WindowViews

WINDOW = ("label", "sample", "position", "dt", "bin", "amount")
MEMORY = ("memory_label", "memory_sample", "memory")
SUMMARY = "counts of the whole history"  #: the component that stands for what a memory knows


def is_of_events(raw: Any) -> bool:
    """Tells whether raw inputs are histories of label sets."""
    while isinstance(raw, Subset):
        raw = raw.dataset
    return isinstance(raw, (EventSequences, NextSetDataset))


class EventSubject(Subject):
    """A model of histories, whose components are the events of the window, the last one first, and, if there is a
    memory, what it knows of the whole history; an event leaves the window alone.
    """

    noun = "history"

    def _read(self, raw: Any) -> Any:
        read: Any = self.steps[0].transform(raw) if isinstance(raw, EventSequences) else raw
        self.samples = [read[row] for row in range(len(read))]
        return read

    def batch(self, samples: Sequence[Data], given: Tensor | None = None) -> Batch:
        """One batch of targets."""
        keys = samples[0].keys()
        made = {key: torch.cat([sample[key] for sample in samples]) for key in keys}
        for key, rows in (("sample", "label"), ("memory_sample", "memory_label")):
            sizes = torch.tensor([sample[rows].numel() for sample in samples])
            made[key] = torch.arange(len(samples)).repeat_interleave(sizes)
        batch = Batch(**made)
        batch._num_graphs = len(samples)
        return batch

    def components(self, sample: Data) -> list[str]:
        """The labels of each event of the window, and the memory."""
        positions = sample.position.unique()
        found = []
        for position in positions.tolist():
            names = [self.label_names[label] for label in sample.label[sample.position == position].tolist()]
            found.append(f"{position} back: {', '.join(names)}")
        has_memory = getattr(self.probes[0].network, "memory", None) is not None
        return [*found, SUMMARY] if has_memory else found

    def masked(self, sample: Data, kept: np.ndarray) -> Data:
        """A target without some events of its window, or without what the memory knows."""
        positions = sample.position.unique()
        rows = torch.isin(sample.position, positions[torch.from_numpy(kept[: len(positions)])])
        masked = sample.clone()
        for key in WINDOW:
            masked[key] = sample[key][rows]
        if len(kept) > len(positions) and not kept[-1]:
            for key in MEMORY:
                masked[key] = sample[key][:0]
        return masked

    def rows_of(self, sample: Data, network: nn.Module, num_rows: int) -> tuple[np.ndarray, list[str]]:
        """Which labels of a window are of each event; what a memory knows has no states, and so no score."""
        views = next((module for module in network.modules() if isinstance(module, WindowViews)), None)
        read = sample.position[sample.position <= (0 if views is None else views.window_size)]
        if num_rows != len(read):
            return super().rows_of(sample, network, num_rows)
        shares = (sample.position.unique().view(-1, 1) == read).double().numpy()
        missing = np.full((len(self.components(sample)) - len(shares), num_rows), np.nan)
        return np.concatenate([shares, missing]), []
