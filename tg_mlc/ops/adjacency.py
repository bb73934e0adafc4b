"""Conversion of the forms in which PyG hands over a graph to a plain list of edges."""

from __future__ import annotations

from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse, to_edge_index


def to_list(edge_index: Adj) -> Tensor:
    """List ``[2, num_edges]`` with sources in row 0; of an adjacency, whose rows are targets, in its entries' order."""
    return with_values(edge_index)[0]


def with_values(edge_index: Adj) -> tuple[Tensor, Tensor | None]:
    """The list as above, and the values of an adjacency."""
    if isinstance(edge_index, EdgeIndex):
        return edge_index.as_tensor(), None
    if is_sparse(edge_index):
        edges, values = to_edge_index(edge_index)
        return edges.flip(0), values
    plain: Tensor = edge_index
    return plain, None


def adjacency_of(graph: Data) -> Adj:
    """Adjacency that a graph holds: its :obj:`edge_index`, or else its :obj:`adj_t`."""
    for name in ("edge_index", "adj_t"):
        if (adjacency := graph.get(name)) is not None:
            return adjacency
    raise ValueError(f"Expected the graph to hold 'edge_index' or 'adj_t' (got {graph})")
