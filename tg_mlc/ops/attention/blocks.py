"""The backend ``blocks`` on a CPU: matrix products without padding or stored weights."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tg_mlc.ops.attention import crossovers
from tg_mlc.ops.attention.backend import (
    AttentionCall,
    Backend,
    CallShape,
    Output,
    accumulator,
    draw_seed,
    refuse_opaque,
    register,
)
from tg_mlc.ops.kernels import threads
from tg_mlc.ops.patterns import Blocks, Shared
from tg_mlc.ops.runtime import numba_problem

#: Bytes of scores that a thread computes at a time. They fit into its cache.
TILE = 2**20
#: Smallest number of queries at a time, because smaller products are slow.
MIN_ROWS = 64


def run(call: AttentionCall) -> Output:
    """Calls the operator with bounds of blocks. A complete shared graph also consists of blocks."""
    pattern = call.pattern
    if isinstance(pattern, Blocks):
        ptrs = pattern.query_ptr, pattern.key_ptr
    else:
        assert isinstance(pattern, Shared)
        ptrs = (torch.arange(pattern.num_samples + 1, device="cpu") * pattern.num_nodes,) * 2
    tensors = (call.query, call.key, call.value, call.edge_bias)
    options = (call.scale, call.dropout_p, draw_seed(call.dropout_p))
    return _block_attention(*tensors, *ptrs, *options)[0], None


@dataclass(frozen=True)
class _Task:
    """Work of one thread: queries of one sample, for one or all heads, tile by tile."""

    rows: slice  #: the queries
    cols: slice  #: the keys of the sample
    heads: slice
    first_pair: int  #: index that the pair of query 0 and the first key would have
    first_score_row: int  #: score row that query 0 would have, for seeds of dropout
    step: int  #: number of queries per tile
    part: int = 0  #: the index of the task among the tasks of the sample

    @property
    def tile_scores(self) -> int:
        """The number of scores in the largest tile."""
        return int(self.heads.stop - self.heads.start) * self.step * self.num_keys

    @property
    def num_keys(self) -> int:
        """The number of keys of the sample."""
        return int(self.cols.stop - self.cols.start)

    def divided(self, parts: int) -> Iterator[_Task]:
        """Yields at most ``parts`` tasks of whole tiles."""
        size = -(-(self.rows.stop - self.rows.start) // (self.step * parts)) * self.step
        for part, rows in enumerate(_pieces(self.rows, size)):
            yield replace(self, rows=rows, part=part)

    def tiles(self) -> Iterator[tuple[slice, int]]:
        """Yields queries and first score row of each tile."""
        for rows in _pieces(self.rows, self.step):
            yield rows, self.first_score_row + rows.start

    def view(self, x: Tensor, rows: slice) -> Tensor:
        """Returns a view ``[heads, rows, channels]`` of ``[num_rows, heads, channels]``."""
        return x[rows, self.heads].transpose(0, 1)

    def pairs(self, x: Tensor, rows: slice) -> Tensor:
        """Returns a view ``[heads, queries, keys]`` of ``[num_edges, heads]``."""
        first, last = (self.first_pair + row * self.num_keys for row in (rows.start, rows.stop))
        pairs = x[first:last, self.heads]
        return pairs.view(-1, self.num_keys, pairs.size(1)).movedim(-1, 0)


def _pieces(rows: slice, size: int) -> Iterator[slice]:
    """Divides a range into pieces of ``size`` rows. The last piece may be smaller."""
    for start in range(rows.start, rows.stop, size):
        yield slice(start, min(start + size, rows.stop))


class _Call(NamedTuple):
    """Inputs of the operator in both passes."""

    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    query_ptr: Tensor
    key_ptr: Tensor
    scale: float
    dropout_p: float
    seed: Tensor

    def narrow(self) -> tuple[Any, Any] | None:
        """Returns kernels of narrow heads and their inputs, or :obj:`None` if unsupported."""
        (_, heads, channels), value_channels = self.query.shape, self.value.size(2)
        if self.bias is not None or not is_narrow(self.query.dtype, channels, value_channels):
            return None
        kernels = import_module("tg_mlc.ops.kernels.narrow_numba")
        ptrs = self.query_ptr.numpy(), self.key_ptr.numpy()
        lanes = -(-max(channels, value_channels) // kernels.LANES) * kernels.LANES
        options = (self.scale, self.dropout_p, int(self.seed))
        return kernels, kernels.Blocked(*ptrs, heads, channels, value_channels, lanes, *options)


def _forward(*inputs: Any) -> tuple[Tensor, Tensor]:
    """Returns the output, and the log-sum-exp of the scores of each query."""
    call = _Call(*inputs)
    query, key, value, bias, *_ = call
    if (narrow := call.narrow()) is not None:
        kernels, blocked = narrow
        return kernels.forward(query, key, value, blocked)  # type: ignore[no-any-return]
    out = query.new_zeros(query.size(0), query.size(1), value.size(2))
    lse = query.new_zeros(_kept_size(query), dtype=accumulator(query.dtype))
    seed = int(call.seed)

    def attend(task: _Task, scratch: Tensor) -> None:
        k, v = _exact(task.view(key, task.cols)) * call.scale, _exact(task.view(value, task.cols))
        for rows, score_row in task.tiles():
            weight = _product(_exact(task.view(query, rows)), k.mT, scratch[0])
            if bias is not None:
                weight += task.pairs(bias, rows)
            total = softmax().forward(weight, call.dropout_p, seed + score_row)
            task.view(out, rows).copy_(torch.bmm(weight, v))
            task.view(lse, rows).copy_(total)

    _for_each(_tasks(call.query_ptr, call.key_ptr, query), attend, accumulator(query.dtype))
    return out, lse


def _kept_size(query: Tensor, *_: Any) -> tuple[int, int, int]:
    return query.size(0), query.size(1), 1


def _backward(grad: Tensor, lse: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    """Returns gradients of query, key, value and bias (empty without a bias)."""
    call = _Call(*inputs)
    query, key, value, bias, *_ = call
    if (narrow := call.narrow()) is not None:
        kernels, blocked = narrow
        grads = kernels.backward(grad, query, key, value, lse, blocked)
        return *grads, query.new_zeros(0, query.size(1))
    tasks = _tasks(call.query_ptr, call.key_ptr, query)
    seed = int(call.seed)
    dtype = accumulator(query.dtype)
    grad_query = torch.zeros_like(query, memory_format=torch.contiguous_format)
    grad_bias = query.new_zeros(0 if bias is None else bias.size(0), query.size(1))
    # Threads that share a sample have separate sums, which are added in a fixed order.
    num_sums = max((task.part + 1 for task in tasks), default=1)
    sum_dtype = key.dtype if num_sums == 1 else dtype
    grad_key, grad_value = (x.new_zeros(num_sums, *x.shape, dtype=sum_dtype) for x in (key, value))

    def differentiate(task: _Task, scratch: Tensor) -> None:
        k, v = _exact(task.view(key, task.cols)) * call.scale, _exact(task.view(value, task.cols))
        sum_key, sum_value = torch.zeros_like(k), torch.zeros_like(v)
        for rows, score_row in task.tiles():
            q, g = _exact(task.view(query, rows)), _exact(task.view(grad, rows))
            weight, grad_score = _product(q, k.mT, scratch[0]), _product(g, v.mT, scratch[1])
            if bias is not None:
                weight += task.pairs(bias, rows)
            dropout_options = (call.dropout_p, seed + score_row)
            softmax().backward(weight, grad_score, task.view(lse, rows), *dropout_options)
            sum_value.baddbmm_(weight.mT, g)
            sum_key.baddbmm_(grad_score.mT, q)
            task.view(grad_query, rows).copy_(torch.bmm(grad_score, k))
            if bias is not None:
                task.pairs(grad_bias, rows).copy_(grad_score)
        task.view(grad_key[task.part], task.cols).copy_(sum_key.mul_(call.scale))
        task.view(grad_value[task.part], task.cols).copy_(sum_value)

    _for_each(tasks, differentiate, dtype)
    totals = [x[0] if num_sums == 1 else x.sum(dim=0) for x in (grad_key, grad_value)]
    return grad_query, totals[0].to(key.dtype), totals[1].to(key.dtype), grad_bias


_FUNCTIONS = (_forward, _backward, _kept_size)
_PTRS = ("query_ptr", "key_ptr")
_block_attention = register("block_attention", "blocks", _PTRS, "cpu", *_FUNCTIONS)


def is_narrow(dtype: torch.dtype, *channels: int) -> bool:
    """Tells whether kernels of narrow heads support a dtype and numbers of channels."""
    fits = 0 < min(channels) <= max(channels) <= crossovers.MAX_NARROW and dtype == torch.float32
    return fits and numba_problem() is None


def _tasks(query_ptr: Tensor, key_ptr: Tensor, query: Tensor) -> list[_Task]:
    """Makes tasks of whole samples, of single heads, or of tiles if threads would be idle."""
    heads, itemsize = query.size(1), accumulator(query.dtype).itemsize
    tasks: list[_Task] = []
    pair = 0
    bounds = zip(pairwise(query_ptr.tolist()), pairwise(key_ptr.tolist()), strict=True)
    for (row, end), (col, stop) in bounds:
        rows, num_pairs = slice(row, end), (end - row) * (stop - col)
        width = max(1, heads) if num_pairs * heads * itemsize <= TILE else 1
        for head in range(0, heads if num_pairs else 0, width):
            step = min(end - row, max(MIN_ROWS, TILE // ((stop - col) * itemsize)))
            head_slice, score_row = slice(head, head + width), row * heads + head * (end - row)
            offsets = pair - row * (stop - col), score_row - row
            tasks.append(_Task(rows, slice(col, stop), head_slice, *offsets, step))
        pair += num_pairs
    parts = -(-threads.num_workers() // max(1, len(tasks)))
    return tasks if parts == 1 else [piece for task in tasks for piece in task.divided(parts)]


def _for_each(
    tasks: list[_Task], work: Callable[[_Task, Tensor], None], dtype: torch.dtype
) -> None:
    """Runs tasks on threads, largest first. Each thread has memory for two tiles of scores."""

    def num_scores(task: _Task) -> int:
        return task.tile_scores * int(task.rows.stop - task.rows.start) // task.step

    waiting = deque(sorted(tasks, key=num_scores, reverse=True))
    tile_scores = max((task.tile_scores for task in tasks), default=0)

    def run(_: int) -> None:
        scratch = torch.empty(2, tile_scores, dtype=dtype, device="cpu")
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            work(task, scratch)

    threads.run_apart(run, max(1, min(threads.num_workers(), len(tasks))))


class TorchSoftmax:
    """The kernels of :func:`softmax` in PyTorch."""

    @staticmethod
    def forward(scores: Tensor, dropout_p: float, seed: int) -> Tensor:
        """Turns scores ``[..., n]`` into weights, and returns the logarithms of the sums."""
        lse = torch.logsumexp(scores, dim=-1, keepdim=True)
        lse.masked_fill_(lse == -torch.inf, 0.0)
        scores.sub_(lse).exp_().mul_(TorchSoftmax.factors(scores, dropout_p, seed))
        return lse

    @staticmethod
    def backward(scores: Tensor, grad: Tensor, lse: Tensor, dropout_p: float, seed: int) -> None:
        """Turns scores into weights, and gradients of weights into gradients of scores."""
        # Rounding may put a score above the sum.
        weight = scores.sub_(lse).clamp_(max=0.0).exp_().clone()
        factors = TorchSoftmax.factors(scores, dropout_p, seed)
        scores.mul_(factors)
        total = torch.linalg.vecdot(scores, grad).unsqueeze(-1)
        grad.mul_(factors).sub_(total).mul_(weight)

    @staticmethod
    def factors(like: Tensor, dropout_p: float, seed: int) -> Tensor | float:
        """Draws factors of dropout on weights, the same in both passes."""
        if dropout_p in (0.0, 1.0):
            return 1.0 - dropout_p
        generator = torch.Generator().manual_seed(seed)
        keep = torch.empty_like(like).bernoulli_(1.0 - dropout_p, generator=generator)
        return keep.div_(1.0 - dropout_p)


def softmax() -> Any:
    """Returns the kernels of the softmax: fused if Numba is installed, else PyTorch's."""
    return TorchSoftmax if numba_problem() else import_module("tg_mlc.ops.kernels.softmax_numba")


def _product(a: Tensor, b: Tensor, scratch: Tensor) -> Tensor:
    """Computes a batch of matrix products in preallocated memory."""
    shape = (a.size(0), a.size(1), b.size(2))
    return torch.bmm(a, b, out=scratch[: math.prod(shape)].view(shape))


def _exact(x: Tensor) -> Tensor:
    return x.to(accumulator(x.dtype))


def refuse(shape: CallShape) -> str | None:
    """Refuses calls that return weights, other patterns, and devices other than a CPU."""
    if not isinstance(shape.pattern, Blocks) and (shape.has_bias or not _is_complete(shape)):
        return "blocks: only for Blocks, and for complete shared graphs without a bias"
    if shape.device != "cpu":
        return "blocks: it would wait for the device at every block"
    return refuse_opaque("blocks", shape)


def _is_complete(shape: CallShape) -> bool:
    return isinstance(shape.pattern, Shared) and shape.pattern.graph.is_complete


def prefer(shape: CallShape) -> str | None:
    """Prefers narrow heads, large ragged blocks or dropout, and sizes unknown to a compiler."""
    pattern = shape.pattern
    # A tuple, because PyTorch 2.6 cannot compile a union.
    if not isinstance(pattern, (Blocks, Shared)) or shape.device != "cpu":
        return None
    if torch.compiler.is_compiling():
        bounded = isinstance(pattern, Shared) or pattern.is_bounded
        ragged = "is of unknown sizes, so each block is a matrix product of its own"
        return None if bounded else ragged
    scores, num_samples = pattern.num_edges * shape.heads, max(1, pattern.num_samples)
    if max(num_samples, scores * accumulator(shape.dtype).itemsize // TILE) < threads.num_workers():
        return None
    multiplications, drops = scores * shape.channels // num_samples, shape.dropout_p > 0.0
    complete = isinstance(pattern, Blocks) or _is_complete(shape)
    narrow = complete and is_narrow(shape.dtype, shape.channels, shape.value_channels)
    padded = 0
    if isinstance(pattern, Blocks):
        padded = pattern.num_samples * pattern.max_queries * pattern.max_keys
    reason = None
    if narrow and (drops or scores >= crossovers.MIN_NARROW):
        reason = "has narrow heads, whose scores stay in the first-level cache"
    elif complete and drops and multiplications >= crossovers.MIN_DROPPED:
        reason = "has large blocks, whose weights are recomputed, because some are dropped"
    elif (
        multiplications >= crossovers.MIN_BLOCK
        and pattern.num_edges < (1.0 - crossovers.MAX_WASTE) * padded
    ):
        reason = "has large blocks of different sizes, each a matrix product without padding"
    return reason


BACKEND = Backend("blocks", run, refuse, prefer)
