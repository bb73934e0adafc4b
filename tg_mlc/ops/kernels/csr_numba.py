"""Attention over compressed edges on a CPU, compiled by Numba.

A group is one head of one sample. A kernel processes any span of a group's edges, so threads can
share a group evenly, however edges are distributed over rows. Rows of the other side are copied to
contiguous memory in tiles that fit into a second-level cache.

Offsets are unsigned: Numba does not vectorise signed offsets, because they may count from the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uintp

from tg_mlc.ops.kernels.compile import (
    WIDEST,
    Array,
    add_scaled,
    dot,
    kernel,
    load,
    named,
    prefetch,
    store,
    stream,
    zeros,
)
from tg_mlc.ops.kernels.dropout_numba import dropout_factor
from tg_mlc.ops.kernels.softmax_numba import add_bias, exp, normalise

#: Smallest mean number of edges per row and tile for which tiles pay off.
EDGES_PER_TILE = 4
#: Number of rows that are prefetched ahead.
AHEAD = 4


class Rows(NamedTuple):
    """A tensor ``[samples * rows, heads, channels]`` as a flat array with a stride of rows."""

    data: Array
    stride: int
    rows: int
    heads: int
    channels: int
    streams: bool  #: whether writes bypass the caches


class Side(NamedTuple):
    """The edges ``order[ptr[i]:ptr[i + 1]]`` of every row; an empty ``order`` is the identity."""

    ptr: Array
    other: Array
    order: Array
    #: whether other ends ascend in each row, so edges of a tile are contiguous
    ascends: bool


class Span(NamedTuple):
    """A range of a group's edges."""

    low: int
    high: int
    group: int
    heads: int


class Source(NamedTuple):
    """Rows of the other side. Row ``i`` starts at ``origin + i * step``."""

    data: Array
    origin: int
    step: int
    channels: int


class Target(NamedTuple):
    """Row that a sum is written to (if ``new``) or added to."""

    data: Array
    offset: int
    new: bool
    streamed: bool


class Softmax(NamedTuple):
    """Options of the softmax."""

    scale: float
    bias: Array
    dropout_p: float
    seed: int


class Kept(NamedTuple):
    """Arrays kept for the backward pass. One of them is empty."""

    weight: Array  #: the weights before dropout ``[groups, num_edges]``
    lse: Array  #: logarithm of every row's sum ``[groups, rows]``


class Forward(NamedTuple):
    """Arrays that the forward passes read and write."""

    edges: Side
    query: Rows
    key: Rows
    value: Rows
    softmax: Softmax
    kept: Kept
    out: Rows


class Backward(NamedTuple):
    """Arrays that the backward passes read and write."""

    edges: Side
    by_key: Side
    grad: Rows
    query: Rows
    key: Rows
    value: Rows
    softmax: Softmax
    kept: Kept
    grad_query: Rows
    grad_key: Rows
    grad_value: Rows


class Space(NamedTuple):
    """Scratch arrays of a thread."""

    tile: Array
    cursor: Array
    partial: Array
    weight: Array
    grad: Array
    bias: Array


@kernel
def forward_groups(first: int, last: int, call: Forward, space: Space) -> None:
    """Runs all passes over whole groups, one group after the other."""
    for group in range(first, last):
        for step in range(3):
            forward_pass(step, 0, call.edges.other.shape[0], group, call, space)


@kernel
def forward_pass(step: int, low: int, high: int, group: int, call: Forward, space: Space) -> Any:
    """Runs one pass over a span of edges. Returns the offset of a shared first row, or -1."""
    edges, softmax, keeps = call.edges, call.softmax, call.kept.weight.shape[1] > 0
    weight = call.kept.weight[group] if keeps else space.weight
    dropped = space.weight if softmax.dropout_p > 0 else weight
    span = Span(low, high, group, call.query.heads)
    if step == 0:
        score_span(span, edges, call.query, call.key, softmax.scale, space, weight)
    elif step == 1:
        softmax_span(span, edges.ptr, softmax, weight, dropped, call.kept.lse)
    else:
        return sum_span(span, edges, dropped, 1.0, call.value, space, call.out)
    return -1


@kernel
def backward_groups(first: int, last: int, call: Backward, space: Space) -> None:
    """Runs all passes over whole groups, one group after the other."""
    for group in range(first, last):
        for step in range(7):
            backward_pass(step, 0, call.edges.other.shape[0], group, call, space)


@kernel
def backward_pass(step: int, low: int, high: int, group: int, call: Backward, space: Space) -> Any:
    """Runs one pass over a span of edges. Returns the offset of a shared first row, or -1."""
    edges, by_key, softmax, grad = call.edges, call.by_key, call.softmax, space.grad
    keeps, scale = call.kept.weight.shape[1] > 0, softmax.scale
    weight = call.kept.weight[group] if keeps else space.weight
    dropped = space.weight if softmax.dropout_p > 0 else weight
    span = Span(low, high, group, call.query.heads)
    if step == 0:
        if not keeps:
            score_span(span, edges, call.query, call.key, scale, space, weight)
    elif step == 1:
        score_span(span, edges, call.grad, call.value, 1.0, space, grad)
    elif step == 2:
        if not keeps:
            weigh_span(span, edges.ptr, softmax, weight, call.kept.lse)
        softmax_backward_span(span, edges.ptr, softmax, weight, dropped, grad)
    elif step == 3:
        return sum_span(span, edges, grad, scale, call.key, space, call.grad_query)
    elif step == 4:
        return sum_span(span, by_key, grad, scale, call.query, space, call.grad_key)
    elif step == 5:
        return sum_span(span, by_key, dropped, 1.0, call.grad, space, call.grad_value)
    else:
        bias_span(span, grad, space.bias)
    return -1


@kernel
def score_span(
    span: Span, edges: Side, x: Rows, y: Rows, scale: float, space: Space, out: Array
) -> None:
    """Writes scaled dot products of both ends of edges to ``out[num_edges]``."""
    low, high, group, heads = span
    sample, head = divmod(group, heads)
    first = np.searchsorted(edges.ptr, low, side="right") - 1
    last = np.searchsorted(edges.ptr, high)
    begin(edges.ptr, first, last, low, space.cursor)
    tile = rows_of_a_tile(high - low, last - first, edges.ascends, y, space.tile)
    for bound in range(tile, y.rows + tile, tile):
        source = source_of(y, sample, head, tile, bound, space.tile)
        for row in range(first, last):
            edge = space.cursor[row - first]
            stop = advance(edges.other, edge, min(edges.ptr[row + 1], high), bound)
            space.cursor[row - first] = stop
            if edge < stop:
                offset = (sample * x.rows + row) * x.stride + head * x.channels
                ask_for(x.data, offset + AHEAD * x.stride, x.channels)
                dots(x.data, offset, edges.other, edge, stop, source, scale, out)


@kernel
def sum_span(
    span: Span, edges: Side, weight: Array, factor: float, y: Rows, space: Space, out: Rows
) -> int:
    """Computes sums over the edges of every row, with weights ``weight[num_edges]``.

    If a span starts within a row, the sum over this part of the row goes to ``space.partial``, and
    the offset of the row in ``out`` is returned; else -1.
    """
    low, high, group, heads = span
    sample, head = divmod(group, heads)
    shared_offset = -1
    first, last = rows_that_begin(edges.ptr, low, high)
    if first > 0 and edges.ptr[first - 1] < low < edges.ptr[first]:
        shared_offset = (sample * out.rows + first - 1) * out.stride + head * out.channels
        stop = min(edges.ptr[first], high)
        origin = sample * y.rows * y.stride + head * y.channels
        source = Source(y.data, origin, y.stride, y.channels)
        target = Target(space.partial, 0, True, False)
        weighted_sum(edges, weight, factor, low, stop, source, target)
        low = stop
    begin(edges.ptr, first, last, low, space.cursor)
    tile = rows_of_a_tile(high - low, last - first, edges.ascends, y, space.tile)
    streamed = out.streams and tile >= y.rows
    for bound in range(tile, y.rows + tile, tile):
        source = source_of(y, sample, head, tile, bound, space.tile)
        for row in range(first, last):
            edge = space.cursor[row - first]
            stop = advance(edges.other, edge, min(edges.ptr[row + 1], high), bound)
            space.cursor[row - first] = stop
            offset = (sample * out.rows + row) * out.stride + head * out.channels
            new = bound == tile
            if new or edge < stop:
                if not streamed:
                    ask_for(out.data, offset + AHEAD * out.stride, out.channels)
                target = Target(out.data, offset, new, streamed)
                weighted_sum(edges, weight, factor, edge, stop, source, target)
    return shared_offset


@kernel
def begin(ptr: Array, first: int, last: int, low: int, cursor: Array) -> None:
    """Sets the cursors to the first edges of the rows that lie in a span."""
    for row in range(first, last):
        cursor[row - first] = max(ptr[row], low)


@kernel
def inspect(ptr: Array, other: Array, num_others: int) -> tuple[bool, bool]:
    """Tells whether all indices of edges exist, and whether indices ascend in every row."""
    is_valid, ascends = ptr[0] == 0 and ptr[ptr.shape[0] - 1] == other.shape[0], True
    for row in range(ptr.shape[0] - 1):
        is_valid = is_valid and ptr[row] <= ptr[row + 1]
        for e in range(ptr[row], ptr[row + 1] if is_valid else ptr[row]):
            is_valid = is_valid and 0 <= other[e] < num_others
            ascends = ascends and (e == ptr[row] or other[e - 1] <= other[e])
    return is_valid, ascends


@kernel
def rows_of_a_tile(num_edges: int, num_rows: int, ascends: bool, y: Rows, tile: Array) -> Any:
    """Returns rows of the other side per tile: as many as fit, or all if copies do not pay off."""
    max_rows = max(1, tile.shape[0] // max(1, y.channels))
    tiles = (y.rows + max_rows - 1) // max_rows
    pays_off = tiles == 1 or (ascends and num_edges >= EDGES_PER_TILE * tiles * num_rows)
    if num_edges < y.rows or not pays_off:
        return max(y.rows, max_rows + 1)
    return (y.rows + tiles - 1) // tiles


@kernel
def ask_for(array: Array, offset: int, channels: int) -> None:
    """Prefetches a row."""
    for c in range(uintp(0), uintp(channels), uintp(16)):
        prefetch(array, uintp(offset) + c)


@kernel
def advance(index: Array, edge: int, stop: int, bound: int) -> int:
    """Returns the first edge of a row whose other end is not below a bound."""
    if edge < stop and index[stop - 1] < bound:
        return stop
    while edge < stop and index[edge] < bound:
        edge += 1
    return edge


@kernel
def source_of(y: Rows, sample: int, head: int, tile: int, bound: int, packed: Array) -> Any:
    """Returns the rows of the other side up to a bound, copied contiguously if they fit."""
    if tile * y.channels <= packed.shape[0]:
        pack(y, sample, head, bound - tile, min(bound, y.rows), packed)
        return Source(packed, (tile - bound) * y.channels, y.channels, y.channels)
    return Source(y.data, sample * y.rows * y.stride + head * y.channels, y.stride, y.channels)


@kernel
def pack(source: Rows, sample: int, head: int, first: int, last: int, out: Array) -> None:
    """Copies rows of one head of one sample to contiguous memory."""
    size = uintp(source.channels)
    for row in range(uintp(first), uintp(last)):
        start = (uintp(sample * source.rows) + row) * uintp(source.stride) + uintp(head) * size
        target = (row - uintp(first)) * size
        done = uintp(0)
        while done + uintp(WIDEST) <= size:
            store(out, target + done, load(source.data, start + done, WIDEST))
            done += uintp(WIDEST)
        for c in range(done, size):
            out[target + c] = source.data[start + c]


@kernel
def dots(
    x: Array, offset: int, index: Array, low: int, high: int, y: Source, scale: float, out: Array
) -> None:
    """Computes scaled dot products of one row with the other ends of its edges."""
    done, size = uintp(0), uintp(y.channels)
    if size == 0:
        out[low:high] = 0
    edges = index, low, high
    if done + uintp(WIDEST) <= size:
        done = _dots_widest(x, offset, edges, y, done, scale, out)
    if done + uintp(32) <= size:
        done = _dots_32(x, offset, edges, y, done, scale, out)
    if done + uintp(16) <= size:
        done = _dots_16(x, offset, edges, y, done, scale, out)
    if done + uintp(8) <= size:
        done = _dots_8(x, offset, edges, y, done, scale, out)
    if done < size:
        _dots_1(x, offset, edges, y, done, scale, out)


def _dots(lanes: int) -> Any:
    """Makes a kernel of :func:`dots` for ``lanes`` channels. It returns the channels done."""

    def add(
        x: Array, offset: int, edges: Any, y: Source, done: Any, scale: float, out: Array
    ) -> Any:
        factor, (index, low, high) = out.dtype.type(scale), edges
        while done + uintp(lanes) <= uintp(y.channels):
            row = load(x, uintp(offset) + done, lanes)
            for e in range(uintp(low), uintp(high)):
                start = uintp(y.origin) + uintp(index[e]) * uintp(y.step) + done
                product = factor * dot(row, load(y.data, start, lanes))
                out[e] = product if done == 0 else out[e] + product
            done += uintp(lanes)
        return done

    return named(add, f"dots_{lanes}")


_dots_widest, _dots_32, _dots_16, _dots_8, _dots_1 = map(_dots, (WIDEST, 32, 16, 8, 1))


@kernel
def weighted_sum(
    edges: Side, weight: Array, factor: float, low: int, high: int, y: Source, target: Target
) -> None:
    """Writes or adds the weighted sum of the other ends of one row's edges to the target."""
    done, size, weights, span = uintp(0), uintp(y.channels), (weight, factor), (low, high)
    if done + uintp(WIDEST) <= size:
        done = _sum_widest(edges, weights, span, y, done, target)
    if done + uintp(32) <= size:
        done = _sum_32(edges, weights, span, y, done, target)
    if done + uintp(16) <= size:
        done = _sum_16(edges, weights, span, y, done, target)
    if done + uintp(8) <= size:
        done = _sum_8(edges, weights, span, y, done, target)
    if done < size:
        _sum_1(edges, weights, span, y, done, target)


def _sum(lanes: int) -> Any:
    """Makes a kernel of :func:`weighted_sum` for ``lanes`` channels. It returns channels done."""

    def add(edges: Side, weights: Any, span: Any, y: Source, done: Any, target: Target) -> Any:
        (weight, factor), (low, high) = weights, span
        ordered, scale, out = edges.order.shape[0] > 0, weight.dtype.type(factor), target.data
        while done + uintp(lanes) <= uintp(y.channels):
            offset = uintp(target.offset) + done
            total = zeros(out, lanes) if target.new else load(out, offset, lanes)
            for e in range(uintp(low), uintp(high)):
                w = scale * (weight[edges.order[e]] if ordered else weight[e])
                row = uintp(y.origin) + uintp(edges.other[e]) * uintp(y.step) + done
                total = add_scaled(total, w, load(y.data, row, lanes))
            if target.streamed:
                stream(out, offset, total)
            else:
                store(out, offset, total)
            done += uintp(lanes)
        return done

    return named(add, f"sum_{lanes}")


_sum_widest, _sum_32, _sum_16, _sum_8, _sum_1 = map(_sum, (WIDEST, 32, 16, 8, 1))


@kernel
def softmax_span(
    span: Span, ptr: Array, softmax: Softmax, score: Array, dropped: Array, lse: Array
) -> None:
    """Turns scores of rows that begin in a span into weights, drops some, and stores sums."""
    low, high, group, heads = span
    first, last = rows_that_begin(ptr, low, high)
    for row in range(first, last):
        lowest, stop = uintp(ptr[row]), uintp(ptr[row + 1])
        log_of_sum = normalise(score, softmax.bias, group % heads, heads, lowest, stop)
        if lse.shape[1] > 0:
            lse[group, row] = log_of_sum
    drop(ptr[first], ptr[last], group, softmax, score, dropped)


@kernel
def weigh_span(span: Span, ptr: Array, softmax: Softmax, score: Array, lse: Array) -> None:
    """Recomputes weights from scores of the rows that begin in a span."""
    low, high, group, heads = span
    first, last = rows_that_begin(ptr, low, high)
    for row in range(first, last):
        lowest, stop = uintp(ptr[row]), uintp(ptr[row + 1])
        zero, shift = score.dtype.type(0), lse[group, row]
        add_bias(score, softmax.bias, group % heads, heads, lowest, stop)
        for e in range(lowest, stop):
            score[e] = exp(min(score[e] - shift, zero))  # rounding may put a score above the sum


@kernel
def softmax_backward_span(
    span: Span, ptr: Array, softmax: Softmax, weight: Array, dropped: Array, grad: Array
) -> None:
    """Turns gradients of weights into gradients of scores, and drops weights again."""
    low, high, group, _ = span
    first, last = rows_that_begin(ptr, low, high)
    start, zero = group * weight.shape[0], grad.dtype.type(0)
    for row in range(first, last):
        lowest, stop = uintp(ptr[row]), uintp(ptr[row + 1])
        if softmax.dropout_p > 0:
            for e in range(lowest, stop):
                grad[e] *= dropout_factor(softmax.seed, start + e, softmax.dropout_p)
        total = zero
        for e in range(lowest, stop):
            total += weight[e] * grad[e]
        for e in range(lowest, stop):
            grad[e] = weight[e] * (grad[e] - total)
    drop(ptr[first], ptr[last], group, softmax, weight, dropped)


@kernel
def drop(first: int, last: int, group: int, softmax: Softmax, weight: Array, out: Array) -> None:
    """Drops some of the weights of a range of edges, the same ones in both passes."""
    if softmax.dropout_p > 0:
        start = group * weight.shape[0]
        for e in range(uintp(first), uintp(last)):
            out[e] = weight[e] * dropout_factor(softmax.seed, start + e, softmax.dropout_p)


@kernel
def bias_span(span: Span, grad: Array, out: Array) -> None:
    """Adds gradients of scores to gradients of a bias ``[heads, num_edges]``, if there is one."""
    head = span.group % span.heads
    if out.shape[1] > 0:
        for e in range(uintp(span.low), uintp(span.high)):
            out[head, e] += grad[e]


@kernel
def rows_that_begin(ptr: Array, low: int, high: int) -> tuple[Any, Any]:
    """Returns the range of rows whose first edge lies in a span."""
    num_rows = ptr.shape[0] - 1
    first = np.searchsorted(ptr[:num_rows], low)
    last = num_rows if high == ptr[num_rows] else np.searchsorted(ptr[:num_rows], high)
    return first, last
