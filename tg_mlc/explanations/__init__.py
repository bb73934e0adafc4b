"""Why a label: methods, each with its measured faithfulness."""

from tg_mlc.explanations.explaining import METHODS, explain
from tg_mlc.explanations.explanation import Explanation, Faithfulness, SampleExplanation
from tg_mlc.explanations.one_label import OneLabel

__all__ = ["METHODS", "Explanation", "Faithfulness", "OneLabel", "SampleExplanation", "explain"]
