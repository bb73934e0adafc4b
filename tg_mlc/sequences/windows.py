"""Windows of events: embeddings of label occurrences, summed by label or by event, and events as
components of explanations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from torch_geometric.data import Batch, Data

from tg_mlc._options import check_count
from tg_mlc.inputs.components import Components
from tg_mlc.inputs.preprocessor import Preprocessor

WINDOW = ("label", "sample", "position", "dt", "bin", "amount")  #: batch keys with a row per label
MEMORY = ("memory_label", "memory_sample", "memory")  #: batch keys of the whole history
SUMMARY = "counts of the whole history"  #: name of the component that stands for the memory


class WindowOptions(TypedDict, total=False):
    """Options of :class:`WindowViews`, which documents them."""

    window_size: int
    num_bins: int
    gaps: Sequence[int] | None
    time: bool
    amount: bool
    absence: bool


class Occurrences(NamedTuple):
    """The occurrences of labels in the windows of a batch."""

    sample: Tensor  #: ``[n]``
    label: Tensor  #: ``[n]``
    step: Tensor  #: ``[n]``, from 0 for the most recent event
    days: Tensor  #: ``[n]``, since the previous event
    bin: Tensor  #: ``[n]``, bin of the amount, or 0 for a missing amount
    amount: Tensor  #: ``[n]``, scaled


def occurrences(data: Data, window_size: int) -> Occurrences:
    """Returns the occurrences in the last :obj:`window_size` events of every sample."""
    columns = data.sample, data.label, data.position - 1, data.dt, data.bin, data.amount
    in_window: Any = data.position <= window_size
    if not torch.compiler.is_compiling() and in_window.all():
        in_window = slice(None)
    return Occurrences(*(column[in_window] for column in columns))


class TimeView(nn.Module):
    """The time view :math:`(n, C)` of occurrences from the `"Label Attention Network for Sequential
    Multi-Label Classification" <https://arxiv.org/abs/2303.00280>`_ paper: an embedding of the
    days since the previous event, plus an embedding of the position in the window.

    Every number of days in :obj:`gaps` (see :class:`WindowViews`) has an embedding. Other numbers
    use the embedding of the next smaller number.
    """

    gaps: Tensor

    def __init__(self, channels: int, window_size: int, gaps: Sequence[int] | None = None) -> None:
        super().__init__()
        self.register_buffer("gaps", torch.tensor(range(366) if gaps is None else list(gaps)))
        self.days = nn.Embedding(self.gaps.numel(), channels)
        self.position = nn.Embedding(window_size, channels)

    def forward(self, days: Tensor, step: Tensor) -> Tensor:
        row = torch.bucketize(days, self.gaps, right=True) - 1
        view: Tensor = self.days(row.clamp(min=0)) + self.position(step)
        return view


def entity_embedding(num_entities: int, channels: int) -> nn.Embedding:
    """Returns embeddings with one row per training entity, and a row of zeros for others."""
    return nn.Embedding(num_entities + 1, channels, padding_idx=num_entities)


class WindowViews(nn.Module):
    r"""The inputs of the `"Label Attention Network for Sequential Multi-Label Classification"
    <https://arxiv.org/abs/2303.00280>`_ paper: label, time and amount views of a window, side by
    side.

    .. math::
        \mathbf{e}_k = \Big[ \mathbf{W}_k \, \Big\Vert
        \sum_{o: k_o = k} \mathbf{D}_{\Delta_o} + \mathbf{P}_{p_o} \, \Big\Vert
        \sum_{o: k_o = k} \mathbf{A}_{a_o} \Big]

    over the occurrences :math:`o` of label :math:`k` in the window, with :math:`\Delta_o` days
    since the previous event, position :math:`p_o` and amount bin :math:`a_o`. All embeddings start
    from :math:`\mathcal{N}(0, 1)`. The embedding of missing amounts stays zero.

    Args:
        num_labels (int): Number of labels :math:`L`.
        channels (int): Size :math:`C` of each view.
        window_size (int, optional): Number of events of a window. (default: :obj:`3`)
        num_bins (int, optional): Number of amount bins, including the bin of missing amounts.
            (default: :obj:`11`)
        gaps (list of int, optional): The :obj:`gaps` of a
            :class:`~tg_mlc.sequences.NextSetDataset`. (default: :obj:`None`, all up to 365)
        time, amount (bool, optional): Whether to use this view. (default: :obj:`True`)
        absence (bool, optional): Whether a learnable vector is added to labels that are absent from
            a window. (default: :obj:`False`)

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** :math:`(B, L, d)` of labels or :math:`(S, d)` of events, with :math:`d` the
            :attr:`width` of all views

    Raises:
        ValueError: If a size is less than 1, or both views are turned off.
    """

    def __init__(
        self,
        num_labels: int,
        channels: int,
        *,
        window_size: int = 3,
        num_bins: int = 11,
        gaps: Sequence[int] | None = None,
        time: bool = True,
        amount: bool = True,
        absence: bool = False,
    ) -> None:
        super().__init__()
        sizes = {"num_labels": num_labels, "channels": channels, "num_bins": num_bins}
        for name, value in {**sizes, "window_size": window_size}.items():
            check_count(name, value)
        if not time and not amount:
            raise ValueError("Expected 'time' or 'amount' to be True (got neither)")
        self.num_labels, self.window_size = num_labels, window_size
        self.width = channels * (1 + time + amount)
        self.label = nn.Embedding(num_labels, channels)
        self.time = TimeView(channels, window_size, gaps) if time else None
        self.bin = nn.Embedding(num_bins, channels, padding_idx=0) if amount else None
        self.absent = nn.Parameter(torch.randn(self.width)) if absence else None

    def by_label(self, data: Data) -> Tensor:
        """Returns the states of all labels, ``[B, L, d]``."""
        window, size = occurrences(data, self.window_size), (data.num_graphs, self.num_labels)
        row = window.sample * self.num_labels + window.label
        views = self._views(window)
        summed = views.new_zeros(size[0] * size[1], views.size(1)).index_add(0, row, views)
        states = torch.cat([self.label.weight.expand(*size, -1), summed.view(*size, -1)], dim=-1)
        if self.absent is None:
            return states
        absent = torch.ones(size[0] * size[1], dtype=torch.bool, device=row.device)
        return states + absent.index_fill(0, row, False).view(*size, 1) * self.absent

    def by_event(self, data: Data) -> tuple[Tensor, Tensor]:
        """Returns states of all events in windows, ``[S, d]``, and offsets of samples."""
        window = occurrences(data, self.window_size)
        views = torch.cat([self.label(window.label), self._views(window)], dim=-1)
        event, ptr = events_of(window, data.num_graphs, self.window_size)
        return views.new_zeros(int(ptr[-1]), views.size(1)).index_add(0, event, views), ptr

    def _views(self, window: Occurrences) -> Tensor:
        views = [] if self.time is None else [self.time(window.days, window.step)]
        return torch.cat(views if self.bin is None else [*views, self.bin(window.bin)], dim=-1)


def events_of(window: Occurrences, num_samples: int, window_size: int) -> tuple[Tensor, Tensor]:
    """Returns each occurrence's event, numbered by sample and time, and offsets of samples."""
    slots = window.sample * window_size + (window_size - 1 - window.step)
    empty = torch.zeros(num_samples * window_size, dtype=torch.long, device=slots.device)
    present = empty.index_fill(0, slots, 1)
    ends = present.view(num_samples, window_size).sum(dim=1).cumsum(dim=0)
    return (present.cumsum(dim=0) - 1)[slots], torch.cat([present.new_zeros(1), ends])


class Events(Components):
    """Components of a target: the events of its window, most recent first, and, if the network has
    a memory, counts of the whole history. Hiding an event changes only the window.

    Args:
        label_names (Sequence[str]): The labels of the events.
        network (torch.nn.Module): The module that reads the windows.
    """

    option = "history"

    def __init__(self, label_names: Sequence[str], network: nn.Module) -> None:
        self.label_names = list(label_names)
        self.has_memory = getattr(network, "memory", None) is not None

    def components(self, sample: Data) -> list[str]:
        """Returns one name per event in the window, and the name of the memory if there is one."""
        events = []
        for position in sample.position.unique().tolist():
            labels = sample.label[sample.position == position].tolist()
            names = [self.label_names[label] for label in labels]
            events.append(f"{position} back: {', '.join(names)}")
        return [*events, SUMMARY] if self.has_memory else events

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        """Returns the target without events, or the memory, that are False in the mask ``kept``."""
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
        """Returns 1 if a row belongs to a component, else 0. The memory without rows gets NaN."""
        modules = network.modules()
        views = next((module for module in modules if isinstance(module, WindowViews)), None)
        window_size = 0 if views is None else views.window_size
        positions = sample.position[sample.position <= window_size]
        if num_rows != len(positions):
            return super().state_fractions(sample, prepared, network, num_rows)
        fractions = (sample.position.unique().view(-1, 1) == positions).double().numpy()
        num_others = len(self.components(sample)) - len(fractions)
        return np.concatenate([fractions, np.full((num_others, num_rows), np.nan)])


class TargetList(Dataset[Batch]):
    """A list of targets that are concatenated into batches like those of :class:`NextSetDataset`.

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
        for key, label_key in (("sample", "label"), ("memory_sample", "memory_label")):
            sizes = torch.tensor([target[label_key].numel() for target in targets])
            values[key] = torch.arange(len(targets)).repeat_interleave(sizes)
        batch = Batch(**values)
        batch._num_graphs = len(targets)
        return batch
