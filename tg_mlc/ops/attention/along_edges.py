"""Operator that backends with kernels along edges share: differentiable once, and opaque to a compiler.

Such a backend is a module of kernels with two functions,

* ``forward(query, key, value, graph, options)``: the output, and what is kept for the way back, in whatever shape the
  kernels like: the logarithm of the sum that the weights of every query were divided by, or the weights;
* ``backward(grad, query, key, value, kept, graph, options)``: the gradients of query, key, value and bias.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from tg_mlc.ops.attention.backend import AttentionCall, Output, accumulator
from tg_mlc.ops.attention.opaque import draw_seed
from tg_mlc.ops.kernels.graph import Graph, Options
from tg_mlc.ops.patterns import shared_graph

#: How many numbers are kept for queries, values and a graph.
NumKept = Callable[[Tensor, Tensor, Graph], int]


def one_each(query: Tensor, value: Tensor, graph: Graph) -> int:
    """One number for every query and head."""
    return query.size(0) * query.size(1)


def define(
    name: str, kernels: str, device: str | None, num_kept: NumKept = one_each
) -> Callable[[AttentionCall], Output]:
    """Registers the operator ``tg_mlc::{name}`` for a module of kernels and a kind of device (or all), and returns what
    runs it.

    The module is imported at the first call, as what it is written with may not be installed.
    """
    operator = _register(name, kernels, device, num_kept)

    def run(call: AttentionCall) -> Output:
        graph, _ = shared_graph(call.pattern)
        by_query, by_key = graph.csr(), graph.csc()
        dtype = accumulator(call.query) if device == "cpu" else call.query.dtype
        bias = call.edge_bias
        if bias is not None:
            bias = (bias if by_query.perm is None else bias[by_query.perm]).to(dtype)
        seed = draw_seed(call.dropout_p)
        out, _ = operator(
            call.query.to(dtype),
            call.key.to(dtype),
            call.value.to(dtype),
            bias,
            by_query.ptr,
            by_query.key,
            *by_key,
            call.scale,
            call.dropout_p,
            seed,
        )
        return out.to(call.value.dtype), None

    return run


def _register(name: str, kernels: str, device: str | None, num_kept: NumKept) -> Any:
    def forward(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        ptr: Tensor,
        index: Tensor,
        col_ptr: Tensor,
        col_index: Tensor,
        col_order: Tensor,
        scale: float,
        dropout_p: float,
        seed: Tensor,
    ) -> tuple[Tensor, Tensor]:
        graph, options = Graph(ptr, index, col_ptr, col_index, col_order), Options(scale, dropout_p, int(seed), bias)
        with torch.autocast(query.device.type, enabled=False):
            out, kept = import_module(kernels).forward(query, key, value, graph, options)
        return out, kept.view(-1)

    def backward(
        grad: Tensor,
        kept: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        ptr: Tensor,
        index: Tensor,
        col_ptr: Tensor,
        col_index: Tensor,
        col_order: Tensor,
        scale: float,
        dropout_p: float,
        seed: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        graph, options = Graph(ptr, index, col_ptr, col_index, col_order), Options(scale, dropout_p, int(seed), bias)
        grads: tuple[Tensor, Tensor, Tensor, Tensor]
        with torch.autocast(query.device.type, enabled=False):
            grads = import_module(kernels).backward(grad, query, key, value, kept, graph, options)
        return grads

    operator: Any = torch.library.custom_op(f"tg_mlc::{name}", forward, mutates_args=(), device_types=device)
    gradient: Any = torch.library.custom_op(f"tg_mlc::{name}_backward", backward, mutates_args=(), device_types=device)

    def fake_forward(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, *rest: Any
    ) -> tuple[Tensor, Tensor]:
        graph = Graph(*rest[:5])
        out = query.new_empty(query.size(0), query.size(1), value.size(2))
        return out, query.new_empty(num_kept(query, value, graph), dtype=accumulator(query))

    operator.register_fake(fake_forward)
    gradient.register_fake(_fake_backward)

    def differentiate(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 12
        *tensors, seed, kept = ctx.saved_tensors
        *grads, grad_bias = gradient(grad, kept, *tensors, ctx.scale, ctx.dropout_p, seed)
        return *grads, None if tensors[3] is None else grad_bias, *(None,) * 8

    operator.register_autograd(differentiate, setup_context=_setup_context)
    return operator


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.scale, ctx.dropout_p, seed = inputs
    ctx.save_for_backward(*tensors, seed, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _fake_backward(
    grad: Tensor, kept: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    grads = [query.new_empty(tensor.shape) for tensor in (query, key, value)]
    return (grads[0], grads[1], grads[2], query.new_empty((0, query.size(1)) if bias is None else bias.shape))
