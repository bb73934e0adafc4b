"""Inputs of kernels along edges beside queries, keys and values: the edges, and the options of the softmax."""

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
        """Tells whether the weights of a sample take no more than its output, of as many channels for each head."""
        return 0 < self.num_edges <= self.num_queries * channels


def num_kept(query: Tensor, value: Tensor, graph: Graph) -> int:
    """Number of entries ``csr`` keeps between forward and backward: weights, or the logarithm of every row's sum."""
    sums = query.size(0) * query.size(1)
    return (
        sums // graph.num_queries * graph.num_edges if graph.keeps_weights(value.size(2)) else sums
    )


@dataclass(frozen=True)
class Options:
    """Options of the softmax."""

    scale: float
    dropout_p: float
    seed: int  #: of dropout, the same in both passes
    bias: Tensor | None  #: ``[num_edges, heads]`` in the order of :attr:`Graph.index`
