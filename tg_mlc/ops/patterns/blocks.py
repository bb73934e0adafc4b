"""Pattern of complete blocks: all queries of a sample attend to all of its keys."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.utils import cumsum

from tg_mlc.ops.patterns.base import CSR, Pattern, check_ptr, longest


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
        """Tells whether the sizes of the largest sample are known without asking the device."""
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
        """The number of (query, key) pairs of all samples."""
        if self._num_edges is None:
            self._num_edges = int((self.query_ptr.diff() * self.key_ptr.diff()).sum())
        return self._num_edges

    def to_edge_index(self) -> Tensor:
        """The literal list of all pairs, sample after sample."""
        ptr, key, _ = self.csr()
        return torch.stack([key, ptr2index(ptr, output_size=self.num_edges)])

    def csr(self) -> CSR:
        """The edges grouped by query."""
        sample = self.sample_of_query()
        ptr = cumsum(self.key_ptr.diff()[sample])
        row = ptr2index(ptr, output_size=self.num_edges)
        key = torch.arange(self.num_edges, device=self.device) - ptr[row] + self.key_ptr[sample[row]]
        return CSR(ptr, key, None)

    def sample_of_query(self) -> Tensor:
        """The sample of every query."""
        sample: Tensor = ptr2index(self.query_ptr, output_size=self.num_queries)
        return sample

    def to(self, device: torch.device | str) -> Blocks:
        """The same pattern on another device."""
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
