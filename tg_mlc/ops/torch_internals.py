"""Internals of PyTorch that operators and layers use, all in this file."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor, is_legacy_batchedtensor
from torch.autograd import forward_ad
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.modules.module import _has_any_global_hook

__all__ = [
    "has_onednn",
    "in_forward_mode",
    "is_functorch_wrapped_tensor",
    "is_legacy_batchedtensor",
    "is_plain",
    "onednn_linear",
    "statically_known_true",
]


def in_forward_mode() -> bool:
    """Tells whether derivatives are taken in forward mode."""
    return forward_ad._current_level >= 0


def is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Tells whether a module is of that very kind, and nobody listens to it."""
    listeners = (module._forward_pre_hooks, module._forward_hooks, module._backward_pre_hooks, module._backward_hooks)
    changed = any(listeners) or "forward" in vars(module) or _has_any_global_hook()  # type: ignore[no-untyped-call]
    return type(module) is kind and not changed


def has_onednn() -> bool:
    """Tells whether PyTorch has been built with the linear maps of oneDNN."""
    return hasattr(torch.ops.mkldnn, "_linear_pointwise")


def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""The rows :math:`\mathbf{W} \mathbf{x} + \mathbf{b}` for matrices in single precision; no gradient is recorded.

    Args:
        x (torch.Tensor): The inputs :math:`(N, F)`.
        weight (torch.Tensor): The weights :math:`(F', F)`.
        bias (torch.Tensor, optional): The bias :math:`(F')`. (default: :obj:`None`)
    """
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return out
