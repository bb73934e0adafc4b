"""Attention over compressed edges on a CPU: division of the kernels' work among threads.

A group is one head of one sample. Each thread processes whole groups: no thread waits for another,
and data that one pass reads stay in cache for the next. Remaining groups, and groups whose scores
do not fit into a cache, are shared: each thread gets equally many edges, and all threads wait after
each pass. The sum of a row that two threads share is then added in the order of threads. A call
thus always gives the same bits on the same number of threads.

Weights are kept for the backward pass if they take no more memory than the output. Otherwise, only
log-sum-exps are kept, and the backward pass needs a fifth gather to recompute weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tg_mlc._memory import on_large_pages
from tg_mlc.ops.kernels import csr_numba, threads
from tg_mlc.ops.kernels.csr_numba import Backward, Forward, Kept, Rows, Side, Softmax, Space
from tg_mlc.ops.kernels.graph import Graph, Options, num_kept

_Pass = Callable[..., int]
_CPU = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
#: Bytes of a tile of rows that are read repeatedly: most of a second-level cache.
TILE = (int(_CPU.get("l2_cache_size", 0)) or 2**20) * 5 // 8
#: Outputs with more bytes are written past the caches.
STREAMED = 2**24
#: Groups with more bytes of scores are shared by all threads.
LARGE = 2**22
#: Smallest number of edges of a remaining group to share.
MIN_SHARED = 2**15
#: Smallest number of edges per thread.
MIN_EDGES = 2**10


def forward(
    query: Tensor, key: Tensor, value: Tensor, graph: Graph, options: Options
) -> tuple[Tensor, Tensor]:
    """Returns the output ``[N, heads, C_v]``, and weights or log-sum-exps."""
    out = on_large_pages(query.new_empty(query.size(0), query.size(1), value.size(2)))
    kept = query.new_empty(num_kept(query, value, graph))
    if 0 in (graph.num_edges, out.numel()):
        return out.zero_(), kept.zero_()
    q, result = (_rows(graph.num_queries, x) for x in (query, out))
    k, v = (_rows(graph.num_keys, x) for x in (key, value))
    by_query = _side(graph.ptr, graph.index, graph.index[:0], graph.num_keys)
    softmax, weights = _softmax(query, options), _kept(kept, graph, value)
    call = Forward(by_query, q, k, v, softmax, weights, result)
    work = _Work(query, value, graph, options)
    work.run(csr_numba.forward_groups, csr_numba.forward_pass, call, (None, None, result))
    return out, kept


def backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    kept: Tensor,
    graph: Graph,
    options: Options,
) -> tuple[Tensor, ...]:
    """Returns gradients of query, key, value and bias (``[num_edges, heads]`` or empty)."""
    grads = [on_large_pages(query.new_empty(tensor.shape)) for tensor in (query, key, value)]
    num_biased = 0 if options.bias is None else graph.num_edges
    if 0 in (graph.num_edges, value.numel()):
        return *(grad.zero_() for grad in grads), query.new_zeros(num_biased, query.size(1))
    g, q, grad_q = (_rows(graph.num_queries, x) for x in (grad, query, grads[0]))
    k, v, grad_k, grad_v = (_rows(graph.num_keys, x) for x in (key, value, *grads[1:]))
    by_query = _side(graph.ptr, graph.index, graph.index[:0], graph.num_keys)
    by_key = _side(graph.col_ptr, graph.col_index, graph.col_order, graph.num_queries)
    softmax, weights = _softmax(query, options), _kept(kept, graph, value)
    call = Backward(by_query, by_key, g, q, k, v, softmax, weights, grad_q, grad_k, grad_v)
    work = _Work(query, value, graph, options, backward=True, num_biased=num_biased)
    targets = (None, None, None, grad_q, grad_k, grad_v, None)
    work.run(csr_numba.backward_groups, csr_numba.backward_pass, call, targets)
    return *grads, work.bias.sum(dim=0).t().contiguous()


def _rows(num_rows: int, tensor: Tensor) -> Rows:
    """Flattens a tensor. Copies it only if its rows are not contiguous."""
    size, heads, channels = tensor.shape
    if tensor.numel() == 0:
        return Rows(tensor.reshape(-1).numpy(), heads * channels, num_rows, heads, channels, False)
    if tensor.stride()[1:] != (channels, 1) or tensor.stride(0) < heads * channels:
        tensor = tensor.contiguous()
    stride, itemsize = tensor.stride(0), tensor.element_size()
    flat = tensor.as_strided(((size - 1) * stride + heads * channels,), (1,))
    is_aligned = (flat.data_ptr() | stride * itemsize | channels * itemsize) % 64 == 0
    streams = is_aligned and flat.numel() * itemsize > STREAMED
    return Rows(flat.numpy(), stride, num_rows, heads, channels, streams)


def _softmax(query: Tensor, options: Options) -> Softmax:
    bias = query.new_empty(0) if options.bias is None else options.bias.reshape(-1)
    return Softmax(options.scale, bias.numpy(), options.dropout_p, options.seed)


def _kept(kept: Tensor, graph: Graph, value: Tensor) -> Kept:
    none = kept.new_empty(1, 0).numpy()
    if graph.keeps_weights(value.size(2)):
        return Kept(kept.view(-1, graph.num_edges).numpy(), none)
    return Kept(none, kept.view(-1, graph.num_queries).numpy())


def _side(ptr: Tensor, index: Tensor, order: Tensor, num_others: int) -> Side:
    """Converts grouped edges, and checks them, which compiled models do not."""
    is_valid, ascends = csr_numba.inspect(ptr.numpy(), index.numpy(), num_others)
    if not is_valid:
        got = "an index out of range, or decreasing pointers"
        raise ValueError(f"Expected indices of 'edge_index' to be in range (got {got})")
    return Side(ptr.numpy(), index.numpy(), order.numpy(), bool(ascends))


class _Work:
    """The threads, and the scratch memory of each."""

    def __init__(
        self,
        query: Tensor,
        value: Tensor,
        graph: Graph,
        options: Options,
        *,
        backward: bool = False,
        num_biased: int = 0,
    ) -> None:
        heads, size, itemsize = query.size(1), graph.num_edges, query.element_size()
        self.num_edges, self.num_groups = size, query.size(0) // graph.num_queries * heads
        self.num_workers = max(1, min(threads.num_workers(), self.num_groups * size // MIN_EDGES))
        #: Number of groups that a single thread processes; other groups are shared.
        self.num_alone = self.num_groups
        if self.num_workers > 1 and size >= MIN_SHARED:
            remainder = self.num_groups % self.num_workers
            self.num_alone -= self.num_groups if size * itemsize > LARGE else remainder
        channels, rows = max(query.size(2), value.size(2)), max(graph.num_queries, graph.num_keys)
        tile = min(rows * channels, max(channels, TILE // itemsize))
        # Threads without own groups share scores and the gradient of the bias.
        owners = max(1, min(self.num_workers, self.num_alone))
        self.bias = query.new_zeros(owners, heads, num_biased)
        # Kept weights need no scratch memory, except for weights after dropout.
        needs_scratch = options.dropout_p > 0 or not graph.keeps_weights(value.size(2))
        weights = query.new_empty(owners, size * needs_scratch)
        grads = query.new_empty(owners, size * backward)
        self.spaces: list[Space] = []
        for worker in range(self.num_workers):
            owner = min(worker, owners - 1) if self.num_alone else 0
            buffers = (query.new_empty(tile), graph.ptr.new_empty(rows), query.new_empty(channels))
            tensors = (*buffers, weights[owner], grads[owner], self.bias[owner])
            self.spaces.append(Space(*(tensor.numpy() for tensor in tensors)))

    def run(self, groups: Callable[..., None], single: _Pass, call: Any, targets: Any) -> None:
        """Runs all passes. ``targets`` holds the rows that each pass writes sums to, or None."""

        def alone(worker: int, first: int, last: int) -> None:
            groups(first, last, call, self.spaces[worker])

        threads.share(alone, self.num_alone, min(self.num_workers, self.num_alone))
        for group in range(self.num_alone, self.num_groups):
            for step, target in enumerate(targets):
                self._run_shared(single, step, group, call, target)

    def _run_shared(self, single: _Pass, step: int, group: int, call: Any, target: Any) -> None:
        scores = {"weight": self.spaces[0].weight, "grad": self.spaces[0].grad}
        offsets = [-1] * self.num_workers

        def work(worker: int, low: int, high: int) -> None:
            space = self.spaces[worker]._replace(**scores)
            offsets[worker] = single(step, low, high, group, call, space)

        threads.share(work, self.num_edges, self.num_workers)
        for offset, space in zip(offsets, self.spaces, strict=True):
            if target is not None and offset >= 0:  # Two spans share this row.
                target.data[offset : offset + target.channels] += space.partial[: target.channels]
