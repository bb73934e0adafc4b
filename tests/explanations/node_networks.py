"""A planted graph in which known neighbours decide the labels of seeds, and a network on nodes."""

from __future__ import annotations

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from tg_mlc.graphs import fully_connected
from tg_mlc.nn import LabelHead, LabelMessagePassing, NeighbourComponents

NAMES = ["a", "b"]


class NodeNet(nn.Module):
    """Labels attend to the states and the known labels of a seed and its neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 16)
        self.components = NeighbourComponents(16, num_labels=2)
        self.labels = LabelMessagePassing(16, fully_connected(NAMES), num_steps=1)
        self.head = LabelHead(self.labels)

    def forward(self, data: Data) -> torch.Tensor:
        """Returns the logits of the seed of each sample."""
        x, seeds = self.lin(data.x), data.seed_index
        x, pairs = self.components(x, data.edge_index, seeds, known=data.known)
        return self.head(self.labels(x, components=pairs))


def ego_graphs(num_groups: int = 9) -> list[Data]:
    """Returns the graphs of two hops around seeds. Each group of nodes has two seeds, which have
    the same three neighbours, and have the labels of the only neighbour whose labels are known: the
    first label, the second, or none.
    """
    torch.manual_seed(0)
    first = 5 * torch.arange(num_groups)
    known = torch.full((5 * num_groups, 2), torch.nan)
    known[deciding(first)] = y = torch.eye(3, 2)[torch.arange(num_groups) % 3]
    links = torch.cartesian_prod(torch.arange(2), torch.arange(2, 5)).T
    one_way = (first + links[..., None]).flatten(1)
    edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
    samples = []
    for seed in range(5 * num_groups):
        if seed % 5 < 2:
            nodes, edges, position, _ = k_hop_subgraph(seed, 2, edge_index, relabel_nodes=True)
            options = {"seed_index": position, "known": known[nodes], "y": y[[seed // 5]]}
            samples.append(Data(x=torch.ones(5, 3), edge_index=edges, **options))
    return samples


def deciding(first: torch.Tensor) -> torch.Tensor:
    """Returns the neighbours that decide, given the first node of their groups."""
    return first + 2 + first % 3
