"""Base of all attention patterns, their compressed forms, and checks of indices and pointers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse, to_edge_index


class CSR(NamedTuple):
    """Edges grouped by query: those of ``i`` stand at ``ptr[i]:ptr[i + 1]``, by key unless they came grouped
    already.
    """

    ptr: Tensor  #: ``[num_queries + 1]``
    key: Tensor  #: ``[num_edges]``, the key of every edge
    perm: Tensor | None  #: ``[num_edges]``, its place in the canonical order; :obj:`None` if that is the same

    def to(self, device: torch.device | str) -> CSR:
        """The same edges on another device."""
        return CSR(self.ptr.to(device), self.key.to(device), None if self.perm is None else self.perm.to(device))


class CSC(NamedTuple):
    """Edges grouped by key: those of key ``j`` stand at ``ptr[j]:ptr[j + 1]``."""

    ptr: Tensor  #: ``[num_keys + 1]``
    query: Tensor  #: ``[num_edges]``, the query of every edge
    order: Tensor  #: ``[num_edges]``, its place among the edges grouped by query

    def to(self, device: torch.device | str) -> CSC:
        """The same edges on another device."""
        return CSC(*(tensor.to(device) for tensor in self))


class Pattern(ABC):
    """Base of :class:`~tg_mlc.ops.Edges`, :class:`~tg_mlc.ops.Blocks` and :class:`~tg_mlc.ops.Shared`."""

    num_queries: int
    num_keys: int
    device: torch.device

    @property
    @abstractmethod
    def num_edges(self) -> int:
        """The number of (query, key) pairs that attend."""

    @abstractmethod
    def to_edge_index(self) -> Tensor:
        """The literal ``[2, num_edges]`` list, keys (sources) in row 0 and queries (targets) in row 1."""

    @abstractmethod
    def csr(self) -> CSR:
        """The edges grouped by query."""

    @abstractmethod
    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""

    @property
    def density(self) -> float:
        """The share of all (query, key) pairs that attend."""
        return self.num_edges / max(self.num_queries * self.num_keys, 1)

    @property
    def weights_size(self) -> tuple[int, ...]:
        """The leading sizes of attention weights in the pattern's own layout; the heads come last."""
        return (self.num_edges,)

    @property
    def bias_size(self) -> int:
        """The number of entries of an edge bias."""
        return self.num_edges

    def expand_bias(self, edge_bias: Tensor) -> Tensor:
        """Brings an edge bias ``[bias_size, heads]`` to ``[num_edges, heads]``."""
        return edge_bias

    def to_edge_list(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Lowers weights in the pattern's own layout to ``edge_index`` and ``[num_edges, heads]``."""
        return self.to_edge_index(), weights.reshape(self.num_edges, weights.size(-1))


def to_list(edge_index: Adj) -> Tensor:
    """Converts a graph to a list ``[2, num_edges]``, sources in row 0. The rows of an adjacency are targets."""
    return with_values(edge_index)[0]


def with_values(edge_index: Adj) -> tuple[Tensor, Tensor | None]:
    """Converts a graph to the list of :func:`to_list`, and returns the values of an adjacency with it."""
    if isinstance(edge_index, EdgeIndex):
        return edge_index.as_tensor(), None
    if is_sparse(edge_index):
        edges, values = to_edge_index(edge_index)
        return edges.flip(0), values
    plain: Tensor = edge_index
    return plain, None


def adjacency_of(graph: Data) -> Adj:
    """Returns the :obj:`edge_index` of a graph, or else its :obj:`adj_t`."""
    for name in ("edge_index", "adj_t"):
        if (adjacency := graph.get(name)) is not None:
            return adjacency
    raise ValueError(f"Expected the graph to hold 'edge_index' or 'adj_t' (got {graph})")


def longest(ptr: Tensor) -> int:
    """Returns the size of the largest segment of a pointer."""
    return int(ptr.diff().max()) if ptr.numel() > 1 else 0


def check_edge_index(edge_index: Tensor, num_sources: int, num_targets: int) -> None:
    """Raises a clear error unless :obj:`edge_index` fits the given numbers of nodes."""
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"Expected 'edge_index' to be a tensor (got {type(edge_index).__name__})")
    if edge_index.dtype != torch.long:
        raise TypeError(f"Expected 'edge_index' to hold torch.long (got {edge_index.dtype}); cast it with '.long()'")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"Expected 'edge_index' of shape [2, num_edges] (got {list(edge_index.shape)})")
    for name, index, size in (("source", edge_index[0], num_sources), ("target", edge_index[1], num_targets)):
        if index.numel() > 0 and (int(index.min()) < 0 or int(index.max()) >= size):
            raise ValueError(
                f"Expected the {name} indices of 'edge_index' to lie in [0, {size}) "
                f"(got values from {int(index.min())} to {int(index.max())})"
            )


def check_ptr(name: str, ptr: Tensor, total: int | None, max_size: int | None) -> None:
    """Raises a clear error unless :obj:`ptr` is a pointer over :obj:`total` rows."""
    if ptr.dtype != torch.long:
        raise TypeError(f"Expected '{name}' to hold torch.long (got {ptr.dtype}); cast it with '.long()'")
    if ptr.dim() != 1 or ptr.numel() == 0:
        raise ValueError(f"Expected '{name}' of shape [num_samples + 1] (got {list(ptr.shape)})")
    if int(ptr[0]) != 0 or bool((ptr.diff() < 0).any()):
        raise ValueError(f"Expected '{name}' to start at 0 and never to decrease (got {ptr.tolist()[:8]}...)")
    if total is not None and int(ptr[-1]) != total:
        raise ValueError(f"Expected '{name}' to end at the number of rows, {total} (got {int(ptr[-1])})")
    if max_size is not None and longest(ptr) > max_size:
        raise ValueError(f"Expected no sample of '{name}' to be larger than {max_size} (got {longest(ptr)})")
