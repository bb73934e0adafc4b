"""Evidence: scores of other classifiers, and the layers that take them in."""

from tg_mlc.nn.evidence.evidence import Evidence
from tg_mlc.nn.evidence.scores import ScoreEncoder, SharedLogits

__all__ = ["Evidence", "ScoreEncoder", "SharedLogits"]
