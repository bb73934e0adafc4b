"""Patterns of attention: which queries attend to which keys, as values that say what can be fast: complete blocks are
matrix products, and one label graph that all samples share need not be repeated for each of them.

Attention weights, edge biases and the compressed form of a pattern follow the order of :meth:`Pattern.to_edge_index`.
"""

from tg_mlc.ops.patterns.base import Pattern
from tg_mlc.ops.patterns.blocks import Blocks
from tg_mlc.ops.patterns.edges import Edges
from tg_mlc.ops.patterns.shared import Shared

__all__ = ["Blocks", "Edges", "Pattern", "Shared"]
