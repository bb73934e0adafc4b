"""Attention of narrow heads within blocks on a CPU, and its division among threads.

With few channels, products are so cheap that writing and reading scores takes longer than the
products. Here, scores of a few queries with all keys of their block stay in the first-level cache
between the product that computes scores and the product that uses weights.

Keys and values of a group (a head of a block) are first copied to contiguous rows of one vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import uintp
from torch import Tensor

from tg_mlc._memory import on_large_pages
from tg_mlc.ops.kernels import threads
from tg_mlc.ops.kernels.compile import Array, add_scaled, kernel, load, named, store, zeros
from tg_mlc.ops.kernels.dropout_numba import is_kept, kept_factor, row_key
from tg_mlc.ops.kernels.softmax_numba import differentiate_row, exp, highest_of

#: Number of queries per step, and number of scores in a vector.
ROWS, LANES = 8, 16


class Blocked(NamedTuple):
    """The boundaries of the blocks, and how scores become weights."""

    query_ptr: Array
    key_ptr: Array
    heads: int
    channels: int
    value_channels: int
    lanes: int  #: lanes of a row of queries, keys or values
    scale: float
    dropout_p: float
    seed: int


class Head(NamedTuple):
    """One head of queries, keys or values, and the lanes that its channels are padded to."""

    heads: int
    head: int
    channels: int
    lanes: int


class Tensors(NamedTuple):
    """Contiguous tensors ``[rows, heads, channels]`` as flat arrays; a pass leaves some empty."""

    query: Array
    key: Array
    value: Array
    out: Array
    lse: Array
    grad: Array
    grad_query: Array
    grad_key: Array
    grad_value: Array


class Scratch(NamedTuple):
    """Scratch arrays of a thread: rows of a few queries, and of the keys of a group."""

    query: Array
    grad: Array
    sums: Array
    score: Array
    grad_score: Array
    share: Array
    weight: Array
    key: Array
    value: Array
    grad_key: Array
    columns: Array
    value_columns: Array


def forward(query: Tensor, key: Tensor, value: Tensor, blocks: Blocked) -> tuple[Tensor, Tensor]:
    """Returns the output, and the logarithm of the sum of every query's scores."""
    out = on_large_pages(query.new_empty(query.size(0), query.size(1), value.size(2)))
    lse = query.new_empty(query.size(0), query.size(1), 1)
    _run(forward_groups, blocks, [query, key, value, out, lse])
    return out, lse


def backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, lse: Tensor, blocks: Blocked
) -> list[Tensor]:
    """Returns the gradients of query, key and value."""
    grads = [on_large_pages(query.new_empty(x.shape)) for x in (query, key, value)]
    _run(backward_groups, blocks, [query, key, value, grad.new_empty(0), lse, grad, *grads])
    return grads


def _run(work: Callable[..., None], blocks: Blocked, tensors: list[Tensor]) -> None:
    """Divides groups among threads, with about equally many scores for each."""
    none = tensors[0].new_empty(0)
    flat = [x.contiguous().view(-1).numpy() for x in (*tensors, *[none] * (9 - len(tensors)))]
    keys = np.diff(blocks.key_ptr)
    scores = np.repeat(np.diff(blocks.query_ptr) * keys, blocks.heads).cumsum()
    workers = max(1, min(threads.num_workers(), scores.size))
    total = int(scores[-1]) if scores.size else 0
    splits = [worker * total // workers for worker in range(1, workers)]
    bounds = [0, *np.searchsorted(scores, splits, side="right").tolist(), scores.size]
    max_keys = -(-int(keys.max(initial=0)) // LANES) * LANES
    dtype = tensors[0].dtype

    def share(worker: int) -> None:
        per_query, per_key = (ROWS * blocks.lanes,), max_keys * blocks.lanes
        sizes = (*per_query * 3, ROWS * max_keys, ROWS * max_keys, ROWS, max_keys, *(per_key,) * 5)
        space = Scratch(*(torch.empty(size, dtype=dtype).numpy() for size in sizes))
        work(bounds[worker], bounds[worker + 1], blocks, Tensors(*flat), space)

    threads.run(share, workers)


@kernel
def forward_groups(
    first: int, last: int, blocks: Blocked, tensors: Tensors, space: Scratch
) -> None:
    """Computes outputs and log-sum-exps of whole groups."""
    heads, lanes, score, out = blocks.heads, blocks.lanes, space.score, tensors.out
    dropout_p, seed, factor = blocks.dropout_p, blocks.seed, kept_factor(score, blocks.dropout_p)
    for group in range(first, last):
        block, head = divmod(group, heads)
        low, high, key, keys, stride = bounds(block, blocks)
        key_head = Head(heads, head, blocks.channels, lanes)
        value_head = Head(heads, head, blocks.value_channels, lanes)
        transpose(tensors.key, key, keys, key_head, stride, space.columns)
        pack(tensors.value, key, keys, value_head, keys, space.value)
        for row in range(low, high, ROWS):
            size = min(ROWS, high - row)
            pack(tensors.query, row, size, key_head, ROWS, space.query)
            products(space.query, key_head, space.columns, stride, blocks.scale, score)
            leave_out(score, keys, stride)
            for i in range(size):
                index, start = (row + i) * heads + head, i * stride
                inverse, lse = weigh(score, start, stride, dropout_p, seed, index)
                space.share[i], tensors.lse[index] = inverse, lse
            weighted_sums(score, stride, keys, space.value, lanes, space.sums)
            for i in range(size):
                unpack(space.sums, i, factor * space.share[i], value_head, out, row + i)


@kernel
def backward_groups(
    first: int, last: int, blocks: Blocked, tensors: Tensors, space: Scratch
) -> None:
    """Computes gradients of queries, keys and values of whole groups."""
    heads, lanes, dropout_p, seed = blocks.heads, blocks.lanes, blocks.dropout_p, blocks.seed
    score, grad_score, weight = space.score, space.grad_score, space.weight
    one, scale = score.dtype.type(1), score.dtype.type(blocks.scale)
    for group in range(first, last):
        block, head = divmod(group, heads)
        low, high, key, keys, stride = bounds(block, blocks)
        key_head = Head(heads, head, blocks.channels, lanes)
        value_head = Head(heads, head, blocks.value_channels, lanes)
        transpose(tensors.key, key, keys, key_head, stride, space.columns)
        transpose(tensors.value, key, keys, value_head, stride, space.value_columns)
        pack(tensors.key, key, keys, key_head, keys, space.key)
        space.grad_key[: keys * lanes] = 0
        space.value[: keys * lanes] = 0
        for row in range(low, high, ROWS):
            size = min(ROWS, high - row)
            pack(tensors.query, row, size, key_head, ROWS, space.query)
            pack(tensors.grad, row, size, value_head, ROWS, space.grad)
            products(space.query, key_head, space.columns, stride, scale, score)
            leave_out(score, keys, stride)
            products(space.grad, value_head, space.value_columns, stride, 1.0, grad_score)
            for i in range(size):
                index, start = (row + i) * heads + head, i * stride
                drawn = dropout_p, seed, index
                differentiate_row(
                    score, grad_score, start, stride, tensors.lse[index], drawn, weight
                )
            weighted_sums(grad_score, stride, keys, space.key, lanes, space.sums)
            for i in range(size):
                unpack(space.sums, i, scale, key_head, tensors.grad_query, row + i)
            add_outer(score, stride, keys, space.grad, lanes, space.value)
            add_outer(grad_score, stride, keys, space.query, lanes, space.grad_key)
        for j in range(keys):
            unpack(space.grad_key, j, scale, key_head, tensors.grad_key, key + j)
            unpack(space.value, j, one, value_head, tensors.grad_value, key + j)


@kernel
def bounds(block: int, blocks: Blocked) -> tuple[Any, Any, Any, Any, Any]:
    """Returns the range of queries, first key, and numbers of keys, without and with padding."""
    key = blocks.key_ptr[block]
    keys = blocks.key_ptr[block + 1] - key
    low, high = blocks.query_ptr[block], blocks.query_ptr[block + 1]
    return low, high, key, keys, (keys + LANES - 1) // LANES * LANES


@kernel
def weigh(
    score: Array, low: int, size: int, dropout_p: float, seed: int, index: int
) -> tuple[Any, Any]:
    """Turns scores into unscaled weights, drops some, and returns their factor and log-sum-exp."""
    start, stop, zero = uintp(low), uintp(low) + uintp(size), score.dtype.type(0)
    highest = max(highest_of(score, start, stop), score.dtype.type(-3e38))
    total = zero
    if dropout_p > 0:
        key = row_key(seed, index)
        for e in range(uintp(size)):
            value = exp(score[start + e] - highest)
            total += value
            score[start + e] = value if is_kept(key, e, dropout_p) else zero
    else:
        for e in range(start, stop):
            value = exp(score[e] - highest)
            total += value
            score[e] = value
    if total == 0:
        return zero, zero
    return score.dtype.type(1) / total, highest + np.log(total)


@kernel
def products(x: Array, head: Head, columns: Array, stride: int, scale: float, out: Array) -> None:
    """Computes scaled products of rows ``[ROWS, lanes]`` and columns ``[channels, stride]``."""
    width, step, zero = uintp(head.lanes), uintp(stride), zeros(out, LANES)
    for column in range(uintp(0), step, uintp(LANES)):
        sums = zero, zero, zero, zero, zero, zero, zero, zero
        for c in range(uintp(head.channels)):
            sums = add_each(sums, x, c, width, load(columns, c * step + column, LANES))
        store_each(sums, zero, out.dtype.type(scale), out, column, step)


@kernel
def add_each(sums: Any, weight: Array, first: int, step: int, y: Any) -> Any:
    """Adds a vector to eight sums, with weights that are a step apart in memory."""
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    return (
        add_scaled(s0, weight[first], y),
        add_scaled(s1, weight[first + step], y),
        add_scaled(s2, weight[first + uintp(2) * step], y),
        add_scaled(s3, weight[first + uintp(3) * step], y),
        add_scaled(s4, weight[first + uintp(4) * step], y),
        add_scaled(s5, weight[first + uintp(5) * step], y),
        add_scaled(s6, weight[first + uintp(6) * step], y),
        add_scaled(s7, weight[first + uintp(7) * step], y),
    )


@kernel
def store_each(sums: Any, none: Any, factor: float, out: Array, first: int, step: int) -> None:
    """Writes eight scaled vectors to offsets that are a step apart."""
    s0, s1, s2, s3, s4, s5, s6, s7 = sums
    store(out, first, add_scaled(none, factor, s0))
    store(out, first + step, add_scaled(none, factor, s1))
    store(out, first + uintp(2) * step, add_scaled(none, factor, s2))
    store(out, first + uintp(3) * step, add_scaled(none, factor, s3))
    store(out, first + uintp(4) * step, add_scaled(none, factor, s4))
    store(out, first + uintp(5) * step, add_scaled(none, factor, s5))
    store(out, first + uintp(6) * step, add_scaled(none, factor, s6))
    store(out, first + uintp(7) * step, add_scaled(none, factor, s7))


@kernel
def leave_out(score: Array, keys: int, stride: int) -> None:
    """Sets scores of padding to minus infinity."""
    for i in range(uintp(ROWS)):
        for j in range(uintp(keys), uintp(stride)):
            score[i * uintp(stride) + j] = -np.inf


@kernel
def weighted_sums(weight: Array, stride: int, keys: int, y: Array, lanes: int, out: Array) -> None:
    """Computes sums ``[ROWS, lanes]`` of rows ``[keys, lanes]``, weighted ``[ROWS, stride]``."""
    if lanes == 16:
        _sums_16(weight, stride, keys, y, out)
    else:
        _sums_32(weight, stride, keys, y, out)


def _sums(lanes: int) -> Any:
    def sums(weight: Array, stride: int, keys: int, y: Array, out: Array) -> None:
        zero = zeros(out, lanes)
        total = zero, zero, zero, zero, zero, zero, zero, zero
        for j in range(uintp(keys)):
            total = add_each(total, weight, j, uintp(stride), load(y, j * uintp(lanes), lanes))
        store_each(total, zero, out.dtype.type(1), out, uintp(0), uintp(lanes))

    return named(sums, f"narrow_sums_{lanes}")


@kernel
def add_outer(weight: Array, stride: int, keys: int, x: Array, lanes: int, out: Array) -> None:
    """Adds rows ``[ROWS, lanes]`` with weights ``[ROWS, stride]`` to ``[keys, lanes]``."""
    if lanes == 16:
        _outer_16(weight, stride, keys, x, out)
    else:
        _outer_32(weight, stride, keys, x, out)


def _outer(lanes: int) -> Any:
    def outer(weight: Array, stride: int, keys: int, x: Array, out: Array) -> None:
        step = uintp(stride)
        x0, x1 = load(x, uintp(0), lanes), load(x, uintp(lanes), lanes)
        x2, x3 = load(x, uintp(2 * lanes), lanes), load(x, uintp(3 * lanes), lanes)
        x4, x5 = load(x, uintp(4 * lanes), lanes), load(x, uintp(5 * lanes), lanes)
        x6, x7 = load(x, uintp(6 * lanes), lanes), load(x, uintp(7 * lanes), lanes)
        for j in range(uintp(keys)):
            total = load(out, j * uintp(lanes), lanes)
            total = add_scaled(total, weight[j], x0)
            total = add_scaled(total, weight[step + j], x1)
            total = add_scaled(total, weight[uintp(2) * step + j], x2)
            total = add_scaled(total, weight[uintp(3) * step + j], x3)
            total = add_scaled(total, weight[uintp(4) * step + j], x4)
            total = add_scaled(total, weight[uintp(5) * step + j], x5)
            total = add_scaled(total, weight[uintp(6) * step + j], x6)
            total = add_scaled(total, weight[uintp(7) * step + j], x7)
            store(out, j * uintp(lanes), total)

    return named(outer, f"narrow_outer_{lanes}")


_sums_16, _sums_32, _outer_16, _outer_32 = _sums(16), _sums(32), _outer(16), _outer(32)


@kernel
def pack(x: Array, first: int, size: int, head: Head, padded: int, out: Array) -> None:
    """Copies rows of one head to ``[padded, lanes]``, padded with zeros."""
    for row in range(uintp(padded)):
        done = uintp(0)
        if row < uintp(size):
            source = start_of(uintp(first) + row, head)
            copy(x, source, head.channels, x.dtype.type(1), out, row * uintp(head.lanes))
            done = uintp(head.channels)
        for c in range(done, uintp(head.lanes)):
            out[row * uintp(head.lanes) + c] = 0


@kernel
def unpack(x: Array, i: int, factor: float, head: Head, out: Array, row: int) -> None:
    """Writes a scaled row of ``[rows, lanes]`` to its row and head of a tensor."""
    source = uintp(i) * uintp(head.lanes)
    copy(x, source, head.channels, factor, out, start_of(uintp(row), head))


@kernel
def start_of(row: Any, head: Head) -> Any:
    """Returns the offset of one head of a row."""
    return (row * uintp(head.heads) + uintp(head.head)) * uintp(head.channels)


@kernel
def copy(x: Array, source: int, channels: int, factor: float, out: Array, target: int) -> None:
    """Copies contiguous numbers, and scales them."""
    done, size = uintp(0), uintp(channels)
    while done + uintp(LANES) <= size:
        row = add_scaled(zeros(out, LANES), factor, load(x, uintp(source) + done, LANES))
        store(out, uintp(target) + done, row)
        done += uintp(LANES)
    for c in range(done, size):
        out[uintp(target) + c] = x[uintp(source) + c] * factor


@kernel
def transpose(x: Array, first: int, size: int, head: Head, stride: int, out: Array) -> None:
    """Copies rows of one head to columns ``[channels, stride]``, padded with zeros."""
    for row in range(uintp(size)):
        source = start_of(uintp(first) + row, head)
        for c in range(uintp(head.channels)):
            out[c * uintp(stride) + row] = x[source + c]
    for c in range(uintp(head.channels)):
        for row in range(uintp(size), uintp(stride)):
            out[c * uintp(stride) + row] = 0
