"""Residual branches on a CPU, a few rows at a time, to keep results in cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import uintp
from torch import Tensor

from tg_mlc._memory import on_large_pages
from tg_mlc.ops.kernels import threads
from tg_mlc.ops.kernels.compile import Array, kernel
from tg_mlc.ops.kernels.dropout_numba import drop_rows, dropped, kept_factor, row_key
from tg_mlc.ops.runtime import onednn_linear, prefers_onednn

#: Bytes of states per step, and smallest number of rows, because small products are slow.
TILE, MIN_ROWS = 2**19, 512
#: Smallest number of rows per thread.
MIN_SHARE = 256


class Branch(NamedTuple):
    """The parameters: one linear layer, or two with a ReLU between, then a normalisation."""

    first: Tensor | None
    first_bias: Tensor | None
    last: Tensor
    last_bias: Tensor | None
    norm: Tensor
    norm_bias: Tensor
    eps: float
    dropout_p: float
    seed: int


class Activations(NamedTuple):
    """Tensors kept between forward and backward."""

    hidden: Tensor  #: after the ReLU, or empty
    normalised: Tensor
    deviation: Tensor  #: one over the standard deviation of every row


class Norm(NamedTuple):
    """Parameters of the normalisation, and options of the dropout before it."""

    weight: Array
    bias: Array
    eps: float
    dropout_p: float
    seed: int


def forward(residual: Tensor, x: Tensor, branch: Branch, keep: bool) -> tuple[Tensor, Activations]:
    """Returns the output, and activations, which are valid only if ``keep`` is set."""
    rows, size, step = x.size(0), branch.norm.numel(), _step(branch)
    inner = 0 if branch.first is None else branch.first.size(0)
    out, kept_rows = on_large_pages(x.new_empty(rows, size)), rows if keep else 0
    hidden, normalised = (on_large_pages(x.new_empty(kept_rows, width)) for width in (inner, size))
    kept = Activations(hidden, normalised, x.new_empty(rows))

    norm, flat_residual = _norm(branch), _flat(residual)
    outputs = (_flat(kept.deviation), _flat(out))

    def work(_: int, begin: int, end: int) -> None:
        scratch = kept[:2] if keep else (x.new_empty(step, inner), x.new_empty(step, size))
        hidden, normalised = scratch
        flat = _flat(normalised)
        for low in range(begin, end, step):
            high = min(low + step, end)
            offset = 0 if keep else low
            y, tile = x[low:high], slice(low - offset, high - offset)
            if branch.first is not None:
                y = _linear(y, branch.first, branch.first_bias, hidden[tile]).relu_()
            _linear(y, branch.last, branch.last_bias, normalised[tile])
            add_and_normalise((low, high, offset), flat_residual, flat, norm, *outputs)

    threads.share(work, rows, _workers(rows), threads.run_apart)
    return out, kept


def backward(
    grad: Tensor, x: Tensor, branch: Branch, kept: Activations, same: bool
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Returns gradients of the sum (and residual), the input, and the six parameters."""
    rows, size, step = x.size(0), branch.norm.numel(), _step(branch)
    inner = kept.hidden.size(1)
    grad_sum = on_large_pages(torch.empty_like(grad))
    grad_x = grad_sum if same else on_large_pages(torch.empty_like(x))
    num_workers = _workers(rows)
    matrices = [branch.last if branch.first is None else branch.first, branch.last]
    weights = [x.new_zeros(num_workers, *weight.shape) for weight in matrices]
    hidden_sums, sums = x.new_zeros(num_workers, inner), x.new_zeros(num_workers, 3, size)

    inputs = _flat(grad), _flat(kept.normalised), _flat(kept.deviation)
    norm, outputs = _norm(branch), _flat(grad_sum)

    def work(worker: int, begin: int, end: int) -> None:
        scratch, scratch_hidden = x.new_empty(step, size), x.new_empty(step, inner)
        flat, flat_sums = _flat(scratch), _flat(sums[worker])
        for low in range(begin, end, step):
            high = min(low + step, end)
            differentiate((low, high), inputs, norm, outputs, flat, flat_sums)
            g, y = scratch[: high - low], x[low:high]
            if branch.first is not None:
                hidden = kept.hidden[low:high]
                _add_product(g.t(), hidden, weights[1][worker])
                g = _add_product(g, branch.last, scratch_hidden[: high - low], keep=False)
                rectify_gradient(_flat(g), _flat(hidden), _flat(hidden_sums[worker]))
            _add_product(g.t(), y, weights[0][worker])
            _add_product(g, matrices[0], grad_x[low:high], keep=same)

    threads.share(work, rows, num_workers, threads.run_apart)
    grad_norm, grad_norm_bias, grad_bias = sums.sum(dim=0)
    first, last = (weight.sum(dim=0) for weight in weights)
    last = first if branch.first is None else last
    parameters = [first, hidden_sums.sum(dim=0), last, grad_bias, grad_norm, grad_norm_bias]
    return grad_sum, grad_x, parameters


def kept_entries(like: Tensor, dropout_p: float, seed: int) -> Tensor:
    """Returns the factors of dropout on entries of the branch, the same in both passes."""
    factors = torch.ones_like(like, requires_grad=False)
    drop_rows(0, *like.shape, _flat(factors), dropout_p, seed, _flat(factors))
    return factors


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    if prefers_onednn(x.size(0), weight):
        return out.copy_(onednn_linear(x, weight, bias))
    if bias is None:
        return torch.mm(x, weight.t(), out=out)
    return torch.addmm(bias, x, weight.t(), out=out)


def _add_product(a: Tensor, b: Tensor, out: Tensor, keep: bool = True) -> Tensor:
    """Adds a matrix product to a matrix, or, without ``keep``, overwrites the matrix."""
    if not prefers_onednn(a.size(0), b):
        return out.addmm_(a, b, beta=int(keep))
    product = onednn_linear(a, b.t())
    return out.add_(product) if keep else out.copy_(product)


def _norm(branch: Branch) -> Norm:
    options = (branch.eps, branch.dropout_p, branch.seed)
    return Norm(_flat(branch.norm), _flat(branch.norm_bias), *options)


def _flat(x: Tensor) -> Array:
    return x.detach().view(-1).numpy()


def _step(branch: Branch) -> int:
    return max(MIN_ROWS, TILE // (branch.norm.numel() * branch.norm.element_size()))


def _workers(rows: int) -> int:
    return max(1, min(threads.num_workers(), rows // MIN_SHARE))


@kernel
def add_and_normalise(
    rows: Any, residual: Array, hidden: Array, norm: Norm, deviation: Array, out: Array
) -> None:
    """Computes some rows of the output. Overwrites ``hidden``, which begins with row ``offset``, by
    normalised rows, and ``deviation`` by one over standard deviations. The residual may repeat.
    """
    (first, last, offset), (weight, bias, eps, dropout_p, seed) = rows, norm
    size, zero, one = uintp(weight.shape[0]), out.dtype.type(0), out.dtype.type(1)
    factor, repeated = kept_factor(out, dropout_p), residual.shape[0] // weight.shape[0]
    for row in range(first, last):
        low, target = uintp(row - offset) * size, uintp(row) * size
        start = uintp(row % repeated) * size
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
            out[target + c] = value * weight[c] + bias[c]


@kernel
def differentiate(
    rows: Any, read: Any, norm: Norm, out: Array, out_hidden: Array, sums: Array
) -> None:
    """Computes gradients of the sum, and, in ``out_hidden``, which begins with the first row, of
    the branch before dropout. Adds gradients of weight, bias and the branch's bias to ``sums``.
    """
    (first, last), (weight, _, _, dropout_p, seed) = rows, norm
    grad, hidden, deviation = read
    size, zero = uintp(weight.shape[0]), grad.dtype.type(0)
    factor, inverse_size = kept_factor(grad, dropout_p), grad.dtype.type(1) / grad.dtype.type(size)
    for row in range(first, last):
        low, scale, mean_grad, correlation = uintp(row) * size, deviation[row], zero, zero
        target, key = uintp(row - first) * size, row_key(seed, row)
        for c in range(size):
            value = grad[low + c] * weight[c]
            mean_grad += value
            correlation += value * hidden[low + c]
        mean_grad, correlation = mean_grad * inverse_size, correlation * inverse_size
        for c in range(size):
            value = grad[low + c]
            sums[c] += value * hidden[low + c]
            sums[size + c] += value
            out[low + c] = scale * (value * weight[c] - mean_grad - hidden[low + c] * correlation)
        for c in range(size):
            out_hidden[target + c] = dropped(out[low + c], factor, key, c, dropout_p)
        for c in range(size):
            sums[uintp(2) * size + c] += out_hidden[target + c]


@kernel
def rectify_gradient(grad: Array, hidden: Array, total: Array) -> None:
    """Zeroes gradients of inactive entries, and adds column sums to ``total``."""
    size, zero = uintp(total.shape[0]), grad.dtype.type(0)
    for low in range(uintp(0), uintp(grad.shape[0]), size):
        for c in range(size):
            value, active = grad[low + c], hidden[low + c] > zero
            grad[low + c] = value if active else zero
        for c in range(size):
            total[c] += grad[low + c]
