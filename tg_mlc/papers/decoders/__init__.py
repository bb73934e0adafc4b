"""Decoders: label sets as sequences, one label after another, and beam search for the likeliest."""

from tg_mlc.papers.decoders.attention import AttentionDecoder
from tg_mlc.papers.decoders.beam_search import Hypotheses, StepDecoder, beam_search
from tg_mlc.papers.decoders.recurrent import RecurrentDecoder
from tg_mlc.papers.decoders.symbols import LabelOrder, label_ranks, label_sequences, next_log_probs, shifted

__all__ = [
    "AttentionDecoder",
    "Hypotheses",
    "LabelOrder",
    "RecurrentDecoder",
    "StepDecoder",
    "beam_search",
    "label_ranks",
    "label_sequences",
    "next_log_probs",
    "shifted",
]
