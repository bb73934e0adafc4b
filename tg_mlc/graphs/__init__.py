"""Label graphs: who may send a message to whom among the labels."""

from tg_mlc.graphs.builders import edgeless, fully_connected
from tg_mlc.graphs.co_occurrence import co_occurrence
from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.graphs.networkx import from_networkx, to_networkx
from tg_mlc.graphs.plot import plot_label_graph
from tg_mlc.graphs.tree import tree

__all__ = [
    "LabelGraph",
    "co_occurrence",
    "edgeless",
    "from_networkx",
    "fully_connected",
    "plot_label_graph",
    "to_networkx",
    "tree",
]
