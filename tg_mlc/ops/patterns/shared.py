"""Pattern of one graph that all samples share."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.typing import Adj

from tg_mlc.ops.patterns.base import CSR, Pattern, adjacency_of
from tg_mlc.ops.patterns.edges import Edges


class Shared(Pattern):
    r"""One graph among :math:`L` nodes, the same for every sample; node :math:`i` of sample :math:`b` stands in row
    :math:`b \cdot L + i`.

    Args:
        graph (Edges, LabelGraph, torch.Tensor or SparseTensor): The graph, as a square :class:`Edges`, as a
            :class:`~torch_geometric.data.Data` with :obj:`num_nodes` and :obj:`edge_index` or :obj:`adj_t`, or as an
            ``edge_index``.
        num_samples (int): The number of samples :math:`B`.
        num_nodes (int, optional): The number of nodes :math:`L`; needed only beside an ``edge_index``.
            (default: :obj:`None`)

    Shapes:
        - **graph:** :math:`(2, |\mathcal{E}|)` as an ``edge_index``

    Raises:
        TypeError: If an ``edge_index`` does not hold :obj:`torch.long`.
        ValueError: If :obj:`graph` is not square or holds no edges, :obj:`num_nodes` is missing, or
            :obj:`num_samples` is negative.
    """

    def __init__(self, graph: Edges | Data | Adj, num_samples: int, num_nodes: int | None = None) -> None:
        if isinstance(graph, Data):
            graph = Edges(adjacency_of(graph), graph.num_nodes, graph.num_nodes)
        if not isinstance(graph, Edges):
            if num_nodes is None:
                raise ValueError("Expected 'num_nodes' beside an 'edge_index' (got None)")
            graph = Edges(graph, num_nodes, num_nodes)
        if graph.num_queries != graph.num_keys or num_nodes not in (None, graph.num_keys):
            raise ValueError(
                f"Expected 'graph' to be a graph among 'num_nodes' nodes "
                f"(got {graph.num_queries} queries, {graph.num_keys} keys and num_nodes={num_nodes})"
            )
        if not torch.compiler.is_compiling() and num_samples < 0:
            raise ValueError(f"Expected 'num_samples' to be at least 0 (got {num_samples})")
        self.graph = graph
        self.num_samples = num_samples
        self.num_queries = self.num_keys = num_samples * graph.num_keys
        self.device = graph.device

    @property
    def num_nodes(self) -> int:
        """The number of nodes of the graph."""
        return self.graph.num_keys

    @property
    def num_edges(self) -> int:
        """The number of edges of all samples."""
        return self.num_samples * self.graph.num_edges

    @property
    def density(self) -> float:
        """The share of the graph's pairs that attend; pairs across samples do not count."""
        return self.graph.density

    @property
    def weights_size(self) -> tuple[int, ...]:
        """The leading sizes of attention weights: samples, and edges of the graph."""
        return (self.num_samples, self.graph.num_edges)

    @property
    def bias_size(self) -> int:
        """The number of edges of the graph, whose bias all samples share."""
        return self.graph.num_edges

    def expand_bias(self, edge_bias: Tensor) -> Tensor:
        """Repeats an edge bias for every sample."""
        return edge_bias.repeat(self.num_samples, 1)

    def to_edge_index(self) -> Tensor:
        """The literal list of edges, sample after sample."""
        shifted = self.graph.edge_index.unsqueeze(1) + self._offsets(self.num_nodes)
        return shifted.reshape(2, self.num_edges)

    def csr(self) -> CSR:
        """The edges of all samples grouped by query."""
        ptr, key, perm = self.graph.csr()
        ptrs = ptr[:-1] + self._offsets(self.graph.num_edges)
        last = torch.full((1,), self.num_edges, device=self.device)
        keys = (key + self._offsets(self.num_nodes)).flatten()
        perms = None if perm is None else (perm + self._offsets(self.graph.num_edges)).flatten()
        return CSR(torch.cat([ptrs.flatten(), last]), keys, perms)

    def _offsets(self, step: int) -> Tensor:
        return torch.arange(self.num_samples, device=self.device).unsqueeze(-1) * step

    def to(self, device: torch.device | str) -> Shared:
        """The same pattern on another device."""
        return Shared(self.graph.to(device), self.num_samples)

    def __repr__(self) -> str:
        return f"Shared({self.graph}, num_samples={self.num_samples})"


def shared_graph(pattern: Pattern) -> tuple[Edges, int]:
    """The edges of a pattern, as few as can be told apart, and the number of samples that share them."""
    if isinstance(pattern, Shared):
        return pattern.graph, pattern.num_samples
    if isinstance(pattern, Edges):
        return pattern, 1
    return Edges(pattern.to_edge_index(), pattern.num_queries, pattern.num_keys, validate=False), 1
