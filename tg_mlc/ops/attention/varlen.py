"""Blocks on a GPU without padding, by PyTorch's :func:`torch.nn.attention.varlen.varlen_attn`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import torch

from tg_mlc.ops.attention import opaque
from tg_mlc.ops.attention.backend import AttentionCall, Backend, Output
from tg_mlc.ops.patterns import Blocks

_MODULE = "torch.nn.attention.varlen"
_INSTALLED = find_spec(_MODULE) is not None
#: The largest head that flash attention takes.
MAX_CHANNELS = 256


def run(call: AttentionCall) -> Output:
    """Hands over the boundaries of the blocks."""
    pattern = call.pattern
    assert isinstance(pattern, Blocks)
    out = import_module(_MODULE).varlen_attn(
        call.query,
        call.key,
        call.value,
        pattern.query_ptr.to(torch.int32),
        pattern.key_ptr.to(torch.int32),
        pattern.max_queries,
        pattern.max_keys,
        scale=call.scale,
    )
    return out, None


def refuse(call: AttentionCall) -> str | None:
    """Flash attention: half precision, no bias, no dropout, no weights."""
    channels = call.query.size(2)
    for refused, reason in (
        (not _INSTALLED, "this PyTorch has no 'torch.nn.attention.varlen'; a later one has"),
        (not isinstance(call.pattern, Blocks), "only for Blocks"),
        (call.query.device.type != "cuda", "its kernels run on a CUDA device"),
        (call.query.dtype not in (torch.float16, torch.bfloat16), "only for half precision"),
        (call.edge_bias is not None or call.dropout_p > 0.0, "it takes neither a bias nor dropout; take 'dense'"),
        (channels != call.value.size(2) or channels > MAX_CHANNELS, f"only for heads of one size up to {MAX_CHANNELS}"),
    ):
        if refused:
            return f"varlen: {reason}"
    return opaque.refuse("varlen", call)


def prefer(call: AttentionCall) -> None:
    """Never of itself, until it has been measured beside padding."""


BACKEND = Backend("varlen", run, refuse, prefer)
