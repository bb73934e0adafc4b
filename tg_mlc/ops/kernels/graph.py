"""Inputs of kernels besides queries, keys and values: edges, and options of the softmax."""

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
    col_order: Tensor  #: ``[num_edges]``, index of this edge in the order by query
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
        """Tells whether weights of a sample need at most as much memory as its output."""
        return 0 < self.num_edges <= self.num_queries * channels


def num_kept(query: Tensor, value: Tensor, graph: Graph) -> int:
    """Returns the number of kept entries: weights, or log-sum-exps."""
    num_sums = query.size(0) * query.size(1)
    keeps_weights = graph.keeps_weights(value.size(2))
    return num_sums // graph.num_queries * graph.num_edges if keeps_weights else num_sums


@dataclass(frozen=True)
class Options:
    """Options of the softmax."""

    scale: float
    dropout_p: float
    seed: int  #: seed of dropout, the same in both passes
    bias: Tensor | None  #: ``[num_edges, heads]`` in the order of :attr:`Graph.index`
