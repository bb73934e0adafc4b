"""Blocks on a CPU: matrix products without padding, that keep only the sum of every row.

Differentiable once, and opaque to a compiler, whose graph then does not depend on how a batch is composed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tg_mlc.ops.attention import opaque
from tg_mlc.ops.attention.backend import AttentionCall, Backend, Output, accumulator
from tg_mlc.ops.attention.crossovers import MAX_KEPT_WEIGHTS, MAX_WASTE, MIN_BLOCK
from tg_mlc.ops.compiled import numba_problem
from tg_mlc.ops.kernels import threads
from tg_mlc.ops.pattern import Blocks, Pattern, Shared

#: Bytes of scores to compute at a time where all samples are of one size.
CHUNK = 2**22


def run(call: AttentionCall) -> Output:
    """Hands the boundaries of the blocks to the operator."""
    pattern = _as_blocks(call.pattern)
    out, _ = block_attention(
        call.query,
        call.key,
        call.value,
        call.edge_bias,
        pattern.query_ptr,
        pattern.key_ptr,
        call.scale,
        call.dropout_p,
        opaque.draw_seed(call.dropout_p),
    )
    return out, None


def _as_blocks(pattern: Pattern) -> Blocks:
    """A complete shared graph is a block for each sample."""
    if isinstance(pattern, Blocks):
        return pattern
    assert isinstance(pattern, Shared)
    ptr = torch.arange(pattern.num_samples + 1, device="cpu") * pattern.num_nodes
    return Blocks(ptr, ptr, num_queries=pattern.num_queries, num_keys=pattern.num_keys, validate=False)


@dataclass(frozen=True)
class _Block:
    """One sample with all heads, or one head of some samples of the same size: a batch of matrix products."""

    rows: slice  #: its queries
    cols: slice  #: its keys
    edges: slice  #: its pairs
    shape: tuple[int, int]  #: queries and keys of a sample
    number: int
    head: int | None = None

    @property
    def workers(self) -> int:
        """How many threads it is divided among."""
        return 1 if self.head is None else threads.num_workers()

    def queries(self, x: Tensor) -> Tensor:
        """A view ``[batch, queries, channels]`` of ``[num_queries, heads, channels]``."""
        return self._batch(x[self.rows], self.shape[0])

    def keys(self, x: Tensor) -> Tensor:
        """A view ``[batch, keys, channels]`` of ``[num_keys, heads, channels]``."""
        return self._batch(x[self.cols], self.shape[1])

    def pairs(self, x: Tensor) -> Tensor:
        """A view ``[batch, queries, keys]`` of ``[num_edges, heads]``."""
        pairs = x[self.edges].view(-1, *self.shape, x.size(1))
        return pairs[0].movedim(-1, 0) if self.head is None else pairs[..., self.head]

    def _batch(self, x: Tensor, size: int) -> Tensor:
        return x.transpose(0, 1) if self.head is None else x.view(-1, size, *x.shape[1:])[:, :, self.head]


@torch.library.custom_op("tg_mlc::block_attention", mutates_args=(), device_types="cpu")
def block_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    query_ptr: Tensor,
    key_ptr: Tensor,
    scale: float,
    dropout_p: float,
    seed: Tensor,
) -> tuple[Tensor, Tensor]:
    """The output, and the logarithm of the sum that every query's weights were divided by."""
    out = query.new_zeros(query.size(0), query.size(1), value.size(2))
    lse = query.new_zeros(query.size(0), query.size(1), 1, dtype=accumulator(query))
    start = int(seed)

    def attend(block: _Block) -> None:
        weight = _scores(query, key, bias, block, scale)
        total = softmax().forward(weight, dropout_p, start + block.number, block.workers)
        block.queries(out).copy_(torch.bmm(weight, _exact(block.keys(value))))
        block.queries(lse).copy_(total)

    _for_each(_blocks(query_ptr, key_ptr, query), attend)
    return out, lse


@block_attention.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    num_rows, heads = query.size(0), query.size(1)
    return query.new_empty(num_rows, heads, value.size(2)), query.new_empty(
        num_rows, heads, 1, dtype=accumulator(query)
    )


@torch.library.custom_op("tg_mlc::block_attention_backward", mutates_args=(), device_types="cpu")
def block_attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    query_ptr: Tensor,
    key_ptr: Tensor,
    scale: float,
    dropout_p: float,
    seed: Tensor,
    lse: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, value and bias; the last is empty if there is no bias."""
    grads = [torch.zeros_like(tensor, memory_format=torch.contiguous_format) for tensor in (query, key, value)]
    grad_bias = query.new_zeros(0 if bias is None else bias.size(0), query.size(1))
    start = int(seed)

    def differentiate(block: _Block) -> None:
        q, k = _exact(block.queries(query)), _exact(block.keys(key))
        v, g = _exact(block.keys(value)), _exact(block.queries(grad))
        kept, grad_score = _scores(query, key, bias, block, scale), torch.bmm(g, v.transpose(1, 2))
        softmax().backward(kept, grad_score, block.queries(lse), dropout_p, start + block.number, block.workers)
        block.keys(grads[2]).copy_(torch.bmm(kept.transpose(1, 2), g))
        if bias is not None:
            block.pairs(grad_bias).copy_(grad_score)
        block.queries(grads[0]).copy_(torch.bmm(grad_score, k).mul_(scale))
        block.keys(grads[1]).copy_(torch.bmm(grad_score.transpose(1, 2), q).mul_(scale))

    _for_each(_blocks(query_ptr, key_ptr, query), differentiate)
    return grads[0], grads[1], grads[2], grad_bias


@block_attention_backward.register_fake
def _(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    grads = [query.new_empty(tensor.shape) for tensor in (query, key, value)]
    return grads[0], grads[1], grads[2], query.new_empty(0 if bias is None else bias.size(0), query.size(1))


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.scale, ctx.dropout_p, seed = inputs
    ctx.save_for_backward(*tensors, seed, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 9
    *tensors, seed, lse = ctx.saved_tensors
    *grads, grad_bias = block_attention_backward(grad, *tensors, ctx.scale, ctx.dropout_p, seed, lse)
    return *grads, None if tensors[3] is None else grad_bias, *(None,) * 5


block_attention.register_autograd(_backward, setup_context=_setup_context)


def _blocks(query_ptr: Tensor, key_ptr: Tensor, query: Tensor) -> list[_Block]:
    """The blocks that hold any pair: single samples, or where all are of one size, single heads of some."""
    queries, keys = query_ptr.tolist(), key_ptr.tolist()
    num_samples, shape = len(queries) - 1, (queries[1] - queries[0], keys[1] - keys[0]) if len(queries) > 1 else (0, 0)
    if queries == [i * shape[0] for i in range(num_samples + 1)] and keys == [
        i * shape[1] for i in range(num_samples + 1)
    ]:
        return _equal_blocks(num_samples, shape, query)
    blocks, edge = [], 0
    for number, ((row, row_end), (col, col_end)) in enumerate(zip(pairwise(queries), pairwise(keys), strict=True)):
        shape = (row_end - row, col_end - col)
        edges = slice(edge, edge + shape[0] * shape[1])
        if edges.stop > edge:
            blocks.append(_Block(slice(row, row_end), slice(col, col_end), edges, shape, number))
        edge = edges.stop
    return blocks


def _equal_blocks(num_samples: int, shape: tuple[int, int], query: Tensor) -> list[_Block]:
    """One head of as many samples at a time as leaves their scores in cache."""
    size = shape[0] * shape[1]
    step = max(1, CHUNK // max(1, size * accumulator(query).itemsize))
    blocks: list[_Block] = []
    for first in range(0, num_samples if size else 0, step):
        last = min(num_samples, first + step)
        rows, cols, edges = (slice(first * width, last * width) for width in (*shape, size))
        for head in range(query.size(1)):
            blocks.append(_Block(rows, cols, edges, shape, len(blocks), head))
    return blocks


def _for_each(blocks: list[_Block], work: Callable[[_Block], None]) -> None:
    """Divides single samples among threads, by their numbers of pairs; heads of many are divided by PyTorch."""
    single = bool(blocks) and blocks[0].head is None
    workers = max(1, min(threads.num_workers(), len(blocks))) if single else 1
    inference = torch.is_inference_mode_enabled()
    total = blocks[-1].edges.stop if blocks else 0
    shares: list[list[_Block]] = [[] for _ in range(workers)]
    for block in blocks:
        shares[min(workers - 1, block.edges.start * workers // total)].append(block)

    def run(worker: int) -> None:
        # These modes belong to a thread, and the others have their own:
        with torch.autocast("cpu", enabled=False), torch.inference_mode(inference), torch.no_grad():
            for block in shares[worker]:
                work(block)

    if workers > 1:
        threads.run_apart(run, workers)
    else:
        run(0)


def softmax() -> Any:
    """The kernels that turn scores into weights, in one pass where Numba is installed."""
    return import_module(f"tg_mlc.ops.kernels.softmax_{'torch' if numba_problem() else 'numba'}")


def _scores(query: Tensor, key: Tensor, bias: Tensor | None, block: _Block, scale: float) -> Tensor:
    """The scores ``[batch, queries, keys]`` of a block."""
    q, k = _exact(block.queries(query)) * scale, _exact(block.keys(key))
    score = torch.bmm(q, k.transpose(1, 2))
    if bias is not None:
        score += block.pairs(bias)
    return score


def _exact(x: Tensor) -> Tensor:
    return x.to(accumulator(x))


def refuse(call: AttentionCall) -> str | None:
    """Keeps no weights, and waits for the boundaries of the blocks, which only a CPU has at hand."""
    if not isinstance(call.pattern, Blocks) and (call.edge_bias is not None or not _is_complete(call.pattern)):
        return "blocks: only for Blocks, and for complete shared graphs without a bias"
    if call.query.device.type != "cpu":
        return "blocks: it would wait for the device at every block"
    return opaque.refuse("blocks", call)


def _is_complete(pattern: Pattern) -> bool:
    return isinstance(pattern, Shared) and pattern.graph.is_complete


def prefer(call: AttentionCall) -> str | None:
    """Large blocks of different sizes, those with more weights than are worth keeping, and those whose sizes a compiler
    cannot know.
    """
    pattern = call.pattern
    if not isinstance(pattern, Blocks | Shared) or call.query.device.type != "cpu":
        return None
    if torch.compiler.is_compiling():
        bounded = isinstance(pattern, Shared) or pattern.is_bounded
        return None if bounded else "is of unknown sizes, so each block is a matrix product of its own"
    if pattern.num_edges * call.query.size(1) * call.query.size(2) < MIN_BLOCK * pattern.num_samples:
        return None
    if call.dropout_p > 0.0 and pattern.num_edges * call.query.size(1) * call.query.itemsize > MAX_KEPT_WEIGHTS:
        return "has so many weights that, as some are dropped, it is better to find them again than to keep them"
    padded = pattern.num_samples * pattern.max_queries * pattern.max_keys if isinstance(pattern, Blocks) else 0
    if pattern.num_edges < (1.0 - MAX_WASTE) * padded:
        return "has large blocks of different sizes, so each is a matrix product of its own, without padding"
    return None


BACKEND = Backend("blocks", run, refuse, prefer)
