"""The oracle: the definition of the operator, one edge at a time, in whatever precision it is given."""

from __future__ import annotations

import torch.nn.functional as F
from torch_geometric.utils import scatter

from tg_mlc.ops.attention.backend import AttentionCall, Backend, Output
from tg_mlc.ops.softmax import softmax_by_target


def run(call: AttentionCall) -> Output:
    """Gathers both ends of every edge, normalises the scores over each query's edges, and sums."""
    pattern = call.pattern
    source, target = pattern.to_edge_index()
    # Not by 'query[target]', whose gradient takes several times as long.
    score = (call.query.index_select(0, target) * call.key.index_select(0, source)).sum(dim=-1) * call.scale
    if call.edge_bias is not None:
        score = score + pattern.expand_bias(call.edge_bias)

    weights = softmax_by_target(score, target, pattern.num_queries)
    kept = F.dropout(weights, call.dropout_p)
    messages = kept.unsqueeze(-1) * call.value.index_select(0, source)  # [num_edges, heads, C_v]
    out = scatter(messages, target, dim=0, dim_size=pattern.num_queries, reduce="sum")
    return out, weights.view(*pattern.weights_size, weights.size(-1)) if call.return_weights else None


BACKEND = Backend("reference", run, refuse=lambda call: None, prefer=lambda call: None)
