r"""Residual branches of a block, :math:`\textrm{norm}(\mathbf{r} + \textrm{dropout}(\textrm{layers}(\mathbf{x})))`.

In narrow models, what stands between the matrix products takes as long as they do, most of it to write states that are
too large for a cache and to read them again. Here a CPU takes all steps for some rows before it goes on to the next.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import Linear

from tg_mlc.nn._projection import may_take
from tg_mlc.ops.dropout import dropout
from tg_mlc.ops.runtime import is_legacy_batchedtensor, is_plain, numba_problem


def normalised_branch(
    residual: Tensor, x: Tensor, layers: nn.Module, norm: nn.LayerNorm, p: float, training: bool
) -> Tensor:
    """The normalised sum of a residual, whose rows repeat if they are fewer, and of what layers make of an input, after
    dropout with probability :obj:`p` in training.
    """
    linears, p = _linears(layers), p if training else 0.0
    if not linears or not is_plain(norm, nn.LayerNorm) or numba_problem() is not None:
        return _composed(residual, x, layers, norm, p)
    first, last = linears if len(linears) == 2 else (None, *linears)
    of_first = (None, None) if first is None else (first.weight, first.bias)
    tensors = (residual, x, *of_first, last.weight, last.bias, norm.weight, norm.bias)
    if not _may_fuse(tensors):
        return _composed(residual, x, layers, norm, p)
    seed = int(torch.randint(2**31, (), device="cpu")) if p > 0.0 else 0
    keep = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    out: Tensor = _Fused.apply(*tensors, norm.eps, p, seed, keep)  # type: ignore[no-untyped-call]
    return out


def add_repeated(residual: Tensor, x: Tensor) -> Tensor:
    """The sum with a residual whose rows repeat if they are fewer."""
    if residual.shape == x.shape:
        return residual + x
    return (residual + x.view(-1, *residual.shape)).flatten(end_dim=1)


def _composed(residual: Tensor, x: Tensor, layers: nn.Module, norm: nn.Module, p: float) -> Tensor:
    return cast(Tensor, norm(add_repeated(residual, dropout(layers(x), p))))


def _linears(layers: nn.Module) -> list[Linear]:
    """A linear layer, or two with a ReLU in between, unless somebody looks into them."""
    modules = list(layers.children()) if is_plain(layers, nn.Sequential) else [layers]
    kinds = [Linear] if len(modules) == 1 else [Linear, nn.ReLU, Linear]
    fits = len(modules) == len(kinds) and all(map(is_plain, modules, kinds))
    return cast(list[Linear], modules[::2]) if fits else []


def _may_fuse(tensors: tuple[Any, ...]) -> bool:
    """Tells whether there are kernels for such tensors."""
    residual, x, *_, last, _, weight, bias = tensors
    if weight is None or bias is None or 0 in (residual.numel(), x.numel()):
        return False
    if not (residual.dim() == x.dim() == 2 and weight.dim() == 1 and x.size(0) % residual.size(0) == 0):
        return False
    first = tensors[2]
    if weight.numel() != residual.size(1) or last.size(0) != residual.size(1) or _width(first, last) != x.size(1):
        return False
    return may_take(tensors)


def _width(first: Tensor | None, last: Tensor) -> int:
    """The size of the inputs that the layers take; -1 if the second does not take what the first makes."""
    if first is None:
        return last.size(1)
    return first.size(1) if first.size(0) == last.size(1) else -1


class _Fused(torch.autograd.Function):
    """Some rows at a time, forward and backward."""

    @staticmethod
    def forward(ctx: Any, residual: Tensor, x: Tensor, *rest: Any) -> Tensor:
        *parameters, eps, p, seed, keep = rest
        ctx.options, ctx.same = (eps, p, seed), residual is x
        branch = _kernels().Branch(*parameters, *ctx.options)
        out, kept = _kernels().forward(residual.contiguous(), x.contiguous(), branch, keep)
        ctx.save_for_backward(residual, x, *parameters, *kept)
        return out  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        residual, x, *parameters, hidden, normalised, deviation = ctx.saved_tensors
        # Gradients that are to be differentiated once more, or several gradients at once, are for PyTorch's operators.
        if torch.is_grad_enabled() or is_legacy_batchedtensor(grad):
            with torch.enable_grad():
                found = _differentiable_gradients(grad, (residual, x, *parameters), *ctx.options)
            return *found, *(None,) * 4
        branch, kept = (
            _kernels().Branch(*parameters, *ctx.options),
            _kernels().Activations(hidden, normalised, deviation),
        )
        of_sum, of_x, found = _kernels().backward(grad.contiguous(), x.contiguous(), branch, kept, ctx.same)
        if residual.shape != of_sum.shape:
            of_sum = of_sum.view(-1, *residual.shape).sum(dim=0)
        grads = [None if tensor is None else of for tensor, of in zip(parameters, found, strict=True)]
        return None if ctx.same else of_sum, of_x, *grads, *(None,) * 4


def _differentiable_gradients(
    grad: Tensor, tensors: tuple[Tensor | None, ...], eps: float, p: float, seed: int
) -> list[Tensor | None]:
    """Gradients by PyTorch's operators, with the same entries dropped."""
    aliases: Any = [None if tensor is None else tensor.view_as(tensor) for tensor in tensors]
    residual, x, first, first_bias, last, last_bias, weight, bias = aliases
    hidden = F.linear(x if first is None else F.relu(F.linear(x, first, first_bias)), last, last_bias)
    hidden = hidden * _kernels().kept_entries(hidden, p, seed)
    out = F.layer_norm(add_repeated(residual, hidden), weight.shape, weight, bias, eps)
    wanted = {place: one for place, one in enumerate(aliases) if one is not None and one.requires_grad}
    found = dict(zip(wanted, torch.autograd.grad(out, list(wanted.values()), grad, create_graph=True), strict=True))
    return [found.get(place) for place in range(len(aliases))]


def _kernels() -> Any:
    return import_module("tg_mlc.ops.kernels.residual_numba")
