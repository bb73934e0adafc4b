import re

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from tests.ops.random_patterns import ptr, random_edges
from tg_mlc.graphs import LabelGraph
from tg_mlc.ops import Blocks, Edges, Shared


@pytest.mark.parametrize(
    "pattern",
    [
        random_edges(5, 4, 9, seed=0),
        Blocks(ptr([2, 0, 3]), ptr([4, 2, 1])),
        Shared(random_edges(4, 4, 7, seed=1), 3),
    ],
    ids=["edges", "blocks", "shared"],
)
def test_csr_groups_the_canonical_edges_by_query_and_patterns_move(pattern):
    source, target = pattern.to_edge_index()
    rowptr, key, perm = pattern.csr()
    perm = torch.arange(source.numel()) if perm is None else perm
    assert torch.equal(source[perm], key)
    assert torch.equal(rowptr.diff(), torch.bincount(target, minlength=pattern.num_queries))
    queries = torch.arange(pattern.num_queries).repeat_interleave(rowptr.diff())
    assert torch.equal(target[perm], queries)
    moved = pattern.to("meta")
    assert (type(moved), moved.device) == (type(pattern), torch.device("meta"))
    assert (moved.num_queries, moved.num_keys) == (pattern.num_queries, pattern.num_keys)
    assert torch.equal(pattern.to("cpu").to_edge_index(), pattern.to_edge_index())


def test_properties_of_a_list_of_edges():
    edge_index = torch.tensor([[2, 0, 1], [1, 0, 0]])
    pattern = Edges(edge_index, num_queries=3, num_keys=3)
    assert str(pattern) == "Edges(num_queries=3, num_keys=3, num_edges=3)"
    assert pattern.density == pytest.approx(1 / 3)
    assert torch.equal(pattern.to_edge_index(), edge_index)
    rowptr, key, perm = pattern.csr()
    assert (rowptr.tolist(), key.tolist()) == ([0, 2, 3, 3], [0, 1, 2])
    assert torch.equal(edge_index[0][perm], key)
    assert pattern.mask().sum() == 3
    assert not pattern.is_multigraph
    assert not pattern.is_complete
    repeated = Edges(torch.tensor([[0, 0, 1, 0], [0, 0, 1, 1]]), 2, 2)
    assert repeated.is_multigraph
    assert not repeated.is_complete


def test_edges_are_grouped_by_key_and_made_from_compressed_rows_or_an_edge_index():
    edges = Edges(torch.tensor([[1, 0, 1, 2], [2, 1, 0, 1]]), 3, 4)
    by_key = edges.csc()
    assert [tensor.tolist() for tensor in by_key[:2]] == [[0, 1, 3, 4, 4], [1, 0, 2, 1]]
    assert edges.csr().key[by_key.order].tolist() == [0, 1, 1, 2]

    edges = Edges.from_csr(torch.tensor([0, 2, 2, 3]), torch.tensor([1, 3, 0]), 4, 4)
    assert edges.edge_index.tolist() == [[1, 3, 0], [0, 0, 2]]
    assert edges.csr().perm is None
    assert edges.csr().ptr.tolist() == [0, 2, 2, 3, 3]

    edge_index = EdgeIndex([[0, 1], [1, 0]], sparse_size=(2, 2))
    edges = Edges(edge_index, 2, 2)
    assert type(edges.edge_index) is torch.Tensor
    assert torch.equal(edges.edge_index, edge_index.as_tensor())


def test_masks_are_computed_once():
    graph = Edges(torch.tensor([[0, 1], [1, 2]]), 3, 2).prepare()
    assert graph.isolated().tolist() == [True, False, False]
    assert graph.finite_mask().tolist() == [[True, True], [True, False], [False, True]]
    assert graph.finite_mask() is graph.finite_mask()
    no_isolated = Edges(torch.tensor([[0, 1], [0, 1]]), 2, 2).prepare()
    assert no_isolated.finite_mask() is no_isolated.mask()
    moved = no_isolated.to("meta")
    assert moved.csr().key.device == moved.mask().device == torch.device("meta")


def test_properties_of_blocks_of_several_sizes():
    pattern = Blocks(ptr([2, 1, 1]), ptr([1, 0, 2]))
    assert str(pattern) == "Blocks(num_samples=3, num_queries=4, num_keys=3)"
    assert (pattern.num_samples, pattern.num_edges) == (3, 4)
    assert (pattern.max_queries, pattern.max_keys) == (2, 2)
    assert pattern.to_edge_index().tolist() == [[0, 0, 1, 2], [0, 1, 3, 3]]


def test_properties_of_a_graph_that_samples_share():
    pattern = Shared(torch.tensor([[1, 0, 0], [0, 1, 0]]), num_samples=2, num_nodes=2)
    assert str(pattern) == "Shared(Edges(num_queries=2, num_keys=2, num_edges=3), num_samples=2)"
    assert (pattern.num_edges, pattern.density) == (6, 0.75)
    assert pattern.to_edge_index().tolist() == [[1, 0, 0, 3, 2, 2], [0, 1, 0, 2, 3, 2]]
    weights = torch.randn(2, 3, 4)
    edge_index, flat = pattern.to_edge_list(weights)
    assert edge_index.shape == (2, 6)
    assert torch.equal(flat, weights.view(6, 4))
    shared = Shared(LabelGraph(torch.tensor([[0, 1], [1, 2]]), num_nodes=4), 2)
    assert (shared.num_nodes, shared.num_queries, shared.num_edges) == (4, 8, 4)


def test_shared_takes_a_graph_that_holds_an_adjacency():
    torch_sparse = pytest.importorskip("torch_sparse", reason="torch-sparse is not installed")
    index = torch.tensor([[1, 2], [0, 1]])
    adj_t = torch_sparse.SparseTensor(row=index[0], col=index[1], sparse_sizes=(4, 4))
    sparse = torch.sparse_coo_tensor(index, torch.ones(2), (4, 4), check_invariants=True)
    for adjacency in (adj_t, sparse):
        shared = Shared(Data(adj_t=adjacency, num_nodes=4), 2)
        assert shared.graph.edge_index.tolist() == [[0, 1], [1, 2]]
        assert shared.num_queries == 8


VALID = ptr([1, 2])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Edges([[0], [0]], 1, 1), TypeError, "'edge_index' to be a tensor (got list)"),
        (lambda: Edges(torch.zeros(2, 1).int(), 1, 1), TypeError, "'edge_index' to hold"),
        (lambda: Edges(torch.zeros(3, 1).long(), 1, 1), ValueError, "shape [2, num_edges]"),
        (lambda: Edges(torch.tensor([[0, 2], [0, 0]]), 1, 2), ValueError, "values from 0 to 2"),
        (lambda: Edges(torch.tensor([[0, 1], [0, -1]]), 1, 2), ValueError, "values from -1 to 0"),
        (lambda: Blocks(VALID, VALID.float()), TypeError, "'key_ptr' to hold torch.long"),
        (lambda: Blocks(torch.tensor([0, 3, 2]), VALID), ValueError, "'query_ptr' to start at 0"),
        (lambda: Blocks(VALID, torch.tensor([1, 3, 3])), ValueError, "'key_ptr' to start at 0 and"),
        (lambda: Blocks(VALID, torch.tensor([[0, 1]])), ValueError, "'key_ptr' of shape"),
        (lambda: Blocks(VALID, ptr([3])), ValueError, "same number of samples (got 2 and 1)"),
        (lambda: Blocks(VALID, VALID, num_keys=5), ValueError, "'key_ptr' to end at the number of"),
        (lambda: Blocks(VALID, VALID, max_keys=1), ValueError, "'key_ptr' to be larger than 1"),
        (lambda: Shared(torch.zeros(2, 0).long(), 1), ValueError, "'num_nodes' beside an"),
        (lambda: Shared(random_edges(2, 3, 1, seed=0), 1), ValueError, "a graph among 'num_nodes'"),
        (lambda: Shared(random_edges(2, 2, 1, seed=0), -1), ValueError, "'num_samples' to be at"),
        (lambda: Shared(Data(num_nodes=4), 2), ValueError, "'edge_index' or 'adj_t'"),
    ],
)
def test_invalid_arguments_are_refused(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()
