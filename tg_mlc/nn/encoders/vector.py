"""Dense vectors: one component for each sample."""

from __future__ import annotations

from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import Linear

from tg_mlc.nn.encoders.components import Components, ptr_of


class VectorEncoder(nn.Module):
    r"""Maps dense vectors linearly to states, each a component of its own.

    .. math::
        \mathbf{z}_i = \mathbf{W} \mathbf{x}_i + \mathbf{b}

    Args:
        in_channels (int): Size of a vector, or :obj:`-1` to take it from the first input.
        channels (int): Size :math:`d` of a state.

    Shapes:
        - **input:** a batch with vectors :obj:`x` of shape :math:`(N, F)`
        - **output:** :class:`~tg_mlc.nn.encoders.Components` with states :math:`(N, d)`
    """

    edge_dim: int | None = None

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.lin = Linear(in_channels, channels)

    def forward(self, data: Data) -> Components:
        return Components(self.lin(data.x), ptr_of(data))
