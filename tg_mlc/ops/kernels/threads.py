"""Threads for kernels that release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from threading import Lock, Thread

import torch


def num_workers() -> int:
    """Number of threads that PyTorch's own operators take."""
    return int(torch.get_num_threads())


def run(work: Callable[[int], None], workers: int) -> None:
    """Calls ``work(0), ..., work(workers - 1)`` at the same time and waits for all."""
    if workers == 0:
        return
    others = [_pool().submit(work, worker) for worker in range(1, workers)]
    try:
        work(0)
    finally:  # no thread may work on what its caller has taken back
        wait(others)
    for other in others:
        other.result()


def run_apart(work: Callable[[int], None], workers: int) -> None:
    """Runs work that calls PyTorch's operators, which take no other threads; the caller waits."""
    inference = torch.is_inference_mode_enabled()

    def alone(worker: int) -> None:
        # These modes belong to a thread, and the others have their own:
        with torch.autocast("cpu", enabled=False), torch.inference_mode(inference), torch.no_grad():
            work(worker)

    if workers == 1:
        alone(0)
        return
    shares = [_pool().submit(alone, worker) for worker in range(workers)]
    wait(shares)
    for one in shares:
        one.result()


def share(
    work: Callable[[int, int, int], None], size: int, workers: int, run: Callable[..., None] = run
) -> None:
    """Calls ``work(worker, begin, end)`` for as many parts of a range, at the same time."""
    bounds = [worker * size // max(workers, 1) for worker in range(workers + 1)]
    run(lambda worker: work(worker, bounds[worker], bounds[worker + 1]), workers)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "tg_mlc", initializer=_take_one_thread)


def _take_one_thread() -> None:
    """Has PyTorch's operators take no other thread than this one, which works beside others.

    PyTorch sets the number at once for a thread and for all that are yet to be born. Another thread
    puts the latter back right away, so that only what is born in that moment may be mistaken.
    """
    with _BIRTHS:
        # asked first, or this thread would take up theirs at its first operator
        others = torch.get_num_threads()
        torch.set_num_threads(1)
        restore = Thread(target=torch.set_num_threads, args=(others,))
        restore.start()
        restore.join()


_BIRTHS = Lock()


def _begin_anew() -> None:
    _pool.cache_clear()
    _BIRTHS.release()


# A forked child inherits the pool but not its threads, and would wait for them forever.
if hasattr(os, "register_at_fork"):
    after = {"after_in_parent": _BIRTHS.release, "after_in_child": _begin_anew}
    os.register_at_fork(before=_BIRTHS.acquire, **after)
