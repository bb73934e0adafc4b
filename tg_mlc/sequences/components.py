"""Histories of label sets as explanations see them: the events of the past are components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from torch_geometric.data import Batch, Data

from tg_mlc.inputs.components import Components
from tg_mlc.inputs.preprocessor import Preprocessor
from tg_mlc.sequences.windows import WindowViews

WINDOW = ("label", "sample", "position", "dt", "bin", "amount")
MEMORY = ("memory_label", "memory_sample", "memory")
SUMMARY = "counts of the whole history"  #: name of the component of a memory


class Events(Components):
    """The events of a target's window, the last one first, and the counts of the whole history if
    the network has a memory. A hidden event is hidden in the window alone.

    Args:
        label_names (Sequence[str]): The labels of the events.
        network (torch.nn.Module): The module that reads the windows.
    """

    option = "history"

    def __init__(self, label_names: Sequence[str], network: nn.Module) -> None:
        self.label_names = list(label_names)
        self.has_memory = getattr(network, "memory", None) is not None

    def components(self, sample: Data) -> list[str]:
        """Returns the labels of each event of the window, and the memory."""
        events = []
        for position in sample.position.unique().tolist():
            labels = sample.label[sample.position == position].tolist()
            names = [self.label_names[label] for label in labels]
            events.append(f"{position} back: {', '.join(names)}")
        return [*events, SUMMARY] if self.has_memory else events

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        """Returns a target without some events of its window, or without its memory."""
        positions = sample.position.unique()
        kept_positions = positions[torch.from_numpy(kept[: len(positions)])]
        rows = torch.isin(sample.position, kept_positions)
        hidden: Data = sample.clone()
        for key in WINDOW:
            hidden[key] = sample[key][rows]
        if len(kept) > len(positions) and not kept[-1]:
            for key in MEMORY:
                hidden[key] = sample[key][:0]
        return hidden

    def collate(self, samples: Sequence[Data], like: Any) -> Any:
        return TargetList(samples)

    def state_fractions(
        self, sample: Data, prepared: Data, network: nn.Module, num_rows: int
    ) -> np.ndarray | None:
        """Tells for each event which rows are its labels; a memory has no rows."""
        modules = network.modules()
        views = next((module for module in modules if isinstance(module, WindowViews)), None)
        size = 0 if views is None else views.window_size
        read = sample.position[sample.position <= size]
        if num_rows != len(read):
            return super().state_fractions(sample, prepared, network, num_rows)
        fractions = (sample.position.unique().view(-1, 1) == read).double().numpy()
        num_others = len(self.components(sample)) - len(fractions)
        return np.concatenate([fractions, np.full((num_others, num_rows), np.nan)])


class TargetList(Dataset[Batch]):
    """Targets that are joined to batches, as :class:`NextSetDataset` makes them.

    Args:
        targets (Sequence[Batch]): Batches of one target each.
    """

    def __init__(self, targets: Sequence[Data]) -> None:
        self.targets = list(targets)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> Batch:
        return self.__getitems__([index])

    def __getitems__(self, indices: list[int]) -> Batch:
        targets = [self.targets[index] for index in indices]
        keys = targets[0].to_dict()
        values = {key: torch.cat([target[key] for target in targets]) for key in keys}
        for key, rows in (("sample", "label"), ("memory_sample", "memory_label")):
            sizes = torch.tensor([target[rows].numel() for target in targets])
            values[key] = torch.arange(len(targets)).repeat_interleave(sizes)
        batch = Batch(**values)
        batch._num_graphs = len(targets)
        return batch
