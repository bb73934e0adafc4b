from __future__ import annotations

import pytest
import torch
from torch_geometric import EdgeIndex

from tg_mlc.ops import Edges


def test_a_list_of_edges() -> None:
    edge_index = torch.tensor([[2, 0, 1], [1, 0, 0]])
    pattern = Edges(edge_index, num_queries=3, num_keys=3)
    assert str(pattern) == "Edges(num_queries=3, num_keys=3, num_edges=3)"
    assert pattern.num_edges == 3
    assert pattern.density == pytest.approx(1 / 3)
    assert torch.equal(pattern.to_edge_index(), edge_index)
    rowptr, key, perm = pattern.csr()
    assert rowptr.tolist() == [0, 2, 3, 3]
    assert key.tolist() == [0, 1, 2]
    assert torch.equal(edge_index[0][perm], key)
    assert pattern.mask().sum() == 3
    assert not pattern.is_multigraph
    assert not pattern.is_complete


def test_edges_takes_edge_index() -> None:
    edge_index = EdgeIndex([[0, 1], [1, 0]], sparse_size=(2, 2))
    pattern = Edges(edge_index, 2, 2)
    assert type(pattern.edge_index) is torch.Tensor
    assert torch.equal(pattern.edge_index, edge_index.as_tensor())


def test_multigraph() -> None:
    pattern = Edges(torch.tensor([[0, 0, 1, 0], [0, 0, 1, 1]]), 2, 2)
    assert pattern.is_multigraph
    assert not pattern.is_complete


def test_errors() -> None:
    with pytest.raises(TypeError, match=r"'edge_index' to be a tensor \(got list\)"):
        Edges([[0], [0]], 1, 1)
    with pytest.raises(TypeError, match=r"'edge_index' to hold torch.long \(got torch.int32\)"):
        Edges(torch.zeros(2, 1, dtype=torch.int32), 1, 1)
    with pytest.raises(ValueError, match=r"of shape \[2, num_edges\] \(got \[3, 1\]\)"):
        Edges(torch.zeros(3, 1, dtype=torch.long), 1, 1)
    with pytest.raises(ValueError, match=r"source indices .* to lie in \[0, 2\) \(got values from 0 to 2\)"):
        Edges(torch.tensor([[0, 2], [0, 0]]), 1, 2)
    with pytest.raises(ValueError, match=r"target indices .* to lie in \[0, 1\) \(got values from -1 to 0\)"):
        Edges(torch.tensor([[0, 1], [0, -1]]), 1, 2)


def test_masks_are_made_once() -> None:
    some = Edges(torch.tensor([[0, 1], [1, 2]]), 3, 2).prepare()
    assert some.isolated().tolist() == [True, False, False]
    assert some.finite_mask().tolist() == [[True, True], [True, False], [False, True]]
    assert some.finite_mask() is some.finite_mask()
    all_hear = Edges(torch.tensor([[0, 1], [0, 1]]), 2, 2).prepare()
    assert all_hear.finite_mask() is all_hear.mask()


def test_edges_by_key() -> None:
    edges = Edges(torch.tensor([[1, 0, 1, 2], [2, 1, 0, 1]]), 3, 4)
    ptr, query, order = edges.csc()
    assert ptr.tolist() == [0, 1, 3, 4, 4]
    assert query.tolist() == [1, 0, 2, 1]
    assert edges.csr().key[order].tolist() == [0, 1, 1, 2]


def test_edges_from_compressed_rows() -> None:
    edges = Edges.from_csr(torch.tensor([0, 2, 2, 3]), torch.tensor([1, 3, 0]), num_queries=4, num_keys=4)
    assert edges.edge_index.tolist() == [[1, 3, 0], [0, 0, 2]]
    assert edges.csr().perm is None
    assert edges.csr().ptr.tolist() == [0, 2, 2, 3, 3]
