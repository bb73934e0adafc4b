"""Shared refusals of operators that are opaque to autograd and compilers: they are differentiable once, backwards, and
keep no weights.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from tg_mlc.ops.attention.backend import AttentionCall
from tg_mlc.ops.torch_internals import is_functorch_wrapped_tensor


def refuse(name: str, call: AttentionCall) -> str | None:
    """Why the backend of such an operator cannot take a call, if so."""
    if differentiates_forward(call):
        return f"{name}: it has no forward-mode derivatives; take 'dense', 'scatter' or 'reference'"
    if is_transformed(call):
        return f"{name}: it has no rules for the transforms of torch.func; take 'dense', 'scatter' or 'reference'"
    if call.return_weights:
        return f"{name}: weights are not kept; take 'dense', 'scatter' or 'reference'"
    return None


def differentiates_forward(call: AttentionCall) -> bool:
    """Whether forward-mode derivatives are asked for, which an opaque operator would take for zero."""
    if torch.compiler.is_compiling():
        return False
    return any(unpack_dual(tensor).tangent is not None for tensor in call.tensors)  # type: ignore[no-untyped-call]


def is_transformed(call: AttentionCall) -> bool:
    """Whether a transform of :mod:`torch.func` looks on, for which an opaque operator has no rules."""
    return not torch.compiler.is_compiling() and any(map(is_functorch_wrapped_tensor, call.tensors))


def draw_seed(dropout_p: float) -> Tensor:
    """Where dropout starts from, in both passes."""
    if dropout_p == 0.0:
        return torch.zeros(1, dtype=torch.long, device="cpu")
    return torch.randint(2**31, (1,), device="cpu")
