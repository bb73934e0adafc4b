from threading import Barrier, Thread, get_ident

import pytest
import torch

from tg_mlc.ops.kernels import threads


@pytest.fixture(autouse=True)
def _fresh_pool():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    threads._pool.cache_clear()
    yield
    torch.set_num_threads(before)


def in_a_new_thread(ask):
    answers = []
    thread = Thread(target=lambda: answers.append(ask()))
    thread.start()
    thread.join()
    return answers[0]


def test_threads_of_the_pool_work_alone_and_others_are_left_as_they_were():
    barrier, actual = Barrier(2), {}

    def work(worker):
        barrier.wait(timeout=60)  # so that neither does the work of both
        torch.ones(2**18).exp_().sum()
        actual[get_ident()] = torch.get_num_threads()

    threads._pool()._max_workers = 2  # type: ignore[attr-defined]
    threads.run_apart(work, 2)
    assert list(actual.values()) == [1, 1]
    assert get_ident() not in actual
    assert in_a_new_thread(torch.get_num_threads) == torch.get_num_threads() == 3


def test_failures_are_raised():
    def fail(worker):
        raise ArithmeticError(worker)

    for run in (threads.run, threads.run_apart):
        with pytest.raises(ArithmeticError):
            run(fail, 2)
