"""Attention over compressed edges on a CPU: divides the work of the kernels among threads, forward and backward.

Scores live in a buffer for a few groups (a head of a sample each) at a time. Between the passes only the logarithm of
every row's sum is kept: finding the weights again costs one more gather and saves a number for every edge and head.
A row that two threads share is put together afterwards, in their order, so that a call always gives the same bits on as
many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tg_mlc.ops.kernels import csr_numba, threads
from tg_mlc.ops.kernels.graph import Graph, Options

Array = np.ndarray[Any, Any]

#: Bytes of scores that are held at a time, so that they stay in a cache.
BUFFER = 2**21
#: A thread is not worth waking for less edges.
MIN_EDGES = 2**10


@dataclass
class Rows:
    """A tensor ``[N, heads, channels]`` as a flat array with the distance between two rows."""

    data: Array
    stride: int
    heads: int
    channels: int

    @classmethod
    def of(cls, tensor: Tensor) -> Rows:
        """Copies only what is not contiguous within a row."""
        rows, heads, channels = tensor.shape
        if tensor.stride()[1:] != (channels, 1) or tensor.stride(0) < heads * channels:
            tensor = tensor.contiguous()
        stride = tensor.stride(0)
        flat = tensor.as_strided(((rows - 1) * stride + heads * channels,), (1,))
        return cls(flat.numpy(), stride, heads, channels)


def forward(query: Tensor, key: Tensor, value: Tensor, graph: Graph, options: Options) -> tuple[Tensor, Tensor]:
    """The output ``[N, heads, C_v]``, and the logarithm of every row's sum ``[groups, rows]``."""
    out = query.new_empty(query.size(0), query.size(1), value.size(2))
    lse = query.new_empty(query.size(0) * query.size(1))
    if 0 in (graph.num_edges, query.numel(), out.numel()):
        return out.zero_(), lse.zero_()
    lse = lse.view(-1, graph.num_queries)
    work = _Work(query, query.size(0) // graph.num_queries, graph, options)
    q, k, v = Rows.of(query), Rows.of(key), Rows.of(value)
    for first, scores in work.portions():
        work.scores(first, q, k, options.scale, scores)
        work.softmax(first, scores, lse.numpy())
        work.sums(first, scores, 1.0, v, out)
    return out, lse


def backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, lse: Tensor, graph: Graph, options: Options
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, value and bias, the last ``[num_edges, heads]`` or empty."""
    heads = query.size(1)
    grad_bias = query.new_zeros(0 if options.bias is None else graph.num_edges, heads)
    grads = [query.new_empty(tensor.shape) for tensor in (query, key, value)]
    if 0 in (graph.num_edges, query.numel(), value.numel()):
        return grads[0].zero_(), grads[1].zero_(), grads[2].zero_(), grad_bias
    sums = lse.view(-1, graph.num_queries).numpy()
    work = _Work(query, query.size(0) // graph.num_queries, graph, options)
    q, k, v, g = Rows.of(query), Rows.of(key), Rows.of(value), Rows.of(grad)
    for first, weights in work.portions():
        grad_scores = work.buffer(*weights.shape)
        work.scores(first, q, k, options.scale, weights)
        work.scores(first, g, v, 1.0, grad_scores)
        work.softmax_backward(first, weights, grad_scores, sums)
        work.sums(first, grad_scores, options.scale, k, grads[0])
        work.sums(first, grad_scores, options.scale, q, grads[1], by_key=True)
        work.sums(first, weights, 1.0, g, grads[2], by_key=True)
        if options.bias is not None:
            grad_bias += torch.from_numpy(grad_scores).view(-1, heads, graph.num_edges).sum(dim=0).t()
    return grads[0], grads[1], grads[2], grad_bias


class _Work:
    """One pass over all groups."""

    def __init__(self, query: Tensor, num_samples: int, graph: Graph, options: Options) -> None:
        self.query, self.graph, self.num_samples, self.heads = query, graph, num_samples, query.size(1)
        self.workers = max(1, min(threads.num_workers(), num_samples * self.heads * graph.num_edges // MIN_EDGES))
        self.type: Any = np.dtype(str(query.dtype).removeprefix("torch.")).type
        self.by_query = (graph.ptr.numpy(), graph.index.numpy())
        self.by_key = (graph.col_ptr.numpy(), graph.col_index.numpy(), graph.col_order.numpy())
        bias = query.new_empty(0) if options.bias is None else options.bias.reshape(-1)
        self.options = (bias.numpy(), options.dropout_p, options.seed)

    def buffer(self, *size: int) -> Array:
        return self.query.new_empty(size).numpy()

    def portions(self) -> Iterator[tuple[int, Array]]:
        """The first group of a few samples at a time, and a buffer for their scores."""
        size = self.heads * self.graph.num_edges * self.query.element_size()
        step = min(self.num_samples, max(1, BUFFER // size))
        buffer = self.buffer(step * self.heads, self.graph.num_edges)
        for sample in range(0, self.num_samples, step):
            yield sample * self.heads, buffer[: (self.num_samples - sample) * self.heads]

    def scores(self, first: int, x: Rows, y: Rows, scale: float, out: Array) -> None:
        scratch, rows = self.buffer(self.workers, self.graph.num_keys * y.channels), self.graph.num_keys
        sides: tuple[Any, ...] = (x.data, x.stride, y.data, y.stride, rows, y.channels, self.type(scale))

        def work(worker: int, begin: int, end: int) -> None:
            csr_numba.score_span(begin, end, first, self.heads, *self.by_query, *sides, scratch[worker], out)

        self._run(work, out.size)

    def softmax(self, first: int, scores: Array, lse: Array) -> None:
        def work(worker: int, begin: int, end: int) -> None:
            csr_numba.softmax_span(begin, end, first, self.heads, self.by_query[0], *self.options, scores, lse)

        self._run(work, scores.size)

    def softmax_backward(self, first: int, scores: Array, grads: Array, lse: Array) -> None:
        def work(worker: int, begin: int, end: int) -> None:
            csr_numba.softmax_backward_span(
                begin, end, first, self.heads, self.by_query[0], *self.options, scores, grads, lse
            )

        self._run(work, scores.size)

    def sums(self, first: int, weight: Array, factor: float, y: Rows, out: Tensor, *, by_key: bool = False) -> None:
        edges: tuple[Any, ...] = self.by_key if by_key else (*self.by_query, self.by_key[2][:0])
        rows = self.graph.num_queries if by_key else self.graph.num_keys
        sides: tuple[Any, ...] = (weight, self.type(factor), y.data, y.stride, rows, y.channels)
        scratch, partial = self.buffer(self.workers, rows * y.channels), self.buffer(self.workers, y.channels)
        target, begun = out.view(-1).numpy(), [-1] * self.workers

        def work(worker: int, begin: int, end: int) -> None:
            begun[worker] = csr_numba.sum_span(
                begin, end, first, self.heads, *edges, *sides, scratch[worker], target, partial[worker]
            )

        self._run(work, weight.size)
        for place, share in zip(begun, partial, strict=True):  # rows that two spans share
            if place >= 0:
                target[place : place + y.channels] += share

    def _run(self, work: Callable[[int, int, int], None], size: int) -> None:
        """Divides a line of edges evenly."""
        bounds = [worker * size // self.workers for worker in range(self.workers + 1)]
        threads.run(lambda worker: work(worker, bounds[worker], bounds[worker + 1]), self.workers)
