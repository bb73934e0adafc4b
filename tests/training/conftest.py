from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.nn import GINEConv, global_add_pool

from tg_mlc.data import Split, random_split
from tg_mlc.graphs import fully_connected
from tg_mlc.nn import LabelHead, LabelMessagePassing
from tg_mlc.training import (
    MultiLabelDataModule,
    MultiLabelModule,
    Training,
    fit,
    seed_everything,
)

LABELS = ["sour", "sweet", "bitter"]


class ToyGraphs(InMemoryDataset):
    """Paths of 3 to 6 nodes. Labels are signs of sums over nodes; some are unknown."""

    label_names = LABELS

    def __init__(self, num_samples: int = 60) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.data, self.slices = self.collate([_toy_graph(generator) for _ in range(num_samples)])


def _toy_graph(generator: torch.Generator) -> Data:
    num_nodes = int(torch.randint(3, 7, (1,), generator=generator))
    x = torch.randn(num_nodes, 4, generator=generator)
    source = torch.arange(num_nodes - 1)
    edge_index = torch.stack([torch.cat([source, source + 1]), torch.cat([source + 1, source])])
    y = (x[:, :3].sum(dim=0, keepdim=True) > 0).float()
    y[torch.rand(1, 3, generator=generator) < 0.1] = float("nan")
    return Data(x=x, edge_index=edge_index, edge_attr=torch.ones(edge_index.size(1), 1), y=y)


class GINE(nn.Module):
    """A model with parts that any PyG model may hold: dropout, and batch norm with its buffers."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.lin_in = nn.Linear(4, channels)
        mlp = nn.Sequential(nn.Linear(channels, channels), nn.BatchNorm1d(channels), nn.ReLU())
        self.conv = GINEConv(mlp, edge_dim=1)
        self.dropout = nn.Dropout(0.2)
        self.lin_out = nn.Linear(channels, len(LABELS))

    def forward(self, batch: Data) -> torch.Tensor:
        x = self.dropout(self.conv(self.lin_in(batch.x), batch.edge_index, batch.edge_attr))
        return self.lin_out(global_add_pool(x, batch.batch))


class Output(NamedTuple):
    logits: torch.Tensor
    intermediate: list[torch.Tensor]


class LabelModel(nn.Module):
    """A model with a label graph and intermediate readouts."""

    def __init__(self, label_graph: Data | None = None, dropout: float = 0.2) -> None:
        super().__init__()
        self.lin_in, label_graph = nn.Linear(4, 8), label_graph or fully_connected(LABELS)
        self.labels = LabelMessagePassing(8, label_graph, num_steps=1, heads=2, dropout=dropout)
        self.readout = LabelHead(self.labels)

    def forward(self, batch: Data, *, return_intermediate: bool = False) -> torch.Tensor | Output:
        states = self.labels(self.lin_in(batch.x), batch.batch, return_intermediate=True)
        logits = self.readout(states.states)
        if not return_intermediate:
            return logits
        return Output(logits, [self.readout(u) for u in states.intermediate])


def make_module(
    model: Callable[[], nn.Module] = GINE, seed: int = 0, **options
) -> MultiLabelModule:
    seed_everything(seed, verbose=False)
    return MultiLabelModule(model(), LABELS, **{"lr": 1e-2, **options})


def train(module, data, folder, **options) -> Training:
    """Trains without logs."""
    return fit(module, data, folder, **{"logger": False, **options}).training


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Sets one thread, because several threads slow small models down."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


@pytest.fixture(scope="session")
def dataset() -> ToyGraphs:
    return ToyGraphs()


@pytest.fixture(scope="session")
def split(dataset: ToyGraphs) -> Split:
    return random_split(len(dataset), (0.6, 0.2, 0.2), seed=0)


@pytest.fixture
def data(dataset: ToyGraphs, split: Split) -> MultiLabelDataModule:
    return MultiLabelDataModule(dataset, split, batch_size=8)


@pytest.fixture
def batch(data: MultiLabelDataModule) -> Data:
    return next(iter(data.test_dataloader()))
