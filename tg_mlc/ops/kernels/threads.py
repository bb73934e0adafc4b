"""Threads for kernels that let go of the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

import torch


def num_workers() -> int:
    """As many as PyTorch's own operators take."""
    return int(torch.get_num_threads())


def run(work: Callable[[int], None], workers: int) -> None:
    """Calls ``work(0), ..., work(workers - 1)`` at the same time and waits for all."""
    if workers == 0:
        return
    others = [_pool().submit(work, worker) for worker in range(1, workers)]
    try:
        work(0)
    finally:  # nobody works on what its caller has taken back
        wait(others)
    for other in others:
        other.result()


def share(work: Callable[[int, int], None], size: int, workers: int) -> None:
    """Calls ``work(begin, end)`` for as many parts of a range, at the same time."""
    bounds = divide(size, workers)
    run(lambda worker: work(bounds[worker], bounds[worker + 1]), workers)


def divide(size: int, workers: int) -> list[int]:
    """Where each worker's part of a range begins, and where the last one ends."""
    return [worker * size // max(workers, 1) for worker in range(workers + 1)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="tg_mlc")


# A forked child inherits the pool but not its threads, and would wait for them forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
