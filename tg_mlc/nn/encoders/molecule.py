"""Encoder of molecules: atoms as components, bonds as the graph among them."""

from __future__ import annotations

from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils.smiles import e_map, x_map

from tg_mlc.nn.encoders.components import Components, ptr_of
from tg_mlc.nn.encoders.embedding import CategoricalEmbedding


class MoleculeEncoder(nn.Module):
    r"""Embeds the atoms and bonds of molecules as :meth:`torch_geometric.utils.from_smiles` describes them.

    Args:
        channels (int): Size :math:`d` of a state.

    Shapes:
        - **input:** a batch with atoms :obj:`x` of shape :math:`(N, 9)`, :obj:`edge_index` and bonds
          :obj:`edge_attr` of shape :math:`(|\mathcal{E}|, 3)`
        - **output:** :class:`~tg_mlc.nn.encoders.Components` with states :math:`(N, d)` and
          :math:`(|\mathcal{E}|, d)`
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.edge_dim = channels
        self.atoms = CategoricalEmbedding([len(values) for values in x_map.values()], channels)
        self.bonds = CategoricalEmbedding([len(values) for values in e_map.values()], channels)

    def forward(self, data: Data) -> Components:
        """Encodes the atoms and bonds of a batch."""
        return Components(self.atoms(data.x), ptr_of(data), data.edge_index, self.bonds(data.edge_attr))
