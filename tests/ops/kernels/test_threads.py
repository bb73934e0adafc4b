from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Barrier, Thread, get_ident

import pytest
import torch

from tg_mlc.ops.kernels import threads


@pytest.fixture(autouse=True)
def _fresh_pool() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    threads._pool.cache_clear()
    yield
    torch.set_num_threads(before)


def in_a_new_thread(ask: Callable[[], int]) -> int:
    answers: list[int] = []
    thread = Thread(target=lambda: answers.append(ask()))
    thread.start()
    thread.join()
    return answers[0]


def test_threads_of_the_pool_work_alone_and_others_are_left_as_they_were() -> None:
    barrier, found = Barrier(2), {}

    def work(worker: int) -> None:
        barrier.wait(timeout=60)  # so that neither does the work of both
        torch.ones(2**18).exp_().sum()
        found[get_ident()] = torch.get_num_threads()

    threads._pool()._max_workers = 2  # type: ignore[attr-defined]
    threads.run_apart(work, 2)
    assert list(found.values()) == [1, 1]
    assert get_ident() not in found
    assert in_a_new_thread(torch.get_num_threads) == torch.get_num_threads() == 3


def test_failures_are_raised() -> None:
    def fail(worker: int) -> None:
        raise ArithmeticError(worker)

    for run in (threads.run, threads.run_apart):
        with pytest.raises(ArithmeticError):
            run(fail, 2)
