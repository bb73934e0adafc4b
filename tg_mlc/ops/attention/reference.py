"""Oracle: the definition of the operator, one edge at a time, in single precision or in double."""

from __future__ import annotations

import torch.nn.functional as F
from torch_geometric.utils import scatter

from tg_mlc.ops.attention.backend import AttentionCall, Backend, Output, accumulator
from tg_mlc.ops.softmax import softmax_by_target


def run(call: AttentionCall) -> Output:
    """Gathers both ends of every edge, normalises the scores over each query's edges, and sums."""
    pattern = call.pattern
    source, target = pattern.to_edge_index()
    dtype = accumulator(call.query)
    query, key = call.query.to(dtype), call.key.to(dtype)
    # Not by 'query[target]', whose gradient takes several times as long.
    score = (query.index_select(0, target) * key.index_select(0, source)).sum(dim=-1) * call.scale
    if call.edge_bias is not None:
        score = score + pattern.expand_bias(call.edge_bias)

    weights = softmax_by_target(score, target, pattern.num_queries)
    kept = F.dropout(weights, call.dropout_p)
    messages = kept.unsqueeze(-1) * call.value.index_select(0, source)  # [num_edges, heads, C_v]
    out = scatter(messages, target, dim=0, dim_size=pattern.num_queries, reduce="sum").to(call.value.dtype)
    if not call.return_weights:
        return out, None
    return out, weights.to(call.value.dtype).view(*pattern.weights_size, weights.size(-1))


BACKEND = Backend("reference", run, refuse=lambda call: None, prefer=lambda call: None)
