"""Internals of PyTorch that the package uses, and whether oneDNN and Numba can be used."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._functorch import (
    is_functorch_wrapped_tensor,
    is_legacy_batchedtensor,
    peek_interpreter_stack,
)
from torch.autograd import forward_ad
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.modules import module as modules

from tg_mlc._optional import how_to_install

# Names that are imported from PyTorch.
__all__ = ["is_functorch_wrapped_tensor", "is_legacy_batchedtensor", "statically_known_true"]

#: Number of multiplications above which oneDNN is faster: 512 x 64 by 64 x 64.
LEAST = 2**21
# The hooks of all modules; PyTorch 2.6 has no function that tells whether there are any.
_ALL_HOOKS = (
    modules._global_forward_pre_hooks,
    modules._global_forward_hooks,
    modules._global_backward_pre_hooks,
    modules._global_backward_hooks,
)


def in_forward_mode() -> bool:
    """Tells whether derivatives are taken in forward mode."""
    return forward_ad._current_level >= 0


def is_recorded() -> bool:
    """Tells whether a compiler or a CUDA graph records calls. Values are then unknown."""
    if torch.compiler.is_compiling():
        return True
    cuda: Any = torch.cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


def in_transform() -> bool:
    """Tells whether a transform of :mod:`torch.func` runs."""
    return peek_interpreter_stack() is not None


def is_exporting() -> bool:
    """Tells whether torch.export runs. PyTorch 2.11 reports torch.compile as an export, too."""
    if torch.compiler.is_dynamo_compiling():
        return False
    return hasattr(torch.compiler, "is_exporting") and torch.compiler.is_exporting()


def is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Tells whether a module has exactly this type and no hooks."""
    if type(module) is not kind or "forward" in vars(module):
        return False
    hooks = module._forward_pre_hooks or module._forward_hooks
    return not (hooks or module._backward_pre_hooks or module._backward_hooks or any(_ALL_HOOKS))


def once_differentiable(tensors: Iterable[Tensor], message: str) -> None:
    """Registers hooks that raise, with a message, when gradients are differentiated."""

    def refuse(grad: Tensor) -> Tensor | None:
        if not torch.is_grad_enabled():  # No second derivative is computed.
            return None
        delayed: Tensor = torch._C._functions.DelayedError(message, 1)(grad)
        return delayed

    for tensor in tensors:
        if tensor.requires_grad:
            tensor.register_hook(refuse)  # type: ignore[no-untyped-call]


def has_onednn() -> bool:
    """Tells whether PyTorch has been built with the linear maps of oneDNN."""
    return hasattr(torch.ops.mkldnn, "_linear_pointwise")


def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Computes a linear map in single precision, and records no gradient."""
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return out


def prefers_onednn(num_rows: int, weight: Tensor) -> bool:
    """Tells whether oneDNN is enabled, and faster than MKL for this number of rows.

    PyTorch uses MKL for linear maps. MKL does not use AVX-512 on AMD processors. There,
    oneDNN takes less than half the time (5088 x 128 by 128 x 128 on one core of an EPYC: 0.8
    against 1.9 ms), in the same precision.
    """
    is_faster = num_rows * weight.numel() >= LEAST and _onednn_is_faster()
    return is_faster and bool(torch.backends.mkldnn.enabled)


@cache
def _onednn_is_faster() -> bool:
    if not has_onednn() or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # The vendor is unknown.
        return False
    return any(line.startswith("vendor_id") and "AuthenticAMD" in line for line in lines)


@cache
def _numba_problem() -> str | None:
    try:
        import_module("numba")
    except ModuleNotFoundError:
        return f"Numba is not installed; {how_to_install('numba')}"
    except ImportError as error:
        return f"Numba cannot be imported: {error}"
    return None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def numba_problem() -> str | None:
    """Returns why Numba is unusable, or :obj:`None`. Compilers treat the result as constant."""
    return _numba_problem()
