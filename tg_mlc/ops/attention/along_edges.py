"""Operator that backends with kernels along edges share.

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
from tg_mlc.ops.attention.opaque import draw_seed, register
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

    def forward(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        with torch.autocast(query.device.type, enabled=False):
            out, kept = import_module(kernels).forward(query, key, value, *_graph_and_options(*rest))
        return out, kept.view(-1)

    def backward(
        grad: Tensor, kept: Tensor, query: Tensor, key: Tensor, value: Tensor, *rest: Any
    ) -> tuple[Tensor, ...]:
        grads: tuple[Tensor, ...]
        with torch.autocast(query.device.type, enabled=False):
            grads = import_module(kernels).backward(grad, query, key, value, kept, *_graph_and_options(*rest))
        return grads

    def kept_size(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, *rest: Any) -> int:
        return num_kept(query, value, Graph(*rest[:5]))

    places = ("ptr", "index", "col_ptr", "col_index", "col_order")
    operator = register(name, places, device, forward, backward, kept_size)

    def run(call: AttentionCall) -> Output:
        graph, _ = shared_graph(call.pattern)
        by_query, by_key = graph.csr(), graph.csc()
        dtype = accumulator(call.query) if device == "cpu" else call.query.dtype
        tensors = [tensor.to(dtype) for tensor in (call.query, call.key, call.value)]
        bias = call.edge_bias
        if bias is not None:
            bias = (bias if by_query.perm is None else bias[by_query.perm]).to(dtype)
        seed = draw_seed(call.dropout_p)
        out, _ = operator(*tensors, bias, by_query.ptr, by_query.key, *by_key, call.scale, call.dropout_p, seed)
        return out.to(call.value.dtype), None

    return run


def _graph_and_options(bias: Tensor | None, *rest: Any) -> tuple[Graph, Options]:
    *edges, scale, dropout_p, seed = rest
    return Graph(*edges), Options(scale, dropout_p, int(seed), bias)
