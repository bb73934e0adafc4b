"""What exists to reproduce and to compare: rivals, decoders, recipes and the authors' checkpoints."""

from tg_mlc.papers.autoregressive import graph2graph_autoregressive, mped_autoregressive, seq2seq
from tg_mlc.papers.c2ae_objective import C2AEObjective
from tg_mlc.papers.energies import InferenceNetworkObjective, UnrolledObjective
from tg_mlc.papers.gaml import GAML, gaml
from tg_mlc.papers.label_sequences import LabelSequenceModel
from tg_mlc.papers.mlp import BinaryRelevance, PooledMLP, binary_relevance, pooled_mlp
from tg_mlc.papers.mped import graph2graph, mped
from tg_mlc.papers.sequence_objective import SequenceObjective
from tg_mlc.papers.spen import SPEN, InfNet, InfNetOutput, SPENOutput, energy_network

__all__ = [
    "GAML",
    "SPEN",
    "BinaryRelevance",
    "C2AEObjective",
    "InfNet",
    "InfNetOutput",
    "InferenceNetworkObjective",
    "LabelSequenceModel",
    "PooledMLP",
    "SPENOutput",
    "SequenceObjective",
    "UnrolledObjective",
    "binary_relevance",
    "energy_network",
    "gaml",
    "graph2graph",
    "graph2graph_autoregressive",
    "mped",
    "mped_autoregressive",
    "pooled_mlp",
    "seq2seq",
]
