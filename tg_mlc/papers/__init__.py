"""Models, decoders, recipes and checkpoints from papers, for reproduction and comparison.

Each rival of LaMP has a file with three parts: a network; a :func:`~tg_mlc.models.builder`, which
makes the network from training samples, a label graph and options; and, unless the binary objective
trains it, an :class:`~tg_mlc.training.Objective`. To add a rival, write a file like
:mod:`tg_mlc.papers.gaml`, export it here, and add it to
:obj:`tg_mlc.papers.recipes.family.FAMILY` for recipes and benchmarks. Rivals of
:class:`~tg_mlc.sequences.LANET` belong in :mod:`tg_mlc.papers.next_set`.
"""

from tg_mlc.papers.gaml import GAML, gaml
from tg_mlc.papers.label_sequences import (
    LabelSequenceObjective,
    graph2graph_autoregressive,
    mped_autoregressive,
    seq2seq,
)
from tg_mlc.papers.mlp import binary_relevance, pooled_mlp
from tg_mlc.papers.mped import graph2graph, mped
from tg_mlc.papers.next_set import C2AEObjective
from tg_mlc.papers.spen import (
    SPEN,
    InferenceNetworkObjective,
    InfNet,
    UnrolledObjective,
    energy_network,
)

__all__ = [
    "GAML",
    "SPEN",
    "C2AEObjective",
    "InfNet",
    "InferenceNetworkObjective",
    "LabelSequenceObjective",
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
