"""Segment softmax and aggregation over a list of edges sorted by query: by PyTorch's own operators, or, where no
derivatives are needed, by torch-scatter's kernels, whose second derivatives are wrong.
"""

from __future__ import annotations

from functools import partial

import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.utils import scatter, segment

from tg_mlc.ops.attention.backend import SPARSE, AttentionCall, Backend, Output, accumulator
from tg_mlc.ops.attention.opaque import differentiates_forward, is_transformed
from tg_mlc.ops.dropout import dropout
from tg_mlc.ops.softmax import softmax_by_target, softmax_of_groups


def run(call: AttentionCall) -> Output:
    """Sorts the edges by query once, so that every reduction runs over contiguous rows."""
    pattern = call.pattern
    ptr, source, perm = pattern.csr()
    target = ptr2index(ptr, output_size=source.numel())
    dtype = accumulator(call.query)
    query, key = call.query.to(dtype), call.key.to(dtype)
    score = (query.index_select(0, target) * key.index_select(0, source)).sum(dim=-1) * call.scale  # [num_edges, heads]
    if call.edge_bias is not None:
        bias = pattern.expand_bias(call.edge_bias)
        score = score + (bias if perm is None else bias[perm])

    if torch_geometric.typing.WITH_TORCH_SCATTER and not _differentiates(call):
        weights = softmax_of_groups(score, target, partial(segment, ptr=ptr))  # [num_edges, heads]
    else:
        weights = softmax_by_target(score, target, pattern.num_queries)
    messages = dropout(weights, call.dropout_p).unsqueeze(-1) * call.value.index_select(0, source)
    out = scatter(messages, target, dim=0, dim_size=pattern.num_queries, reduce="sum").to(call.value.dtype)
    return out, _canonical(weights, perm, call) if call.return_weights else None


def _differentiates(call: AttentionCall) -> bool:
    """Tells whether somebody may ask for derivatives, or a compiler, which does not know the kernels, looks on."""
    backwards = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in call.tensors)
    return torch.compiler.is_compiling() or backwards or differentiates_forward(call) or is_transformed(call)


def _canonical(weights: Tensor, perm: Tensor | None, call: AttentionCall) -> Tensor:
    if perm is not None:
        weights = torch.zeros_like(weights).index_copy(0, perm, weights)
    return weights.to(call.value.dtype).view(*call.pattern.weights_size, weights.size(-1))


def prefer(call: AttentionCall) -> str:
    """Whatever no other backend wants."""
    return SPARSE


BACKEND = Backend("scatter", run, refuse=lambda call: None, prefer=prefer)
