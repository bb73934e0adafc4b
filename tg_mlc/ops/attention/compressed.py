"""Backends that compute only the edges of sparse patterns, in compressed format: ``csr`` on a CPU,
with kernels in Numba, and ``triton`` on a GPU, with kernels in Triton.

The kernels of each backend are a module with two functions:

* ``forward(query, key, value, graph, options)`` returns the output, and weights or log-sum-exps of
  scores for the backward pass, in any shape;
* ``backward(grad, query, key, value, kept, graph, options)`` returns four gradients.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from tg_mlc._optional import is_installed
from tg_mlc.ops.attention.backend import (
    SPARSE,
    AttentionCall,
    Backend,
    CallShape,
    Output,
    accumulator,
    draw_seed,
    refuse_opaque,
    register,
)
from tg_mlc.ops.kernels.graph import Graph, Options, num_kept
from tg_mlc.ops.patterns import Blocks
from tg_mlc.ops.runtime import numba_problem

_HAS_TRITON = is_installed("triton")


def define(
    name: str, backend: str, module: str, device: str | None
) -> Callable[[AttentionCall], Output]:
    """Registers the operator ``tg_mlc::{name}`` of kernels, and returns a function that runs it."""
    kernels = f"tg_mlc.ops.kernels.{module}"
    on_gpu = device is None
    edge_names: tuple[str, ...] = ("ptr", "index", "col_ptr", "col_index", "col_order")
    edge_names += ("long_queries", "long_keys") if on_gpu else ()

    def split(bias: Tensor | None, *rest: Any) -> tuple[Graph, Options]:
        *edges, scale, dropout_p, seed = rest
        return Graph(*edges), Options(scale, dropout_p, int(seed), bias)

    def forward(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        with torch.autocast(query.device.type, enabled=False):
            out, kept = import_module(kernels).forward(query, key, value, *split(*rest))
        return out, kept.view(-1)

    def backward(grad: Tensor, kept: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
        grads: tuple[Tensor, ...]
        with torch.autocast(grad.device.type, enabled=False):
            run = import_module(kernels).backward
            grads = run(grad, *inputs[:3], kept, *split(*inputs[3:]))
        return grads

    def kept_size(query: Tensor, key: Tensor, value: Tensor, bias: Any, *rest: Any) -> int:
        if on_gpu:  # one number for every query and head
            return query.size(0) * query.size(1)
        return num_kept(query, value, Graph(*rest[: len(edge_names)]))

    operator = register(name, backend, edge_names, device, forward, backward, kept_size)

    def run(call: AttentionCall) -> Output:
        graph, _ = call.pattern.shared()
        by_query, by_key = graph.csr(), graph.csc()
        dtype = accumulator(call.query.dtype) if device == "cpu" else call.query.dtype
        tensors = [tensor.to(dtype) for tensor in (call.query, call.key, call.value)]
        bias = call.edge_bias
        if bias is not None:
            bias = (bias if by_query.perm is None else bias[by_query.perm]).to(dtype)
        seed = draw_seed(call.dropout_p)
        edges = (by_query.ptr, by_query.key, *by_key, *(graph.long_rows() if on_gpu else ()))
        out, _ = operator(*tensors, bias, *edges, call.scale, call.dropout_p, seed)
        return out.to(call.value.dtype), None

    return run


def _refuse_csr(shape: CallShape) -> str | None:
    if shape.device != "cpu":
        return "csr: its kernels run on a CPU"
    if (reason := numba_problem()) is not None:
        return f"csr: {reason}"
    return refuse_opaque("csr", shape)


def _refuse_triton(shape: CallShape) -> str | None:
    if not _HAS_TRITON:
        cure = "it comes with PyTorch for CUDA, or install it with: pip install triton"
        return f"triton: Triton is not installed; {cure}"
    if shape.device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return "triton: its kernels run on a CUDA device"
    if shape.dtype == torch.float64:
        cure = "take 'dense', 'scatter' or 'reference' for double precision"
        return f"triton: it sums in single precision; {cure}"
    return refuse_opaque("triton", shape)


def _prefer_triton(shape: CallShape) -> str | None:
    return None if shape.device != "cuda" or isinstance(shape.pattern, Blocks) else SPARSE


_CSR = define("csr_attention", "csr", "csr_cpu", "cpu")
_TRITON = define("triton_csr_attention", "triton", "csr_triton", None)
CSR = Backend("csr", _CSR, _refuse_csr, prefer=lambda shape: SPARSE)
TRITON = Backend("triton", _TRITON, _refuse_triton, _prefer_triton)
