"""Softmax of dense rows of scores and its gradient, each in one pass over a row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types, uintp
from numba.extending import overload
from torch import Tensor

from tg_mlc.ops.kernels.compile import OPTIONS, Array, kernel, larger, largest, load
from tg_mlc.ops.kernels.dropout_numba import dropped, is_kept, kept_factor, row_key


def forward(scores: Tensor, dropout_p: float, seed: int) -> Tensor:
    """Turns contiguous scores ``[..., n]`` into weights, and returns the logarithms of the sums."""
    flat, lse = scores.view(-1).numpy(), scores.new_empty(scores.shape[:-1])
    weigh(lse.numel(), scores.size(-1), flat, flat[:0], dropout_p, seed, lse.view(-1).numpy())
    return lse.unsqueeze(-1)


def backward(scores: Tensor, grad: Tensor, lse: Tensor, dropout_p: float, seed: int) -> None:
    """Turns scores into weights, and gradients of weights into gradients of scores."""
    flat, grads, sums = scores.view(-1).numpy(), grad.view(-1).numpy(), lse.reshape(-1).numpy()
    scratch = scores.new_empty(scores.size(-1)).numpy()
    differentiate(sums.size, flat, grads, dropout_p, seed, sums, scratch)


@kernel
def weigh(
    rows: int, columns: int, score: Array, no_bias: Array, dropout_p: float, seed: int, lse: Array
) -> None:
    """Runs the forward pass of all rows."""
    factor = kept_factor(score, dropout_p)
    for row in range(rows):
        low = uintp(row) * uintp(columns)
        lse[row] = normalise(score, no_bias, 0, 1, low, low + uintp(columns))
        if dropout_p > 0:
            key = row_key(seed, row)
            for e in range(uintp(columns)):
                score[low + e] = dropped(score[low + e], factor, key, e, dropout_p)


@kernel
def differentiate(
    rows: int, score: Array, grad: Array, dropout_p: float, seed: int, lse: Array, scratch: Array
) -> None:
    """Runs the backward pass of all rows."""
    size = scratch.shape[0]
    for row in range(rows):
        drawn = dropout_p, seed, row
        differentiate_row(score, grad, row * size, size, lse[row], drawn, scratch)


@kernel
def differentiate_row(
    score: Array, grad: Array, low: int, size: int, lse: float, drawn: Any, weight: Array
) -> None:
    """Turns scores into weights, and gradients of weights into gradients of scores.

    ``drawn`` holds the probability of dropout, its seed and the row's index; ``weight`` is scratch.
    """
    start, zero, (dropout_p, seed, index) = uintp(low), score.dtype.type(0), drawn
    total = zero
    if dropout_p > 0:
        key, factor = row_key(seed, index), kept_factor(score, dropout_p)
        for e in range(uintp(size)):
            prob = exp(min(score[start + e] - lse, zero))  # rounding may put a score above the sum
            kept = factor * prob if is_kept(key, e, dropout_p) else zero
            weight[e] = prob
            score[start + e] = kept
            total += kept * grad[start + e]
        for e in range(uintp(size)):
            grad[start + e] = score[start + e] * grad[start + e] - weight[e] * total
    else:
        for e in range(uintp(size)):
            prob = exp(min(score[start + e] - lse, zero))
            score[start + e] = prob
            total += prob * grad[start + e]
        for e in range(uintp(size)):
            grad[start + e] = score[start + e] * (grad[start + e] - total)


@kernel
def normalise(score: Array, bias: Array, head: int, heads: int, low: int, high: int) -> Any:
    """Replaces scores of one row by weights, and returns the log-sum-exp of scores."""
    add_bias(score, bias, head, heads, low, high)
    highest = highest_of(score, low, high)
    if highest == -np.inf:  # no key is left to attend to, or all scores are NaN
        for e in range(low, high):
            score[e] = exp(score[e])
        return score.dtype.type(0)
    total = score.dtype.type(0)
    for e in range(low, high):
        value = exp(score[e] - highest)
        score[e] = value
        total += value
    inverse = score.dtype.type(1) / total
    for e in range(low, high):
        score[e] *= inverse
    return highest + np.log(total)


@kernel
def highest_of(score: Array, low: int, high: int) -> Any:
    """Returns the highest score of a row, ignoring NaN."""
    highest, e, stop = score.dtype.type(-np.inf), uintp(low), uintp(high)
    if e + uintp(32) <= stop:
        lanes = load(score, e, 32)
        e += uintp(32)
        while e + uintp(32) <= stop:
            lanes = larger(lanes, load(score, e, 32))
            e += uintp(32)
        highest = largest(lanes)
    while e < stop:
        highest = score[e] if score[e] > highest else highest
        e += uintp(1)
    return highest


@kernel
def add_bias(score: Array, bias: Array, head: int, heads: int, low: int, high: int) -> None:
    """Adds the bias of every edge, if there is any."""
    if bias.shape[0] > 0:
        for e in range(low, high):
            score[e] += bias[e * uintp(heads) + uintp(head)]


def exp(x: float) -> float:
    """Returns the exponential of a number <= 0, vectorised in single precision."""
    return math.exp(x)


@overload(exp, jit_options={"fastmath": OPTIONS["fastmath"]})
def _exp(x: Any) -> Any:
    def precise(x: Any) -> Any:
        return np.exp(x)

    if x != types.float32:
        return precise

    # The Cephes library's expf: a polynomial on [-ln(2)/2, ln(2)/2], a shift of the exponent.
    small = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3)
    large = (4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
    log2_e, ln2_high, ln2_low = map(np.float32, (1.4426950408889634, 0.693359375, -2.12194440e-4))
    c0, c1, c2, c3, c4, c5 = map(np.float32, (*small, *large))
    one, half, lowest, zero = map(np.float32, (1.0, 0.5, -87.3, 0.0))

    def fast(x: Any) -> Any:
        bounded = max(x, lowest)
        power = np.floor(bounded * log2_e + half)
        rest = bounded - power * ln2_high - power * ln2_low
        series = ((((c0 * rest + c1) * rest + c2) * rest + c3) * rest + c4) * rest + c5
        value = series * rest * rest + rest + one
        exponent = np.int32((np.int32(power) + np.int32(127)) << np.int32(23))
        scaled = value * exponent.view(np.float32)
        return zero if x < lowest else (x if np.isnan(x) else scaled)

    return fast
