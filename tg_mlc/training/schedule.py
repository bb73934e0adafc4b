"""Schedules of the learning rate: a warm-up, then a decay to zero, or steps down where validation says so."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

Decay = Literal["none", "cosine", "linear", "plateau"]

#: On a plateau the learning rate is multiplied by this after so many epochs without a lower validation loss, as in the
#: authors' released code of LANET.
PLATEAU_FACTOR, PLATEAU_PATIENCE = 0.3, 5

_DECAYS: dict[str, Callable[[float], float]] = {
    "none": lambda _: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
    "linear": lambda done: 1.0 - done,
}


def check_schedule(decay: str, warmup: float) -> None:
    """Checks the options of :func:`lr_factor`."""
    if decay not in get_args(Decay):
        raise ValueError(f"Expected 'decay' to be one of {list(get_args(Decay))} (got {decay!r})")
    if not 0.0 <= warmup < 1.0:
        raise ValueError(f"Expected 'warmup' to be a share of the training in [0, 1) (got {warmup})")
    if decay == "plateau" and warmup > 0.0:
        raise ValueError(f"Expected no 'warmup' with decay='plateau' (got {warmup})")


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


def on_plateau(optimizer: Optimizer) -> dict[str, Any]:
    """Returns Lightning's description of a scheduler that lowers the learning rate where validation stalls."""
    scheduler = ReduceLROnPlateau(optimizer, factor=PLATEAU_FACTOR, patience=PLATEAU_PATIENCE)
    return {"scheduler": scheduler, "monitor": "val/loss", "interval": "epoch"}
