"""Only the edges that there are, on a CPU, by kernels that Numba compiles."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import torch

from tg_mlc.ops.attention.along_edges import define, differentiates_forward
from tg_mlc.ops.attention.backend import AttentionCall, Backend


@cache
def _problem() -> str | None:
    """Why the kernels cannot be had, if so: Numba is missing, or does not fit the other packages."""
    try:
        import_module("numba")
    except ModuleNotFoundError:
        return 'csr: Numba is not installed; install it with: pip install "tg_mlc[numba]"'
    except ImportError as error:
        return f"csr: Numba cannot be imported: {error}"
    return None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def problem() -> str | None:
    """As above; a compiler takes the answer as it is."""
    return _problem()


def refuse(call: AttentionCall) -> str | None:
    """Runs where Numba does, and keeps no weights."""
    if call.query.device.type != "cpu":
        return "csr: its kernels run on a CPU"
    reason: str | None = problem()
    if reason is not None:
        return reason
    if differentiates_forward(call):
        return "csr: it has no forward-mode derivatives; take 'reference'"
    if call.return_weights:
        return "csr: weights are not kept; take 'dense', 'scatter' or 'reference'"
    return None


def prefer(call: AttentionCall) -> str:
    """Whatever is not dense enough for matrix products."""
    return "is sparse, so only its edges are computed"


BACKEND = Backend("csr", define("csr_attention", "tg_mlc.ops.kernels.csr_cpu", "cpu"), refuse, prefer)
