import math
import re

import pytest
import torch
from hypothesis import given, settings

from tests.ops.random_patterns import patterns, ptr, random_edges, tensors
from tg_mlc.ops import (
    Blocks,
    Edges,
    Shared,
    available_backends,
    explain_choice,
    graph_attention,
    to_dense_weights,
)

SMALL = Shared(random_edges(10, 10, 5, seed=0), 1)


def test_all_backends_are_available():
    assert set(available_backends()) >= {"reference", "scatter", "dense", "csr", "blocks", "triton"}


@pytest.mark.parametrize(
    ("pattern", "choice"),
    [
        (Blocks(ptr([2, 2]), ptr([3, 2])), "dense: Blocks"),
        (SMALL, "dense: Shared"),
        (Shared(random_edges(300, 300, 900, seed=0), 1), "csr: Shared"),
        (SMALL.graph, "csr: Edges"),
    ],
    ids=["blocks", "small", "large", "edges"],
)
def test_explain_choice_names_the_backend(pattern, choice):
    assert explain_choice(*tensors(pattern), pattern).startswith(choice)


def test_choices_that_numba_would_change_mention_numba(monkeypatch):
    sparse, complete = (Shared(random_edges(300, 300, size, seed=0), 2) for size in (3000, 300**2))
    small, states = Shared(random_edges(30, 30, 99, seed=0), 2), torch.empty(600, 4, 16)
    for module in ("dense", "crossovers", "compressed", "blocks"):
        name = f"tg_mlc.ops.attention.{module}.numba_problem"
        monkeypatch.setattr(name, lambda: "is missing", raising=False)
    cases = (
        (sparse, False, True),
        (small, False, True),
        (small, True, False),
        (complete, False, False),
    )
    for pattern, return_weights, mentions_numba in cases:
        query = states[: pattern.num_queries]
        choice = explain_choice(query, query, query, pattern, return_weights=return_weights)
        ending = mentions_numba * " do without the extra 'numba'"
        assert choice.endswith("costs less than its edges" + ending)


def test_the_default_scale_depends_on_the_channels():
    pattern = Blocks(ptr([2]), ptr([3]))
    states = tensors(pattern)
    default = graph_attention(*states, pattern)
    assert torch.equal(default, graph_attention(*states, pattern, scale=0.5))
    assert not torch.allclose(default, graph_attention(*states, pattern, scale=2.0))


@pytest.mark.parametrize("size", [(10,), (10, 2)])
def test_a_boolean_bias_is_a_mask(size):
    pattern, mask = Blocks(ptr([2, 2]), ptr([3, 2])), torch.rand(size) > 0.5
    states, bias = tensors(pattern), torch.zeros(size).masked_fill(~mask, -math.inf)
    assert torch.equal(*(graph_attention(*states, pattern, edge_bias=one) for one in (mask, bias)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"key": torch.zeros(3, 2, 4).double()}, TypeError, "share a floating point type"),
        ({"query": torch.zeros(3, 2, 4)}, ValueError, "'query' of shape [2, heads, channels]"),
        ({"value": torch.zeros(2, 2, 4)}, ValueError, "'value' of shape [3, heads, channels]"),
        ({"key": torch.zeros(3, 1, 4)}, ValueError, "to agree in heads"),
        ({"dropout_p": 1.5}, ValueError, "'dropout_p' to be a number in [0, 1] (got 1.5)"),
        ({"edge_bias": torch.zeros(5)}, ValueError, "'edge_bias' of shape [6] or [6, 2]"),
        ({"edge_bias": torch.ones(6).byte()}, TypeError, "'edge_bias' to be Boolean or"),
        ({"scale": torch.tensor(0.5, requires_grad=True)}, TypeError, "'scale' to be a number"),
        ({"backend": "fastest"}, ValueError, "'backend' to be 'auto' or one of"),
    ],
)
def test_invalid_arguments_are_refused(options, error, message):
    pattern = Blocks(ptr([2]), ptr([3]))
    states = dict(zip(("query", "key", "value"), tensors(pattern), strict=True))
    with pytest.raises(error, match=re.escape(message)):
        graph_attention(**{**states, "pattern": pattern, **options})


@settings(max_examples=60)
@given(patterns())
def test_dense_weights_hold_each_weight_once(pattern):
    torch.manual_seed(0)
    query, key = torch.randn(pattern.num_queries, 2, 3), torch.randn(pattern.num_keys, 2, 3)
    _, weights = graph_attention(query, key, key, pattern, return_weights=True)
    dense = to_dense_weights(pattern, weights)
    _, edge_weights = pattern.to_edge_list(weights)
    torch.testing.assert_close(dense.sum(dim=(0, 2, 3)), edge_weights.sum(dim=0))
    assert int((dense != 0).sum()) == edge_weights.numel()


EDGES = Edges(torch.tensor([[2, 0], [0, 1]]), 3, 3)
MATRIX, DOUBLED = ([[0, 0, 5 * n], [7 * n, 0, 0], [0, 0, 0]] for n in (1, 2))
PADDED = [[[1, 2, 3], [0, 0, 0]], [[4, 0, 0], [5, 0, 0]]]


@pytest.mark.parametrize(
    ("pattern", "weights", "expected"),
    [
        (Blocks(ptr([1, 2]), ptr([3, 1])), [[1], [2], [3], [4], [5]], PADDED),
        (EDGES, [[5], [7]], [MATRIX]),
        (Shared(EDGES, 2), [[[5], [7]], [[10], [14]]], [MATRIX, DOUBLED]),
        (Edges(torch.tensor([[0, 0], [0, 0]]), 1, 1), [[0.5], [0.5]], [[[1]]]),
    ],
    ids=["padded blocks", "edges", "shared", "a pair that occurs twice"],
)
def test_rows_of_dense_weights_are_queries_and_columns_are_keys(pattern, weights, expected):
    dense = to_dense_weights(pattern, torch.tensor(weights, dtype=torch.float32))
    assert torch.equal(dense, torch.tensor(expected, dtype=torch.float32).unsqueeze(1))


def test_weights_of_another_pattern_are_refused():
    with pytest.raises(ValueError, match=r"'weights' of shape \[2, heads\] .* \(got \[3, 1\]\)"):
        to_dense_weights(EDGES, torch.ones(3, 1))
