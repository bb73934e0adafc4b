"""Attention patterns: which queries attend to which keys. Their types allow fast implementations:
complete blocks are matrix products, and shared label graphs are not repeated.

Attention weights, edge biases and compressed formats follow :meth:`Pattern.to_edge_index`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.index import index2ptr, ptr2index
from torch_geometric.typing import Adj
from torch_geometric.utils import cumsum, is_sparse, to_edge_index

from tg_mlc.ops.runtime import is_recorded

Form = TypeVar("Form")


class CSR(NamedTuple):
    """Edges grouped by query: edges of query ``i`` have indices ``ptr[i]:ptr[i + 1]``."""

    ptr: Tensor  #: ``[num_queries + 1]``
    key: Tensor  #: ``[num_edges]``, the key of every edge
    perm: Tensor | None  #: ``[num_edges]``, canonical index of every edge, if different


class CSC(NamedTuple):
    """Edges grouped by key: edges of key ``j`` have indices ``ptr[j]:ptr[j + 1]``."""

    ptr: Tensor  #: ``[num_keys + 1]``
    query: Tensor  #: ``[num_edges]``, the query of every edge
    order: Tensor  #: ``[num_edges]``, index of every edge in the order by query


class LongRows(NamedTuple):
    """The queries, and the keys, that have far more edges than others."""

    queries: Tensor
    keys: Tensor


class Pattern(ABC):
    """Base class of attention patterns."""

    num_queries: int
    num_keys: int
    device: torch.device

    @property
    @abstractmethod
    def num_edges(self) -> int:
        """The number of (query, key) pairs that attend."""

    @abstractmethod
    def to_edge_index(self) -> Tensor:
        """Returns the list ``[2, num_edges]``, with keys in row 0 and queries in row 1."""

    @abstractmethod
    def csr(self) -> CSR:
        """Returns the edges grouped by query."""

    @abstractmethod
    def to(self, device: torch.device | str) -> Pattern:
        """Returns the same pattern on another device."""

    @property
    def density(self) -> float:
        """The fraction of (query, key) pairs that are edges."""
        return self.num_edges / max(self.num_queries * self.num_keys, 1)

    @property
    def weights_size(self) -> tuple[int, ...]:
        """The leading sizes of attention weights; the heads come last."""
        return (self.num_edges,)

    @property
    def bias_size(self) -> int:
        """The number of entries of an edge bias."""
        return self.num_edges

    def expand_bias(self, edge_bias: Tensor) -> Tensor:
        """Expands an edge bias ``[bias_size, heads]`` to ``[num_edges, heads]``."""
        return edge_bias

    def to_edge_list(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Converts weights to ``edge_index`` and ``[num_edges, heads]``."""
        return self.to_edge_index(), weights.reshape(self.num_edges, weights.size(-1))

    def shared(self) -> tuple[Edges, int]:
        """Returns the fewest edges that describe the pattern, and how many samples share them."""
        return Edges(self.to_edge_index(), self.num_queries, self.num_keys, validate=False), 1


def _cached(derive: Callable[[Edges], Form]) -> Callable[[Edges], Form]:
    """Caches a derived format. It is computed outside of inference mode, for use in training."""

    @wraps(derive)
    def get(edges: Edges) -> Form:
        if derive.__name__ not in edges._cache:
            tracing = torch.compiler.is_compiling() or not torch.is_inference_mode_enabled()
            with nullcontext() if tracing else torch.inference_mode(False):
                edges._cache[derive.__name__] = derive(edges)
        form: Form = edges._cache[derive.__name__]
        return form

    return get


class Edges(Pattern):
    r"""An explicit list of edges, with cached conversions to other formats.

    Args:
        edge_index (torch.Tensor or SparseTensor): Keys in row 0 and queries in row 1, or an
            adjacency with queries as rows.
        num_queries (int): The number of queries.
        num_keys (int): The number of keys.
        validate (bool, optional): Whether to check the arguments. (default: :obj:`True`)

    Shapes:
        - **edge_index:** :math:`(2, |\mathcal{E}|)`

    Raises:
        TypeError: If :obj:`edge_index` does not hold :obj:`torch.long`.
        ValueError: If its shape or one of its indices is out of range.
    """

    def __init__(
        self, edge_index: Adj, num_queries: int, num_keys: int, *, validate: bool = True
    ) -> None:
        self.edge_index: Tensor = to_list(edge_index)
        if validate and not is_recorded():
            check_edge_index(self.edge_index, num_keys, num_queries)
        self.num_queries = num_queries
        self.num_keys = num_keys
        self.device = self.edge_index.device
        self._cache: dict[str, Any] = {}

    @classmethod
    def from_csr(cls, ptr: Tensor, key: Tensor, num_queries: int, num_keys: int) -> Edges:
        """Makes edges from a format grouped by query. Queries beyond the pointer have no edges."""
        edge_index = torch.stack([key, ptr2index(ptr, output_size=key.numel())])
        edges = cls(edge_index, num_queries, num_keys)
        if ptr.numel() <= num_queries:
            ptr = torch.cat([ptr, ptr[-1:].expand(num_queries + 1 - ptr.numel())])
        edges._cache["csr"] = CSR(ptr[: num_queries + 1], key, None)
        return edges

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    @property
    @_cached
    def is_multigraph(self) -> bool:
        """:obj:`True` if a pair is repeated. Each repetition counts in the softmax."""
        pair = self.edge_index[1] * self.num_keys + self.edge_index[0]
        return bool(torch.unique(pair).numel() < self.num_edges)

    @property
    def is_complete(self) -> bool:
        """:obj:`True` if every query attends to every key exactly once."""
        return self.num_edges == self.num_queries * self.num_keys and not self.is_multigraph

    @_cached
    def mask(self) -> Tensor:
        """Returns the dense mask ``[num_queries, num_keys]``."""
        mask = torch.zeros(self.num_queries, self.num_keys, dtype=torch.bool, device=self.device)
        mask[self.edge_index[1], self.edge_index[0]] = True
        return mask

    @_cached
    def isolated(self) -> Tensor:
        """Returns the mask of queries without neighbours, ``[num_queries]``."""
        return self.csr().ptr.diff() == 0

    @_cached
    def finite_mask(self) -> Tensor:
        """Returns the mask in which isolated queries see all keys, for a finite softmax."""
        return self.mask() | self.isolated().unsqueeze(-1)

    def to_edge_index(self) -> Tensor:
        """Returns the edges as they were passed."""
        return self.edge_index

    @_cached
    def csr(self) -> CSR:
        """Returns the edges grouped by query, which are sorted once."""
        pair = self.edge_index[1] * self.num_keys + self.edge_index[0]
        perm = torch.sort(pair, stable=True).indices
        key, query = self.edge_index[:, perm]
        return CSR(_pointers(query, self.num_queries), key, perm)

    @_cached
    def long_rows(self) -> LongRows:
        """Returns the queries, and the keys, that have far more edges than others."""
        ptrs = self.csr().ptr, self.csc().ptr
        if is_recorded():  # The rows depend on values.
            empty = ptrs[0].new_empty(0)
            return LongRows(empty, empty)
        queries, keys = (ptr.diff() > most_edges(ptr.numel() - 1, self.num_edges) for ptr in ptrs)
        return LongRows(queries.nonzero().flatten(), keys.nonzero().flatten())

    @_cached
    def csc(self) -> CSC:
        """Returns the edges grouped by key."""
        ptr, key, _ = self.csr()
        key, order = torch.sort(key, stable=True)
        query = ptr2index(ptr, output_size=self.num_edges)
        return CSC(_pointers(key, self.num_keys), query[order], order)

    def prepare(self) -> Edges:
        """Computes all formats that calls need, so that no call has to."""
        _ = self.is_multigraph
        self.csc()
        self.long_rows()
        # No backend uses dense masks of larger graphs.
        if self.num_queries * self.num_keys <= 64 * max(self.num_edges, 2**14):
            finite = self.finite_mask() if bool(self.isolated().any()) else self.mask()
            self._cache["finite_mask"] = finite
            self.mask()
        return self

    def shared(self) -> tuple[Edges, int]:
        return self, 1

    def to(self, device: torch.device | str) -> Edges:
        def moved(form: Any) -> Any:
            if isinstance(form, tuple):
                return type(form)(*map(moved, form))
            return form.to(device) if isinstance(form, Tensor) else form

        edges = Edges(self.edge_index.to(device), self.num_queries, self.num_keys, validate=False)
        edges._cache = {name: moved(form) for name, form in self._cache.items()}
        return edges

    def __repr__(self) -> str:
        sizes = f"num_queries={self.num_queries}, num_keys={self.num_keys}"
        return f"Edges({sizes}, num_edges={self.num_edges})"


class Blocks(Pattern):
    r"""Complete within each sample: all queries of a sample attend to all of its keys.

    Args:
        query_ptr (torch.Tensor): The bounds of queries of every sample.
        key_ptr (torch.Tensor): The bounds of keys of every sample.
        num_queries (int, optional): The number of queries. Without it, or the arguments below,
            values are read from the device, which cannot be traced. (default: :obj:`None`)
        num_keys (int, optional): The number of keys. (default: :obj:`None`)
        max_queries (int, optional): Largest number of queries per sample. (default: :obj:`None`)
        max_keys (int, optional): Largest number of keys per sample. (default: :obj:`None`)
        validate (bool, optional): Whether to check the arguments. (default: :obj:`True`)

    Shapes:
        - **query_ptr, key_ptr:** :math:`(B + 1)`

    Raises:
        TypeError: If a pointer does not hold :obj:`torch.long`.
        ValueError: If a pointer does not start at 0, decreases or ends elsewhere, or both disagree.
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
        if validate and not is_recorded():
            check_ptr("query_ptr", query_ptr, num_queries, max_queries)
            check_ptr("key_ptr", key_ptr, num_keys, max_keys)
            if query_ptr.numel() != key_ptr.numel():
                got = f"{query_ptr.numel() - 1} and {key_ptr.numel() - 1}"
                expected = "'query_ptr' and 'key_ptr' of the same number of samples"
                raise ValueError(f"Expected {expected} (got {got})")
        self.query_ptr = query_ptr
        self.key_ptr = key_ptr
        self.num_samples = query_ptr.numel() - 1
        self.num_queries = int(query_ptr[-1]) if num_queries is None else num_queries
        self.num_keys = int(key_ptr[-1]) if num_keys is None else num_keys
        self.device = query_ptr.device
        self._max_queries = max_queries
        self._max_keys = max_keys
        self._num_edges: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Tells whether the largest sizes are known without a transfer from the device."""
        return self._max_queries is not None and self._max_keys is not None

    @property
    def max_queries(self) -> int:
        """The largest number of queries per sample."""
        if self._max_queries is None:
            self._max_queries = longest(self.query_ptr)
        return self._max_queries

    @property
    def max_keys(self) -> int:
        """The largest number of keys per sample."""
        if self._max_keys is None:
            self._max_keys = longest(self.key_ptr)
        return self._max_keys

    @property
    def num_edges(self) -> int:
        # Read values from the device only if known sizes do not determine the number.
        if self._num_edges is None:
            max_queries = self._max_queries
            if max_queries is not None and max_queries * self.num_samples == self.num_queries:
                self._num_edges = max_queries * self.num_keys
            elif self.query_ptr is self.key_ptr and not torch.compiler.is_compiling():
                self._num_edges = segments(self.key_ptr).num_pairs
            else:
                self._num_edges = int((self.query_ptr.diff() * self.key_ptr.diff()).sum())
        return self._num_edges

    def to_edge_index(self) -> Tensor:
        """Returns the list of all pairs, sample after sample."""
        ptr, key, _ = self.csr()
        return torch.stack([key, ptr2index(ptr, output_size=self.num_edges)])

    def csr(self) -> CSR:
        sample = self.sample_of_query()
        ptr = cumsum(self.key_ptr.diff()[sample])
        row = ptr2index(ptr, output_size=self.num_edges)
        edge = torch.arange(self.num_edges, device=self.device)
        return CSR(ptr, edge - ptr[row] + self.key_ptr[sample[row]], None)

    def sample_of_query(self) -> Tensor:
        """Returns the sample of every query."""
        sample: Tensor = ptr2index(self.query_ptr, output_size=self.num_queries)
        return sample

    def to(self, device: torch.device | str) -> Blocks:
        sizes: Any = {"num_queries": self.num_queries, "num_keys": self.num_keys}
        sizes |= {"max_queries": self._max_queries, "max_keys": self._max_keys}
        return Blocks(self.query_ptr.to(device), self.key_ptr.to(device), **sizes, validate=False)

    def __repr__(self) -> str:
        sizes = f"num_queries={self.num_queries}, num_keys={self.num_keys}"
        return f"Blocks(num_samples={self.num_samples}, {sizes})"


class Shared(Pattern):
    r"""One graph for all samples; node :math:`i` of sample :math:`b` has row :math:`b \cdot L + i`.

    Args:
        graph (Edges, LabelGraph, torch.Tensor or SparseTensor): The graph: square :class:`Edges`, a
            :class:`~torch_geometric.data.Data`, or an ``edge_index``.
        num_samples (int): The number of samples :math:`B`.
        num_nodes (int, optional): Number of nodes, for an ``edge_index``. (default: :obj:`None`)

    Shapes:
        - **graph:** :math:`(2, |\mathcal{E}|)` as an ``edge_index``

    Raises:
        TypeError: If an ``edge_index`` does not hold :obj:`torch.long`.
        ValueError: If :obj:`graph` is not square, or a number of nodes or samples is wrong.
    """

    def __init__(
        self, graph: Edges | Data | Adj, num_samples: int, num_nodes: int | None = None
    ) -> None:
        if isinstance(graph, Data):
            graph = Edges(adjacency_of(graph), graph.num_nodes, graph.num_nodes)
        if not isinstance(graph, Edges):
            if num_nodes is None:
                raise ValueError("Expected 'num_nodes' beside an 'edge_index' (got None)")
            graph = Edges(graph, num_nodes, num_nodes)
        if graph.num_queries != graph.num_keys or num_nodes not in (None, graph.num_keys):
            got = f"{graph.num_queries} queries, {graph.num_keys} keys and num_nodes={num_nodes}"
            raise ValueError(f"Expected 'graph' to be a graph among 'num_nodes' nodes (got {got})")
        if not torch.compiler.is_compiling() and num_samples < 0:
            raise ValueError(f"Expected 'num_samples' to be at least 0 (got {num_samples})")
        self.graph = graph
        self.num_samples = num_samples
        self.num_nodes = graph.num_keys
        self.num_queries = self.num_keys = num_samples * graph.num_keys
        self.device = graph.device

    @property
    def num_edges(self) -> int:
        return self.num_samples * self.graph.num_edges

    @property
    def density(self) -> float:
        """The fraction of pairs in the graph that are edges, without pairs across samples."""
        return self.graph.density

    @property
    def weights_size(self) -> tuple[int, ...]:
        """The leading sizes of attention weights: samples, and edges of the graph."""
        return (self.num_samples, self.graph.num_edges)

    @property
    def bias_size(self) -> int:
        """The number of edges of the graph. All samples share the bias."""
        return self.graph.num_edges

    def expand_bias(self, edge_bias: Tensor) -> Tensor:
        """Repeats an edge bias for every sample."""
        return edge_bias.repeat(self.num_samples, 1)

    def shared(self) -> tuple[Edges, int]:
        """Returns the graph, and the number of samples."""
        return self.graph, self.num_samples

    def to_edge_index(self) -> Tensor:
        """Returns the list of the edges of all samples, sample after sample."""
        shifted = self.graph.edge_index.unsqueeze(1) + self._offsets(self.num_nodes)
        return shifted.reshape(2, self.num_edges)

    def csr(self) -> CSR:
        ptr, key, perm = self.graph.csr()
        by_edges = self._offsets(self.graph.num_edges)
        last = torch.full((1,), self.num_edges, device=self.device)
        keys = (key + self._offsets(self.num_nodes)).flatten()
        perms = None if perm is None else (perm + by_edges).flatten()
        return CSR(torch.cat([(ptr[:-1] + by_edges).flatten(), last]), keys, perms)

    def _offsets(self, step: int) -> Tensor:
        return torch.arange(self.num_samples, device=self.device).unsqueeze(-1) * step

    def to(self, device: torch.device | str) -> Shared:
        return Shared(self.graph.to(device), self.num_samples)

    def __repr__(self) -> str:
        return f"Shared({self.graph}, num_samples={self.num_samples})"


def to_list(edge_index: Adj) -> Tensor:
    """Converts a graph to a list ``[2, num_edges]``. The rows of an adjacency are targets."""
    return with_values(edge_index)[0]


def with_values(edge_index: Adj) -> tuple[Tensor, Tensor | None]:
    """Converts a graph to a list ``[2, num_edges]``, and returns an adjacency's values."""
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
    got = f"a {type(graph).__name__} without both"
    raise ValueError(f"Expected the graph to hold 'edge_index' or 'adj_t' (got {got})")


def most_edges(num_rows: int, num_edges: int) -> int:
    """Returns the largest number of edges of a row that does not get extra GPU warps."""
    return max(256, 4 * num_edges // max(1, num_rows))


class Segments(NamedTuple):
    """The properties of the segments that a pointer delimits."""

    first: int
    last: int
    smallest: int
    largest: int
    num_pairs: int  #: the sum of their squared sizes


def segments(ptr: Tensor) -> Segments:
    """Reads all properties of a pointer in one transfer from the device, and caches them."""
    version = None if ptr.is_inference() else ptr._version
    cached: Any = _SEGMENTS.get(ptr)  # type: ignore[no-untyped-call]
    if cached is None or version is None or cached[0] != version:
        sizes = ptr.diff() if ptr.numel() > 1 else ptr.new_zeros(1)
        values = (ptr[0], ptr[-1], sizes.min(), sizes.max(), sizes.square().sum())
        cached = _SEGMENTS[ptr] = (version, Segments(*torch.stack(values).tolist()))
    return cast(Segments, cached[1])


_SEGMENTS = WeakTensorKeyDictionary()


def longest(ptr: Tensor) -> int:
    """Returns the size of the largest segment of a pointer."""
    if torch.compiler.is_compiling():  # torch.export would treat int() as a constant
        return ptr.diff().max().item() if ptr.numel() > 1 else 0  # type: ignore[return-value]
    return segments(ptr).largest


def _pointers(index: Tensor, size: int) -> Tensor:
    """Returns the first position of each value in an ascending index."""
    if torch.compiler.is_compiling():
        return torch.searchsorted(index, torch.arange(size + 1, device=index.device))
    pointers: Tensor = index2ptr(index, size)
    return pointers


def shape_error(name: str, expected: Any, x: Tensor, cure: str = "") -> ValueError:
    """Returns the error for a tensor with an unexpected shape."""
    return ValueError(f"Expected {name} of shape {expected} (got {list(x.shape)}){cure}")


def _check_long(name: str, x: Tensor) -> None:
    if x.dtype != torch.long:
        expected = f"Expected '{name}' to hold torch.long"
        raise TypeError(f"{expected} (got {x.dtype}); cast it with '.long()'")


def check_edge_index(
    edge_index: Tensor, num_sources: int, num_targets: int, name: str = "edge_index"
) -> None:
    """Raises a clear error unless :obj:`edge_index` fits the given numbers of nodes."""
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"Expected '{name}' to be a tensor (got {type(edge_index).__name__})")
    _check_long(name, edge_index)
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise shape_error(f"'{name}'", "[2, num_edges]", edge_index)
    sizes = {"source": num_sources, "target": num_targets}
    for (end, size), index in zip(sizes.items(), edge_index, strict=True):
        if index.numel() > 0 and (int(index.min()) < 0 or int(index.max()) >= size):
            expected = f"the {end} indices of '{name}' to lie in [0, {size})"
            got = f"values from {int(index.min())} to {int(index.max())}"
            raise ValueError(f"Expected {expected} (got {got})")


def check_ptr(name: str, ptr: Tensor, total: int | None, max_size: int | None) -> None:
    """Raises a clear error unless :obj:`ptr` is a pointer over :obj:`total` rows."""
    _check_long(name, ptr)
    if ptr.dim() != 1 or ptr.numel() == 0:
        raise shape_error(f"'{name}'", "[num_samples + 1]", ptr)
    limits = segments(ptr)
    if limits.first != 0 or limits.smallest < 0:
        got = f"{ptr.tolist()[:8]}..."
        raise ValueError(f"Expected '{name}' to start at 0 and never to decrease (got {got})")
    if total is not None and limits.last != total:
        expected = f"'{name}' to end at the number of rows, {total}"
        raise ValueError(f"Expected {expected} (got {limits.last})")
    if max_size is not None and limits.largest > max_size:
        expected = f"no sample of '{name}' to be larger than {max_size}"
        raise ValueError(f"Expected {expected} (got {limits.largest})")
