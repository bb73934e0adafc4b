"""Orders of the labels that put neighbours close to each other in memory."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, depth_first_order, reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.utils import to_scipy_sparse_matrix

Order = Literal["rcm", "tree"]


def locality_order(edge_index: Tensor, num_labels: int, method: Order) -> Tensor:
    """The label that comes first, second, ...; see :meth:`tg_mlc.graphs.LabelGraph.locality_order`."""
    if method not in get_args(Order):
        raise ValueError(f"Expected 'method' to be one of {list(get_args(Order))} (got '{method}')")
    directed = csr_array(to_scipy_sparse_matrix(edge_index.cpu(), num_nodes=num_labels))
    adjacency = (directed + directed.T).tocsr()
    if method == "rcm":
        order = reverse_cuthill_mckee(adjacency, symmetric_mode=True)
        return torch.from_numpy(order.copy()).long()
    return torch.tensor(_depth_first(adjacency), dtype=torch.long)


def _depth_first(adjacency: csr_array) -> list[int]:
    """Component by component, each from its first label."""
    _, component = connected_components(adjacency, directed=False)
    order: list[int] = []
    seen: set[int] = set()
    for label, group in enumerate(component.tolist()):
        if group not in seen:
            seen.add(group)
            order += depth_first_order(adjacency, label, directed=False, return_predecessors=False).tolist()
    return order
