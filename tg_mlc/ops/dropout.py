"""Dropout on a CPU by hashes, on all threads. PyTorch draws random numbers on one thread."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tg_mlc._options import check_share
from tg_mlc.ops.runtime import is_functorch_wrapped_tensor, numba_problem


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Zeroes entries with probability ``p``, and scales other entries to keep the mean."""
    check_share("p", p)
    if not training or p == 0.0:
        return x
    wrapped = torch.compiler.is_compiling() or is_functorch_wrapped_tensor(x)
    if x.device.type != "cpu" or wrapped or numba_problem():
        return F.dropout(x, p)
    seed = int(torch.randint(2**31, (), device="cpu"))
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    out: Tensor = _Hashed.apply(exact, p, seed)  # type: ignore[no-untyped-call]
    return out.to(x.dtype)


@torch.library.custom_op("tg_mlc::hashed_dropout", mutates_args=(), device_types="cpu")
def hashed_dropout(x: Tensor, p: float, seed: int) -> Tensor:
    """Applies dropout as a custom operator, which PyTorch can vectorise over several gradients."""
    out: Tensor = import_module("tg_mlc.ops.kernels.dropout_numba").drop(x.detach(), p, seed)
    return out


@hashed_dropout.register_fake
def _(x: Tensor, p: float, seed: int) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


class _Hashed(torch.autograd.Function):
    """Dropout that recomputes its mask in the backward pass."""

    @staticmethod
    def forward(x: Tensor, p: float, seed: int) -> Tensor:
        out: Tensor = hashed_dropout(x, p, seed)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float, int], output: Tensor) -> None:
        _, ctx.p, ctx.seed = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Hashed.apply(grad, ctx.p, ctx.seed), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        return _Hashed.forward(tangent, ctx.p, ctx.seed)
