"""Dropout, a residual and layer normalisation in one pass over a row, and their gradients, compiled by Numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uintp

from tg_mlc.ops.kernels.compile import Array, kernel
from tg_mlc.ops.kernels.dropout_numba import dropped, kept_factor, row_key


class Norm(NamedTuple):
    """Parameters of the normalisation, and options of the dropout before it."""

    weight: Array
    bias: Array
    eps: float
    dropout_p: float
    seed: int


@kernel
def add_and_normalise(
    first: int, last: int, residual: Array, hidden: Array, offset: int, norm: Norm, deviation: Array, out: Array
) -> None:
    """Some rows of the output; leaves them in ``hidden``, which begins with row ``offset``, as they are before the
    weight, and one over their standard deviations. Rows of the residual repeat.
    """
    weight, bias, eps, dropout_p, seed = norm
    size, zero, one = uintp(weight.shape[0]), out.dtype.type(0), out.dtype.type(1)
    factor, repeated = kept_factor(out, dropout_p), residual.shape[0] // weight.shape[0]
    for row in range(first, last):
        low, place, start = uintp(row - offset) * size, uintp(row) * size, uintp(row % repeated) * size
        key, total = row_key(seed, row), zero
        for c in range(size):
            value = residual[start + c] + dropped(hidden[low + c], factor, key, c, dropout_p)
            hidden[low + c] = value
            total += value
        mean, squares = total / out.dtype.type(size), zero
        for c in range(size):
            value = hidden[low + c] - mean
            squares += value * value
        scale = one / np.sqrt(squares / out.dtype.type(size) + out.dtype.type(eps))
        deviation[row] = scale
        for c in range(size):
            value = (hidden[low + c] - mean) * scale
            hidden[low + c] = value
            out[place + c] = value * weight[c] + bias[c]


@kernel
def differentiate(
    rows: Any, grad: Array, hidden: Array, norm: Norm, deviation: Array, out: Array, out_hidden: Array, sums: Array
) -> None:
    """The gradients of the sum and of what was dropped before it, the latter in an array that begins with the first
    row; adds those of weight, bias and of what all rows were shifted by to ``sums``.
    """
    (first, last), (weight, _, _, dropout_p, seed) = rows, norm
    size, zero = uintp(weight.shape[0]), grad.dtype.type(0)
    factor, share = kept_factor(grad, dropout_p), grad.dtype.type(1) / grad.dtype.type(size)
    for row in range(first, last):
        low, scale, mean, along = uintp(row) * size, deviation[row], zero, zero
        target, key = uintp(row - first) * size, row_key(seed, row)
        for c in range(size):
            value = grad[low + c] * weight[c]
            mean += value
            along += value * hidden[low + c]
        mean, along = mean * share, along * share
        for c in range(size):
            value = grad[low + c]
            sums[c] += value * hidden[low + c]
            sums[size + c] += value
            out[low + c] = scale * (value * weight[c] - mean - hidden[low + c] * along)
        for c in range(size):
            out_hidden[target + c] = dropped(out[low + c], factor, key, c, dropout_p)
        for c in range(size):
            sums[uintp(2) * size + c] += out_hidden[target + c]


@kernel
def drop_rows(size: int, dropout_p: float, seed: int, out: Array) -> None:
    """Drops the same entries."""
    factor = kept_factor(out, dropout_p)
    for row in range(out.shape[0] // size):
        low, key = uintp(row * size), row_key(seed, row)
        for c in range(uintp(size)):
            out[low + c] = dropped(out[low + c], factor, key, c, dropout_p)


@kernel
def rectify(hidden: Array) -> None:
    """Zeroes what is negative."""
    for e in range(uintp(hidden.shape[0])):
        hidden[e] = hidden.dtype.type(0) if hidden[e] < 0 else hidden[e]


@kernel
def rectify_gradient(grad: Array, hidden: Array, total: Array) -> None:
    """Zeroes gradients of what was negative, and adds up those of every column."""
    size, zero = uintp(total.shape[0]), grad.dtype.type(0)
    for low in range(uintp(0), uintp(grad.shape[0]), size):
        for c in range(size):
            value, active = grad[low + c], hidden[low + c] > zero
            grad[low + c] = value if active else zero
        for c in range(size):
            total[c] += grad[low + c]
