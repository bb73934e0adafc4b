"""Attention over compressed edges on a CPU, compiled by Numba.

The work is a line of ``groups * num_edges`` edges, a group being one head of one sample. A kernel takes any span of
that line, so that threads share the work evenly however the edges are spread over the rows. Rows of the other side are
first copied, a group at a time, to a contiguous ``scratch`` that stays in cache, unless they outnumber the edges of the
span. Tensors come as flat arrays with the
distance between two rows, which spares copies of slices of a larger one.

Offsets are unsigned: for a signed one Numba asks at every access whether it counts from the end, and nothing is
vectorised. Sums may be reordered, but NaN and infinity keep their meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types, uint64, uintp
from numba.extending import overload

Array = np.ndarray[Any, Any]

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"arcp", "contract", "nsz", "reassoc"},
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function at its first call, and keeps the result on disk."""
    try:
        compiled: Callable[..., Any] = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # there is no folder to keep it in
        compiled = njit(**_OPTIONS)(function)
    return compiled


@kernel
def score_span(
    begin: int,
    end: int,
    first_group: int,
    heads: int,
    ptr: Array,
    index: Array,
    x: Array,
    x_stride: int,
    y: Array,
    y_stride: int,
    y_rows: int,
    channels: int,
    scale: float,
    scratch: Array,
    out: Array,
) -> None:
    """The scaled dot products of both ends of every edge, ``out[groups, num_edges]``."""
    num_rows, num_edges = ptr.shape[0] - 1, index.shape[0]
    while begin < end:
        group = begin // num_edges
        low = begin - group * num_edges
        high = min(num_edges, low + end - begin)
        sample, head = divmod(first_group + group, heads)
        source, origin, step = y, sample * y_rows * y_stride + head * channels, y_stride
        if high - low >= y_rows:
            pack(y, origin, y_stride, y_rows, channels, scratch)
            source, origin, step = scratch, 0, channels
        offset = sample * num_rows * x_stride + head * channels
        row, edge = np.searchsorted(ptr, low, side="right") - 1, low
        while edge < high:
            stop = min(ptr[row + 1], high)
            place = offset + row * x_stride
            dots(x, place, index, edge, stop, source, origin, step, channels, scale, out[group])
            edge = stop
            row += 1
        begin += high - low


@kernel
def softmax_span(
    begin: int,
    end: int,
    first_group: int,
    heads: int,
    ptr: Array,
    bias: Array,
    dropout_p: float,
    seed: int,
    scores: Array,
    lse: Array,
) -> None:
    """Turns the scores of the rows that begin in a span into weights, and keeps what it takes to find them again."""
    num_edges = scores.shape[1]
    while begin < end:
        group = begin // num_edges
        low = begin - group * num_edges
        high = min(num_edges, low + end - begin)
        first, last = rows_that_begin(ptr, low, high)
        head = (first_group + group) % heads
        for row in range(first, last):
            lse[first_group + group, row] = softmax(
                scores[group], bias, head, heads, uintp(ptr[row]), uintp(ptr[row + 1])
            )
        if dropout_p > 0:
            start = (first_group + group) * num_edges
            for e in range(uintp(ptr[first]), uintp(ptr[last])):
                scores[group, e] *= dropout_factor(seed, start + e, dropout_p)
        begin += high - low


@kernel
def softmax_backward_span(
    begin: int,
    end: int,
    first_group: int,
    heads: int,
    ptr: Array,
    bias: Array,
    dropout_p: float,
    seed: int,
    scores: Array,
    grads: Array,
    lse: Array,
) -> None:
    """Turns scores into the weights of the sum, and the gradients of these weights into gradients of the scores."""
    num_edges = scores.shape[1]
    while begin < end:
        group = begin // num_edges
        low = begin - group * num_edges
        high = min(num_edges, low + end - begin)
        first, last = rows_that_begin(ptr, low, high)
        head = (first_group + group) % heads
        start = (first_group + group) * num_edges
        weight, grad = scores[group], grads[group]
        for row in range(first, last):
            lowest, stop = uintp(ptr[row]), uintp(ptr[row + 1])
            total = grad.dtype.type(0)
            shift = lse[first_group + group, row]
            add_bias(weight, bias, head, heads, lowest, stop)
            for e in range(lowest, stop):
                weight[e] = exp(weight[e] - shift)
            if dropout_p > 0:
                for e in range(lowest, stop):
                    grad[e] *= dropout_factor(seed, start + e, dropout_p)
            for e in range(lowest, stop):
                total += weight[e] * grad[e]
            for e in range(lowest, stop):
                grad[e] = weight[e] * (grad[e] - total)
            if dropout_p > 0:
                for e in range(lowest, stop):
                    weight[e] *= dropout_factor(seed, start + e, dropout_p)
        begin += high - low


@kernel
def sum_span(
    begin: int,
    end: int,
    first_group: int,
    heads: int,
    ptr: Array,
    index: Array,
    order: Array,
    weight: Array,
    factor: float,
    y: Array,
    y_stride: int,
    y_rows: int,
    channels: int,
    scratch: Array,
    out: Array,
    partial: Array,
) -> int:
    """The weighted sums over the edges of every row, ``out[samples, rows, heads, channels]`` as a flat array.

    The edges ``order[ptr[i]:ptr[i + 1]]`` of a row (or, with an empty ``order``, those at these places) have their
    weight in ``weight[groups, num_edges]``. Where a span begins within a row, its share of that row goes to
    ``partial``, and the row's place in ``out`` is returned; else -1.
    """
    num_rows, num_edges = ptr.shape[0] - 1, index.shape[0]
    stride = heads * channels
    begun = -1
    while begin < end:
        group = begin // num_edges
        low = begin - group * num_edges
        high = min(num_edges, low + end - begin)
        sample, head = divmod(first_group + group, heads)
        source, origin, step = y, sample * y_rows * y_stride + head * channels, y_stride
        if high - low >= y_rows:
            pack(y, origin, y_stride, y_rows, channels, scratch)
            source, origin, step = scratch, 0, channels
        offset = sample * num_rows * stride + head * channels
        first, last = rows_that_begin(ptr, low, high)
        if first > 0 and ptr[first - 1] < low < ptr[first]:
            begun = offset + (first - 1) * stride
            stop = min(ptr[first], high)
            weighted_sum(index, order, weight[group], factor, low, stop, source, origin, step, channels, partial, 0)
        for row in range(first, last):
            stop = min(ptr[row + 1], high)
            place = offset + row * stride
            weighted_sum(
                index, order, weight[group], factor, ptr[row], stop, source, origin, step, channels, out, place
            )
        begin += high - low
    return begun


@kernel
def pack(source: Array, offset: int, stride: int, rows: int, channels: int, out: Array) -> None:
    """Copies the rows of one head of one sample to where they are contiguous."""
    size = uintp(channels)
    for row in range(uintp(rows)):
        start = uintp(offset) + row * uintp(stride)
        for c in range(size):
            out[row * size + c] = source[start + c]


@kernel
def dots(
    x: Array,
    offset: int,
    index: Array,
    low: int,
    high: int,
    y: Array,
    origin: int,
    step: int,
    channels: int,
    scale: float,
    out: Array,
) -> None:
    """The dot products of one row with the rows of its edges, four at a time; the last four may overlap."""
    size, start, last = uintp(channels), uintp(offset), high - 1
    zeroth, stride = uintp(origin), uintp(step)
    for e in range(low, high, 4):
        e1, e2, e3 = min(e + 1, last), min(e + 2, last), min(e + 3, last)
        o0, o1 = zeroth + uintp(index[e]) * stride, zeroth + uintp(index[e1]) * stride
        o2, o3 = zeroth + uintp(index[e2]) * stride, zeroth + uintp(index[e3]) * stride
        s0 = s1 = s2 = s3 = x.dtype.type(0)
        for c in range(size):
            value = x[start + c]
            s0 += value * y[o0 + c]
            s1 += value * y[o1 + c]
            s2 += value * y[o2 + c]
            s3 += value * y[o3 + c]
        out[e], out[e1], out[e2], out[e3] = s0 * scale, s1 * scale, s2 * scale, s3 * scale


@kernel
def weighted_sum(
    index: Array,
    order: Array,
    weight: Array,
    factor: float,
    low: int,
    high: int,
    y: Array,
    origin: int,
    step: int,
    channels: int,
    out: Array,
    offset: int,
) -> None:
    """The weighted sum of the rows of one row's edges, four at a time; beyond the last one the weights are zero."""
    size, start, last, zero = uintp(channels), uintp(offset), high - 1, weight.dtype.type(0)
    zeroth, stride = uintp(origin), uintp(step)
    for c in range(size):
        out[start + c] = zero
    for e in range(low, high, 4):
        e1, e2, e3 = min(e + 1, last), min(e + 2, last), min(e + 3, last)
        o0, o1 = zeroth + uintp(index[e]) * stride, zeroth + uintp(index[e1]) * stride
        o2, o3 = zeroth + uintp(index[e2]) * stride, zeroth + uintp(index[e3]) * stride
        if order.shape[0] > 0:
            w0, w1, w2, w3 = weight[order[e]], weight[order[e1]], weight[order[e2]], weight[order[e3]]
        else:
            w0, w1, w2, w3 = weight[e], weight[e1], weight[e2], weight[e3]
        w0 *= factor
        w1 = w1 * factor if e + 1 <= last else zero
        w2 = w2 * factor if e + 2 <= last else zero
        w3 = w3 * factor if e + 3 <= last else zero
        for c in range(size):
            out[start + c] += w0 * y[o0 + c] + w1 * y[o1 + c] + w2 * y[o2 + c] + w3 * y[o3 + c]


@kernel
def softmax(score: Array, bias: Array, head: int, heads: int, low: int, high: int) -> Any:
    """Normalises the scores of one row in place, and returns the logarithm of their sum before."""
    add_bias(score, bias, head, heads, low, high)
    highest = score.dtype.type(-np.inf)
    for e in range(low, high):
        highest = max(highest, score[e])
    if highest == -np.inf:  # nobody is left to attend to
        score[low:high] = 0
        return score.dtype.type(0)
    total = score.dtype.type(0)
    for e in range(low, high):
        value = exp(score[e] - highest)
        score[e] = value
        total += value
    share = score.dtype.type(1) / total
    for e in range(low, high):
        score[e] *= share
    return highest + np.log(total)


@kernel
def add_bias(score: Array, bias: Array, head: int, heads: int, low: int, high: int) -> None:
    """Adds the bias of every edge, if there is any."""
    if bias.shape[0] > 0:
        for e in range(low, high):
            score[e] += bias[e * uintp(heads) + uintp(head)]


@kernel
def rows_that_begin(ptr: Array, low: int, high: int) -> tuple[Any, Any]:
    """The range of rows whose first edge lies in a span; rows without edges belong to whoever comes to their place."""
    num_rows = ptr.shape[0] - 1
    first = np.searchsorted(ptr[:num_rows], low)
    last = num_rows if high == ptr[num_rows] else np.searchsorted(ptr[:num_rows], high)
    return first, last


@kernel
def dropout_factor(seed: int, place: int, dropout_p: float) -> float:
    """Zero for a dropped weight, else what keeps the expected sum: a hash of its place, the same in both passes.

    The hash is the output function of SplitMix64 (Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195).
    """
    state = uint64(seed) + uint64(place) * uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> uint64(27))) * uint64(0x94D049BB133111EB)
    state = state ^ (state >> uint64(31))
    uniform = np.float64(state >> uint64(11)) * 2.0**-53
    return 1.0 / (1.0 - dropout_p) if uniform >= dropout_p else 0.0


def exp(x: float) -> float:
    """The exponential of a number that is not positive; compiled, it is vectorised in single precision."""
    return math.exp(x)


@overload(exp, jit_options={"fastmath": _OPTIONS["fastmath"]})
def _exp(x: Any) -> Any:
    def precise(x: Any) -> Any:
        return np.exp(x)

    if x != types.float32:
        return precise

    # A polynomial of degree 6 on [-ln(2)/2, ln(2)/2], then a shift of the exponent: expf of the Cephes library.
    log2_e, ln2_high, ln2_low = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
    c0, c1, c2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
    c3, c4, c5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
    one, half, lowest, zero = np.float32(1), np.float32(0.5), np.float32(-87.3), np.float32(0)

    def fast(x: Any) -> Any:
        bounded = max(x, lowest)
        power = np.floor(bounded * log2_e + half)
        rest = bounded - power * ln2_high - power * ln2_low
        series = ((((c0 * rest + c1) * rest + c2) * rest + c3) * rest + c4) * rest + c5
        value = series * rest * rest + rest + one
        scaled = value * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
        return zero if x < lowest else (x if np.isnan(x) else scaled)

    return fast
