"""Evidence: what other classifiers say of the labels, and the layers that take it in."""

from tg_mlc.nn.evidence.evidence import Evidence
from tg_mlc.nn.evidence.scores import ScoreEncoder, SharedLogits

__all__ = ["Evidence", "ScoreEncoder", "SharedLogits"]
