"""Pattern of an explicit list of edges, which caches the forms that it has been converted to."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch_geometric.index import index2ptr, ptr2index
from torch_geometric.typing import Adj

from tg_mlc.ops.adjacency import to_list
from tg_mlc.ops.checks import check_edge_index
from tg_mlc.ops.patterns.base import CSC, CSR, Pattern


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
        self._csr: CSR | None = None
        self._csc: CSC | None = None
        self._mask: Tensor | None = None
        self._isolated: Tensor | None = None
        self._finite_mask: Tensor | None = None
        self._multigraph: bool | None = None

    @classmethod
    def from_csr(cls, ptr: Tensor, key: Tensor, num_queries: int, num_keys: int) -> Edges:
        """Takes edges that are grouped by query already; queries beyond the pointer have none."""
        edges = cls(torch.stack([key, ptr2index(ptr, output_size=key.numel())]), num_queries, num_keys)
        if ptr.numel() <= num_queries:
            ptr = torch.cat([ptr, ptr[-1:].expand(num_queries + 1 - ptr.numel())])
        ptr = ptr[: num_queries + 1]  # no edge lies beyond, as has been checked
        edges._csr = CSR(ptr, key, None)
        return edges

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self.edge_index.size(1)

    @property
    def is_prepared(self) -> bool:
        """Whether calls find what they ask for without waiting for the device."""
        return self._multigraph is not None

    @property
    def is_multigraph(self) -> bool:
        """Whether a pair occurs more than once, in which case it takes part in the softmax as often."""
        if self._multigraph is None:
            pair = self.edge_index[1] * self.num_keys + self.edge_index[0]
            self._multigraph = torch.unique(pair).numel() < self.num_edges
        return self._multigraph

    @property
    def is_complete(self) -> bool:
        """:obj:`True` if every query attends to every key exactly once."""
        return self.num_edges == self.num_queries * self.num_keys and not self.is_multigraph

    def mask(self) -> Tensor:
        """The dense form ``[num_queries, num_keys]``."""
        if self._mask is None:
            with _kept_for_training():
                mask = torch.zeros(self.num_queries, self.num_keys, dtype=torch.bool, device=self.device)
                mask[self.edge_index[1], self.edge_index[0]] = True
            self._mask = mask
        return self._mask

    def isolated(self) -> Tensor:
        """Which queries have no neighbour, ``[num_queries]``."""
        if self._isolated is None:
            with _kept_for_training():
                self._isolated = self.csr().ptr.diff() == 0
        return self._isolated

    def finite_mask(self) -> Tensor:
        """The dense form in which an isolated query sees all keys, so that its softmax is finite."""
        if self._finite_mask is None:
            with _kept_for_training():
                self._finite_mask = self.mask() | self.isolated().unsqueeze(-1)
        return self._finite_mask

    def to_edge_index(self) -> Tensor:
        """The edges as they were given."""
        return self.edge_index

    def csr(self) -> CSR:
        """The edges grouped by query, sorted once."""
        if self._csr is None:
            with _kept_for_training():
                perm = torch.sort(self.edge_index[1] * self.num_keys + self.edge_index[0], stable=True).indices
                key, query = self.edge_index[:, perm]
                self._csr = CSR(_pointers(query, self.num_queries), key, perm)
        return self._csr

    def csc(self) -> CSC:
        """The edges grouped by key."""
        if self._csc is None:
            ptr, key, _ = self.csr()
            with _kept_for_training():
                key, order = torch.sort(key, stable=True)
                query = ptr2index(ptr, output_size=self.num_edges)
                self._csc = CSC(_pointers(key, self.num_keys), query[order], order)
        return self._csc

    def prepare(self) -> Edges:
        """Derives and keeps whatever calls will ask for, so that they need not wait for the device or be traced.

        The dense form is kept unless the graph is so large and sparse that no backend would take it.
        """
        _ = self.is_multigraph
        self.csc()
        if self.num_queries * self.num_keys <= 64 * max(self.num_edges, 2**14):
            self._prepare_masks()
        return self

    def _prepare_masks(self) -> None:
        mask = self.mask()
        # One tensor in place of two, wherever both are the same:
        self._finite_mask = self.finite_mask() if bool(self.isolated().any()) else mask

    def to(self, device: torch.device | str) -> Edges:
        """The same pattern on another device."""
        moved = Edges(self.edge_index.to(device), self.num_queries, self.num_keys, validate=False)
        moved._multigraph = self._multigraph
        moved._csr = None if self._csr is None else self._csr.to(device)
        moved._csc = None if self._csc is None else self._csc.to(device)
        moved._mask = None if self._mask is None else self._mask.to(device)
        moved._isolated = None if self._isolated is None else self._isolated.to(device)
        moved._finite_mask = None if self._finite_mask is None else self._finite_mask.to(device)
        return moved

    def __repr__(self) -> str:
        return f"Edges(num_queries={self.num_queries}, num_keys={self.num_keys}, num_edges={self.num_edges})"


def _pointers(index: Tensor, size: int) -> Tensor:
    """Where each value begins in an ascending index, which nobody has checked while a model is compiled."""
    if torch.compiler.is_compiling():
        return torch.searchsorted(index, torch.arange(size + 1, device=index.device))
    pointers: Tensor = index2ptr(index, size)
    return pointers


def _kept_for_training() -> AbstractContextManager[Any]:
    """What is kept may be asked for in inference first, and must serve training all the same."""
    if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
        return nullcontext()
    return torch.inference_mode(False)
