"""Attention over a pattern: one operator, one oracle, several backends."""

from tg_mlc.ops.attention.api import (
    available_backends,
    explain_choice,
    graph_attention,
    to_dense_weights,
)
from tg_mlc.ops.attention.registry import set_backend

__all__ = [
    "available_backends",
    "explain_choice",
    "graph_attention",
    "set_backend",
    "to_dense_weights",
]
