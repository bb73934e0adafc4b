"""Attention of narrow heads within blocks on a CPU: division of the groups among threads, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tg_mlc.ops.kernels import threads
from tg_mlc.ops.kernels.narrow_numba import LANES, ROWS, Blocked, Scratch, Tensors, backward_groups, forward_groups


def blocked(
    query: Tensor, value: Tensor, query_ptr: Tensor, key_ptr: Tensor, scale: float, dropout_p: float, seed: int
) -> Blocked:
    """Inputs of both passes beside queries, keys and values."""
    _, heads, channels = query.shape
    lanes = -(-max(channels, value.size(2)) // LANES) * LANES
    ptrs = query_ptr.numpy(), key_ptr.numpy()
    return Blocked(*ptrs, heads, channels, value.size(2), lanes, scale, dropout_p, seed)


def forward(query: Tensor, key: Tensor, value: Tensor, blocks: Blocked) -> tuple[Tensor, Tensor]:
    """The output, and the logarithm of the sum that every query's weights were divided by."""
    out = query.new_empty(query.size(0), query.size(1), value.size(2))
    lse = query.new_empty(query.size(0), query.size(1), 1)
    _run(forward_groups, blocks, [query, key, value, out, lse])
    return out, lse


def backward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, lse: Tensor, blocks: Blocked) -> list[Tensor]:
    """The gradients of query, key and value."""
    grads = [torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (query, key, value)]
    _run(backward_groups, blocks, [query, key, value, grad.new_empty(0), lse, grad, *grads])
    return grads


def _run(work: Callable[..., None], blocks: Blocked, tensors: list[Tensor]) -> None:
    """Every thread takes groups that have about as many scores."""
    none = tensors[0].new_empty(0)
    flat = [x.contiguous().view(-1).numpy() for x in (*tensors, *[none] * (9 - len(tensors)))]
    keys = np.diff(blocks.key_ptr)
    scores = np.repeat(np.diff(blocks.query_ptr) * keys, blocks.heads).cumsum()
    workers = max(1, min(threads.num_workers(), scores.size))
    total = int(scores[-1]) if scores.size else 0
    cuts = np.searchsorted(scores, [worker * total // workers for worker in range(1, workers)], side="right")
    bounds = [0, *cuts.tolist(), scores.size]
    most = -(-int(keys.max(initial=0)) // LANES) * LANES
    dtype = tensors[0].dtype

    def share(worker: int) -> None:
        rows, many = (ROWS * blocks.lanes,), most * blocks.lanes
        sizes = (*rows * 3, ROWS * most, ROWS * most, ROWS, most, *(many,) * 5)
        space = Scratch(*(torch.empty(size, dtype=dtype).numpy() for size in sizes))
        work(bounds[worker], bounds[worker + 1], blocks, Tensors(*flat), space)

    threads.run(share, workers)
