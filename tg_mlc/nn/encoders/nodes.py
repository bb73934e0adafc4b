"""Encoder of the nodes of any graph with numbers as features."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import Linear

from tg_mlc.nn.encoders.components import Components, check_columns, ptr_of


class NodeEncoder(nn.Module):
    r"""Maps the features of every node linearly to a component.

    .. math::
        \mathbf{z}_n = \mathbf{W} \mathbf{x}_n + \mathbf{b}

    Args:
        in_channels (int): Size of a node's features, or :obj:`-1` to take it from the first input.
        channels (int): Size :math:`d` of a state.

    Shapes:
        - **input:** a batch with features :obj:`x` of shape :math:`(N, F)`; the edges among nodes, if there are any, as
          :obj:`edge_index`; and the label that attends to each node, if only one does, as :obj:`to_label` of
          shape :math:`(N)`
        - **output:** :class:`~tg_mlc.nn.encoders.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If the features are of another size.
    """

    edge_dim: int | None = None

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.lin = Linear(in_channels, channels)

    def forward(self, data: Data) -> Components:
        """Encodes the nodes of a batch."""
        check_columns(data.x, self.lin.in_channels, "features 'x'")
        x: Tensor = self.lin(data.x)
        return Components(x, ptr_of(data), data.get("edge_index"), to_label=data.get("to_label"))
