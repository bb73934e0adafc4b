"""Several labels on every node of one graph: python examples/node_labels.py"""

from __future__ import annotations

import torch
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from tg_mlc import LabelHead, LabelMessagePassing
from tg_mlc.graphs import fully_connected
from tg_mlc.losses import masked_bce
from tg_mlc.metrics import evaluate
from tg_mlc.nn import NeighbourComponents


class Net(torch.nn.Module):
    """Each label attends to the seed node, its neighbours, and the neighbours' known labels."""

    def __init__(self, num_features: int, num_labels: int) -> None:
        super().__init__()
        self.gnn = SAGEConv(num_features, 32)
        self.components = NeighbourComponents(32, num_hops=1, num_labels=num_labels)
        self.labels = LabelMessagePassing(32, fully_connected(num_labels), dropout=0.2)
        self.head = LabelHead(self.labels)

    def forward(self, data: Data, seeds: torch.Tensor) -> torch.Tensor:
        """Returns the logits of the seed nodes."""
        x = self.gnn(data.x, data.edge_index).relu()
        x, pairs = self.components(x, data.edge_index, seeds, known=data.known)
        return self.head(self.labels(x, components=pairs))


def main(steps: int = 150) -> None:
    """Trains on half of a synthetic social network, whose nodes mostly link within their groups."""
    torch.manual_seed(0)
    y = (torch.rand(400, 6) < 0.25).float()
    is_linked = torch.rand(400, 400) < 0.002 + 0.04 * (y @ y.T).clamp(max=1)
    edge_index = (is_linked | is_linked.T).fill_diagonal_(False).nonzero().T
    x, known = y + 3 * torch.randn_like(y), torch.full_like(y, torch.nan)
    data = Data(x=x, edge_index=edge_index, known=known)
    train, test = torch.randperm(400).split(200)
    data.known[train] = y[train]

    net = Net(num_features=6, num_labels=6)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.003, weight_decay=0.05)
    for _ in range(steps):
        # Seeds' labels are hidden; labels of other training nodes are known, as in prediction.
        seeds = train[torch.randperm(len(train))[:50]]
        optimizer.zero_grad()
        masked_bce(net(data, seeds), y[seeds]).backward()
        optimizer.step()
    print(evaluate(y[test], net.eval()(data, test).sigmoid().detach()))


if __name__ == "__main__":
    main()
