"""Encoders: modules that map a batch of inputs to components, which labels attend to."""

from tg_mlc.nn.encoders.components import GivenComponents, JointEncoder, MessageEncoder
from tg_mlc.nn.encoders.dna import DNAEncoder
from tg_mlc.nn.encoders.graphs import MoleculeEncoder, NodeEncoder
from tg_mlc.nn.encoders.mixed import MixedEncoder
from tg_mlc.nn.encoders.tokens import BagEncoder, SequenceEncoder
from tg_mlc.nn.encoders.vector import LinearPath, VectorEncoder

__all__ = [
    "BagEncoder",
    "DNAEncoder",
    "GivenComponents",
    "JointEncoder",
    "LinearPath",
    "MessageEncoder",
    "MixedEncoder",
    "MoleculeEncoder",
    "NodeEncoder",
    "SequenceEncoder",
    "VectorEncoder",
]
