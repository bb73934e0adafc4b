"""Attention among the events of each sample."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.index import ptr2index
from torch_geometric.nn import global_mean_pool
from typing_extensions import Unpack

from tg_mlc.nn import BlockOptions, FeatureMessagePassing


class EventTransformer(nn.Module):
    r"""Attention among the events of a window, their mean, and a linear map to logits: what the `"Label Attention
    Network for Sequential Multi-Label Classification" <https://arxiv.org/abs/2303.00280>`_ paper compares attention
    among labels with.

    Args:
        channels (int): Size :math:`d` of the state of an event.
        num_labels (int): Number of labels :math:`L`.
        num_layers (int, optional): Number of layers. (default: :obj:`2`)
        readout_dropout (float, optional): Dropout before the linear map. (default: :obj:`0.3`)
        **block (optional): Options of the blocks (see :class:`~tg_mlc.nn.AttentionConv`).

    Shapes:
        - **input:** states :math:`(S, d)`, pointers :math:`(B + 1)`
        - **output:** logits :math:`(B, L)`, those of no event at all for a window without any
    """

    def __init__(
        self,
        channels: int,
        num_labels: int,
        num_layers: int = 2,
        *,
        readout_dropout: float = 0.3,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        self.layers = FeatureMessagePassing(channels, num_layers, **block)
        self.readout = nn.Sequential(nn.Dropout(readout_dropout), nn.Linear(channels, num_labels))

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Returns the logits."""
        u = self.layers(x, ptr=ptr)
        pooled = global_mean_pool(u, ptr2index(ptr, output_size=x.size(0)), size=ptr.numel() - 1)
        logits: Tensor = self.readout(pooled)
        return logits
