"""Whole models, each a few lines of composition."""

from tg_mlc.models.autoregressive import graph2graph_autoregressive, mped_autoregressive, seq2seq
from tg_mlc.models.dna import dna_lamp
from tg_mlc.models.gaml import GAML, gaml
from tg_mlc.models.inputs import input_encoder
from tg_mlc.models.label_sequences import LabelSequenceModel
from tg_mlc.models.lamp import LaMP, LaMPOutput
from tg_mlc.models.mlp import BinaryRelevance, PooledMLP, binary_relevance, pooled_mlp
from tg_mlc.models.molecules import molecule_lamp
from tg_mlc.models.mped import graph2graph, mped
from tg_mlc.models.nodes import node_lamp
from tg_mlc.models.spen import SPEN, InfNet, InfNetOutput, SPENOutput, energy_network
from tg_mlc.models.tables import table_lamp

__all__ = [
    "GAML",
    "SPEN",
    "BinaryRelevance",
    "InfNet",
    "InfNetOutput",
    "LaMP",
    "LaMPOutput",
    "LabelSequenceModel",
    "PooledMLP",
    "SPENOutput",
    "binary_relevance",
    "dna_lamp",
    "energy_network",
    "gaml",
    "graph2graph",
    "graph2graph_autoregressive",
    "input_encoder",
    "molecule_lamp",
    "mped",
    "mped_autoregressive",
    "node_lamp",
    "pooled_mlp",
    "seq2seq",
    "table_lamp",
]
