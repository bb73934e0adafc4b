"""Backends that gather both ends of every edge: ``reference`` (the oracle) and ``scatter``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
import torch_geometric.typing
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.utils import scatter, segment

from tg_mlc.ops.attention.backend import SPARSE, AttentionCall, Backend, Output, accumulator
from tg_mlc.ops.dropout import dropout


def reference(call: AttentionCall) -> Output:
    """Computes softmax and sums over each query's edges, in at least single precision."""
    pattern = call.pattern
    source, target = pattern.to_edge_index()
    score = _scores(call, source, target)
    if call.edge_bias is not None:
        score = score + pattern.expand_bias(call.edge_bias)
    summarise = partial(scatter, index=target, dim=0, dim_size=pattern.num_queries)
    weights = softmax_of_groups(score, target, summarise)
    return _output(call, F.dropout(weights, call.dropout_p), source, target, weights)


def by_segment(call: AttentionCall) -> Output:
    """Sorts the edges by query, so that every reduction runs over contiguous rows."""
    pattern = call.pattern
    ptr, source, perm = pattern.csr()
    target = ptr2index(ptr, output_size=source.numel())
    score = _scores(call, source, target)
    if call.edge_bias is not None:
        bias = pattern.expand_bias(call.edge_bias)
        score = score + (bias if perm is None else bias[perm])

    shape = call.shape
    backward = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in call.tensors)
    forward = shape.forward_mode or shape.transformed
    summarise = partial(scatter, index=target, dim=0, dim_size=pattern.num_queries)
    # torch-scatter's kernels have wrong second derivatives, and a compiler does not know them.
    differentiates = torch.compiler.is_compiling() or backward or forward
    if torch_geometric.typing.WITH_TORCH_SCATTER and not differentiates:
        summarise = partial(segment, ptr=ptr)
    weights = softmax_of_groups(score, target, summarise)
    dropped = dropout(weights, call.dropout_p)
    if call.return_weights and perm is not None:
        weights = torch.zeros_like(weights).index_copy(0, perm, weights)
    return _output(call, dropped, source, target, weights)


def softmax_of_groups(score: Tensor, group: Tensor, summarise: Callable[..., Tensor]) -> Tensor:
    r"""Returns the softmax over each group of rows; zeros if all are :math:`-\infty`."""
    highest = summarise(score.detach(), reduce="max")
    highest = highest.masked_fill(highest == -math.inf, 0.0)
    exp = (score - highest.index_select(0, group)).exp()
    total = summarise(exp, reduce="sum")
    return exp / total.masked_fill(total == 0.0, 1.0).index_select(0, group)


def _scores(call: AttentionCall, source: Tensor, target: Tensor) -> Tensor:
    """Returns scaled dot products ``[num_edges, heads]`` of query and key of each edge."""
    dtype = accumulator(call.query.dtype)
    query, key = call.query.to(dtype), call.key.to(dtype)
    # The gradient of 'query[target]' takes several times as long.
    return (query.index_select(0, target) * key.index_select(0, source)).sum(dim=-1) * call.scale


def _output(
    call: AttentionCall, dropped: Tensor, source: Tensor, target: Tensor, weights: Tensor
) -> Output:
    """Returns sums of messages, and, if requested, weights before dropout."""
    pattern, dtype = call.pattern, call.value.dtype
    messages = dropped.unsqueeze(-1) * call.value.index_select(0, source)  # [num_edges, heads, C_v]
    out = scatter(messages, target, dim=0, dim_size=pattern.num_queries, reduce="sum").to(dtype)
    if not call.return_weights:
        return out, None
    return out, weights.to(dtype).view(*pattern.weights_size, weights.size(-1))


REFERENCE = Backend("reference", reference, refuse=lambda shape: None, prefer=lambda shape: None)
SCATTER = Backend("scatter", by_segment, refuse=lambda shape: None, prefer=lambda shape: SPARSE)
