"""Backend for sparse patterns on a GPU: the existing edges alone, by kernels that Triton compiles."""

from __future__ import annotations

import os

import torch

from tg_mlc._optional import is_installed
from tg_mlc.ops.attention import opaque
from tg_mlc.ops.attention.along_edges import define
from tg_mlc.ops.attention.backend import SPARSE, AttentionCall, Backend
from tg_mlc.ops.patterns import Blocks

_INSTALLED = is_installed("triton")


def refuse(call: AttentionCall) -> str | None:
    """Runs on a GPU (or, to test it, in Triton's interpreter), sums in single precision, and keeps no weights."""
    if not _INSTALLED:
        return "triton: Triton is not installed; it comes with PyTorch for CUDA, or install it with: pip install triton"
    if call.query.device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return "triton: its kernels run on a CUDA device"
    if call.query.dtype == torch.float64:
        return "triton: it sums in single precision; take 'dense', 'scatter' or 'reference' for double precision"
    return opaque.refuse("triton", call)


def prefer(call: AttentionCall) -> str | None:
    """Edges that are on a GPU already."""
    if call.query.device.type != "cuda" or isinstance(call.pattern, Blocks):
        return None
    return SPARSE


BACKEND = Backend("triton", define("triton_csr_attention", "tg_mlc.ops.kernels.csr_triton", None), refuse, prefer)
