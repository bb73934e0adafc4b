"""Encoders: from a batch of inputs to components, states that labels can attend to."""

from tg_mlc.nn.encoders.components import Components, GivenComponents, JointEncoder
from tg_mlc.nn.encoders.contextual import MessageEncoder, RecurrentEncoder
from tg_mlc.nn.encoders.dna import DNAEncoder
from tg_mlc.nn.encoders.graphs import CategoricalEmbedding, MoleculeEncoder, NodeEncoder
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
