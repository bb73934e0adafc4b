"""Whatever PyG takes for edges."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.typing import SparseTensor

from tests.nn.samples import path_graph, ragged
from tg_mlc.graphs import LabelGraph
from tg_mlc.nn import AttentionConv, LabelMessagePassing
from tg_mlc.ops import Shared

needs_torch_sparse = pytest.mark.skipif(
    not torch_geometric.typing.WITH_TORCH_SPARSE, reason="torch-sparse is not installed"
)

# 3 sources, 4 targets; no edge enters the last target.
EDGE_INDEX = torch.tensor([[0, 1, 2, 2, 0], [1, 0, 1, 2, 2]])
X = (torch.randn(3, 5), torch.randn(4, 8))


def edge_index_class(edges: Tensor, sort_order: str | None) -> Any:
    out = EdgeIndex(edges, sparse_size=(3, 4))
    return out if sort_order is None else out.sort_by(sort_order)[0]


def csr(edges: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(edges.flip(0), torch.ones(edges.size(1)), (4, 3)).to_sparse_csr()


def assert_same_weights(edges: Tensor, weights: Tensor, expected: Tensor) -> None:
    """Compares weights edge by edge with those along EDGE_INDEX."""
    place = {edge: i for i, edge in enumerate(map(tuple, EDGE_INDEX.t().tolist()))}
    torch.testing.assert_close(weights, expected[[place[edge] for edge in map(tuple, edges.t().tolist())]])


@pytest.mark.parametrize("sort_order", [None, "row", "col"])
def test_edge_index_class(sort_order: str | None) -> None:
    conv = AttentionConv((5, 8), heads=2)
    edges = edge_index_class(EDGE_INDEX, sort_order)
    out, (given, weights) = conv(X, edges, return_attention_weights=True)
    expected, (_, other) = conv(X, EDGE_INDEX, return_attention_weights=True)
    torch.testing.assert_close(out, expected)
    assert given is edges
    assert_same_weights(edges.as_tensor(), weights, other)


@pytest.mark.parametrize("sort_order", [None, "row", "col"])
def test_edge_index_class_with_the_other_flow(sort_order: str | None) -> None:
    conv = AttentionConv(8, heads=2, flow="target_to_source")
    x = torch.randn(4, 8)
    edges = EdgeIndex(EDGE_INDEX, sparse_size=(4, 4))
    edges = edges if sort_order is None else edges.sort_by(sort_order)[0]
    torch.testing.assert_close(conv(x, edges), conv(x, EDGE_INDEX))


@pytest.mark.filterwarnings("ignore:Sparse")
def test_torch_sparse_csr() -> None:
    conv = AttentionConv((5, 8), heads=2)
    adjacency = csr(EDGE_INDEX)
    out, (given, weights) = conv(X, adjacency, return_attention_weights=True)
    expected, (_, other) = conv(X, EDGE_INDEX, return_attention_weights=True)
    torch.testing.assert_close(out, expected)
    assert given is adjacency
    row, col = adjacency.to_sparse_coo().indices()
    assert_same_weights(torch.stack([col, row]), weights, other)


@needs_torch_sparse
def test_sparse_tensor() -> None:
    conv = AttentionConv((5, 8), heads=2)
    adjacency = SparseTensor.from_edge_index(EDGE_INDEX, sparse_sizes=(3, 4)).t()
    expected, (_, other) = conv(X, EDGE_INDEX, return_attention_weights=True)
    torch.testing.assert_close(conv(X, adjacency), expected)
    out, weighted = conv(X, adjacency, return_attention_weights=True)
    torch.testing.assert_close(out, expected)
    row, col, weights = weighted.coo()
    assert_same_weights(torch.stack([col, row]), weights, other)


@needs_torch_sparse
@pytest.mark.parametrize("size", [(5,), (5, 2), (5, 4)])
def test_values_of_a_sparse_tensor_are_no_edge_features(size: tuple[int, ...]) -> None:
    conv = AttentionConv((5, 8), heads=2)
    adjacency = SparseTensor.from_edge_index(EDGE_INDEX, torch.randn(size), sparse_sizes=(3, 4)).t()
    torch.testing.assert_close(conv(X, adjacency), conv(X, EDGE_INDEX))


@needs_torch_sparse
def test_values_of_a_sparse_tensor_are_edge_features_if_asked_for() -> None:
    conv = AttentionConv((5, 8), heads=2, edge_dim=3)
    edge_attr = torch.randn(5, 3)
    adjacency = SparseTensor.from_edge_index(EDGE_INDEX, edge_attr, sparse_sizes=(3, 4)).t()
    torch.testing.assert_close(conv(X, adjacency), conv(X, EDGE_INDEX, edge_attr))
    with pytest.raises(ValueError, match=r"'edge_attr' exactly if 'edge_dim' was given \(got None, edge_dim=3\)"):
        conv(X, adjacency.set_value(None))


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["EdgeIndex", "torch.sparse", pytest.param("SparseTensor", marks=needs_torch_sparse)])
def test_label_message_passing_takes_them_too(form: str) -> None:
    labels = LabelMessagePassing(5, path_graph(4), heads=1)
    x, batch = ragged([2, 1], 5)
    edges: Any = edge_index_class(EDGE_INDEX, None)
    if form == "torch.sparse":
        edges = csr(EDGE_INDEX)
    if form == "SparseTensor":
        edges = SparseTensor.from_edge_index(EDGE_INDEX, sparse_sizes=(3, 4)).t()
    states = labels(x, batch, edge_index=edges, return_attention_weights=True)
    torch.testing.assert_close(states.states, labels(x, batch, edge_index=EDGE_INDEX))
    assert type(states.attention[0].feature_to_label[0]) is Tensor


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["torch.sparse", pytest.param("SparseTensor", marks=needs_torch_sparse)])
def test_label_graphs_of_every_form(form: str) -> None:
    edge_index = torch.tensor([[0, 1, 3, 2], [1, 2, 2, 3]])
    weight = torch.tensor([0.1, 0.2, 0.3, 0.4])
    if form == "SparseTensor":
        adjacency: Any = SparseTensor.from_edge_index(edge_index, weight, sparse_sizes=(4, 4)).t()
    else:
        adjacency = torch.sparse_coo_tensor(edge_index.flip(0), weight, (4, 4)).to_sparse_csr()
    graph = LabelGraph(edge_index, num_nodes=4, edge_weight=weight)
    same = LabelGraph(adjacency, num_nodes=4)
    assert torch.equal(same.edge_index, graph.edge_index)
    assert torch.equal(same.edge_weight, graph.edge_weight)
    shared = [Shared(edges, 2, num_nodes=4).graph.mask() for edges in (adjacency, edge_index)]
    assert torch.equal(*shared)

    labels = LabelMessagePassing(5, graph, heads=1)
    x, batch = ragged([2, 1], 5)
    expected = labels(x, batch)
    labels.label_graph = Data(adj_t=adjacency, num_nodes=4)
    torch.testing.assert_close(labels(x, batch), expected)
