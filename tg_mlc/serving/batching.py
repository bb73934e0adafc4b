"""Micro-batches: waiting requests are read one by one and computed together."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeVar

import torch

from tg_mlc._warnings import AbandonedError, collected_warnings, ended_if
from tg_mlc.data import given_labels
from tg_mlc.inference import Model
from tg_mlc.inference.flow import Prediction, Query, Reading
from tg_mlc.serving.requests import Limits

T = TypeVar("T")
_log = logging.getLogger(__name__)


class RefusedError(Exception):
    """The error of a request that the model refuses; the message says why."""

    status: int = 422  #: the HTTP status of the answer
    headers: dict[str, str] | None = None


class OverloadedError(RefusedError):
    """The error of a request if more inputs are waiting than the limit allows."""

    status, headers = 429, {"Retry-After": "1"}


class _WaitingRequest(NamedTuple):
    """A request that is waiting for its answer."""

    inputs: Any
    query: Query
    future: asyncio.Future[Prediction]


async def in_thread(
    executor: ThreadPoolExecutor | None, function: Callable[..., T], *arguments: Any
) -> T:
    """Calls a function in a thread, and ends it if the caller is cancelled."""
    is_abandoned = threading.Event()

    def call() -> T:
        with ended_if(is_abandoned.is_set):
            return function(*arguments)

    try:
        return await asyncio.get_running_loop().run_in_executor(executor, call)
    finally:
        is_abandoned.set()


class Batcher:
    """Answers requests in one thread. Requests that arrive during a batch form the next batch.

    Args:
        model (Model): The model.
        limits (Limits): The limits on waiting inputs, and on inputs per batch, which a single
            request may exceed.
        histograms (tuple): Histograms of the number of inputs and of the seconds per batch.
        count (Callable): Counts predictions, and unusual inputs by reason and column.
    """

    def __init__(
        self,
        model: Model,
        limits: Limits,
        histograms: tuple[Any, Any],
        count: Callable[[Sequence[Prediction], Counter[tuple[str, str]]], None],
    ) -> None:
        self.model, self.limits, self.histograms, self.count = model, limits, histograms, count
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="tg-mlc-model")
        self.queue: asyncio.Queue[_WaitingRequest] = asyncio.Queue()
        self.num_waiting = 0

    async def submit(self, inputs: Any, query: Query) -> Prediction:
        """Returns the model's answer to a request, with the warnings for this request only.

        Raises:
            OverloadedError: If too many inputs are waiting already.
            RefusedError: If the model refuses the request.
        """
        self._count(len(inputs))
        future: asyncio.Future[Prediction] = asyncio.get_running_loop().create_future()
        self.queue.put_nowait(_WaitingRequest(inputs, query, future))
        return await future

    async def call(self, size: int, function: Callable[[], T]) -> T:
        """Returns the result of a function that asks the model about some inputs, alone. Between
        batches, the thread of the model runs it. Raises as :meth:`submit` does.
        """
        self._count(size)
        loop = asyncio.get_running_loop()
        is_abandoned = threading.Event()

        def run() -> T:
            with ended_if(is_abandoned.is_set):
                return function()

        future = self.thread.submit(run)
        # A request that is too slow still counts until the thread is free again.
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._count, -size))
        try:
            return await asyncio.wrap_future(future)
        except Exception as error:
            raise _refusal(error) from None
        finally:
            is_abandoned.set()

    def _count(self, size: int) -> None:
        """Adds to the number of waiting inputs. Raises OverloadedError if there are too many."""
        if size > 0 and self.num_waiting + size > self.limits.max_waiting:
            got = f"{self.num_waiting} waiting inputs"
            raise OverloadedError(f"Expected a shorter queue (got {got}); try later")
        self.num_waiting += size

    async def run(self) -> None:
        """Answers batches until the task is cancelled."""
        loop, pending = asyncio.get_running_loop(), None
        while True:
            batch = [pending or await self.queue.get()]
            pending, size, end = None, len(batch[0].inputs), time.monotonic() + self.limits.pause
            while size < self.limits.max_batch:
                if self.queue.empty():
                    if (remaining := end - time.monotonic()) <= 0:
                        break
                    await asyncio.sleep(remaining)
                    continue
                waiting = self.queue.get_nowait()
                if size + len(waiting.inputs) > self.limits.max_batch:
                    pending = waiting
                    break
                batch.append(waiting)
                size += len(waiting.inputs)
            # Some requests have been cancelled meanwhile.
            batch = [waiting for waiting in batch if not waiting.future.done()]
            answers = await loop.run_in_executor(self.thread, self._answer, batch) if batch else []
            self.num_waiting -= size
            for waiting, answer in zip(batch, answers, strict=True):
                if waiting.future.done():
                    continue
                if isinstance(answer, Prediction):
                    waiting.future.set_result(answer)
                else:
                    waiting.future.set_exception(answer)

    def _answer(self, batch: Sequence[_WaitingRequest]) -> list[Prediction | RefusedError]:
        """Reads requests one by one, and computes requests with equal queries together."""
        start, answers = time.monotonic(), dict[int, Prediction | RefusedError]()
        groups: dict[Hashable, list[tuple[int, Reading, Query]]] = {}
        unusual = Counter[tuple[str, str]]()
        for index, waiting in enumerate(batch):
            try:
                with ended_if(waiting.future.done):
                    reading = self._read(waiting)
            except (Exception, AbandonedError) as error:
                answers[index] = _refusal(error)
                continue
            unusual.update(reading.unusual)
            query = waiting.query
            key = (query.metric, query.coverage, query.coverage_per, query.coherent)
            groups.setdefault(key, []).append((index, reading, query))
        for group in groups.values():
            indices, readings, queries = zip(*group, strict=True)
            futures = [batch[index].future for index in indices]
            try:
                with ended_if(partial(_are_done, futures)):
                    group_answers = self._answer_group(readings, queries)
            except AbandonedError as error:
                group_answers = [_refusal(error)] * len(group)
            answers.update(zip(indices, group_answers, strict=True))
        size = sum(len(waiting.inputs) for waiting in batch)
        for histogram, value in zip(self.histograms, (size, time.monotonic() - start), strict=True):
            histogram.observe(value)
        self.count([a for a in answers.values() if isinstance(a, Prediction)], unusual)
        return [answers[index] for index in range(len(batch))]

    def _read(self, waiting: _WaitingRequest) -> Reading:
        """Reads a request and collects its warnings. Raises an error if the model refuses it."""
        reading = self.model.read(waiting.inputs)
        with collected_warnings() as messages:
            self.model.start(reading, waiting.query)
        messages = [message for message in messages if message not in reading.warnings]
        return reading._replace(warnings=[*reading.warnings, *messages])

    def _answer_group(
        self, readings: Sequence[Reading], queries: Sequence[Query]
    ) -> list[Prediction | RefusedError]:
        if len(readings) > 1:
            try:
                return [*self._answer_together(readings, queries)]
            except Exception as error:
                _log.warning("Requests had to be computed one by one", exc_info=error)
        answers = list[Prediction | RefusedError]()
        for reading, query in zip(readings, queries, strict=True):
            try:
                answers.append(self.model.answer(reading, query))
            except Exception as error:
                answers.append(_refusal(error))
        return answers

    def _answer_together(
        self, readings: Sequence[Reading], queries: Sequence[Query]
    ) -> list[Prediction]:
        """Answers requests that differ only in inputs, given labels and numbers of top labels."""
        given = None
        if any(query.given is not None for query in queries):
            names, pairs = self.model.label_names, zip(readings, queries, strict=True)
            tensors = (given_labels(names, query.given or {}, read.size) for read, query in pairs)
            given = torch.cat([*tensors]).numpy()
        prediction = self.model.answer(Reading.joined(readings), replace(queries[0], given=given))
        bounds = pairwise(accumulate((reading.size for reading in readings), initial=0))
        answers = []
        for bound, reading, query in zip(bounds, readings, queries, strict=True):
            part = prediction.part(*bound)
            messages = *reading.warnings, *part.warnings_of_given()
            answers.append(replace(part, warnings=messages, top=query.top))
        return answers


def _are_done(futures: Sequence[asyncio.Future[Prediction]]) -> bool:
    return all(future.done() for future in futures)


def _refusal(error: BaseException) -> RefusedError:
    """Returns the refusal for an error. Errors that no input should cause are also logged."""
    if not isinstance(error, (ValueError, TypeError, AbandonedError)):
        _log.warning("A request failed", exc_info=error)
    return RefusedError(str(error) or type(error).__name__)
