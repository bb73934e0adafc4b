"""Ablations of LANET: attention among events, alone and beside that among labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.index import ptr2index
from typing_extensions import Unpack

from tg_mlc.nn import BlockOptions
from tg_mlc.papers.next_set.rivals import EventTransformer
from tg_mlc.sequences import LANET
from tg_mlc.sequences.windows import WindowOptions, WindowViews, entity_embedding


class TimeAttention(nn.Module):
    r"""The "time-attention" ablation of the `"Label Attention Network for Sequential Multi-Label Classification"
    <https://arxiv.org/abs/2303.00280>`_ paper: the inputs of :class:`LANET`, but attention among events.

    The paper does not say how the state of an event is made; here it is the sum of the views of all its occurrences and
    of the embedding of the entity.

    Args:
        num_labels (int): Number of labels :math:`L`.
        num_entities, channels: As in :class:`LANET`.
        num_layers (int, optional): Number of blocks. (default: :obj:`2`)
        window (dict, optional): Options of :class:`~tg_mlc.sequences.windows.WindowViews`. (default: :obj:`None`)
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
        num_layers: int = 2,
        window: WindowOptions | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        block = {"dropout": 0.2, "bias": True, **block}
        self.views = WindowViews(num_labels, channels, **(window or {}))
        self.entity = entity_embedding(num_entities, self.views.width)
        self.events = EventTransformer(self.views.width, num_labels, num_layers, **block)

    def forward(self, data: Data) -> Tensor:
        """Returns the logits."""
        x, ptr = self.views.by_event(data)
        entity = data.entity[ptr2index(ptr, output_size=x.size(0))]
        logits: Tensor = self.events(x + self.entity(entity), ptr)
        return logits


class TwoAttentions(nn.Module):
    r"""The "concat-attention" and "gated-attention" ablations of the `"Label Attention Network for Sequential
    Multi-Label Classification" <https://arxiv.org/abs/2303.00280>`_ paper: attention among labels and among events.

    .. math::
        \textrm{concat:} \quad \mathbf{y} = \mathbf{W} [\mathbf{y}^{\textrm{label}} \Vert \mathbf{y}^{\textrm{time}}] +
        \mathbf{b}, \qquad
        \textrm{gated:} \quad \mathbf{y} = g \, \mathbf{y}^{\textrm{label}} + (1 - g) \, \mathbf{y}^{\textrm{time}}

    The paper predicts "confidence scores from concatenation of label-attention and time-attention", and learns "weights
    when summing attention views". Here the logits of both are what is concatenated or summed, and the one weight
    :math:`g` is the sigmoid of a learned number.

    Args:
        label (LANET): Attention among labels.
        time (TimeAttention): Attention among events.
        gated (bool, optional): If set to :obj:`True`, weighs the logits instead of mapping them.
            (default: :obj:`False`)

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** logits :math:`(B, L)`
    """

    def __init__(self, label: LANET, time: TimeAttention, gated: bool = False) -> None:
        super().__init__()
        self.label = label
        self.time = time
        num_labels = label.views.num_labels
        self.gate = nn.Parameter(torch.zeros(())) if gated else None
        self.readout = nn.Identity() if gated else nn.Linear(2 * num_labels, num_labels)

    def forward(self, data: Data) -> Tensor:
        """Returns the logits."""
        label, time = self.label(data), self.time(data)
        if self.gate is not None:
            return torch.lerp(time, label, self.gate.sigmoid())
        logits: Tensor = self.readout(torch.cat([label, time], dim=-1))
        return logits
