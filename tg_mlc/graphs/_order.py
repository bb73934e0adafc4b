"""Orders of the labels that put neighbours close to each other in memory."""

from __future__ import annotations

from typing import Literal, get_args

import networkx as nx
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
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
    forest = nx.dfs_preorder_nodes(nx.from_scipy_sparse_array(adjacency))  # each component from its first label
    return torch.tensor(list(forest), dtype=torch.long)
