"""The softmax of dense rows of scores and its gradient, each in one pass over a row, compiled by Numba."""

from __future__ import annotations

from numba import uintp
from torch import Tensor

from tg_mlc.ops.kernels import threads
from tg_mlc.ops.kernels.csr_numba import Array, exp, kernel, normalise
from tg_mlc.ops.kernels.dropout_numba import is_kept, row_key

#: A thread is not worth waking for less scores.
MIN_SCORES = 2**14


def forward(scores: Tensor, dropout_p: float, seed: int, workers: int) -> Tensor:
    """Turns contiguous scores ``[..., n]`` into weights, and returns the logarithms of the sums."""
    flat, columns = scores.view(-1).numpy(), scores.size(-1)
    lse = scores.new_empty(scores.shape[:-1])
    sums, no_bias = lse.view(-1).numpy(), flat[:0]

    def work(first: int, last: int) -> None:
        weigh(first, last, columns, flat, no_bias, dropout_p, seed, sums)

    threads.share(work, sums.size, max(1, min(workers, scores.numel() // MIN_SCORES)))
    return lse.unsqueeze(-1)


def backward(scores: Tensor, grad: Tensor, lse: Tensor, dropout_p: float, seed: int, workers: int) -> None:
    """Turns contiguous scores into weights, and the gradient of these weights into that of the scores."""
    flat, grads, columns = scores.view(-1).numpy(), grad.view(-1).numpy(), scores.size(-1)
    sums = lse.reshape(-1).numpy()

    def work(first: int, last: int) -> None:
        scratch = scores.new_empty(columns).numpy()
        differentiate(first, last, columns, flat, grads, dropout_p, seed, sums, scratch)

    threads.share(work, sums.size, max(1, min(workers, scores.numel() // MIN_SCORES)))


@kernel
def weigh(
    first: int, last: int, columns: int, score: Array, no_bias: Array, dropout_p: float, seed: int, lse: Array
) -> None:
    """Some rows, forward."""
    factor = score.dtype.type(1 / (1 - dropout_p)) if dropout_p < 1 else score.dtype.type(0)
    for row in range(first, last):
        low = uintp(row) * uintp(columns)
        lse[row] = normalise(score, no_bias, 0, 1, low, low + uintp(columns))
        if dropout_p > 0:
            key = row_key(seed, row)
            for e in range(uintp(columns)):
                score[low + e] *= factor if is_kept(key, e, dropout_p) else score.dtype.type(0)


@kernel
def differentiate(
    first: int,
    last: int,
    columns: int,
    score: Array,
    grad: Array,
    dropout_p: float,
    seed: int,
    lse: Array,
    scratch: Array,
) -> None:
    """Some rows, backward; ``scratch`` holds the weights of one before some are dropped."""
    factor = score.dtype.type(1 / (1 - dropout_p)) if dropout_p < 1 else score.dtype.type(0)
    size = uintp(columns)
    for row in range(first, last):
        low, shift, zero = uintp(row) * size, lse[row], score.dtype.type(0)
        total = zero
        for e in range(size):
            scratch[e] = exp(min(score[low + e] - shift, zero))  # rounding may put a score above the sum
        if dropout_p > 0:
            key = row_key(seed, row)
            for e in range(size):
                score[low + e] = scratch[e] * (factor if is_kept(key, e, dropout_p) else score.dtype.type(0))
        else:
            for e in range(size):
                score[low + e] = scratch[e]
        for e in range(size):
            total += score[low + e] * grad[low + e]
        if dropout_p > 0:
            for e in range(size):
                grad[low + e] = score[low + e] * grad[low + e] - scratch[e] * total
        else:
            for e in range(size):
                grad[low + e] = scratch[e] * (grad[low + e] - total)
