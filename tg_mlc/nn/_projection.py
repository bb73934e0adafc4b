"""Linear layers that take the faster library for matrix products, forward and backward."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.nn import Linear

from tg_mlc.ops.runtime import (
    in_forward_mode,
    is_functorch_wrapped_tensor,
    is_legacy_batchedtensor,
    is_plain,
    onednn_linear,
    prefers_onednn,
)


def projected(x: Tensor, layer: nn.Module) -> Tensor:
    """What a linear layer makes of an input, by the faster library, unless somebody looks on."""
    if not torch.compiler.is_compiling() and is_plain(layer, Linear):
        weight, bias = cast(Linear, layer).weight, cast(Linear, layer).bias
        if x.dim() == 2 and not is_lazy(weight) and may_take((x, weight, bias)) and prefers_onednn(x.size(0), weight):
            out: Tensor = _Projection.apply(x, weight, bias)  # type: ignore[no-untyped-call]
            return out
    return cast(Tensor, layer(x))


def may_take(tensors: tuple[Any, ...]) -> bool:
    """Tells whether these are of the type of kernels, and no compiler or other kind of derivative looks on."""
    if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu") or in_forward_mode():
        return False
    given = [tensor for tensor in tensors if tensor is not None]
    taken = all(tensor.device.type == "cpu" and tensor.dtype == torch.float32 for tensor in given)
    return taken and not any(map(is_functorch_wrapped_tensor, given))


class _Projection(torch.autograd.Function):
    """A linear map by oneDNN, whose gradients are as large products as its output."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return onednn_linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        # Gradients that are to be differentiated once more, or several gradients at once, are for PyTorch's operators.
        product = torch.matmul if torch.is_grad_enabled() or is_legacy_batchedtensor(grad) else _product
        return (
            product(grad, weight) if of_x else None,
            product(grad.mT, x) if of_weight else None,
            grad.sum(dim=0) if of_bias else None,
        )


def _product(a: Tensor, b: Tensor) -> Tensor:
    return onednn_linear(a, b.mT)
