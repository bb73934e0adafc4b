"""Residual branches on a CPU, some rows at a time: what one step makes of them stays in cache for the next. Gradients
of parameters are summed by each thread for consecutive rows, and then added in one order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tg_mlc.ops.kernels import residual_numba, threads
from tg_mlc.ops.kernels.products import prefers_onednn
from tg_mlc.ops.torch_internals import onednn_linear

#: Bytes of states to take at a time, and the least rows, as smaller products are slow.
TILE, MIN_ROWS = 2**19, 512
#: A thread is not worth waking for fewer rows.
MIN_SHARE = 256


class Branch(NamedTuple):
    """The parameters of a branch: one linear layer, or two with a ReLU in between, then a normalisation."""

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

    hidden: Tensor  #: behind the ReLU, or empty
    normalised: Tensor
    deviation: Tensor  #: one over the standard deviation of every row


def forward(residual: Tensor, x: Tensor, branch: Branch, keep: bool) -> tuple[Tensor, Activations]:
    """The output, and what is kept, which is in vain unless asked for."""
    rows, size, step = x.size(0), branch.norm.numel(), _step(branch)
    inner = 0 if branch.first is None else branch.first.size(0)
    out, kept_rows = x.new_empty(rows, size), rows if keep else 0
    kept = Activations(x.new_empty(kept_rows, inner), x.new_empty(kept_rows, size), x.new_empty(rows))

    norm, flat_residual, written = _norm(branch), _flat(residual), (_flat(kept.deviation), _flat(out))

    def work(_: int, begin: int, end: int) -> None:
        hidden, normalised = kept[:2] if keep else (x.new_empty(step, inner), x.new_empty(step, size))
        flat = _flat(normalised)
        for low in range(begin, end, step):
            high = min(low + step, end)
            offset = 0 if keep else low
            y, of = x[low:high], slice(low - offset, high - offset)
            if branch.first is not None:
                y = _linear(y, branch.first, branch.first_bias, hidden[of])
                residual_numba.rectify(_flat(y))
            _linear(y, branch.last, branch.last_bias, normalised[of])
            residual_numba.add_and_normalise(low, high, flat_residual, flat, offset, norm, *written)

    _share(work, rows)
    return out, kept


def backward(
    grad: Tensor, x: Tensor, branch: Branch, kept: Activations, same: bool
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The gradients of the sum (and residual), the input (and residual, if the same) and six parameters."""
    rows, size, step = x.size(0), branch.norm.numel(), _step(branch)
    inner = kept.hidden.size(1)
    grad_sum = torch.empty_like(grad)
    grad_x = grad_sum if same else torch.empty_like(x)
    parts = _workers(rows)
    like = [branch.last if branch.first is None else branch.first, branch.last]
    weights = [x.new_zeros(parts, *weight.shape) for weight in like]
    hidden_sums, sums = x.new_zeros(parts, inner), x.new_zeros(parts, 3, size)

    read = _flat(grad), _flat(kept.normalised), _norm(branch), _flat(kept.deviation)
    written = _flat(grad_sum)

    def work(part: int, begin: int, end: int) -> None:
        scratch, scratch_hidden = x.new_empty(step, size), x.new_empty(step, inner)
        flat, flat_sums = _flat(scratch), _flat(sums[part])
        for low in range(begin, end, step):
            high = min(low + step, end)
            residual_numba.differentiate((low, high), *read, written, flat, flat_sums)
            g, y = scratch[: high - low], x[low:high]
            if branch.first is not None:
                hidden = kept.hidden[low:high]
                _add_product(g.t(), hidden, weights[1][part])
                g = _add_product(g, branch.last, scratch_hidden[: high - low], keep=False)
                residual_numba.rectify_gradient(_flat(g), _flat(hidden), _flat(hidden_sums[part]))
            _add_product(g.t(), y, weights[0][part])
            _add_product(g, like[0], grad_x[low:high], keep=same)

    _share(work, rows)
    of_norm, of_norm_bias, of_bias = sums.sum(dim=0)
    first, last = (weight.sum(dim=0) for weight in weights)
    last = first if branch.first is None else last
    return grad_sum, grad_x, [first, hidden_sums.sum(dim=0), last, of_bias, of_norm, of_norm_bias]


def kept_entries(like: Tensor, dropout_p: float, seed: int) -> Tensor:
    """Factors on the entries of the branch in both passes."""
    factors = torch.ones_like(like, requires_grad=False)
    residual_numba.drop_rows(like.size(1), dropout_p, seed, _flat(factors))
    return factors


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    if prefers_onednn(x, weight):
        return out.copy_(onednn_linear(x, weight, bias))
    return torch.mm(x, weight.t(), out=out) if bias is None else torch.addmm(bias, x, weight.t(), out=out)


def _add_product(a: Tensor, b: Tensor, out: Tensor, keep: bool = True) -> Tensor:
    """Adds a matrix product to a matrix, or, on request, writes it in place of it."""
    if not prefers_onednn(a, b):
        return out.addmm_(a, b, beta=int(keep))
    product = onednn_linear(a, b.t())
    return out.add_(product) if keep else out.copy_(product)


def _norm(branch: Branch) -> residual_numba.Norm:
    return residual_numba.Norm(_flat(branch.norm), _flat(branch.norm_bias), branch.eps, branch.dropout_p, branch.seed)


def _flat(x: Tensor) -> np.ndarray[Any, Any]:
    return x.detach().view(-1).numpy()


def _step(branch: Branch) -> int:
    return max(MIN_ROWS, TILE // (branch.norm.numel() * branch.norm.element_size()))


def _workers(rows: int) -> int:
    return max(1, min(threads.num_workers(), rows // MIN_SHARE))


def _share(work: Callable[[int, int, int], None], rows: int) -> None:
    bounds = threads.divide(rows, _workers(rows))
    threads.run_apart(lambda worker: work(worker, *bounds[worker : worker + 2]), _workers(rows))
