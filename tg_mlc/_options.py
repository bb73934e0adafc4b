"""Options: checks, and their spelling in messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any

from tg_mlc._names import shorten


def in_python(name: str, *value: Any) -> str:
    return f"{name}={value[0]!r}" if value else f"'{name}'"


#: Function that spells an option with its value, if any. The command line sets its own function.
SPELLING: ContextVar[Callable[..., str]] = ContextVar("spelling", default=in_python)


def argument(name: str, *value: Any) -> str:
    """Spells an option, named as in Python, for the caller: ``ignore=['a']`` in Python, or
    ``--ignore 'a'`` on the command line.
    """
    return SPELLING.get()(name, *value)


def check_number(name: str, value: Any, below: float = math.inf) -> None:
    """Checks that an option is a finite number of at least 0, and less than ``below``."""
    if not isinstance(value, Real) or not 0.0 <= float(value) < below:
        is_open = below == math.inf
        expected = "a finite number of at least 0" if is_open else f"a number in [0, {below:g})"
        raise ValueError(f"Expected '{name}' to be {expected} (got {shorten(repr(value))})")


def check_count(name: str, value: Any, or_none: bool = False) -> None:
    """Checks that an option is a whole number of at least 1; ``or_none`` also allows None."""
    is_wrong = isinstance(value, bool) or not isinstance(value, Integral) or value < 1
    if is_wrong and not (or_none and value is None):
        expected = "a whole number of at least 1" + ", or None" * or_none
        raise ValueError(f"Expected '{name}' to be {expected} (got {shorten(repr(value))})")


def check_flag(name: str, value: Any) -> None:
    """Checks that an option is :obj:`True` or :obj:`False`."""
    if not isinstance(value, bool):
        raise ValueError(f"Expected '{name}' to be True or False (got {shorten(repr(value))})")


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Checks that an option is one of several."""
    choices = list(choices)
    if value not in choices:
        expected = ", ".join(map(str, choices))
        raise ValueError(f"Expected '{name}' to be one of {expected} (got {shorten(repr(value))})")


def check_share(name: str, value: Any) -> None:
    """Checks that an option is a number in [0, 1]."""
    if not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"Expected '{name}' to be a number in [0, 1] (got {shorten(repr(value))})")
