"""Attention over compressed edges on a GPU, compiled by Triton.

A program owns a few rows of one group (a head of a sample), and processes a few edges of each row
at a time. Only log-sum-exps are kept for the backward pass. Gradients of queries are summed by
query, and gradients of keys by key. Each result thus has one writer and a fixed order of summation:
there are no atomic operations, and a call always gives the same bits.

Programs are ordered group by group, so that the keys and values of only a few groups compete for
the cache at a time. A row is never divided. One with far more edges than others gets a program of
many warps, so that the others need not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr, tensor

from tg_mlc.ops.kernels.graph import Graph, Options
from tg_mlc.ops.patterns import most_edges

#: Bytes of keys, and as many of values, that a warp takes at once. More of them leave registers for
#: fewer warps: of 983 labels with 10 neighbours each, 4 heads of 128 channels and 32 samples, a
#: query's gradients in single precision take 182 us on an H200, and 285 us with twice as many.
TILE = 2**11
#: Largest number of edges of a row that are processed at once, times the bytes of a number.
MAX_EDGES = 16
#: Maximum number of rows of a program, which takes as long as its row with most edges.
MAX_ROWS = 4
#: Warps of a program that walks along a row with far more edges than others.
LONG_WARPS = 16
#: Channels per warp. More channels are divided among warps; sums in one warp need no shared memory.
CHANNELS_OF_WARP = 2**8
MAX_WARPS = 8


def forward(
    query: Tensor, key: Tensor, value: Tensor, graph: Graph, options: Options
) -> tuple[Tensor, Tensor]:
    """Returns the output ``[num_queries, heads, C_v]`` and every row's log-sum-exp."""
    out = query.new_empty(query.size(0), query.size(1), value.size(2))
    lse = query.new_empty(query.size(0) * query.size(1), dtype=torch.float32)
    launch = _Launch(query, key, value, graph, options)
    tensors = {"ptr": graph.ptr, "index": graph.index, "out": out, "lse": lse}
    launch(attend, graph.num_queries, graph.long_queries, **tensors)
    return out, lse


def backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    lse: Tensor,
    graph: Graph,
    options: Options,
) -> tuple[Tensor, ...]:
    """Returns gradients of query, key, value and bias (``[num_edges, heads]`` or empty)."""
    launch = _Launch(query, key, value, graph, options)
    grads = [query.new_empty(tensor.shape) for tensor in (query, key, value)]
    grad = dense_rows(grad)
    common = {"grad": grad, "grad_stride": grad.stride(0), "lse": lse}
    common["delta"] = torch.empty_like(lse)
    tensors: dict[str, Any] = {"ptr": graph.ptr, "index": graph.index, "grad_query": grads[0]}
    launch(query_gradient, graph.num_queries, graph.long_queries, **tensors, **common)

    shape = (launch.num_samples, query.size(1), graph.num_edges)
    scores = None if options.bias is None else lse.new_empty(shape)
    tensors = {"ptr": graph.col_ptr, "index": graph.col_index, "order": graph.col_order}
    tensors |= {"grad_key": grads[1], "grad_value": grads[2], "grad_scores": scores}
    tensors["num_edges"] = graph.num_edges
    launch(key_gradient, graph.num_keys, graph.long_keys, **tensors, **common)
    if scores is None:
        return *grads, query.new_empty(0, query.size(1))
    return *grads, scores.sum(dim=0).t().to(query.dtype).contiguous()


def dense_rows(x: Tensor) -> Tensor:
    """Copies a tensor only if rows are not contiguous. Any stride between rows is allowed."""
    _, heads, channels = x.shape
    dense_head = channels == 1 or x.stride(2) == 1
    dense_heads = heads == 1 or x.stride(1) == channels
    return x if dense_head and dense_heads else x.contiguous()


def tile(num_rows: int, num_edges: int, block: int, itemsize: int) -> tuple[int, int, int]:
    """Returns the rows of a program, the edges of a row per step, and the number of warps."""
    warps = max(1, min(block // CHANNELS_OF_WARP, MAX_WARPS))
    average = triton.next_power_of_2(max(1, triton.cdiv(num_edges, max(1, num_rows))))
    num_values = TILE * warps // itemsize
    edges = max(1, min(average, MAX_EDGES // itemsize, num_values // block))
    # Sums take 4 bytes in any dtype.
    rows = max(1, min(TILE * warps // 4 // (block * edges), MAX_ROWS))
    return rows, edges, warps


def long_tile(block: int) -> tuple[int, int, int]:
    """Returns the :func:`tile` of a row with far more edges than others."""
    return 1, max(1, LONG_WARPS * TILE // 4 // block), LONG_WARPS


class _Launch:
    """Common arguments of all kernels of a call."""

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, graph: Graph, options: Options
    ) -> None:
        (num_queries, self.heads, channels), (num_keys, _, value_channels) = (
            query.shape,
            value.shape,
        )
        self.num_samples = (num_queries + num_keys) // max(1, graph.num_queries + graph.num_keys)
        self.num_edges = graph.num_edges
        self.query = query
        self.blocks = [triton.next_power_of_2(max(1, size)) for size in (channels, value_channels)]
        p = options.dropout_p
        bias = None if options.bias is None else options.bias.contiguous()
        self.arguments: dict[str, Any] = {"bias": bias, "heads": self.heads}
        for name, x in {"query": query, "key": key, "value": value}.items():
            rows = dense_rows(x)
            self.arguments |= {name: rows, f"{name}_stride": rows.stride(0)}
        self.arguments |= {"num_queries": graph.num_queries, "num_keys": graph.num_keys}
        self.arguments |= {"C": channels, "BLOCK_C": self.blocks[0]}
        self.arguments |= {"C_V": value_channels, "BLOCK_V": self.blocks[1]}
        self.arguments |= {"scale": options.scale, "seed": options.seed, "dropout_p": p}
        self.arguments |= {"DROPOUT": p > 0.0, "kept": 1.0 / (1.0 - p) if p < 1.0 else 0.0}
        # Newer versions of Triton fuse multiplications and additions only on request.
        self.arguments["enable_fp_fusion"] = True

    def __call__(
        self, function: Any, num_rows: int, long_rows: Tensor | None, **others: Any
    ) -> None:
        num_long = 0 if long_rows is None else long_rows.numel()
        block, itemsize = max(self.blocks), self.query.element_size()
        longest = most_edges(num_rows, self.num_edges) if num_long > 0 else 2**31 - 1
        walks: list[Any]
        walks = [(num_rows, None, longest, tile(num_rows, self.num_edges, block, itemsize))]
        if num_long > 0:
            walks.insert(0, (num_long, long_rows, 2**31 - 1, long_tile(block)))
        for num_walked, walked, longest, (rows, edges, warps) in walks:
            # One axis, as other axes of a grid are short. The rows of a group are neighbours on it.
            programs = triton.cdiv(num_walked, rows) * self.num_samples * self.heads
            if programs > 0:
                walk = {"rows": walked, "num_rows": num_walked, "longest": longest}
                sizes = {"ROWS": rows, "EDGES": edges, "num_warps": warps}
                with torch.cuda.device_of(self.query):  # type: ignore[no-untyped-call]
                    function[(programs,)](**self.arguments, **others, **walk, **sizes)


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function at its first call, for all seeds and sizes of graphs."""
    varying = ["seed", "num_queries", "num_keys", "num_edges", "num_rows", "longest"]
    return triton.jit(function, do_not_specialize=varying)


@kernel
def rows_of_program(
    ptr: tensor, rows: tensor, num_rows: tensor, longest: tensor, heads: tensor, ROWS: constexpr
) -> Any:
    """Returns the sample, the head, the group of both, the rows of a program, a mask of rows that
    it owns, and where the edges of rows begin and end. A program owns no row beyond the last one,
    and no row with more than ``longest`` edges.
    """
    portions = tl.cdiv(num_rows, ROWS)
    group, portion = tl.program_id(0) // portions, tl.program_id(0) % portions
    row = portion * ROWS + tl.arange(0, ROWS)
    owned = row < num_rows
    if rows is not None:
        row = tl.load(rows + row, mask=owned, other=0)
    row = row.to(tl.int64)  # Offsets may exceed 2**31.
    first = tl.load(ptr + row, mask=owned, other=0)
    last = tl.load(ptr + row + 1, mask=owned, other=0)
    owned &= last - first <= longest
    last = tl.where(owned, last, first)
    return (group // heads).to(tl.int64), group % heads, group.to(tl.int64), row, owned, first, last


@kernel
def load_rows(
    x: tensor,
    stride: tensor,
    row: tensor,
    head: tensor,
    mask: tensor,
    C: constexpr,
    BLOCK: constexpr,
) -> Any:
    """Loads the channels of one head of some rows, as an additional axis, in single precision."""
    channel = tl.arange(0, BLOCK)
    offset = tl.expand_dims(row * stride + head * C, -1) + channel
    loaded = tl.load(x + offset, mask=tl.expand_dims(mask, -1) & (channel < C), other=0.0)
    return loaded.to(tl.float32)


@kernel
def store_rows(
    x: tensor,
    heads: tensor,
    row: tensor,
    head: tensor,
    mask: tensor,
    tile: tensor,
    C: constexpr,
    BLOCK: constexpr,
) -> None:
    """Writes rows to a contiguous tensor; the inverse of :func:`load_rows`."""
    channel = tl.arange(0, BLOCK)
    offset = (row * heads * C + head * C)[:, None] + channel
    tl.store(x + offset, tile.to(x.dtype.element_ty), mask=mask[:, None] & (channel < C))


@kernel
def dots(x: tensor, y: tensor) -> Any:
    """Returns dot products ``[ROWS, EDGES]`` of rows with the other ends of their edges."""
    return tl.sum(x[:, None, :] * y, axis=2)


@kernel
def weighted_sum(weight: tensor, y: tensor) -> Any:
    """Returns weighted sums over the edges of every row, ``[ROWS, BLOCK]``."""
    return tl.sum(weight[:, :, None] * y, axis=1)


@kernel
def add_bias(
    score: tensor, bias: tensor, edge: tensor, head: tensor, heads: tensor, valid: tensor
) -> Any:
    """Adds the bias, if any. Scores of padding edges become minus infinity."""
    if bias is not None:
        score += tl.load(bias + edge * heads + head, mask=valid, other=0.0).to(tl.float32)
    return tl.where(valid, score, -float("inf"))


@kernel
def weights_again(score: tensor, lse: tensor) -> Any:
    """Recomputes weights of the forward pass. Rounding cannot make weights exceed one."""
    return tl.exp(tl.minimum(score - lse, 0.0, propagate_nan=tl.PropagateNan.ALL))


@kernel
def dropout_factor(
    seed: tensor, group: tensor, edge: tensor, dropout_p: tensor, kept: tensor
) -> Any:
    """Returns 0 for a dropped weight, else 1 / (1 - p), by Philox numbers of edge and group."""
    counter = edge.to(tl.uint32)
    zero = counter * 0
    random, _, _, _ = tl.philox(seed, counter, zero + group.to(tl.uint32), zero, zero)
    return tl.where(tl.uint_to_uniform_float(random) < dropout_p, 0.0, kept)


@kernel
def attend(
    query: tensor, query_stride: tensor, key: tensor, key_stride: tensor, value: tensor,
    value_stride: tensor, bias: tensor, rows: tensor, num_rows: tensor, longest: tensor,
    ptr: tensor, index: tensor, num_queries: tensor, num_keys: tensor, heads: tensor,
    scale: tensor, dropout_p: tensor, kept: tensor, seed: tensor, out: tensor, lse: tensor,
    DROPOUT: constexpr, C: constexpr, C_V: constexpr, BLOCK_C: constexpr, BLOCK_V: constexpr,
    ROWS: constexpr, EDGES: constexpr,
) -> None:  # fmt: skip
    """Computes outputs of some queries, with an online softmax."""
    sample, head, group, row, owned, first, last = rows_of_program(
        ptr, rows, num_rows, longest, heads, ROWS
    )
    q = load_rows(query, query_stride, sample * num_queries + row, head, owned, C, BLOCK_C)
    highest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, BLOCK_V], tl.float32)
    for step in range(0, tl.max(last - first).to(tl.int32), EDGES):
        edge = (first + step)[:, None] + tl.arange(0, EDGES)[None, :]
        valid = edge < last[:, None]
        source = sample * num_keys + tl.load(index + edge, mask=valid, other=0)
        k = load_rows(key, key_stride, source, head, valid, C, BLOCK_C)
        v = load_rows(value, value_stride, source, head, valid, C_V, BLOCK_V)
        score = add_bias(dots(q, k) * scale, bias, edge, head, heads, valid)
        higher = tl.maximum(highest, tl.max(score, axis=1))
        shift = tl.where(higher == -float("inf"), 0.0, higher)
        weight = tl.exp(score - shift[:, None])
        rescale = tl.exp(highest - shift)
        total = total * rescale + tl.sum(weight, axis=1)
        if DROPOUT:
            weight *= dropout_factor(seed, group, edge, dropout_p, kept)
        sums = sums * rescale[:, None] + weighted_sum(weight, v)
        highest = higher

    empty = total == 0.0
    total = tl.where(empty, 1.0, total)
    means, logs = sums / total[:, None], tl.where(empty, 0.0, highest + tl.log(total))
    store_rows(out, heads, sample * num_queries + row, head, owned, means, C_V, BLOCK_V)
    tl.store(lse + group * num_queries + row, logs, mask=owned)


@kernel
def query_gradient(
    query: tensor, query_stride: tensor, key: tensor, key_stride: tensor, value: tensor,
    value_stride: tensor, bias: tensor, rows: tensor, num_rows: tensor, longest: tensor,
    ptr: tensor, index: tensor, num_queries: tensor, num_keys: tensor, heads: tensor,
    scale: tensor, dropout_p: tensor, kept: tensor, seed: tensor, grad: tensor,
    grad_stride: tensor, lse: tensor, delta: tensor, grad_query: tensor, DROPOUT: constexpr,
    C: constexpr, C_V: constexpr, BLOCK_C: constexpr, BLOCK_V: constexpr, ROWS: constexpr,
    EDGES: constexpr,
) -> None:  # fmt: skip
    r"""Computes gradients of some queries, :math:`\sum_j \alpha_j (g_j - \Delta) k_j` with
    :math:`\Delta = \sum_j \alpha_j g_j`, in one pass over edges: :math:`\Delta` is only known at
    its end, so both terms are summed separately. :math:`\Delta` is stored for gradients of keys.
    """
    sample, head, group, row, owned, first, last = rows_of_program(
        ptr, rows, num_rows, longest, heads, ROWS
    )
    q = load_rows(query, query_stride, sample * num_queries + row, head, owned, C, BLOCK_C)
    g = load_rows(grad, grad_stride, sample * num_queries + row, head, owned, C_V, BLOCK_V)
    shift = tl.load(lse + group * num_queries + row, mask=owned, other=0.0)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, BLOCK_C], tl.float32)
    mean_key = tl.zeros([ROWS, BLOCK_C], tl.float32)
    for step in range(0, tl.max(last - first).to(tl.int32), EDGES):
        edge = (first + step)[:, None] + tl.arange(0, EDGES)[None, :]
        valid = edge < last[:, None]
        source = sample * num_keys + tl.load(index + edge, mask=valid, other=0)
        k = load_rows(key, key_stride, source, head, valid, C, BLOCK_C)
        v = load_rows(value, value_stride, source, head, valid, C_V, BLOCK_V)
        score = add_bias(dots(q, k) * scale, bias, edge, head, heads, valid)
        weight = weights_again(score, shift[:, None])
        grad_weight = weight * dots(g, v)
        if DROPOUT:
            grad_weight *= dropout_factor(seed, group, edge, dropout_p, kept)
        total += tl.sum(grad_weight, axis=1)
        sums += weighted_sum(grad_weight, k)
        mean_key += weighted_sum(weight, k)

    sums = (sums - total[:, None] * mean_key) * scale
    store_rows(grad_query, heads, sample * num_queries + row, head, owned, sums, C, BLOCK_C)
    tl.store(delta + group * num_queries + row, total, mask=owned)


@kernel
def key_gradient(
    query: tensor, query_stride: tensor, key: tensor, key_stride: tensor, value: tensor,
    value_stride: tensor, bias: tensor, rows: tensor, num_rows: tensor, longest: tensor,
    ptr: tensor, index: tensor, order: tensor, num_queries: tensor, num_keys: tensor,
    num_edges: tensor, heads: tensor, scale: tensor, dropout_p: tensor, kept: tensor,
    seed: tensor, grad: tensor, grad_stride: tensor, lse: tensor, delta: tensor,
    grad_key: tensor, grad_value: tensor, grad_scores: tensor, DROPOUT: constexpr, C: constexpr,
    C_V: constexpr, BLOCK_C: constexpr, BLOCK_V: constexpr, ROWS: constexpr, EDGES: constexpr,
) -> None:  # fmt: skip
    """Computes gradients of some keys, their values and, with a bias, their edges' scores."""
    sample, head, group, row, owned, first, last = rows_of_program(
        ptr, rows, num_rows, longest, heads, ROWS
    )
    k = load_rows(key, key_stride, sample * num_keys + row, head, owned, C, BLOCK_C)
    v = load_rows(value, value_stride, sample * num_keys + row, head, owned, C_V, BLOCK_V)
    key_sums = tl.zeros([ROWS, BLOCK_C], tl.float32)
    value_sums = tl.zeros([ROWS, BLOCK_V], tl.float32)
    for step in range(0, tl.max(last - first).to(tl.int32), EDGES):
        entry = (first + step)[:, None] + tl.arange(0, EDGES)[None, :]
        valid = entry < last[:, None]
        target = tl.load(index + entry, mask=valid, other=0)
        q = load_rows(query, query_stride, sample * num_queries + target, head, valid, C, BLOCK_C)
        g = load_rows(grad, grad_stride, sample * num_queries + target, head, valid, C_V, BLOCK_V)
        shift = tl.load(lse + group * num_queries + target, mask=valid, other=0.0)
        mean_grad = tl.load(delta + group * num_queries + target, mask=valid, other=0.0)
        edge = entry
        if DROPOUT or bias is not None:
            edge = tl.load(order + entry, mask=valid, other=0)
        score = add_bias(dots(k, q) * scale, bias, edge, head, heads, valid)
        weight = weights_again(score, shift)
        grad_weight = dots(v, g)
        dropped = weight
        if DROPOUT:
            factor = dropout_factor(seed, group, edge, dropout_p, kept)
            grad_weight *= factor
            dropped = weight * factor
        grad_score = weight * (grad_weight - mean_grad)
        if grad_scores is not None:
            tl.store(grad_scores + group * num_edges + edge, grad_score, mask=valid)
        key_sums += weighted_sum(grad_score, q)
        value_sums += weighted_sum(dropped, g)

    store_rows(grad_key, heads, sample * num_keys + row, head, owned, key_sums * scale, C, BLOCK_C)
    store_rows(grad_value, heads, sample * num_keys + row, head, owned, value_sums, C_V, BLOCK_V)
