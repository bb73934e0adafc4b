"""Base of all attention patterns, and their compressed forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor


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
