"""Threads for kernels that release the global interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from threading import Lock, Thread

import torch


def num_workers() -> int:
    """Returns the number of threads that PyTorch's operators use."""
    return int(torch.get_num_threads())


def run(work: Callable[[int], None], workers: int) -> None:
    """Calls ``work(0), ..., work(workers - 1)`` concurrently, and waits for all calls."""
    if workers == 0:
        return
    futures = [_pool().submit(work, worker) for worker in range(1, workers)]
    try:
        work(0)
    finally:  # Arrays must outlive the work of all threads.
        wait(futures)
    for future in futures:
        future.result()


def run_apart(work: Callable[[int], None], workers: int) -> None:
    """Runs work that calls PyTorch's operators. Each operator then uses a single thread."""
    inference = torch.is_inference_mode_enabled()

    def alone(worker: int) -> None:
        # Autograd modes are thread-local, so they are set in each thread.
        with torch.autocast("cpu", enabled=False), torch.inference_mode(inference), torch.no_grad():
            work(worker)

    if workers == 1:
        alone(0)
        return
    futures = [_pool().submit(alone, worker) for worker in range(workers)]
    wait(futures)
    for future in futures:
        future.result()


def share(
    work: Callable[[int, int, int], None], size: int, workers: int, run: Callable[..., None] = run
) -> None:
    """Divides a range among workers, and calls ``work(worker, begin, end)`` concurrently."""
    bounds = [worker * size // max(workers, 1) for worker in range(workers + 1)]
    run(lambda worker: work(worker, bounds[worker], bounds[worker + 1]), workers)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "tg_mlc", initializer=_take_one_thread)


def _take_one_thread() -> None:
    """Makes PyTorch's operators in this thread use a single thread.

    PyTorch sets the number for the calling thread and as the default of later threads. A helper
    thread restores the default. Only threads that start in between get a wrong default.
    """
    with _BIRTHS:
        # This call initialises the number of this thread; else its first operator would reset it.
        default = torch.get_num_threads()
        torch.set_num_threads(1)
        restore = Thread(target=torch.set_num_threads, args=(default,))
        restore.start()
        restore.join()


_BIRTHS = Lock()


def _begin_anew() -> None:
    _pool.cache_clear()
    _BIRTHS.release()


# A forked child inherits the pool without its threads, and would wait forever.
if hasattr(os, "register_at_fork"):
    after = {"after_in_parent": _BIRTHS.release, "after_in_child": _begin_anew}
    os.register_at_fork(before=_BIRTHS.acquire, **after)
