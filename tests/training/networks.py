"""A custom network in its own module, so that a new process can import it."""

from __future__ import annotations

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import Linear

import tg_mlc
from tg_mlc.graphs import fully_connected


class Net(nn.Module):
    """A network with a lazy layer, and no attributes but its layers."""

    def __init__(self, num_labels: int, channels: int = 8) -> None:
        super().__init__()
        self.lin = Linear(-1, channels)
        self.labels = tg_mlc.LabelMessagePassing(
            channels, fully_connected(num_labels), num_steps=1, heads=2
        )
        self.head = tg_mlc.LabelHead(self.labels)

    def forward(self, batch: Data) -> torch.Tensor:
        return self.head(self.labels(self.lin(batch.x.float()).relu(), ptr=batch.ptr))
