"""Warnings that a caller may collect, such as a server for the response to a request."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


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
