"""Patterns of attention: which queries attend to which keys.

A pattern is the sparsity structure of one attention call. It is a value of its own, rather than an edge list made too
early, because the structure decides what can be fast: complete blocks are matrix products, and one label graph that all
samples share never has to be repeated for each of them.

Every pattern has one canonical order of its edges, that of :meth:`Pattern.to_edge_index`. Attention weights, edge
biases and the compressed form all follow it.
"""

from tg_mlc.ops.patterns.base import CSC, CSR, Pattern
from tg_mlc.ops.patterns.blocks import Blocks
from tg_mlc.ops.patterns.edges import Edges
from tg_mlc.ops.patterns.shared import Shared, shared_graph

__all__ = ["CSC", "CSR", "Blocks", "Edges", "Pattern", "Shared", "shared_graph"]
