"""Checks of options."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from tg_mlc._names import shorten


def check_number(name: str, value: Any, below: float = math.inf) -> None:
    """Checks that an option is a finite number of at least 0, and perhaps below another."""
    if not isinstance(value, Real) or not 0.0 <= float(value) < below:
        wanted = (
            "a finite number of at least 0" if below == math.inf else f"a number in [0, {below:g})"
        )
        raise ValueError(f"Expected '{name}' to be {wanted} (got {value!r})")


def check_count(name: str, value: Any, or_none: bool = False) -> None:
    """Checks that an option is a whole number of at least 1, or perhaps :obj:`None`."""
    if not (or_none and value is None) and (
        isinstance(value, bool) or not isinstance(value, Integral) or value < 1
    ):
        wanted = "a whole number of at least 1" + ", or None" * or_none
        raise ValueError(f"Expected '{name}' to be {wanted} (got {value!r})")


def check_flag(name: str, value: Any) -> None:
    """Checks that an option is :obj:`True` or :obj:`False`."""
    if not isinstance(value, bool):
        raise ValueError(f"Expected '{name}' to be True or False (got {value!r})")


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Checks that an option is one of several."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(
            f"Expected '{name}' to be one of {', '.join(map(str, choices))} (got {value!r})"
        )


def check_share(name: str, value: Any) -> None:
    """Checks that an option is a number in [0, 1]."""
    if not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        got = shorten(repr(value))
        raise ValueError(f"Expected '{name}' to be a number in [0, 1] (got {got})")
