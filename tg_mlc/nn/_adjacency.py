"""The forms in which PyG hands over a graph."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.typing import Adj, SparseTensor
from torch_geometric.utils import is_sparse, to_edge_index

from tg_mlc.ops import Edges


def to_list(edge_index: Adj) -> Tensor:
    """The plain ``[2, num_edges]`` list, sources in row 0; that of an adjacency, which has targets in its rows, in the
    order of its entries.
    """
    if isinstance(edge_index, EdgeIndex):
        edge_index = edge_index.as_tensor()
    elif is_sparse(edge_index):
        edge_index = to_edge_index(edge_index)[0].flip(0)
    plain: Tensor = edge_index
    return plain


def to_edges(edge_index: Adj, num_queries: int, num_keys: int) -> Edges:
    """The pattern of an adjacency, without sorting what is sorted (of which a compiler sees only the list)."""
    if torch.compiler.is_compiling() or not isinstance(edge_index, EdgeIndex | SparseTensor):
        return Edges(to_list(edge_index), num_queries, num_keys)
    if isinstance(edge_index, EdgeIndex):
        (ptr, key), _ = edge_index.get_csc()
    else:
        ptr, key, _ = edge_index.csr()
    return Edges.from_csr(ptr, key, num_queries, num_keys)
