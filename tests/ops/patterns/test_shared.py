from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from tests.ops.random_patterns import random_edges
from tg_mlc.graphs import LabelGraph
from tg_mlc.ops import Shared


def test_a_graph_that_samples_share() -> None:
    graph = torch.tensor([[1, 0, 0], [0, 1, 0]])
    pattern = Shared(graph, num_samples=2, num_nodes=2)
    assert str(pattern) == "Shared(Edges(num_queries=2, num_keys=2, num_edges=3), num_samples=2)"
    assert pattern.num_edges == 6
    assert pattern.density == 0.75
    assert pattern.to_edge_index().tolist() == [[1, 0, 0, 3, 2, 2], [0, 1, 0, 2, 3, 2]]
    weights = torch.randn(2, 3, 4)
    edge_index, flat = pattern.to_edge_list(weights)
    assert edge_index.shape == (2, 6)
    assert torch.equal(flat, weights.view(6, 4))


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"'num_nodes' beside an 'edge_index'"):
        Shared(torch.zeros(2, 0, dtype=torch.long), 1)
    with pytest.raises(ValueError, match=r"a graph among 'num_nodes' nodes"):
        Shared(random_edges(2, 3, 1, seed=0), 1)
    with pytest.raises(ValueError, match=r"'num_samples' to be at least 0"):
        Shared(random_edges(2, 2, 1, seed=0), -1)


def test_shared_takes_a_label_graph() -> None:
    graph = LabelGraph(torch.tensor([[0, 1], [1, 2]]), num_nodes=4)
    shared = Shared(graph, 2)
    assert (shared.num_nodes, shared.num_queries, shared.num_edges) == (4, 8, 4)


def test_shared_takes_a_graph_that_holds_an_adjacency() -> None:
    torch_sparse = pytest.importorskip("torch_sparse", reason="torch-sparse is not installed")
    adj_t = torch_sparse.SparseTensor(row=torch.tensor([1, 2]), col=torch.tensor([0, 1]), sparse_sizes=(4, 4))
    sparse = torch.sparse_coo_tensor(torch.tensor([[1, 2], [0, 1]]), torch.ones(2), (4, 4), check_invariants=True)
    for adjacency in (adj_t, sparse):
        shared = Shared(Data(adj_t=adjacency, num_nodes=4), 2)
        assert shared.graph.edge_index.tolist() == [[0, 1], [1, 2]]
        assert shared.num_queries == 8


def test_shared_wants_a_graph_with_edges() -> None:
    with pytest.raises(ValueError, match=r"to hold 'edge_index' or 'adj_t' \(got Data\(num_nodes=4\)\)"):
        Shared(Data(num_nodes=4), 2)
