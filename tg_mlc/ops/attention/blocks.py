"""Blocks one sample at a time, on a CPU: matrix products without padding, that keep only the sum of every row.

Differentiable once, and opaque to a compiler, whose graph then does not depend on how a batch is composed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tg_mlc.ops.attention.along_edges import differentiates_forward, draw_seed
from tg_mlc.ops.attention.backend import AttentionCall, Backend, Output
from tg_mlc.ops.attention.crossovers import MAX_WASTE, MIN_BLOCK
from tg_mlc.ops.kernels import threads
from tg_mlc.ops.pattern import Blocks


def run(call: AttentionCall) -> Output:
    """Hands the boundaries of the blocks to the operator."""
    pattern = call.pattern
    assert isinstance(pattern, Blocks)
    out, _ = block_attention(
        call.query,
        call.key,
        call.value,
        call.edge_bias,
        pattern.query_ptr,
        pattern.key_ptr,
        call.scale,
        call.dropout_p,
        draw_seed(call.dropout_p),
    )
    return out, None


class _Block(NamedTuple):
    rows: slice  #: its queries
    cols: slice  #: its keys
    edges: slice  #: its pairs
    shape: tuple[int, int]
    number: int


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
    lse = query.new_zeros(query.size(1), query.size(0), dtype=_accumulator(query))
    start = int(seed)

    def attend(block: _Block) -> None:
        score = _scores(query, key, bias, block, scale)
        total = torch.logsumexp(score, dim=-1, keepdim=True)
        total.masked_fill_(total == -torch.inf, 0.0)
        weight = score.sub_(total).exp_()
        if dropout_p > 0.0:
            weight.mul_(_kept(weight, dropout_p, start + block.number))
        out[block.rows] = torch.bmm(weight, _heads_first(value[block.cols])).transpose(0, 1)
        lse[:, block.rows] = total.squeeze(-1)

    _for_each(_blocks(query_ptr, key_ptr), attend)
    return out, lse


@block_attention.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    num_rows, heads = query.size(0), query.size(1)
    return query.new_empty(num_rows, heads, value.size(2)), query.new_empty(heads, num_rows, dtype=_accumulator(query))


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
        q, k = _heads_first(query[block.rows]), _heads_first(key[block.cols])
        v, g = _heads_first(value[block.cols]), _heads_first(grad[block.rows])
        weight = _scores(query, key, bias, block, scale).sub_(lse[:, block.rows].unsqueeze(-1)).exp_()
        grad_weight = torch.bmm(g, v.transpose(1, 2))
        kept = weight
        if dropout_p > 0.0:
            factor = _kept(weight, dropout_p, start + block.number)
            kept = weight * factor
            grad_weight.mul_(factor)
        grads[2][block.cols] = torch.bmm(kept.transpose(1, 2), g).transpose(0, 1)
        total = torch.linalg.vecdot(weight, grad_weight).unsqueeze(-1)
        grad_score = grad_weight.sub_(total).mul_(weight)
        if bias is not None:
            grad_bias[block.edges] = grad_score.permute(1, 2, 0).flatten(end_dim=1).to(query.dtype)
        grad_score = grad_score.mul_(scale)
        grads[0][block.rows] = torch.bmm(grad_score, k).transpose(0, 1)
        grads[1][block.cols] = torch.bmm(grad_score.transpose(1, 2), q).transpose(0, 1)

    _for_each(_blocks(query_ptr, key_ptr), differentiate)
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


def _blocks(query_ptr: Tensor, key_ptr: Tensor) -> list[_Block]:
    """The blocks that hold any pair."""
    blocks, edge = [], 0
    bounds = zip(pairwise(query_ptr.tolist()), pairwise(key_ptr.tolist()), strict=True)
    for number, ((row, row_end), (col, col_end)) in enumerate(bounds):
        shape = (row_end - row, col_end - col)
        edges = slice(edge, edge + shape[0] * shape[1])
        if edges.stop > edge:
            blocks.append(_Block(slice(row, row_end), slice(col, col_end), edges, shape, number))
        edge = edges.stop
    return blocks


def _for_each(blocks: list[_Block], work: Callable[[_Block], None]) -> None:
    """Divides the blocks among threads, of which each computes alone, by their numbers of pairs."""
    intra_op, inference = torch.get_num_threads(), torch.is_inference_mode_enabled()
    workers = max(1, min(threads.num_workers(), len(blocks)))
    total = blocks[-1].edges.stop if blocks else 0
    shares: list[list[_Block]] = [[] for _ in range(workers)]
    for block in blocks:
        shares[min(workers - 1, block.edges.start * workers // total)].append(block)

    def run(worker: int) -> None:
        if workers > 1:
            torch.set_num_threads(1)
        # These modes belong to a thread, and the others have their own:
        with torch.autocast("cpu", enabled=False), torch.inference_mode(inference), torch.no_grad():
            for block in shares[worker]:
                work(block)

    try:
        threads.run(run, workers)
    finally:
        torch.set_num_threads(intra_op)


def _scores(query: Tensor, key: Tensor, bias: Tensor | None, block: _Block, scale: float) -> Tensor:
    """The scores ``[heads, queries, keys]`` of a block."""
    q, k = _heads_first(query[block.rows]), _heads_first(key[block.cols])
    score = torch.bmm(q, k.transpose(1, 2)).mul_(scale)
    if bias is not None:
        score += bias[block.edges].view(*block.shape, -1).permute(2, 0, 1)
    return score


def _heads_first(x: Tensor) -> Tensor:
    return x.to(_accumulator(x)).transpose(0, 1)


def _accumulator(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _kept(weight: Tensor, dropout_p: float, seed: int) -> Tensor:
    """What dropout multiplies weights by, the same in both passes."""
    random = torch.Generator().manual_seed(seed)
    factor = torch.empty_like(weight).bernoulli_(1.0 - dropout_p, generator=random)
    return factor.div_(1.0 - dropout_p) if dropout_p < 1.0 else factor


def refuse(call: AttentionCall) -> str | None:
    """Keeps no weights, and waits for the boundaries of the blocks, which only a CPU has at hand."""
    if not isinstance(call.pattern, Blocks):
        return "blocks: only for Blocks"
    if call.query.device.type != "cpu":
        return "blocks: it would wait for the device at every block"
    if differentiates_forward(call):
        return "blocks: it has no forward-mode derivatives; take 'reference'"
    if call.return_weights:
        return "blocks: weights are not kept; take 'dense', 'scatter' or 'reference'"
    return None


def prefer(call: AttentionCall) -> str | None:
    """Large blocks of different sizes, and blocks whose sizes a compiler cannot know."""
    pattern = call.pattern
    if not isinstance(pattern, Blocks) or call.query.device.type != "cpu":
        return None
    if torch.compiler.is_compiling():
        return None if pattern.is_bounded else "is of unknown sizes, so each block is a matrix product of its own"
    work = pattern.num_edges * call.query.size(1) * call.query.size(2)
    padded = pattern.num_samples * pattern.max_queries * pattern.max_keys
    if work >= MIN_BLOCK * pattern.num_samples and pattern.num_edges < (1.0 - MAX_WASTE) * padded:
        return "has large blocks of different sizes, so each is a matrix product of its own, without padding"
    return None


BACKEND = Backend("blocks", run, refuse, prefer)
