"""A small custom network with label messages."""

from __future__ import annotations

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv

from tg_mlc.graphs import fully_connected
from tg_mlc.nn import LabelHead, LabelMessagePassing

NAMES = ["a", "b", "c"]


class Net(nn.Module):
    """A GNN with labels that attend to its nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.atoms, self.bonds = nn.Linear(9, 8), nn.Linear(3, 8)
        self.conv = GINEConv(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))
        self.labels = LabelMessagePassing(8, fully_connected(NAMES), heads=2)
        self.readout = LabelHead(self.labels)

    def forward(self, data: Data) -> torch.Tensor:
        x, bonds = self.atoms(data.x / 10), self.bonds(data.edge_attr.float())
        return self.readout(self.labels(self.conv(x, data.edge_index, bonds), data.batch))
