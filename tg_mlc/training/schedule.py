"""Schedules of the learning rate: a warm-up, then a decay to zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

Decay = Literal["none", "cosine", "linear"]

_DECAYS: dict[str, Callable[[float], float]] = {
    "none": lambda _: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
    "linear": lambda done: 1.0 - done,
}


def check_schedule(decay: str, warmup: float) -> None:
    """Checks the options of :func:`lr_factor`."""
    if decay not in _DECAYS:
        raise ValueError(f"Expected 'decay' to be one of {list(_DECAYS)} (got {decay!r})")
    if not 0.0 <= warmup < 1.0:
        raise ValueError(f"Expected 'warmup' to be a share of the training in [0, 1) (got {warmup})")


def lr_factor(decay: Decay, warmup: float, total_steps: int) -> Callable[[int], float]:
    """Returns the factor on the learning rate as a function of the optimiser steps taken so far: it rises linearly
    during the warm-up (a share of all steps), reaching 1 with its last step, and then decays, reaching 0 at the end.
    """
    warmup_steps = round(warmup * total_steps)

    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        done = (step - warmup_steps) / max(total_steps - warmup_steps, 1)
        return _DECAYS[decay](min(done, 1.0))

    return factor
