r"""Fast implementations of steps of an attention block, which :mod:`tg_mlc.nn._plan` chooses.

Projections use oneDNN on processors where it is faster.

Residual branches, :math:`\textrm{norm}(\mathbf{r} +
\textrm{dropout}(\textrm{layers}(\mathbf{x})))`: in narrow models, the steps between matrix
products take as long as the products, because states do not fit into a cache. A few rows at a time
therefore go through all steps.

In attention of many queries to few keys, projections of queries and messages are folded into keys
and values:

.. math::
    (\mathbf{W}^{q,k} \mathbf{u}_i)^{\top} \mathbf{k}^k_j
    = \mathbf{u}_i^{\top} (\mathbf{W}^{q,k \top} \mathbf{k}^k_j), \qquad
    \mathbf{W}^{c,k} \sum_j \alpha^k_{ij} \mathbf{v}^k_j
    = \sum_j \alpha^k_{ij} \mathbf{W}^{c,k} \mathbf{v}^k_j

The scores of all heads are then a single product, and so are the messages. If all samples share
states, queries are projected once instead, which costs less than folding.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import Linear

from tg_mlc.nn._plan import linears_of
from tg_mlc.ops import Blocks
from tg_mlc.ops.attention.dense import pad
from tg_mlc.ops.dropout import dropout
from tg_mlc.ops.runtime import is_exporting, is_legacy_batchedtensor, onednn_linear


def projected(x: Tensor, layer: nn.Module, by_onednn: bool) -> Tensor:
    """Applies a linear layer, with oneDNN if planned."""
    if by_onednn:
        return cast(Tensor, cast(Any, _Projection).apply(x, layer.weight, layer.bias))
    return cast(Tensor, layer(x))


class _Projection(torch.autograd.Function):
    """A linear map by oneDNN. Its gradients also use oneDNN."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return onednn_linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        # Second derivatives, and several gradients at once, are for PyTorch's operators.
        by_torch = torch.is_grad_enabled() or is_legacy_batchedtensor(grad)
        product = torch.matmul if by_torch else lambda a, b: onednn_linear(a, b.mT)
        grad_x = product(grad, weight) if needs_x else None
        grad_weight = product(grad.mT, x) if needs_weight else None
        return grad_x, grad_weight, grad.sum(dim=0) if needs_bias else None


def normalised_branch(
    residual: Tensor, x: Tensor, layers: nn.Module, norm: nn.LayerNorm, p: float, fuses: bool
) -> Tensor:
    """Returns ``norm(residual + dropout(layers(x)))``. A shorter residual is repeated."""
    if not fuses:
        return cast(Tensor, norm(add_repeated(residual, dropout(layers(x), p))))
    linears = linears_of(layers)
    first = (None, None) if len(linears) == 1 else (linears[0].weight, linears[0].bias)
    tensors = (residual, x, *first, linears[-1].weight, linears[-1].bias, norm.weight, norm.bias)
    seed = int(torch.randint(2**31, (), device="cpu")) if p > 0.0 else 0
    requires_grad = any(x is not None and x.requires_grad for x in tensors)
    keep = torch.is_grad_enabled() and requires_grad
    return cast(Tensor, cast(Any, _Branch).apply(*tensors, norm.eps, p, seed, keep))


def any_number(size: int) -> bool:
    """Tells whether a size is symbolic in an export. Broadcasting would then fix the size."""
    return is_exporting() and isinstance(size, torch.SymInt)


def repeat_rows(x: Tensor, num_rows: int) -> Tensor:
    """Repeats all rows in order, up to a number of rows that may be symbolic."""
    return x[torch.arange(num_rows, device=x.device) % x.size(0)]


def add_repeated(residual: Tensor, x: Tensor) -> Tensor:
    """Adds a residual. Its rows repeat if it has fewer."""
    if any_number(x.size(0)) and not any_number(residual.size(0)):
        return repeat_rows(residual, x.size(0)) + x
    if residual.shape == x.shape:
        return residual + x
    return (residual + x.view(-1, *residual.shape)).flatten(end_dim=1)


class _Branch(torch.autograd.Function):
    """A residual branch that is computed a few rows at a time in both passes."""

    @staticmethod
    def forward(ctx: Any, residual: Tensor, x: Tensor, *rest: Any) -> Tensor:
        *parameters, eps, p, seed, keep = rest
        ctx.options, ctx.same = (eps, p, seed), residual is x
        kernels = import_module("tg_mlc.ops.kernels.residual_numba")
        branch = kernels.Branch(*parameters, *ctx.options)
        out, activations = kernels.forward(residual.contiguous(), x.contiguous(), branch, keep)
        ctx.save_for_backward(residual, x, *parameters, *activations)
        return out  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        residual, x, *parameters, hidden, normalised, deviation = ctx.saved_tensors
        # Second derivatives, and several gradients at once, are for PyTorch's operators.
        if torch.is_grad_enabled() or is_legacy_batchedtensor(grad):
            with torch.enable_grad():
                grads = _differentiable_gradients(grad, (residual, x, *parameters), *ctx.options)
            return *grads, *(None,) * 4
        kernels = import_module("tg_mlc.ops.kernels.residual_numba")
        branch = kernels.Branch(*parameters, *ctx.options)
        activations = kernels.Activations(hidden, normalised, deviation)
        inputs = (grad.contiguous(), x.contiguous(), branch, activations, ctx.same)
        grad_sum, grad_x, grads = kernels.backward(*inputs)
        if residual.shape != grad_sum.shape:
            grad_sum = grad_sum.view(-1, *residual.shape).sum(dim=0)
        grads = [None if p is None else g for p, g in zip(parameters, grads, strict=True)]
        return None if ctx.same else grad_sum, grad_x, *grads, *(None,) * 4


def _differentiable_gradients(
    grad: Tensor, tensors: tuple[Tensor | None, ...], eps: float, p: float, seed: int
) -> list[Tensor | None]:
    """Computes gradients with PyTorch's operators and the same dropped entries."""
    aliases: Any = [None if tensor is None else tensor.view_as(tensor) for tensor in tensors]
    residual, x, first, first_bias, last, last_bias, weight, bias = aliases
    hidden = x if first is None else F.relu(F.linear(x, first, first_bias))
    hidden = F.linear(hidden, last, last_bias)
    kernels = import_module("tg_mlc.ops.kernels.residual_numba")
    hidden = hidden * kernels.kept_entries(hidden, p, seed)
    out = F.layer_norm(add_repeated(residual, hidden), weight.shape, weight, bias, eps)
    leaves = [x for x in aliases if x is not None and x.requires_grad]
    grads = iter(torch.autograd.grad(out, leaves, grad, create_graph=True))
    return [next(grads) if x is not None and x.requires_grad else None for x in aliases]


def folded_attention(
    states: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Blocks,
    query: Linear,
    out: Linear,
    scale: float,
    dropout_p: float,
    num_copies: int,
) -> Tensor:
    """Returns messages after the projection ``out``, ``[num_queries, d]``, from query states."""
    channels, heads, num_keys = out.weight.size(0), value.size(1), max(pattern.max_keys, 1)
    key, padding = key * scale, None
    if pattern.num_samples * num_keys != pattern.num_keys:
        # The mask of padding keys, [B, 1, S]. A sample without keys attends to one padding key with
        # value zero, and thus gives zeros, not NaN.
        padding = torch.arange(num_keys) >= pattern.key_ptr.diff().clamp(min=1).view(-1, 1, 1)
    if num_copies != 1:
        queries = query(states).view(states.size(0), *key.shape[1:])
        score = torch.einsum("lhc,bhsc->blhs", queries, pad(key, pattern.key_ptr, num_keys))
        score = score if padding is None else score.masked_fill(padding.unsqueeze(1), -math.inf)
    else:
        keys = _fold(key, query.weight.view(heads, -1, states.size(1)), pattern)
        states = states.view(pattern.num_samples, pattern.max_queries, states.size(1))
        if query.bias is None and padding is None:
            score = torch.bmm(states, keys.mT)
        else:  # The offset contains scores of the bias, and -inf for padding keys.
            offset = key.new_zeros(pattern.num_samples, heads, num_keys)
            if query.bias is not None:
                scores = (key * query.bias.view(heads, -1)).sum(dim=-1, keepdim=True)
                offset = pad(scores, pattern.key_ptr, num_keys).squeeze(-1)
            offset = offset if padding is None else offset.masked_fill(padding, -math.inf)
            score = torch.baddbmm(offset.flatten(1).unsqueeze(1), states, keys.mT)
        score = score.view(*states.shape[:2], heads, num_keys)
    weights = dropout(score.softmax(dim=-1), dropout_p)
    values = _fold(value, out.weight.view(channels, heads, -1).permute(1, 2, 0), pattern)
    message = torch.bmm(weights.flatten(start_dim=2), values).flatten(end_dim=1)
    return message if out.bias is None else message + out.bias.to(message.dtype)


def _fold(x: Tensor, weight: Tensor, pattern: Blocks) -> Tensor:
    """Multiplies ``[num_keys, heads, C]`` by ``[heads, C, d]``, padded to ``[B, heads * S, d]``."""
    folded = torch.bmm(x.transpose(0, 1), weight).transpose(0, 1)
    return pad(folded, pattern.key_ptr, max(pattern.max_keys, 1)).flatten(1, 2)
