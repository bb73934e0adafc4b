"""Pattern of an explicit list of edges, which caches the forms that it has been converted to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.index import index2ptr, ptr2index
from torch_geometric.typing import Adj

from tg_mlc.ops.patterns.base import CSC, CSR, Pattern, check_edge_index, to_list

Form = TypeVar("Form")


def _kept(derive: Callable[[Edges], Form]) -> Callable[[Edges], Form]:
    """Derives a form once. One that is asked for in inference first must serve training all the same."""

    @wraps(derive)
    def get(edges: Edges) -> Form:
        if derive.__name__ not in edges._kept:
            tracing = torch.compiler.is_compiling() or not torch.is_inference_mode_enabled()
            with nullcontext() if tracing else torch.inference_mode(False):
                edges._kept[derive.__name__] = derive(edges)
        form: Form = edges._kept[derive.__name__]
        return form

    return get


class Edges(Pattern):
    r"""An explicit list of edges.

    Args:
        edge_index (torch.Tensor or SparseTensor): Keys (sources) in row 0 and queries (targets) in row 1, as in PyG; or
            an adjacency, with the targets in its rows.
        num_queries (int): The number of queries.
        num_keys (int): The number of keys.
        validate (bool, optional): If set to :obj:`False`, trusts the arguments. (default: :obj:`True`)

    Shapes:
        - **edge_index:** :math:`(2, |\mathcal{E}|)`

    Raises:
        TypeError: If :obj:`edge_index` does not hold :obj:`torch.long`.
        ValueError: If its shape or one of its indices is out of range.
    """

    def __init__(self, edge_index: Adj, num_queries: int, num_keys: int, *, validate: bool = True) -> None:
        self.edge_index: Tensor = to_list(edge_index)
        if validate and not torch.compiler.is_compiling():
            check_edge_index(self.edge_index, num_keys, num_queries)
        self.num_queries = num_queries
        self.num_keys = num_keys
        self.device = self.edge_index.device
        self._kept: dict[str, Any] = {}

    @classmethod
    def from_csr(cls, ptr: Tensor, key: Tensor, num_queries: int, num_keys: int) -> Edges:
        """Takes edges that are grouped by query already; queries beyond the pointer have none."""
        edges = cls(torch.stack([key, ptr2index(ptr, output_size=key.numel())]), num_queries, num_keys)
        if ptr.numel() <= num_queries:
            ptr = torch.cat([ptr, ptr[-1:].expand(num_queries + 1 - ptr.numel())])
        ptr = ptr[: num_queries + 1]  # no edge lies beyond, as has been checked
        edges._kept["csr"] = CSR(ptr, key, None)
        return edges

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self.edge_index.size(1)

    @property
    @_kept
    def is_multigraph(self) -> bool:
        """:obj:`True` if a pair occurs more than once; it takes part in the softmax as often."""
        pair = self.edge_index[1] * self.num_keys + self.edge_index[0]
        return bool(torch.unique(pair).numel() < self.num_edges)

    @property
    def is_complete(self) -> bool:
        """:obj:`True` if every query attends to every key exactly once."""
        return self.num_edges == self.num_queries * self.num_keys and not self.is_multigraph

    @_kept
    def mask(self) -> Tensor:
        """The dense form ``[num_queries, num_keys]``."""
        mask = torch.zeros(self.num_queries, self.num_keys, dtype=torch.bool, device=self.device)
        mask[self.edge_index[1], self.edge_index[0]] = True
        return mask

    @_kept
    def isolated(self) -> Tensor:
        """A mask of the queries without neighbours, ``[num_queries]``."""
        return self.csr().ptr.diff() == 0

    @_kept
    def finite_mask(self) -> Tensor:
        """The dense form in which an isolated query sees all keys, so that its softmax is finite."""
        return self.mask() | self.isolated().unsqueeze(-1)

    def to_edge_index(self) -> Tensor:
        """The edges as they were given."""
        return self.edge_index

    @_kept
    def csr(self) -> CSR:
        """The edges grouped by query, sorted once."""
        perm = torch.sort(self.edge_index[1] * self.num_keys + self.edge_index[0], stable=True).indices
        key, query = self.edge_index[:, perm]
        return CSR(_pointers(query, self.num_queries), key, perm)

    @_kept
    def csc(self) -> CSC:
        """The edges grouped by key."""
        ptr, key, _ = self.csr()
        key, order = torch.sort(key, stable=True)
        query = ptr2index(ptr, output_size=self.num_edges)
        return CSC(_pointers(key, self.num_keys), query[order], order)

    def prepare(self) -> Edges:
        """Derives whatever calls will ask for (the dense form unless no backend would take it), so that they need not
        wait for the device or be traced.
        """
        _ = self.is_multigraph
        self.csc()
        if self.num_queries * self.num_keys <= 64 * max(self.num_edges, 2**14):
            # One tensor in place of two, wherever both are the same:
            self._kept["finite_mask"] = self.finite_mask() if bool(self.isolated().any()) else self.mask()
            self.mask()
        return self

    def to(self, device: torch.device | str) -> Edges:
        """The same pattern on another device."""
        moved = Edges(self.edge_index.to(device), self.num_queries, self.num_keys, validate=False)
        moved._kept = {name: form if isinstance(form, bool) else form.to(device) for name, form in self._kept.items()}
        return moved

    def __repr__(self) -> str:
        return f"Edges(num_queries={self.num_queries}, num_keys={self.num_keys}, num_edges={self.num_edges})"


def _pointers(index: Tensor, size: int) -> Tensor:
    """Places where each value begins in an ascending index, which nobody has checked while a model is compiled."""
    if torch.compiler.is_compiling():
        return torch.searchsorted(index, torch.arange(size + 1, device=index.device))
    pointers: Tensor = index2ptr(index, size)
    return pointers
