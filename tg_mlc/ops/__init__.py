"""Attention patterns, and the graph attention operator."""

from tg_mlc._memory import keep_heap
from tg_mlc.ops.attention.api import (
    available_backends,
    explain_choice,
    graph_attention,
    to_dense_weights,
)
from tg_mlc.ops.attention.registry import set_backend
from tg_mlc.ops.patterns import Blocks, Edges, Pattern, Shared

__all__ = [
    "Blocks",
    "Edges",
    "Pattern",
    "Shared",
    "available_backends",
    "explain_choice",
    "graph_attention",
    "keep_heap",
    "set_backend",
    "to_dense_weights",
]
