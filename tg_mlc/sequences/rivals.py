"""Rivals of LANET that read a window event by event."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.index import ptr2index
from typing_extensions import Unpack

from tg_mlc._options import check_count, check_share
from tg_mlc.nn import BlockOptions
from tg_mlc.sequences.event_transformer import EventTransformer
from tg_mlc.sequences.windows import TimeView, events_of, occurrences


class EventEncoder(nn.Module):
    r"""The input of LANET's rivals in the `"Label Attention Network for Sequential Multi-Label Classification"
    <https://arxiv.org/abs/2303.00280>`_ paper: a vector of amounts for each event, with its time and its entity.

    .. math::
        \mathbf{x}_t = \mathbf{W} \mathbf{a}_t + \mathbf{D}_{\Delta_t} + \mathbf{P}_t + \mathbf{E}

    Where the paper is silent, this is our choice: amounts are scaled as :class:`~tg_mlc.sequences.NextSetDataset` does,
    a missing one counts as 1, and the four terms are summed.

    Args:
        num_labels (int): Number of labels :math:`L`.
        num_entities (int): Number of training entities; all others share one embedding.
        channels (int): Size :math:`C` of the input of an event.
        tau (int): Number of events of a window.
        max_days (int): From how many days on all gaps are the same.

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** inputs :math:`(S, C)` of all events, and pointers :math:`(B + 1)`
    """

    def __init__(self, num_labels: int, num_entities: int, channels: int, tau: int, max_days: int) -> None:
        super().__init__()
        sizes = {"num_labels": num_labels, "num_entities": num_entities, "channels": channels, "tau": tau}
        for name, value in sizes.items():
            check_count(name, value)
        self.tau = tau
        # One row for each label, whose weighted sum is the product with the vector of amounts.
        self.label = nn.Embedding(num_labels, channels)
        self.time = TimeView(channels, tau, max_days)
        self.entity = nn.Embedding(num_entities + 1, channels)

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        """Returns the inputs and the pointers."""
        found = occurrences(data, self.tau)
        event, ptr = events_of(found, data.num_graphs, self.tau)
        amount = found.amount.where(found.bin > 0, 1.0)
        weighted = self.label(found.label) * amount.unsqueeze(-1)
        x = weighted.new_zeros(int(ptr[-1]), weighted.size(1)).index_add(0, event, weighted)
        first = torch.empty(x.size(0), dtype=torch.long, device=event.device)
        first[event] = torch.arange(event.numel(), device=event.device)  # any occurrence tells the time of its event
        time = self.time(found.days[first], found.step[first])
        return x + time + self.entity(data.entity[found.sample[first]]), ptr


class TransformerBase(nn.Module):
    r"""The "TransformerBase" rival in the `"Label Attention Network for Sequential Multi-Label Classification"
    <https://arxiv.org/abs/2303.00280>`_ paper: attention among events (:class:`EventEncoder`), whose mean is mapped to
    logits.

    Args:
        num_labels (int): Number of labels :math:`L`.
        num_entities (int): Number of training entities; all others share one embedding.
        channels (int, optional): Size of a state. (default: :obj:`128`)
        tau (int, optional): Number of events of a window. (default: :obj:`3`)
        max_days (int, optional): From how many days on all gaps are the same. (default: :obj:`365`)
        num_layers (int, optional): Number of blocks. (default: :obj:`2`)
        **block (optional): Options of the blocks, as in :class:`LANET`.

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        num_labels: int,
        num_entities: int,
        channels: int = 128,
        *,
        tau: int = 3,
        max_days: int = 365,
        num_layers: int = 2,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        block = {"dropout": 0.2, "bias": True, **block}
        self.encoder = EventEncoder(num_labels, num_entities, channels, tau, max_days)
        self.events = EventTransformer(channels, num_labels, num_layers, **block)

    def forward(self, data: Data) -> Tensor:
        """Returns the logits."""
        logits: Tensor = self.events(*self.encoder(data))
        return logits


class LSTMEncoder(nn.Module):
    """The last state of an LSTM over the events of a window (:class:`EventEncoder`), zero for a window without any.

    Args:
        num_labels (int): Number of labels :math:`L`.
        num_entities (int): Number of training entities; all others share one embedding.
        channels (int): Size :math:`C` of a state.
        tau (int): Number of events of a window.
        max_days (int): From how many days on all gaps are the same.

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** states :math:`(B, C)`
    """

    def __init__(self, num_labels: int, num_entities: int, channels: int, tau: int, max_days: int) -> None:
        super().__init__()
        self.encoder = EventEncoder(num_labels, num_entities, channels, tau, max_days)
        self.lstm = nn.LSTM(channels, channels)

    def forward(self, data: Data) -> Tensor:
        """Returns the states."""
        x, ptr = self.encoder(data)
        lengths, sample = ptr.diff(), ptr2index(ptr, output_size=x.size(0))
        padded = x.new_zeros(int(lengths.max()) + 1, lengths.numel(), x.size(1))  # with one row that all samples have
        step = torch.arange(x.size(0), device=x.device) - ptr[sample]
        padded = padded.index_put((step, sample), x)
        states, _ = self.lstm(padded)
        last = states[(lengths - 1).clamp(min=0), torch.arange(lengths.numel(), device=x.device)]
        found: Tensor = last * (lengths > 0).unsqueeze(-1)
        return found


class LSTMBaseline(nn.Module):
    r"""The "RNN (LSTM)" rival in the `"Label Attention Network for Sequential Multi-Label Classification"
    <https://arxiv.org/abs/2303.00280>`_ paper: an LSTM over events, whose last state is mapped to logits.

    Args:
        num_labels (int): Number of labels :math:`L`.
        num_entities (int): Number of training entities; all others share one embedding.
        channels (int, optional): Size of a state. (default: :obj:`128`)
        tau (int, optional): Number of events of a window. (default: :obj:`3`)
        max_days (int, optional): From how many days on all gaps are the same. (default: :obj:`365`)
        dropout (float, optional): Dropout on the last state. (default: :obj:`0.3`)

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        num_labels: int,
        num_entities: int,
        channels: int = 128,
        *,
        tau: int = 3,
        max_days: int = 365,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        check_share("dropout", dropout)
        self.encoder = LSTMEncoder(num_labels, num_entities, channels, tau, max_days)
        self.readout = nn.Sequential(nn.Dropout(dropout), nn.Linear(channels, num_labels))

    def forward(self, data: Data) -> Tensor:
        """Returns the logits."""
        logits: Tensor = self.readout(self.encoder(data))
        return logits
