"""Patterns from the forms in which PyG hands over a graph."""

from __future__ import annotations

import torch
from torch_geometric import EdgeIndex
from torch_geometric.typing import Adj, SparseTensor

from tg_mlc.ops import Edges
from tg_mlc.ops.patterns.base import to_list


def to_edges(edge_index: Adj, num_queries: int, num_keys: int) -> Edges:
    """The pattern of an adjacency, without sorting what is sorted (of which a compiler sees only the list)."""
    if torch.compiler.is_compiling() or not isinstance(edge_index, EdgeIndex | SparseTensor):
        return Edges(to_list(edge_index), num_queries, num_keys)
    if isinstance(edge_index, EdgeIndex):
        (ptr, key), _ = edge_index.get_csc()
    else:
        ptr, key, _ = edge_index.csr()
    return Edges.from_csr(ptr, key, num_queries, num_keys)
