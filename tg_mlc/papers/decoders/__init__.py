"""Decoders: label sets as sequences, one label after another, and beam search for the likeliest."""

from tg_mlc.papers.decoders.attention import AttentionDecoder
from tg_mlc.papers.decoders.beam_search import Hypotheses, beam_search
from tg_mlc.papers.decoders.recurrent import RecurrentDecoder

__all__ = ["AttentionDecoder", "Hypotheses", "RecurrentDecoder", "beam_search"]
