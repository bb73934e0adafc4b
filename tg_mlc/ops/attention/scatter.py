"""Segment softmax and aggregation over a list of edges sorted by query.

PyG's :func:`~torch_geometric.utils.segment` and :func:`~torch_geometric.utils.softmax` take torch-scatter's CSR kernels
when that package is installed and native torch otherwise; both give the same numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.utils import segment, softmax

from tg_mlc.ops.attention.backend import AttentionCall, Backend, Output
from tg_mlc.ops.dropout import dropout


def run(call: AttentionCall) -> Output:
    """Sorts the edges by query once, so that every reduction runs over contiguous rows."""
    pattern = call.pattern
    ptr, source, perm = pattern.csr()
    target = ptr2index(ptr, output_size=source.numel())
    score = (call.query.index_select(0, target) * call.key.index_select(0, source)).sum(dim=-1)  # [num_edges, heads]
    score = score.to(_accumulator(call.query)) * call.scale
    if call.edge_bias is not None:
        bias = pattern.expand_bias(call.edge_bias)
        score = score + (bias if perm is None else bias[perm])

    weights = softmax(score, ptr=ptr)  # [num_edges, heads]
    kept = dropout(weights, call.dropout_p)
    out = segment(kept.unsqueeze(-1) * call.value.index_select(0, source), ptr, reduce="sum").to(call.value.dtype)
    return out, _canonical(weights, perm, call) if call.return_weights else None


def _accumulator(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _canonical(weights: Tensor, perm: Tensor | None, call: AttentionCall) -> Tensor:
    if perm is not None:
        weights = torch.zeros_like(weights).index_copy(0, perm, weights)
    return weights.to(call.value.dtype).view(*call.pattern.weights_size, weights.size(-1))


def prefer(call: AttentionCall) -> str:
    """The scatter kernels take whatever no other backend wants."""
    return "is sparse, so only its edges are computed"


BACKEND = Backend("scatter", run, refuse=lambda call: None, prefer=prefer)
