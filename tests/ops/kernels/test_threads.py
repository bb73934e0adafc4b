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


def in_a_new_thread(function):
    results = []
    thread = Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_operators_take_one_thread_only_in_threads_of_the_pool():
    barrier, num_threads = Barrier(2), {}

    def work(worker):
        barrier.wait(timeout=60)  # Otherwise one thread may do both tasks.
        torch.ones(2**18).exp_().sum()
        num_threads[get_ident()] = torch.get_num_threads()

    threads._pool()._max_workers = 2
    threads.run_apart(work, 2)
    assert list(num_threads.values()) == [1, 1]
    assert get_ident() not in num_threads
    assert in_a_new_thread(torch.get_num_threads) == torch.get_num_threads() == 3


def test_errors_in_workers_are_raised():
    def fail(worker):
        raise ArithmeticError(worker)

    for run in (threads.run, threads.run_apart):
        with pytest.raises(ArithmeticError):
            run(fail, 2)
