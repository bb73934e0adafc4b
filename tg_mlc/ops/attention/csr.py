"""Only the edges that there are, on a CPU, by kernels that Numba compiles."""

from __future__ import annotations

from tg_mlc.ops.attention.along_edges import define, differentiates_forward
from tg_mlc.ops.attention.backend import AttentionCall, Backend
from tg_mlc.ops.compiled import numba_problem
from tg_mlc.ops.kernels.graph import num_kept


def refuse(call: AttentionCall) -> str | None:
    """Runs where Numba does, and keeps no weights."""
    if call.query.device.type != "cpu":
        return "csr: its kernels run on a CPU"
    reason: str | None = numba_problem()
    if reason is not None:
        return f"csr: {reason}"
    if differentiates_forward(call):
        return "csr: it has no forward-mode derivatives; take 'reference'"
    if call.return_weights:
        return "csr: weights are not kept; take 'dense', 'scatter' or 'reference'"
    return None


def prefer(call: AttentionCall) -> str:
    """Whatever is not dense enough for matrix products."""
    return "is sparse, so only its edges are computed"


BACKEND = Backend("csr", define("csr_attention", "tg_mlc.ops.kernels.csr_cpu", "cpu", num_kept), refuse, prefer)
