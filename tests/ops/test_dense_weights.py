from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from tests.ops.random_patterns import patterns, ptr
from tg_mlc.ops import Blocks, Edges, Pattern, Shared, graph_attention, to_dense_weights


@settings(max_examples=60)
@given(patterns())
def test_dense_weights_hold_each_weight_once(pattern: Pattern) -> None:
    torch.manual_seed(0)
    query, key = torch.randn(pattern.num_queries, 2, 3), torch.randn(pattern.num_keys, 2, 3)
    _, weights = graph_attention(query, key, key, pattern, return_weights=True)
    dense = to_dense_weights(pattern, weights)
    _, listed = pattern.to_edge_list(weights)
    torch.testing.assert_close(dense.sum(dim=(0, 2, 3)), listed.sum(dim=0))
    assert int((dense != 0).sum()) == listed.numel()


def test_blocks_are_padded_with_zeros() -> None:
    pattern = Blocks(ptr([1, 2]), ptr([3, 1]))
    weights = torch.arange(1.0, 6.0).view(5, 1)
    expected = torch.tensor([[[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]], [[[4.0, 0.0, 0.0], [5.0, 0.0, 0.0]]]])
    assert torch.equal(to_dense_weights(pattern, weights), expected)


def test_rows_are_queries_and_columns_are_keys() -> None:
    edges = Edges(torch.tensor([[2, 0], [0, 1]]), 3, 3)
    expected = torch.tensor([[0.0, 0.0, 5.0], [7.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert torch.equal(to_dense_weights(edges, torch.tensor([[5.0], [7.0]])), expected.view(1, 1, 3, 3))
    shared = to_dense_weights(Shared(edges, 2), torch.tensor([[[5.0], [7.0]], [[10.0], [14.0]]]))
    assert torch.equal(shared, torch.stack([expected, 2 * expected]).unsqueeze(1))


def test_pairs_that_occur_twice_are_summed() -> None:
    edges = Edges(torch.tensor([[0, 0], [0, 0]]), 1, 1)
    assert to_dense_weights(edges, torch.tensor([[0.5], [0.5]])).item() == 1.0


def test_weights_of_another_pattern_are_refused() -> None:
    edges = Edges(torch.tensor([[0, 1], [0, 1]]), 2, 2)
    with pytest.raises(ValueError, match=r"'weights' of shape \[2, heads\] .* \(got \[3, 1\]\)"):
        to_dense_weights(edges, torch.ones(3, 1))
