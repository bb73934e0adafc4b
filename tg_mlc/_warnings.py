"""What work shares with its caller, such as a server: warnings, counts of unusual inputs, and
whether it is abandoned.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)
_NOTED: ContextVar[Counter[tuple[str, str]] | None] = ContextVar("noted", default=None)
_IS_ABANDONED: ContextVar[Callable[[], bool] | None] = ContextVar("is_abandoned", default=None)


def warn(message: str, stacklevel: int = 2) -> None:
    """Warns, or adds the message to the list that the current thread or task collects.

    Args:
        message (str): The warning.
        stacklevel (int, optional): As in :func:`warnings.warn`. (default: :obj:`2`)
    """
    collected = _COLLECTED.get()
    if collected is None:
        warnings.warn(message, stacklevel=stacklevel + 1)
    elif message not in collected:
        collected.append(message)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collects unique messages of :func:`warn` within the block.

    A server cannot use :func:`warnings.catch_warnings`, which affects all threads at once.
    """
    messages: list[str] = []
    token = _COLLECTED.set(messages)
    try:
        yield messages
    finally:
        _COLLECTED.reset(token)


def note(reason: str, column: str, number: int) -> None:
    """Counts unusual cells, such as blanks, by reason and column, if the caller collects counts."""
    noted = _NOTED.get()
    if noted is not None and number:
        noted[reason, column] += number


@contextmanager
def collected_notes() -> Iterator[Counter[tuple[str, str]]]:
    """Collects the numbers of unusual cells within the block, by reason and column."""
    noted = Counter[tuple[str, str]]()
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


class AbandonedError(BaseException):
    """The error that ends abandoned work; code that handles any Exception does not catch it."""


@contextmanager
def ended_if(is_abandoned: Callable[[], bool]) -> Iterator[None]:
    """Lets :func:`check_abandoned` end the work of the block, once the function returns True."""
    token = _IS_ABANDONED.set(is_abandoned)
    try:
        yield
    finally:
        _IS_ABANDONED.reset(token)


def check_abandoned() -> None:
    """Raises AbandonedError if the caller has stopped waiting for the work of this thread.

    Loops over rows, stages and batches call it, because Python cannot end a thread from outside.
    """
    is_abandoned = _IS_ABANDONED.get()
    if is_abandoned is not None and is_abandoned():
        raise AbandonedError
