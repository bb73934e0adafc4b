"""Attention over a pattern: one operator, one oracle, several backends."""

from tg_mlc.ops.attention.api import available_backends, explain_choice, graph_attention

__all__ = ["available_backends", "explain_choice", "graph_attention"]
