"""Backend for sparse patterns on a CPU: the existing edges alone, by kernels that Numba compiles."""

from __future__ import annotations

from tg_mlc.ops.attention import opaque
from tg_mlc.ops.attention.along_edges import define
from tg_mlc.ops.attention.backend import SPARSE, AttentionCall, Backend
from tg_mlc.ops.compiled import numba_problem
from tg_mlc.ops.kernels.graph import num_kept


def refuse(call: AttentionCall) -> str | None:
    """Runs where Numba does, and keeps no weights."""
    if call.query.device.type != "cpu":
        return "csr: its kernels run on a CPU"
    reason: str | None = numba_problem()
    if reason is not None:
        return f"csr: {reason}"
    return opaque.refuse("csr", call)


def prefer(call: AttentionCall) -> str:
    """Whatever is not dense enough for matrix products."""
    return SPARSE


BACKEND = Backend("csr", define("csr_attention", "tg_mlc.ops.kernels.csr_cpu", "cpu", num_kept), refuse, prefer)
