"""Evidence: what other classifiers say of the labels, and the layers that take it in."""

from tg_mlc.nn.evidence.evidence import Evidence, GivenEvidence, StackedEvidence
from tg_mlc.nn.evidence.kernel import KernelEvidence
from tg_mlc.nn.evidence.linear import LinearEvidence
from tg_mlc.nn.evidence.scores import ScoreEncoder, SharedLogits

__all__ = [
    "Evidence",
    "GivenEvidence",
    "KernelEvidence",
    "LinearEvidence",
    "ScoreEncoder",
    "SharedLogits",
    "StackedEvidence",
]
