"""What turns raw inputs into components: states that labels can attend to."""

from tg_mlc.nn.encoders.components import Components
from tg_mlc.nn.encoders.dna import DNAEncoder
from tg_mlc.nn.encoders.embedding import CategoricalEmbedding
from tg_mlc.nn.encoders.evidence import (
    Evidence,
    GivenEvidence,
    KernelEvidence,
    LinearEvidence,
    ScoreEncoder,
    SharedLogits,
    StackedEvidence,
)
from tg_mlc.nn.encoders.joint import JointEncoder
from tg_mlc.nn.encoders.molecule import MoleculeEncoder
from tg_mlc.nn.encoders.nodes import NodeEncoder
from tg_mlc.nn.encoders.scaling import LogCounts, QuantileScaler
from tg_mlc.nn.encoders.tokens import BagEncoder, SequenceEncoder
from tg_mlc.nn.encoders.vector import LinearPath, VectorEncoder

__all__ = [
    "BagEncoder",
    "CategoricalEmbedding",
    "Components",
    "DNAEncoder",
    "Evidence",
    "GivenEvidence",
    "JointEncoder",
    "KernelEvidence",
    "LinearEvidence",
    "LinearPath",
    "LogCounts",
    "MoleculeEncoder",
    "NodeEncoder",
    "QuantileScaler",
    "ScoreEncoder",
    "SequenceEncoder",
    "SharedLogits",
    "StackedEvidence",
    "VectorEncoder",
]
