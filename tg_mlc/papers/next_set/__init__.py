"""Rivals of LANET for histories of dated label sets."""

from tg_mlc.papers.next_set.c2ae import C2AE, C2AEObjective
from tg_mlc.papers.next_set.rivals import (
    LSTMBaseline,
    TimeAttention,
    TransformerBase,
    TwoAttentions,
)

__all__ = [
    "C2AE",
    "C2AEObjective",
    "LSTMBaseline",
    "TimeAttention",
    "TransformerBase",
    "TwoAttentions",
]
