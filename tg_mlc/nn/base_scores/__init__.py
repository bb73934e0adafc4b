"""BaseScores: scores of other classifiers, and the layers that take them in."""

from tg_mlc.nn.base_scores.attribute import BaseScores
from tg_mlc.nn.base_scores.scores import ScoreEncoder, SharedLogits

__all__ = ["BaseScores", "ScoreEncoder", "SharedLogits"]
