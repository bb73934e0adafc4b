"""Label graphs: the edges along which messages pass among the labels."""

from tg_mlc.graphs.builders import edgeless, from_networkx, fully_connected, tree
from tg_mlc.graphs.co_occurrence import co_occurrence
from tg_mlc.graphs.compare import GraphComparison, compare
from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.graphs.learned import learned
from tg_mlc.graphs.parents import read_parents
from tg_mlc.graphs.plot import plot_comparison
from tg_mlc.graphs.string_ppi import string_ppi
from tg_mlc.graphs.wordnet import wordnet

__all__ = [
    "GraphComparison",
    "LabelGraph",
    "co_occurrence",
    "compare",
    "edgeless",
    "from_networkx",
    "fully_connected",
    "learned",
    "plot_comparison",
    "read_parents",
    "string_ppi",
    "tree",
    "wordnet",
]
