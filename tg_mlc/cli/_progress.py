"""The time that is left of a budget, as a line above the bars of the parts that take it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from tqdm import tqdm


@contextmanager
def time_left(seconds: float) -> Iterator[None]:
    """Shows, on a terminal, how much is left of the time that a training may take."""
    done = Event()
    with tqdm(bar_format="{desc}", disable=None, leave=False) as line:
        clock = Thread(target=_tick, args=(line, time.monotonic() + seconds, done), daemon=True)
        clock.start()
        try:
            yield
        finally:
            done.set()
            clock.join()


def _tick(line: Any, end: float, done: Event) -> None:
    while not done.is_set():
        left = tqdm.format_interval(max(0.0, end - time.monotonic()))
        line.set_description_str(f"Training takes at most about {left} more")
        done.wait(1.0)
