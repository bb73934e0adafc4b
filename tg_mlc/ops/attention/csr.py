"""Only the edges that there are, on a CPU, by kernels that Numba compiles."""

from __future__ import annotations

from tg_mlc._optional import is_installed
from tg_mlc.ops.attention.along_edges import define
from tg_mlc.ops.attention.backend import AttentionCall, Backend

_INSTALLED = is_installed("numba")


def refuse(call: AttentionCall) -> str | None:
    """Runs where Numba does, and keeps no weights."""
    if not _INSTALLED:
        return 'csr: Numba is not installed; install it with: pip install "tg_mlc[numba]"'
    if call.query.device.type != "cpu":
        return "csr: its kernels run on a CPU"
    if call.return_weights:
        return "csr: weights are not kept; take 'dense', 'scatter' or 'reference'"
    return None


def prefer(call: AttentionCall) -> str:
    """Whatever is not dense enough for matrix products."""
    return "is sparse, so only its edges are computed"


BACKEND = Backend("csr", define("csr_attention", "tg_mlc.ops.kernels.csr_cpu", "cpu"), refuse, prefer)
