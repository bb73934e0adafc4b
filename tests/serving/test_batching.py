"""Batches of requests that arrive one after the other."""

from __future__ import annotations

import asyncio
import time

import pytest

from tg_mlc.inference.flow import Query
from tg_mlc.serving.batching import Batcher
from tg_mlc.serving.requests import Limits


class Sizes:
    """A histogram that lists its values."""

    def __init__(self):
        self.values = []

    def observe(self, value):
        self.values.append(value)


async def batches_of(model, delays, num_requests, pause):
    """Returns the sizes of batches of clients that ask again as soon as they have an answer."""
    sizes = Sizes()
    batcher = Batcher(model, Limits(pause=pause), (sizes, Sizes()), lambda *_: None)
    answer = batcher._answer

    def slowly(batch):
        time.sleep(0.1)
        return answer(batch)

    batcher._answer = slowly
    task = asyncio.create_task(batcher.run())

    async def client(delay):
        await asyncio.sleep(delay)
        for _ in range(num_requests):
            await batcher.submit([[0.5] * 5], Query())

    await asyncio.gather(*map(client, delays))
    task.cancel()
    return sizes.values


@pytest.mark.parametrize("num_clients", [1, 4])
def test_a_batch_waits_only_for_clients_that_are_expected(models, num_clients):
    start = time.monotonic()
    sizes = asyncio.run(batches_of(models["rows"], [0.0] * num_clients, 5, pause=30))
    assert sizes == [num_clients] * 5
    assert time.monotonic() - start < 30


def test_clients_that_take_turns_are_answered_together(models):
    assert asyncio.run(batches_of(models["rows"], [0.0, 0.05], 2, pause=0.5)) == [1, 2, 1]
