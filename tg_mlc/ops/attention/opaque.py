"""Operators that are opaque to autograd and compilers: they are differentiable once, backwards, and keep no weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from tg_mlc.ops.attention.backend import AttentionCall, accumulator
from tg_mlc.ops.torch_internals import is_functorch_wrapped_tensor


def register(
    name: str,
    places: tuple[str, ...],
    device: str | None,
    forward: Callable[..., tuple[Tensor, Tensor]],
    backward: Callable[..., tuple[Tensor, ...]],
    kept_size: Callable[..., Any],
) -> Any:
    """The operator ``tg_mlc::{name}`` for a kind of device (or all), given the names of the tensors that say which
    pairs attend.

    All three functions take ``query, key, value, bias, *places, scale, dropout_p, seed``: ``forward`` returns the
    output and what is kept for the way back, whose size ``kept_size`` returns; ``backward``, which takes the output's
    gradient and what was kept before them, the gradients of query, key, value and bias.
    """
    tensors = ", ".join(f"Tensor {place}" for place in places)
    taken = (
        f"Tensor query, Tensor key, Tensor value, Tensor? bias, {tensors}, float scale, float dropout_p, Tensor seed"
    )
    given: Any = {"mutates_args": (), "device_types": device}
    operator: Any = torch.library.custom_op(
        f"tg_mlc::{name}", forward, schema=f"({taken}) -> (Tensor, Tensor)", **given
    )
    gradient: Any = torch.library.custom_op(
        f"tg_mlc::{name}_backward",
        backward,
        schema=f"(Tensor grad, Tensor kept, {taken}) -> (Tensor, Tensor, Tensor, Tensor)",
        **given,
    )

    @operator.register_fake  # type: ignore[untyped-decorator]
    def _(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        out = query.new_empty(query.size(0), query.size(1), value.size(2))
        return out, query.new_empty(kept_size(query, key, value, *rest), dtype=accumulator(query))

    @gradient.register_fake  # type: ignore[untyped-decorator]
    def _(grad: Tensor, kept: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, *_: Any) -> Any:
        grads = [query.new_empty(tensor.shape) for tensor in (query, key, value)]
        return *grads, query.new_empty((0, query.size(1)) if bias is None else bias.shape)

    def differentiate(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * (7 + len(places))
        *tensors, seed, kept = ctx.saved_tensors
        *grads, grad_bias = gradient(grad, kept, *tensors, ctx.scale, ctx.dropout_p, seed)
        return *grads, None if tensors[3] is None else grad_bias, *(None,) * (3 + len(places))

    operator.register_autograd(differentiate, setup_context=_setup_context)
    return operator


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.scale, ctx.dropout_p, seed = inputs
    ctx.save_for_backward(*tensors, seed, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def refuse(name: str, call: AttentionCall) -> str | None:
    """Reason why the backend of such an operator cannot take a call, if so."""
    if differentiates_forward(call):
        return f"{name}: it has no forward-mode derivatives; take 'dense', 'scatter' or 'reference'"
    if is_transformed(call):
        return f"{name}: it has no rules for the transforms of torch.func; take 'dense', 'scatter' or 'reference'"
    if call.return_weights:
        return f"{name}: weights are not kept; take 'dense', 'scatter' or 'reference'"
    return None


def differentiates_forward(call: AttentionCall) -> bool:
    """Tells whether forward-mode derivatives are asked for, which an opaque operator would take for zero."""
    if torch.compiler.is_compiling():
        return False
    return any(unpack_dual(tensor).tangent is not None for tensor in call.tensors)  # type: ignore[no-untyped-call]


def is_transformed(call: AttentionCall) -> bool:
    """Tells whether a transform of :mod:`torch.func` looks on, for which an opaque operator has no rules."""
    return not torch.compiler.is_compiling() and any(map(is_functorch_wrapped_tensor, call.tensors))


def draw_seed(dropout_p: float) -> Tensor:
    """Seed of dropout, for both passes."""
    if dropout_p == 0.0:
        return torch.zeros(1, dtype=torch.long, device="cpu")
    return torch.randint(2**31, (1,), device="cpu")
