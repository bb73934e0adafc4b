"""Micro-batches: inputs of requests that wait at the same time are scored together, in a thread of each model."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from tg_mlc._optional import require
from tg_mlc.inference import Predictor
from tg_mlc.serving.requests import Limits

_log = logging.getLogger(__name__)


class Scored(NamedTuple):
    """The probabilities of one input, or the reason why there are none."""

    probability: np.ndarray | None  #: ``[L]``
    error: str | None = None  #: why there is none


class _Waiting(NamedTuple):
    """The inputs of a request, and who waits for them."""

    inputs: list[Any]
    given: np.ndarray | None  #: ``[n, L]``
    future: asyncio.Future[list[Scored]]


class OverloadedError(Exception):
    """More inputs wait than the limit says."""


class Batcher:
    """Scores the inputs of requests together. While a batch is computed, the next one gathers.

    Args:
        predictor (Predictor): The model.
        limits (Limits): The most inputs of a batch (unless a single request has more), and of all that wait.
        observed (tuple): Histograms of the size and the seconds of a batch.
    """

    def __init__(self, predictor: Predictor, limits: Limits, observed: tuple[Any, Any]) -> None:
        self.predictor, self.limits, self.observed = predictor, limits, observed
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="tg-mlc-model")
        self.queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self.num_waiting = 0

    async def submit(self, inputs: list[Any], given: np.ndarray | None) -> list[Scored]:
        """Returns what the model says of each input.

        Raises:
            OverloadedError: If too many inputs wait already.
        """
        if self.num_waiting + len(inputs) > self.limits.max_waiting:
            raise OverloadedError(f"Expected a server with room (got {self.num_waiting} inputs that wait); try later")
        future: asyncio.Future[list[Scored]] = asyncio.get_running_loop().create_future()
        self.num_waiting += len(inputs)
        self.queue.put_nowait(_Waiting(inputs, given, future))
        return await future

    async def run(self) -> None:
        """Scores batches until it is cancelled."""
        loop, kept = asyncio.get_running_loop(), None
        while True:
            batch = [kept or await self.queue.get()]
            kept, size, end = None, len(batch[0].inputs), time.monotonic() + self.limits.pause
            while size < self.limits.max_batch:
                if self.queue.empty():
                    if (left := end - time.monotonic()) <= 0:
                        break
                    await asyncio.sleep(left)
                    continue
                waiting = self.queue.get_nowait()
                if size + len(waiting.inputs) > self.limits.max_batch:
                    kept = waiting
                    break
                batch.append(waiting)
                size += len(waiting.inputs)
            batch = [waiting for waiting in batch if not waiting.future.done()]  # of requests that gave up
            scored = await loop.run_in_executor(self.thread, self._score_all, batch) if batch else []
            self.num_waiting -= size
            for waiting, results in zip(batch, scored, strict=True):
                if not waiting.future.done():
                    waiting.future.set_result(results)

    def _score_all(self, batch: Sequence[_Waiting]) -> list[list[Scored]]:
        start = time.monotonic()
        inputs = [one for waiting in batch for one in waiting.inputs]
        given = None
        if any(waiting.given is not None for waiting in batch):
            unknown = (np.full((len(each.inputs), len(self.predictor.label_names)), np.nan) for each in batch)
            parts = [other if each.given is None else each.given for each, other in zip(batch, unknown, strict=True)]
            given = np.concatenate(parts)
        scored = iter(self.score(inputs, given))
        for histogram, value in zip(self.observed, (len(inputs), time.monotonic() - start), strict=True):
            histogram.observe(value)
        return [[next(scored) for _ in waiting.inputs] for waiting in batch]

    def score(self, inputs: list[Any], given: np.ndarray | None) -> list[Scored]:
        """The probabilities of each input; if the model refuses inputs together, it takes each alone."""
        try:
            raw = as_raw(inputs)
            scores, refused = self.predictor.readable_scores(raw, given, self.limits.max_batch)
            return [Scored(None if row in refused else scores[row], refused.get(row)) for row in range(len(inputs))]
        except Exception as error:
            if len(inputs) > 1:
                # Halves find the few that are at fault in a few steps.
                middle = len(inputs) // 2
                parts = (slice(None, middle), slice(middle, None))
                return [
                    one for part in parts for one in self.score(inputs[part], None if given is None else given[part])
                ]
            if not isinstance(error, (ValueError, TypeError)):
                _log.warning("An input of type %s failed", type(inputs[0]).__name__, exc_info=error)
            return [Scored(None, str(error))]


def as_raw(inputs: list[Any]) -> Any:
    """Inputs as models take them: rows by names of columns as a data frame, all others as a list.

    Raises:
        ValueError: If both are mixed.
    """
    are_named = [isinstance(one, dict) for one in inputs]
    if not any(are_named):
        return inputs
    if not all(are_named):
        raise ValueError("Expected rows by names of columns alone, or none (got both)")
    return require("pandas", extra="serve").DataFrame(inputs)
