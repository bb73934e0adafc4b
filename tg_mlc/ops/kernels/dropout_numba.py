"""Dropout by hashes of indices. The backward pass needs no stored mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import uint32, uint64, uintp
from torch import Tensor

from tg_mlc._memory import on_large_pages
from tg_mlc.ops.kernels import threads
from tg_mlc.ops.kernels.compile import Array, kernel

#: Entries that share one key.
ROW = 2**12


def drop(x: Tensor, p: float, seed: int) -> Tensor:
    """Zeroes random entries, and scales others. The same seed gives the same mask."""
    x = x.contiguous()
    out = on_large_pages(torch.empty_like(x))
    source, target, rows = x.view(-1).numpy(), out.view(-1).numpy(), -(-x.numel() // ROW)

    def work(_: int, first: int, last: int) -> None:
        drop_rows(first, last, ROW, source, p, seed, target)

    threads.share(work, rows, max(1, min(threads.num_workers(), rows // 4)))
    return out


@kernel
def drop_rows(first: int, last: int, size: int, x: Array, p: float, seed: int, out: Array) -> None:
    """Applies dropout to rows of ``size`` entries. Entries of a row share a key."""
    factor = kept_factor(x, p)
    for row in range(first, last):
        low, key = uintp(row) * uintp(size), row_key(seed, row)
        for e in range(min(uintp(size), uintp(x.shape[0]) - low)):
            out[low + e] = dropped(x[low + e], factor, key, e, p)


@kernel
def kept_factor(like: Array, dropout_p: float) -> Any:
    """Returns the factor of entries that are not dropped."""
    return like.dtype.type(1 / (1 - dropout_p) if dropout_p < 1 else 0)


@kernel
def dropped(value: float, factor: float, key: int, column: int, dropout_p: float) -> Any:
    """Returns an entry after dropout. The compiler makes a separate loop for no dropout."""
    if dropout_p > 0:
        return factor * value if is_kept(key, column, dropout_p) else type(value)(0)
    return value


@kernel
def row_key(seed: int, row: int) -> Any:
    """Returns the key from which the hashes of a row start."""
    return uint32(mix(seed, row + 1))


@kernel
def dropout_factor(seed: int, index: int, dropout_p: float) -> float:
    """Returns 0 for a dropped weight, else 1 / (1 - p). Both passes get the same factors."""
    uniform = np.float64(mix(seed, index) >> uint64(11)) * 2.0**-53
    return 1.0 / (1.0 - dropout_p) if uniform >= dropout_p else 0.0


@kernel
def mix(seed: int, index: int) -> Any:
    """Returns a hash by the output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    state = uint64(seed) + uint64(index) * uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> uint64(27))) * uint64(0x94D049BB133111EB)
    return state ^ (state >> uint64(31))


@kernel
def is_kept(key: int, column: int, dropout_p: float) -> bool:
    """Tells whether an entry stays, by a 32-bit hash from github.com/skeeto/hash-prospector."""
    state = uint32(uint32(column) * uint32(0x9E3779B9) + uint32(key))
    state = uint32(uint32(state ^ (state >> uint32(16))) * uint32(0x21F0AAAD))
    state = uint32(uint32(state ^ (state >> uint32(15))) * uint32(0x735A2D97))
    state = uint32(state ^ (state >> uint32(15)))
    return bool(state >= np.uint32(min(dropout_p * 2.0**32, 2.0**32 - 1)))
