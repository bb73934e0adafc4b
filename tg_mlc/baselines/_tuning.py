"""Choice among fitted baselines on validation data, and checks that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import numpy as np


class _Searched(Protocol):
    search: list[Any]


Model = TypeVar("Model", bound=_Searched)


def best_of(fitted: Iterable[tuple[tuple[Any, ...], Model]], value: Callable[[Model], float]) -> Model:
    """The first of the best fitted models, given with their settings; its ``search`` lists all settings and values."""
    best, highest, search = None, -np.inf, []
    for setting, model in fitted:
        search.append((*setting, value(model)))
        if search[-1][-1] > highest:
            best, highest = model, search[-1][-1]
    if best is None:
        raise ValueError(f"Expected 'metric' to be defined on the validation data (got NaN for all of {search})")
    best.search = search
    return best


def check_rows(given: int, num_targets: int, what: str = "row of 'x'") -> None:
    """Refuses inputs and targets of different numbers."""
    if given != num_targets:
        raise ValueError(f"Expected one row of 'y' per {what}, {given} (got {num_targets})")
