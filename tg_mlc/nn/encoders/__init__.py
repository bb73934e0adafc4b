"""Encoders: from a batch of inputs to components, states that labels can attend to."""

from tg_mlc.nn.encoders.components import Components
from tg_mlc.nn.encoders.contextual import MessageEncoder, RecurrentEncoder
from tg_mlc.nn.encoders.dna import DNAEncoder
from tg_mlc.nn.encoders.embedding import CategoricalEmbedding
from tg_mlc.nn.encoders.given import GivenComponents
from tg_mlc.nn.encoders.joint import JointEncoder
from tg_mlc.nn.encoders.molecule import MoleculeEncoder
from tg_mlc.nn.encoders.nodes import NodeEncoder
from tg_mlc.nn.encoders.tokens import BagEncoder, SequenceEncoder
from tg_mlc.nn.encoders.vector import LinearPath, VectorEncoder

__all__ = [
    "BagEncoder",
    "CategoricalEmbedding",
    "Components",
    "DNAEncoder",
    "GivenComponents",
    "JointEncoder",
    "LinearPath",
    "MessageEncoder",
    "MoleculeEncoder",
    "NodeEncoder",
    "RecurrentEncoder",
    "SequenceEncoder",
    "VectorEncoder",
]
