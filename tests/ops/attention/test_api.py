from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings

from tests.ops.random_patterns import patterns, ptr, random_edges
from tg_mlc.ops import (
    Blocks,
    Edges,
    Pattern,
    Shared,
    available_backends,
    explain_choice,
    graph_attention,
    to_dense_weights,
)


def tensors(num_queries: int, num_keys: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(num_queries, 2, 4), torch.randn(num_keys, 2, 4), torch.randn(num_keys, 2, 4)


def test_available_backends() -> None:
    assert set(available_backends()) >= {"reference", "scatter", "dense", "csr", "blocks", "triton"}


def test_a_choice_that_numba_would_change_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sparse, complete = (Shared(random_edges(300, 300, size, seed=0), 2) for size in (3000, 300**2))
    states = torch.empty(600, 4, 16)
    for module in ("dense", "crossovers", "compressed", "blocks"):
        monkeypatch.setattr(f"tg_mlc.ops.attention.{module}.numba_problem", lambda: "is missing", raising=False)
    assert explain_choice(states, states, states, sparse).endswith(
        "costs less than its edges do without the extra 'numba'"
    )
    few = [states[:60]] * 3, Shared(random_edges(30, 30, 99, seed=0), 2)
    assert explain_choice(*few[0], few[1]).endswith("'numba'")
    assert explain_choice(*few[0], few[1], return_weights=True).endswith("costs less than its edges")
    assert explain_choice(states, states, states, complete).endswith("costs less than its edges")


def test_explain_choice() -> None:
    assert explain_choice(*tensors(4, 5), Blocks(ptr([2, 2]), ptr([3, 2]))).startswith("dense: Blocks")
    small = Shared(random_edges(10, 10, 5, seed=0), 1)
    assert explain_choice(*tensors(10, 10), small).startswith("dense: Shared")
    large = Shared(random_edges(300, 300, 900, seed=0), 1)
    assert explain_choice(*tensors(300, 300), large).startswith("csr: Shared")
    assert explain_choice(*tensors(10, 10), small.graph).startswith("csr: Edges")


def test_scale() -> None:
    pattern = Blocks(ptr([2]), ptr([3]))
    query, key, value = tensors(2, 3)
    by_default = graph_attention(query, key, value, pattern)
    assert torch.equal(by_default, graph_attention(query, key, value, pattern, scale=0.5))
    assert not torch.allclose(by_default, graph_attention(query, key, value, pattern, scale=2.0))


@pytest.mark.parametrize("per_head", [False, True])
def test_a_boolean_bias_is_a_mask(per_head: bool) -> None:
    pattern = Blocks(ptr([2, 2]), ptr([3, 2]))
    query, key, value = tensors(4, 5)
    mask = torch.rand(10, 2) > 0.5 if per_head else torch.rand(10) > 0.5
    bias = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    found, expected = (graph_attention(query, key, value, pattern, edge_bias=one) for one in (mask, bias))
    assert torch.equal(found, expected)


def test_errors() -> None:
    pattern = Blocks(ptr([2]), ptr([3]))
    query, key, value = tensors(2, 3)
    with pytest.raises(TypeError, match=r"share a floating point type"):
        graph_attention(query, key.double(), value, pattern)
    with pytest.raises(ValueError, match=r"'query' of shape \[2, heads, channels\] .*\(got \[3, 2, 4\]\)"):
        graph_attention(key, key, value, pattern)
    with pytest.raises(ValueError, match=r"'value' of shape \[3, heads, channels\]"):
        graph_attention(query, key, value[:2], pattern)
    with pytest.raises(ValueError, match=r"to agree in heads"):
        graph_attention(query, key[:, :1], value, pattern)
    with pytest.raises(ValueError, match=r"'dropout_p' to be a number in \[0, 1\] \(got 1.5\)"):
        graph_attention(query, key, value, pattern, dropout_p=1.5)
    with pytest.raises(ValueError, match=r"'edge_bias' of shape \[6\] or \[6, 2\] .*\(got \[5\]\)"):
        graph_attention(query, key, value, pattern, edge_bias=torch.zeros(5))
    with pytest.raises(TypeError, match=r"'edge_bias' to be Boolean or .* \(got torch.uint8\); cast a mask"):
        graph_attention(query, key, value, pattern, edge_bias=torch.ones(6, dtype=torch.uint8))
    with pytest.raises(TypeError, match=r"'scale' to be a number .*pass 'query \* scale'"):
        graph_attention(query, key, value, pattern, scale=torch.tensor(0.5, requires_grad=True))
    with pytest.raises(ValueError, match=r"'backend' to be 'auto' or one of"):
        graph_attention(query, key, value, pattern, backend="fastest")


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
