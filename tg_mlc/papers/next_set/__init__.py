"""Rivals of LANET for histories of dated label sets."""

from tg_mlc.papers.next_set.attention_ablations import TimeAttention, TwoAttentions
from tg_mlc.papers.next_set.c2ae import C2AE, C2AEObjective
from tg_mlc.papers.next_set.rivals import LSTMBaseline, TransformerBase

__all__ = ["C2AE", "C2AEObjective", "LSTMBaseline", "TimeAttention", "TransformerBase", "TwoAttentions"]
