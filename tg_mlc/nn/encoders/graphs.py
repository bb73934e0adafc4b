"""Encoders of graphs: molecules with bonds, and nodes with numerical features."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import Linear
from torch_geometric.utils.smiles import e_map, x_map

from tg_mlc.nn.encoders.components import Components, check_columns, ptr_of
from tg_mlc.ops.dropout import dropout


class CategoricalEmbedding(nn.Module):
    r"""Sums embeddings of several categorical features.

    .. math::
        \mathbf{z}_i = \sum_f \mathbf{W}^{(f)}_{x_{if}}

    Args:
        num_categories (list of int): The number of categories of every feature.
        channels (int): Size :math:`d` of a state.

    Shapes:
        - **input:** categories :math:`(N, F)`
        - **output:** states :math:`(N, d)`

    Raises:
        ValueError: If the input has another number of features.
    """

    def __init__(self, num_categories: Sequence[int], channels: int) -> None:
        super().__init__()
        self.num_categories = list(num_categories)
        offset = torch.tensor([0, *self.num_categories[:-1]]).cumsum(0)
        self.register_buffer("offset", offset, persistent=False)
        self.weight = nn.Parameter(torch.empty(sum(self.num_categories), channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module. The sum then has unit variance."""
        nn.init.normal_(self.weight, std=len(self.num_categories) ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Embeds every row of categories."""
        check_columns(x, len(self.num_categories), "categorical features")
        # One look-up in a stacked table works for empty inputs, too (a molecule without bonds).
        index = x.long() + self.get_buffer("offset")
        return nn.functional.embedding_bag(index, self.weight, mode="sum")


class MoleculeEncoder(nn.Module):
    r"""Embeds the atoms and bonds of molecules from :meth:`torch_geometric.utils.from_smiles`.

    Args:
        channels (int): Size :math:`d` of a state.

    Shapes:
        - **input:** a batch with atoms :obj:`x` of shape :math:`(N, 9)`, :obj:`edge_index` and
          bonds :obj:`edge_attr` of shape :math:`(|\mathcal{E}|, 3)`
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states :math:`(N, d)`
          and :math:`(|\mathcal{E}|, d)`
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.edge_dim = channels
        self.atoms = CategoricalEmbedding([len(values) for values in x_map.values()], channels)
        self.bonds = CategoricalEmbedding([len(values) for values in e_map.values()], channels)

    def forward(self, data: Data) -> Components:
        """Encodes the atoms and bonds of a batch."""
        bonds = self.bonds(data.edge_attr)
        return Components(self.atoms(data.x), ptr_of(data), data.edge_index, bonds)


class NodeEncoder(nn.Module):
    r"""Maps the features of every node linearly to a component.

    .. math::
        \mathbf{z}_n = \mathbf{W} \mathbf{x}_n + \mathbf{b}

    Args:
        in_channels (int): Size of a node's features, or :obj:`-1` to take it from the first input.
        channels (int): Size :math:`d` of a state.
        scaling (torch.nn.Module, optional): Applied to the features first. (default: :obj:`None`)
        dropout (float, optional): Dropout on the scaled features. (default: :obj:`0.0`)

    Shapes:
        - **input:** a batch with features :obj:`x` of shape :math:`(N, F)`; optional edges
          among nodes, :obj:`edge_index`; and, if a single label attends to each node, these labels,
          :obj:`to_label` of shape :math:`(N)`
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If the features are of another size.
    """

    edge_dim: int | None = None

    def __init__(
        self,
        in_channels: int,
        channels: int,
        *,
        scaling: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.scaling = nn.Identity() if scaling is None else scaling
        self.dropout = dropout
        self.lin = Linear(in_channels, channels)

    def forward(self, data: Data) -> Components:
        """Encodes the nodes of a batch."""
        check_columns(data.x, self.lin.in_channels, "features 'x'")
        x: Tensor = self.lin(dropout(self.scaling(data.x), self.dropout, self.training))
        return Components(x, ptr_of(data), data.get("edge_index"), to_label=data.get("to_label"))
