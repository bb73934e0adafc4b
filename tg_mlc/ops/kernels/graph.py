"""Inputs of kernels beside queries, keys and values: edges, and options of the softmax."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Graph:
    """The edges of one sample, grouped by query and by key."""

    ptr: Tensor  #: ``[num_queries + 1]``
    index: Tensor  #: ``[num_edges]``, the key of every edge that is grouped by query
    col_ptr: Tensor  #: ``[num_keys + 1]``
    col_index: Tensor  #: ``[num_edges]``, the query of every edge that is grouped by key
    col_order: Tensor  #: ``[num_edges]``, its place among those grouped by query
    #: the queries, and the keys, that have far more edges than others
    long_queries: Tensor | None = None
    long_keys: Tensor | None = None

    @property
    def num_queries(self) -> int:
        """The number of queries of a sample."""
        return self.ptr.numel() - 1

    @property
    def num_keys(self) -> int:
        """The number of keys of a sample."""
        return self.col_ptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """The number of edges of a sample."""
        return self.index.numel()

    def keeps_weights(self, channels: int) -> bool:
        """Tells whether a sample's weights take no more memory than its output."""
        return 0 < self.num_edges <= self.num_queries * channels


def num_kept(query: Tensor, value: Tensor, graph: Graph) -> int:
    """Number of entries kept for the backward pass: weights, or the logarithm of every sum."""
    sums = query.size(0) * query.size(1)
    keeps_weights = graph.keeps_weights(value.size(2))
    return sums // graph.num_queries * graph.num_edges if keeps_weights else sums


@dataclass(frozen=True)
class Options:
    """Options of the softmax."""

    scale: float
    dropout_p: float
    seed: int  #: seed of dropout, the same in both passes
    bias: Tensor | None  #: ``[num_edges, heads]`` in the order of :attr:`Graph.index`
