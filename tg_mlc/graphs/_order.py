"""Orders of the labels that put neighbours close to each other in memory."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components, depth_first_order, reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.utils import to_scipy_sparse_matrix

from tg_mlc._options import check_choice

Order = Literal["rcm", "tree"]


def locality_order(edge_index: Tensor, num_labels: int, method: Order) -> Tensor:
    """The label that comes first, second, ...; see :meth:`tg_mlc.graphs.LabelGraph.locality_order`."""
    check_choice("method", method, get_args(Order))
    directed = csr_array(to_scipy_sparse_matrix(edge_index.cpu(), num_nodes=num_labels))
    adjacency = (directed + directed.T).tocsr()
    if method == "rcm":
        order = reverse_cuthill_mckee(adjacency, symmetric_mode=True)
        return torch.from_numpy(order.copy()).long()
    return _depth_first(adjacency)


def _depth_first(adjacency: csr_array) -> Tensor:
    """Component by component, each from its first label, as the branches of one more root."""
    root = adjacency.shape[0]
    _, component = connected_components(adjacency, directed=False)
    _, first = np.unique(component, return_index=True)
    branches = csr_array((np.ones(first.size), (np.zeros(first.size, dtype=int), first)), shape=(1, root))
    joined = block_array([[adjacency, None], [branches, csr_array((1, 1))]], format="csr")
    order = depth_first_order(joined, root, directed=True, return_predecessors=False)
    return torch.from_numpy(order[1:].copy()).long()
