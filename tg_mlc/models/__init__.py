"""Whole models, each a few lines of composition."""

from tg_mlc.models.dna import dna_lamp
from tg_mlc.models.gaml import GAML, gaml
from tg_mlc.models.inputs import input_encoder
from tg_mlc.models.lamp import LaMP, LaMPOutput
from tg_mlc.models.mlp import BinaryRelevance, PooledMLP, binary_relevance, pooled_mlp
from tg_mlc.models.molecules import molecule_lamp
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
    "PooledMLP",
    "SPENOutput",
    "binary_relevance",
    "dna_lamp",
    "energy_network",
    "gaml",
    "input_encoder",
    "molecule_lamp",
    "node_lamp",
    "pooled_mlp",
    "table_lamp",
]
