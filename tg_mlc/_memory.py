"""Memory of large tensors: allocating fresh pages of 4 kB takes longer than many operations."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

#: Minimum bytes of a tensor on large pages. Smaller tensors mostly reuse freed memory.
LARGE = 2**24


def keep_heap() -> None:
    """Keeps the memory of freed tensors for the next ones, instead of returning it to the system.

    By default, glibc returns tensors of more than 32 MB at once, and the next tensor needs fresh
    pages: with 983 labels of ten neighbours each, 32 samples and 512 channels, attention
    forward and backward takes twice as long. The process keeps the memory of its largest step.
    The function does nothing without glibc.
    """
    if (libc := _libc()) is not None and hasattr(libc, "mallopt"):
        # The options M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD of malloc.h.
        for option, value in ((-4, 0), (-1, -1), (-2, 2**26)):
            libc.mallopt(option, value)


def on_large_pages(tensor: Tensor) -> Tensor:
    """Requests pages of 2 MB for a new tensor on a CPU if it is large, and returns it."""
    size = tensor.numel() * tensor.element_size()
    if size >= LARGE and (libc := _libc()) is not None and hasattr(mmap, "MADV_HUGEPAGE"):
        start = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (tensor.data_ptr() + size) // mmap.PAGESIZE * mmap.PAGESIZE
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_HUGEPAGE)
    return tensor


@cache
def _libc() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else None
