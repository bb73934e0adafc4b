"""Backend for sparse patterns without Numba: the existing edges alone, by PyTorch's sparse matrix products."""

from __future__ import annotations

import torch

from tg_mlc.ops.attention import opaque
from tg_mlc.ops.attention.along_edges import define
from tg_mlc.ops.attention.backend import SPARSE, AttentionCall, Backend
from tg_mlc.ops.patterns import Blocks, Pattern, shared_graph

_HAS_MKL = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]


def refuse(call: AttentionCall) -> str | None:
    """Sampled products come with MKL and hold each pair once, and no weights are kept."""
    if call.query.device.type != "cpu" or not _HAS_MKL:
        return "sddmm: sampled matrix products need a CPU build of PyTorch with MKL"
    if call.query.size(2) == 0:
        return "sddmm: queries and keys have no channels"
    if reason := opaque.refuse("sddmm", call):
        return reason
    return None if isinstance(call.pattern, Blocks) else _refuse_graph(call.pattern)


def _refuse_graph(pattern: Pattern) -> str | None:
    graph, _ = shared_graph(pattern)
    if torch.compiler.is_compiling() and not graph.is_prepared:
        return "sddmm: whether a pair stands twice in 'edge_index' cannot be told while compiling"
    if graph.is_multigraph:
        return "sddmm: 'edge_index' holds a pair more than once, which a sparse matrix cannot express"
    return None


def prefer(call: AttentionCall) -> str:
    """Takes what no kernels of ours are at hand for."""
    return SPARSE


BACKEND = Backend("sddmm", define("sddmm_attention", "tg_mlc.ops.kernels.csr_torch", "cpu"), refuse, prefer)
