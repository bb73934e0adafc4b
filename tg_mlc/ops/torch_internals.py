"""Internals of PyTorch that operators and layers query, all in this file."""

from torch import nn
from torch._C._functorch import is_functorch_wrapped_tensor, is_legacy_batchedtensor
from torch.autograd import forward_ad
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.modules.module import _has_any_global_hook

__all__ = [
    "in_forward_mode",
    "is_functorch_wrapped_tensor",
    "is_legacy_batchedtensor",
    "is_plain",
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
