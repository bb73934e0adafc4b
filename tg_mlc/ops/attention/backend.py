"""Calls of the operator as backends receive them, and what backends have in common."""

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
    """A call without its tensors: everything that the choice of a backend depends on."""

    pattern: Pattern
    device: str  #: the type of the tensors' device
    dtype: torch.dtype
    heads: int
    channels: int  #: of a head's queries and keys
    value_channels: int
    dropout_p: float = 0.0
    has_bias: bool = False
    return_weights: bool = False
    forward_mode: bool = False  #: whether forward-mode derivatives are asked for
    transformed: bool = False  #: whether a transform of :mod:`torch.func` runs


@dataclass
class AttentionCall:
    """One validated call of :func:`~tg_mlc.ops.graph_attention`, as a backend receives it."""

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
        return [
            tensor
            for tensor in (self.query, self.key, self.value, self.edge_bias)
            if tensor is not None
        ]

    @property
    def shape(self) -> CallShape:
        """The call without its tensors."""
        query, has_bias = self.query, self.edge_bias is not None
        kind, sizes = (
            (query.device.type, query.dtype),
            (query.size(1), query.size(2), self.value.size(2)),
        )
        transformed = not torch.compiler.is_compiling() and any(
            map(is_functorch_wrapped_tensor, self.tensors)
        )
        modes = differentiates_forward(self), transformed
        return CallShape(
            self.pattern, *kind, *sizes, self.dropout_p, has_bias, self.return_weights, *modes
        )


Output = tuple[Tensor, Tensor | None]

#: Why to compute the edges alone, as :attr:`Backend.prefer` says it.
SPARSE = "is sparse, so only its edges are computed"


@dataclass(frozen=True)
class Backend:
    """One way to compute the operator."""

    name: str  #: the value of the argument :obj:`backend`
    #: output and, if asked for, weights ``[*pattern.weights_size, heads]``
    run: Callable[[AttentionCall], Output]
    refuse: Callable[[CallShape], str | None]  #: why it cannot take a call; :obj:`None` if it can
    #: Why it is the one to take, as what follows the pattern's name in a sentence; :obj:`None` if another might be.
    prefer: Callable[[CallShape], str | None]


def no_second_derivatives(name: str) -> str:
    """The error of a backend whose gradients cannot be differentiated."""
    return (
        f"Expected a backend that has second derivatives (got '{name}'); take 'reference' or 'scatter', by "
        f"backend='scatter' or tg_mlc.set_backend('scatter')"
    )


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Returns the type to sum in, because half precision is not enough."""
    return torch.promote_types(dtype, torch.float32)


def differentiates_forward(call: AttentionCall) -> bool:
    """Tells whether forward-mode derivatives are asked for, which an opaque operator would take for zero."""
    if torch.compiler.is_compiling():
        return False
    return any(unpack_dual(tensor).tangent is not None for tensor in call.tensors)  # type: ignore[no-untyped-call]


def draw_seed(dropout_p: float) -> Tensor:
    """Draws the seed of dropout, for both passes."""
    if dropout_p == 0.0:
        return torch.zeros(1, dtype=torch.long, device="cpu")
    return torch.randint(2**31, (1,), device="cpu")


def refuse_opaque(name: str, shape: CallShape) -> str | None:
    """Says why the backend of an operator of :func:`register` cannot take a call, if so."""
    if is_exporting():
        return f"{name}: an exported program is to run without tg_mlc; take 'dense', 'scatter' or 'reference'"
    if shape.forward_mode:
        return f"{name}: it has no forward-mode derivatives; take 'dense', 'scatter' or 'reference'"
    if shape.transformed:
        return f"{name}: it has no rules for the transforms of torch.func; take 'dense', 'scatter' or 'reference'"
    if shape.return_weights:
        return f"{name}: weights are not kept; take 'dense', 'scatter' or 'reference'"
    return None


def register(
    name: str,
    backend: str,
    places: tuple[str, ...],
    device: str | None,
    forward: Callable[..., tuple[Tensor, Tensor]],
    backward: Callable[..., tuple[Tensor, ...]],
    kept_size: Callable[..., Any],
) -> Any:
    """Makes the operator ``tg_mlc::{name}`` of a backend for a type of device (or all), given the names of tensors that
    say which pairs attend. It is opaque to autograd and compilers: differentiable once, backwards, without weights.

    All three functions take ``query, key, value, bias, *places, scale, dropout_p, seed``: ``forward`` returns the
    output and what is kept for the way back, whose size ``kept_size`` returns; ``backward``, which takes the output's
    gradient and what was kept before them, the gradients of query, key, value and bias.
    """
    tensors = "Tensor query, Tensor key, Tensor value, Tensor? bias, " + ", ".join(
        f"Tensor {name}" for name in places
    )
    taken = f"{tensors}, float scale, float dropout_p, Tensor seed"
    given: Any = {"mutates_args": (), "device_types": device}
    schema = f"({taken}) -> (Tensor, Tensor)"
    operator: Any = torch.library.custom_op(f"tg_mlc::{name}", forward, schema=schema, **given)
    schema = f"(Tensor grad, Tensor kept, {taken}) -> (Tensor, Tensor, Tensor, Tensor)"
    gradient: Any = torch.library.custom_op(
        f"tg_mlc::{name}_backward", backward, schema=schema, **given
    )

    @operator.register_fake  # type: ignore[untyped-decorator]
    def _(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        out = query.new_empty(query.size(0), query.size(1), value.size(2))
        return out, query.new_empty(
            kept_size(query, key, value, *rest), dtype=accumulator(query.dtype)
        )

    @gradient.register_fake  # type: ignore[untyped-decorator]
    def _(
        grad: Tensor,
        kept: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        *_: Any,
    ) -> Any:
        grads = [query.new_empty(tensor.shape) for tensor in (query, key, value)]
        return *grads, query.new_empty((0, query.size(1)) if bias is None else bias.shape)

    def set_up(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.scale, ctx.dropout_p, seed = inputs
        ctx.save_for_backward(*tensors, seed, output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    def differentiate(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * (7 + len(places))
        *tensors, seed, kept = ctx.saved_tensors
        *grads, grad_bias = gradient(grad, kept, *tensors, ctx.scale, ctx.dropout_p, seed)
        return *grads, None if tensors[3] is None else grad_bias, *(None,) * (3 + len(places))

    def refuse(*_: Any) -> Any:
        raise RuntimeError(no_second_derivatives(backend))

    operator.register_autograd(differentiate, setup_context=set_up)
    gradient.register_autograd(refuse)
    return operator
