"""Models without messages to labels, trained the same way as those with them."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, global_add_pool

from tg_mlc.data import MultiLabelDataset
from tg_mlc.models.molecules import vector_encoders
from tg_mlc.nn.encoders import LinearPath, MoleculeEncoder, VectorEncoder


class PooledGNN(nn.Module):
    """The usual graph classifier: graph isomorphism layers with edge features (Hu et al. 2020, arXiv:1905.12265), a sum
    over the atoms, and one linear layer.
    """

    def __init__(self, num_labels: int, channels: int = 64, num_layers: int = 3, dropout: float = 0.1) -> None:
        super().__init__()
        self.inputs = MoleculeEncoder(channels)
        self.convs = nn.ModuleList(GINEConv(_mlp(channels, dropout)) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(num_layers))
        self.lin = nn.Linear(channels, num_labels)

    def forward(self, data: Data) -> Tensor:
        atoms = self.inputs(data)
        x = atoms.x
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + norm(conv(x, atoms.edge_index, atoms.edge_attr)).relu()
        logits: Tensor = self.lin(global_add_pool(x, data.batch, atoms.ptr.numel() - 1))
        return logits


class LinearAlone(nn.Module):
    """One linear layer over fingerprints and descriptors, beside the frequency of every label."""

    def __init__(self, train: MultiLabelDataset) -> None:
        super().__init__()
        self.vectors = nn.ModuleList(vector_encoders(train, channels=1))
        self.linear_path = LinearPath(cast("list[VectorEncoder]", list(self.vectors)), train.num_labels)
        self.bias = nn.Parameter(torch.logit(train.y.nanmean(dim=0).nan_to_num(0.5), eps=1e-3))

    def forward(self, data: Data) -> Tensor:
        logits: Tensor = self.linear_path(data) + self.bias
        return logits


def _mlp(channels: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(channels, 2 * channels), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * channels, channels)
    )
