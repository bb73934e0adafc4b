"""Inside PyG's heterogeneous wrappers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import HeteroConv, to_hetero

from tg_mlc.nn import AttentionConv

X = {"word": torch.randn(3, 5), "label": torch.randn(4, 8)}
EDGES = {
    ("word", "in", "label"): torch.tensor([[0, 1, 2], [0, 1, 3]]),
    ("label", "to", "label"): torch.tensor([[0, 1, 2, 3], [1, 0, 3, 3]]),
}


@pytest.mark.filterwarnings("ignore:There exist node types")
def test_hetero_conv() -> None:
    convs = {
        ("word", "in", "label"): AttentionConv((-1, 8), heads=2),
        ("label", "to", "label"): AttentionConv(8, heads=2),
    }
    out = HeteroConv(convs, aggr="sum")(X, EDGES)
    assert list(out) == ["label"]
    parts = [convs[kind]((X[kind[0]], X["label"]), edges) for kind, edges in EDGES.items()]
    torch.testing.assert_close(out["label"], parts[0] + parts[1])


class Homogeneous(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = AttentionConv((-1, 8), heads=2)
        self.conv2 = AttentionConv(8, heads=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


def test_to_hetero() -> None:
    edges = {**EDGES, ("label", "of", "word"): EDGES["word", "in", "label"].flip(0)}
    x = {"word": torch.randn(3, 8), "label": torch.randn(4, 8)}
    model = to_hetero(Homogeneous(), (list(x), list(edges)))
    out = model(x, edges)
    assert {name: tuple(states.shape) for name, states in out.items()} == {"word": (3, 8), "label": (4, 8)}
    assert all(states.isfinite().all() for states in out.values())
