"""The backend ``dense``: PyTorch's scaled_dot_product_attention over padded or masked blocks."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import ptr2index

from tg_mlc.ops.attention.backend import (
    AttentionCall,
    Backend,
    CallShape,
    Output,
    accumulator,
    differentiates_forward,
    no_second_derivatives,
)
from tg_mlc.ops.attention.crossovers import dense_from
from tg_mlc.ops.dropout import dropout
from tg_mlc.ops.patterns import Blocks, Edges, Shared
from tg_mlc.ops.runtime import (
    in_transform,
    is_exporting,
    numba_problem,
    once_differentiable,
    statically_known_true,
)


def run(call: AttentionCall) -> Output:
    """Converts queries, keys and values to ``[B, heads, rows, C]`` and multiplies them."""
    if isinstance(call.pattern, Blocks):
        return _run_blocks(call, call.pattern)
    return _run_graph(call, *call.pattern.shared())


def _run_blocks(call: AttentionCall, pattern: Blocks) -> Output:
    def indices() -> tuple[Tensor, Tensor, Tensor]:
        """Returns the sample of each edge, and query and key within the sample."""
        key, query = pattern.to_edge_index()
        sample = pattern.sample_of_query()[query]
        return sample, query - pattern.query_ptr[sample], key - pattern.key_ptr[sample]

    # A sample without keys attends to one padding key with value zero, and thus gives zeros, not
    # NaN. Compilers specialise sizes of 1, so both sizes are at least 2 there.
    larger: Any = torch.sym_max if is_exporting() else max
    max_queries = larger(pattern.max_queries, 2 if torch.compiler.is_compiling() else 0)
    max_keys = larger(pattern.max_keys, 2 if torch.compiler.is_compiling() else 1)
    query = pad(call.query, pattern.query_ptr, max_queries)
    key = pad(call.key, pattern.key_ptr, max_keys)
    value = pad(call.value, pattern.key_ptr, max_keys)
    num_keys = pattern.key_ptr.diff().clamp(min=1)
    mask = torch.arange(key.size(2), device=key.device) < num_keys.unsqueeze(-1)  # [B, S]
    mask = mask.view(mask.size(0), 1, 1, mask.size(1))
    if call.edge_bias is not None:
        bias = query.new_zeros(*query.shape[:3], key.size(2))
        sample, row, col = indices()
        bias[sample, :, row, col] = call.edge_bias.to(bias.dtype)
        mask = bias.masked_fill(~mask, -math.inf)

    out, weights = _attend(query, key, value, mask, call)
    if weights is not None:
        sample, row, col = indices()
        weights = weights[sample, :, row, col]
    out = out.transpose(1, 2)
    if statically_known_true(out.size(0) * out.size(1) == pattern.num_queries):
        return out.reshape(pattern.num_queries, *out.shape[2:]), weights
    sample = pattern.sample_of_query()
    row = torch.arange(pattern.num_queries, device=out.device) - pattern.query_ptr[sample]
    return out[sample, row], weights


def _run_graph(call: AttentionCall, graph: Edges, num_samples: int) -> Output:
    rows = (graph.num_queries, graph.num_keys, graph.num_keys)
    tensors = zip((call.query, call.key, call.value), rows, strict=True)
    query, key, value = (x.view(num_samples, n, *x.shape[1:]).transpose(1, 2) for x, n in tensors)
    mask = None
    if call.edge_bias is not None:
        mask = query.new_zeros(query.size(1), graph.num_queries, graph.num_keys)
        mask[:, graph.edge_index[1], graph.edge_index[0]] = call.edge_bias.to(mask.dtype).t()
        mask = mask.masked_fill(~graph.finite_mask(), -math.inf)
    elif not graph.is_complete:
        mask = graph.finite_mask()

    out, weights = _attend(query, key, value, mask, call)
    if not graph.is_complete:
        out = out.masked_fill(graph.isolated().unsqueeze(-1), 0.0)
    if weights is not None:
        # [B, num_edges, heads]
        weights = weights[:, :, graph.edge_index[1], graph.edge_index[0]].transpose(1, 2)
        weights = weights.reshape(*call.pattern.weights_size, weights.size(-1))
    return out.transpose(1, 2).reshape(*call.query.shape[:2], call.value.size(2)), weights


def _attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, call: AttentionCall
) -> Output:
    # On a CPU, PyTorch has no fused kernel with dropout, and draws random numbers slowly.
    device, compiling = query.device.type, torch.compiler.is_compiling()
    drops_on_cpu = call.dropout_p > 0.0 and device == "cpu" and not compiling
    # The fused kernels have no forward mode, and no rules for all transforms of torch.func.
    transforms = differentiates_forward(call) or (not compiling and in_transform())
    if not (call.return_weights or drops_on_cpu or transforms):
        tensors = (query, key, value)
        if not compiling:
            differentiated = tensors if mask is None else (*tensors, mask)
            once_differentiable(differentiated, no_second_derivatives("dense"))
        attend = F.scaled_dot_product_attention
        return attend(*tensors, mask, call.dropout_p, scale=call.scale), None
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else query.dtype
    if dtype == torch.float16:  # Half precision cannot express large scores.
        with torch.autocast(device, enabled=False):
            dtype_of_sums = accumulator(query.dtype)
            score = query.to(dtype_of_sums) * call.scale @ key.to(dtype_of_sums).transpose(-2, -1)
    else:
        score = query * call.scale @ key.transpose(-2, -1)  # [B, heads, queries, keys]
    if mask is not None:
        score = score.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else score + mask
    # Only a bias can leave a query without any key to attend to.
    if call.edge_bias is not None:
        isolated = score.isneginf().all(dim=-1, keepdim=True)  # Rows of NaN are not isolated.
        weights = score.masked_fill(isolated, 0.0).softmax(dim=-1).masked_fill(isolated, 0.0)
    else:
        weights = score.softmax(dim=-1)
    weights = weights.to(value.dtype)
    return dropout(weights, call.dropout_p) @ value, weights if call.return_weights else None


def pad(x: Tensor, ptr: Tensor, size: int) -> Tensor:
    """Converts ``[N, heads, C]`` to ``[B, heads, size, C]``, padded with zeros."""
    num_samples = ptr.numel() - 1
    # No guard: a compiled model then uses one path for ragged and regular batches.
    if not statically_known_true(num_samples * size == x.size(0)):
        sample = ptr2index(ptr, output_size=x.size(0))
        row = torch.arange(x.size(0), device=x.device) + sample * size - ptr[sample]
        x = x.new_zeros(num_samples * size, *x.shape[1:]).index_copy(0, row, x)
    return x.view(num_samples, size, *x.shape[1:]).transpose(1, 2)


def refuse(shape: CallShape) -> str | None:
    """Refuses graphs with repeated pairs, which a mask cannot express."""
    if not isinstance(shape.pattern, Blocks) and shape.pattern.shared()[0].is_multigraph:
        return "dense: 'edge_index' holds a pair more than once, which a mask cannot express"
    return None


def prefer(shape: CallShape) -> str | None:
    """Prefers blocks, and complete, small or dense shared graphs."""
    pattern = shape.pattern
    if isinstance(pattern, Blocks):
        return "is complete within each sample, so it is one padded matrix product"
    if isinstance(pattern, Shared) and pattern.density >= dense_from(shape, pattern.num_nodes):
        reason = "is so small or so dense that a masked matrix product costs less than its edges"
        helpful = shape.device == "cpu" and not (shape.return_weights or pattern.graph.is_complete)
        lacks_numba = helpful and numba_problem() is not None
        return f"{reason} do without the extra 'numba'" if lacks_numba else reason
    return None


BACKEND = Backend("dense", run, refuse, prefer)
