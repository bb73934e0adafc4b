"""Explanations of predictions by several methods, with measured faithfulness."""

from tg_mlc.explanations.explaining import explain
from tg_mlc.explanations.explanation import Explanation
from tg_mlc.explanations.network import OneLabel

__all__ = ["Explanation", "OneLabel", "explain"]
