"""Calls of the operator, and common parts of its backends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from tg_mlc.ops.patterns import Pattern
from tg_mlc.ops.runtime import is_exporting, is_functorch_wrapped_tensor


@dataclass(frozen=True)
class CallShape:
    """Properties of a call that determine the choice of a backend."""

    pattern: Pattern
    device: str  #: the type of the tensors' device
    dtype: torch.dtype
    heads: int
    channels: int  #: channels of a head's queries and keys
    value_channels: int
    dropout_p: float = 0.0
    has_bias: bool = False
    return_weights: bool = False
    forward_mode: bool = False  #: whether forward-mode derivatives are requested
    transformed: bool = False  #: whether a transform of :mod:`torch.func` runs


@dataclass
class AttentionCall:
    """A validated call of :func:`~tg_mlc.ops.graph_attention`."""

    query: Tensor  #: ``[num_queries, heads, C]``
    key: Tensor  #: ``[num_keys, heads, C]``
    value: Tensor  #: ``[num_keys, heads, C_v]``
    pattern: Pattern
    scale: float
    dropout_p: float = 0.0
    edge_bias: Tensor | None = None  #: ``[pattern.bias_size, heads]``
    return_weights: bool = False

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors that may have derivatives."""
        bias = [] if self.edge_bias is None else [self.edge_bias]
        return [self.query, self.key, self.value, *bias]

    @property
    def shape(self) -> CallShape:
        """The properties of the call, without tensors."""
        query, compiling = self.query, torch.compiler.is_compiling()
        types = (query.device.type, query.dtype)
        sizes = (query.size(1), query.size(2), self.value.size(2))
        has_bias, weights = self.edge_bias is not None, self.return_weights
        transformed = not compiling and any(map(is_functorch_wrapped_tensor, self.tensors))
        modes = (differentiates_forward(self), transformed)
        return CallShape(self.pattern, *types, *sizes, self.dropout_p, has_bias, weights, *modes)


Output = tuple[Tensor, Tensor | None]

#: Reason that :attr:`Backend.prefer` returns for backends that compute only edges.
SPARSE = "is sparse, so only its edges are computed"


@dataclass(frozen=True)
class Backend:
    """One way to compute the operator."""

    name: str  #: the value of the argument :obj:`backend`
    #: returns the output and, if requested, weights ``[*pattern.weights_size, heads]``
    run: Callable[[AttentionCall], Output]
    refuse: Callable[[CallShape], str | None]  #: why it does not support a call, or None
    #: Why the backend is preferred, as the predicate of a sentence about the pattern, or None.
    prefer: Callable[[CallShape], str | None]


def no_second_derivatives(name: str) -> str:
    """Returns the error message of a backend without second derivatives."""
    cure = "take 'reference' or 'scatter', by backend='scatter' or tg_mlc.set_backend('scatter')"
    return f"Expected a backend that has second derivatives (got '{name}'); {cure}"


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype of sums: at least single precision."""
    return torch.promote_types(dtype, torch.float32)


def differentiates_forward(call: AttentionCall) -> bool:
    """Tells whether a call needs forward-mode derivatives. Opaque operators have none."""
    if torch.compiler.is_compiling():
        return False
    unpack: Any = unpack_dual
    return any(unpack(tensor).tangent is not None for tensor in call.tensors)


def draw_seed(dropout_p: float) -> Tensor:
    """Draws a seed of dropout that both passes use."""
    if dropout_p == 0.0:
        return torch.zeros(1, dtype=torch.long, device="cpu")
    return torch.randint(2**31, (1,), device="cpu")


def refuse_opaque(name: str, shape: CallShape) -> str | None:
    """Returns why an operator of :func:`register` does not support a call, or :obj:`None`."""
    reasons = {
        "an exported program is to run without tg_mlc": is_exporting(),
        "it has no forward-mode derivatives": shape.forward_mode,
        "it has no rules for the transforms of torch.func": shape.transformed,
        "weights are not kept": shape.return_weights,
    }
    reason = next((text for text, applies in reasons.items() if applies), None)
    cure = "take 'dense', 'scatter' or 'reference'"
    return None if reason is None else f"{name}: {reason}; {cure}"


def register(
    name: str,
    backend: str,
    edge_names: tuple[str, ...],
    device: str | None,
    forward: Callable[..., tuple[Tensor, Tensor]],
    backward: Callable[..., tuple[Tensor, ...]],
    kept_size: Callable[..., Any],
) -> Any:
    """Registers the operator ``tg_mlc::{name}`` of a backend for one type of device, or for all.
    ``edge_names`` are the names of tensors that describe the edges. The operator is opaque to
    compilers, has only first derivatives in reverse mode, and returns no weights.

    All functions take ``query, key, value, bias, *edge_names, scale, dropout_p, seed``. ``forward``
    returns the output and a tensor of size ``kept_size`` for the backward pass. ``backward`` takes
    the gradient of the output and this tensor first, and returns four gradients.
    """
    edge_arguments = "".join(f"Tensor {name}, " for name in edge_names)
    tensors = f"Tensor query, Tensor key, Tensor value, Tensor? bias, {edge_arguments}"
    inputs = f"{tensors}float scale, float dropout_p, Tensor seed"
    options: Any = {"mutates_args": (), "device_types": device}
    options["schema"] = f"({inputs}) -> (Tensor, Tensor)"
    operator: Any = torch.library.custom_op(f"tg_mlc::{name}", forward, **options)
    options["schema"] = f"(Tensor grad, Tensor kept, {inputs}) -> (Tensor, Tensor, Tensor, Tensor)"
    gradient: Any = torch.library.custom_op(f"tg_mlc::{name}_backward", backward, **options)

    @operator.register_fake  # type: ignore[untyped-decorator]
    def _(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        out = query.new_empty(query.size(0), query.size(1), value.size(2))
        size = kept_size(query, key, value, *rest)
        return out, query.new_empty(size, dtype=accumulator(query.dtype))

    @gradient.register_fake  # type: ignore[untyped-decorator]
    def _(grad: Tensor, kept: Tensor, query: Tensor, *rest: Any) -> Any:
        key, value, bias, *_ = rest
        grads = [query.new_empty(tensor.shape) for tensor in (query, key, value)]
        return *grads, query.new_empty((0, query.size(1)) if bias is None else bias.shape)

    def set_up(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.scale, ctx.dropout_p, seed = inputs
        ctx.save_for_backward(*tensors, seed, output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    def differentiate(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * (7 + len(edge_names))
        *tensors, seed, kept = ctx.saved_tensors
        *grads, grad_bias = gradient(grad, kept, *tensors, ctx.scale, ctx.dropout_p, seed)
        return *grads, None if tensors[3] is None else grad_bias, *(None,) * (3 + len(edge_names))

    def refuse(*_: Any) -> Any:
        raise RuntimeError(no_second_derivatives(backend))

    operator.register_autograd(differentiate, setup_context=set_up)
    gradient.register_autograd(refuse)
    return operator
