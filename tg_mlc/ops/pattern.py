"""Who attends to whom.

A pattern is the sparsity structure of one attention call. It is a value of its own, rather than an edge list made too
early, because the structure decides what can be fast: complete blocks are matrix products, and one label graph that all
samples share never has to be repeated for each of them.

Every pattern has one canonical order of its edges, that of :meth:`Pattern.to_edge_index`. Attention weights, edge
biases and the compressed form all follow it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.index import index2ptr, ptr2index
from torch_geometric.typing import Adj
from torch_geometric.utils import cumsum

from tg_mlc.ops.adjacency import adjacency_of, to_list
from tg_mlc.ops.checks import check_edge_index, check_ptr, longest


class CSR(NamedTuple):
    """Edges grouped by query: those of query ``i`` stand at ``ptr[i]:ptr[i + 1]``, their keys ascending unless the
    edges came grouped already.
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
    """Base class of all attention patterns."""

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
        """Whether every query attends to every key exactly once."""
        return self.num_edges == self.num_queries * self.num_keys and not self.is_multigraph

    def mask(self) -> Tensor:
        """The dense form ``[num_queries, num_keys]``."""
        if self._mask is None:
            with kept_for_training():
                mask = torch.zeros(self.num_queries, self.num_keys, dtype=torch.bool, device=self.device)
                mask[self.edge_index[1], self.edge_index[0]] = True
            self._mask = mask
        return self._mask

    def isolated(self) -> Tensor:
        """Which queries have no neighbour, ``[num_queries]``."""
        if self._isolated is None:
            with kept_for_training():
                self._isolated = self.csr().ptr.diff() == 0
        return self._isolated

    def finite_mask(self) -> Tensor:
        """The dense form in which an isolated query sees all keys, so that its softmax is finite."""
        if self._finite_mask is None:
            with kept_for_training():
                self._finite_mask = self.mask() | self.isolated().unsqueeze(-1)
        return self._finite_mask

    def to_edge_index(self) -> Tensor:
        return self.edge_index

    def csr(self) -> CSR:
        if self._csr is None:
            with kept_for_training():
                perm = torch.sort(self.edge_index[1] * self.num_keys + self.edge_index[0], stable=True).indices
                key, query = self.edge_index[:, perm]
                self._csr = CSR(_pointers(query, self.num_queries), key, perm)
        return self._csr

    def csc(self) -> CSC:
        """The edges grouped by key."""
        if self._csc is None:
            ptr, key, _ = self.csr()
            with kept_for_training():
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


class Blocks(Pattern):
    r"""Complete within each sample: all queries of a sample attend to all of its keys.

    Args:
        query_ptr (torch.Tensor): Where the queries of every sample begin and end.
        key_ptr (torch.Tensor): Where the keys of every sample begin and end.
        num_queries (int, optional): The number of queries. As for the arguments below, it is read from the pointers if
            :obj:`None`, which waits for the device and cannot be traced. (default: :obj:`None`)
        num_keys (int, optional): The number of keys. (default: :obj:`None`)
        max_queries (int, optional): The most queries of a sample. (default: :obj:`None`)
        max_keys (int, optional): The most keys of a sample. (default: :obj:`None`)
        validate (bool, optional): If set to :obj:`False`, trusts the arguments. (default: :obj:`True`)

    Shapes:
        - **query_ptr, key_ptr:** :math:`(B + 1)`

    Raises:
        TypeError: If a pointer does not hold :obj:`torch.long`.
        ValueError: If a pointer does not start at 0, decreases or ends elsewhere than told, or if the two disagree.
    """

    def __init__(
        self,
        query_ptr: Tensor,
        key_ptr: Tensor,
        *,
        num_queries: int | None = None,
        num_keys: int | None = None,
        max_queries: int | None = None,
        max_keys: int | None = None,
        validate: bool = True,
    ) -> None:
        if validate and not torch.compiler.is_compiling():
            check_ptr("query_ptr", query_ptr, num_queries, max_queries)
            check_ptr("key_ptr", key_ptr, num_keys, max_keys)
            if query_ptr.numel() != key_ptr.numel():
                raise ValueError(
                    f"Expected 'query_ptr' and 'key_ptr' to describe the same number of samples "
                    f"(got {query_ptr.numel() - 1} and {key_ptr.numel() - 1})"
                )
        self.query_ptr = query_ptr
        self.key_ptr = key_ptr
        self.num_queries = int(query_ptr[-1]) if num_queries is None else num_queries
        self.num_keys = int(key_ptr[-1]) if num_keys is None else num_keys
        self.device = query_ptr.device
        self._max_queries = max_queries
        self._max_keys = max_keys
        self._num_edges: int | None = None

    @property
    def num_samples(self) -> int:
        """The number of samples."""
        return self.query_ptr.numel() - 1

    @property
    def is_bounded(self) -> bool:
        """Whether the sizes of the largest sample are known without asking the device."""
        return self._max_queries is not None and self._max_keys is not None

    @property
    def max_queries(self) -> int:
        """The most queries of a sample."""
        if self._max_queries is None:
            self._max_queries = longest(self.query_ptr)
        return self._max_queries

    @property
    def max_keys(self) -> int:
        """The most keys of a sample."""
        if self._max_keys is None:
            self._max_keys = longest(self.key_ptr)
        return self._max_keys

    @property
    def num_edges(self) -> int:
        if self._num_edges is None:
            self._num_edges = int((self.query_ptr.diff() * self.key_ptr.diff()).sum())
        return self._num_edges

    def to_edge_index(self) -> Tensor:
        ptr, key, _ = self.csr()
        return torch.stack([key, ptr2index(ptr, output_size=self.num_edges)])

    def csr(self) -> CSR:
        sample = self.sample_of_query()
        ptr = cumsum(self.key_ptr.diff()[sample])
        row = ptr2index(ptr, output_size=self.num_edges)
        key = torch.arange(self.num_edges, device=self.device) - ptr[row] + self.key_ptr[sample[row]]
        return CSR(ptr, key, None)

    def sample_of_query(self) -> Tensor:
        """The sample of every query."""
        sample: Tensor = ptr2index(self.query_ptr, output_size=self.num_queries)
        return sample

    def sample_of_key(self) -> Tensor:
        """The sample of every key."""
        sample: Tensor = ptr2index(self.key_ptr, output_size=self.num_keys)
        return sample

    def split(self, weights: Tensor) -> list[Tensor]:
        """Views of weights ``[num_edges, heads]`` as one ``[queries, keys, heads]`` for each sample."""
        num_queries, num_keys = self.query_ptr.diff().tolist(), self.key_ptr.diff().tolist()
        parts = torch.split(weights, [q * k for q, k in zip(num_queries, num_keys, strict=True)])
        return [w.view(q, k, weights.size(-1)) for w, q, k in zip(parts, num_queries, num_keys, strict=True)]

    def to(self, device: torch.device | str) -> Blocks:
        return Blocks(
            self.query_ptr.to(device),
            self.key_ptr.to(device),
            num_queries=self.num_queries,
            num_keys=self.num_keys,
            max_queries=self._max_queries,
            max_keys=self._max_keys,
            validate=False,
        )

    def __repr__(self) -> str:
        return f"Blocks(num_samples={self.num_samples}, num_queries={self.num_queries}, num_keys={self.num_keys})"


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

    Raises:
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
        return self.num_samples * self.graph.num_edges

    @property
    def density(self) -> float:
        """The share of the graph's pairs that attend; pairs across samples do not count."""
        return self.graph.density

    @property
    def weights_size(self) -> tuple[int, ...]:
        return (self.num_samples, self.graph.num_edges)

    @property
    def bias_size(self) -> int:
        return self.graph.num_edges

    def expand_bias(self, edge_bias: Tensor) -> Tensor:
        return edge_bias.repeat(self.num_samples, 1)

    def to_edge_index(self) -> Tensor:
        shifted = self.graph.edge_index.unsqueeze(1) + self._offsets(self.num_nodes)
        return shifted.reshape(2, self.num_edges)

    def csr(self) -> CSR:
        ptr, key, perm = self.graph.csr()
        ptrs = ptr[:-1] + self._offsets(self.graph.num_edges)
        last = torch.full((1,), self.num_edges, device=self.device)
        keys = (key + self._offsets(self.num_nodes)).flatten()
        perms = None if perm is None else (perm + self._offsets(self.graph.num_edges)).flatten()
        return CSR(torch.cat([ptrs.flatten(), last]), keys, perms)

    def _offsets(self, step: int) -> Tensor:
        return torch.arange(self.num_samples, device=self.device).unsqueeze(-1) * step

    def to(self, device: torch.device | str) -> Shared:
        return Shared(self.graph.to(device), self.num_samples)

    def __repr__(self) -> str:
        return f"Shared({self.graph}, num_samples={self.num_samples})"


def _pointers(index: Tensor, size: int) -> Tensor:
    """Where each value begins in an ascending index, which nobody has checked while a model is compiled."""
    if torch.compiler.is_compiling():
        return torch.searchsorted(index, torch.arange(size + 1, device=index.device))
    pointers: Tensor = index2ptr(index, size)
    return pointers


def kept_for_training() -> AbstractContextManager[Any]:
    """What is kept may be asked for in inference first, and must serve training all the same."""
    if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
        return nullcontext()
    return torch.inference_mode(False)


def shared_graph(pattern: Pattern) -> tuple[Edges, int]:
    """The edges of a pattern, as few as can be told apart, and the number of samples that share them."""
    if isinstance(pattern, Shared):
        return pattern.graph, pattern.num_samples
    if isinstance(pattern, Edges):
        return pattern, 1
    return Edges(pattern.to_edge_index(), pattern.num_queries, pattern.num_keys, validate=False), 1
