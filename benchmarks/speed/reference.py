"""Reference in double precision, and how far a candidate's output and gradients are from it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from benchmarks.speed.implementations import Attend, explicit, passes
from benchmarks.speed.measure import relative_rms
from benchmarks.speed.regimes import Inputs
from tg_mlc.ops import Pattern, graph_attention

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
NAMES = ("out", "dq", "dk", "dv")
#: Numbers in one tensor of the reference that has a row for every edge; it takes the queries portion by portion.
PORTION = 2**25


def reference(inputs: Inputs, pattern: Pattern, portion: int = PORTION) -> tuple[Tensor, ...]:
    """The output and the gradients of queries, keys and values in double precision."""
    query, key, value = (leaf.detach().double() for leaf in inputs.leaves)
    ptr, index, _ = pattern.csr()
    out, grads = torch.zeros_like(query), [torch.zeros_like(x) for x in (query, key, value)]
    for first, last in _portions(ptr, max(1, portion // query[0].numel())):
        rows = slice(first, last)
        leaves = [x.requires_grad_() for x in (query[rows].clone(), key, value)]
        edges = explicit(ptr, index, first, last, pattern.num_keys)
        part = graph_attention(*leaves, edges, backend="reference")
        assert isinstance(part, Tensor)
        grad_query, grad_key, grad_value = torch.autograd.grad(part, leaves, inputs.grad[rows].double())
        out[rows], grads[0][rows] = part.detach(), grad_query
        grads[1] += grad_key
        grads[2] += grad_value
    return out, *grads


def _portions(ptr: Tensor, num_edges: int) -> list[tuple[int, int]]:
    """Ranges of queries with at most as many edges, or of one query."""
    bounds, first = [], 0
    while first < ptr.numel() - 1:
        last = int(torch.searchsorted(ptr, ptr[first] + num_edges, right=True)) - 1
        bounds.append((first, max(last, first + 1)))
        first = bounds[-1][1]
    return bounds


def errors(attend: Attend, inputs: Inputs, expected: tuple[Tensor, ...]) -> dict[str, float]:
    """The relative root mean square errors of the output and of the three gradients."""
    results = passes(attend, inputs)["forward_backward"]()
    return {name: relative_rms(*pair) for name, *pair in zip(NAMES, results, expected, strict=True)}


def agrees(error: dict[str, float], dtype: torch.dtype) -> bool:
    """Whether all errors are within the tolerance of a type."""
    return all(math.isfinite(value) and value <= TOLERANCE[dtype] for value in error.values())
