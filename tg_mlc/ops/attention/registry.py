"""Registry of the operator's backends, and the choice among them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

import torch

from tg_mlc.ops.attention import blocks, compressed, dense, gather
from tg_mlc.ops.attention.backend import Backend, CallShape

_SPARSE = (compressed.TRITON, compressed.CSR, gather.SCATTER, gather.REFERENCE)
_ORDERED = (blocks.BACKEND, dense.BACKEND, *_SPARSE)
#: By name. Among those that prefer a call, ``"auto"`` takes the first.
BACKENDS: dict[str, Backend] = {backend.name: backend for backend in _ORDERED}


def get(name: str) -> Backend:
    """Returns the backend of that name."""
    if name not in BACKENDS:
        message = f"Expected 'backend' to be 'auto' or one of {sorted(BACKENDS)} (got '{name}')"
        raise ValueError(message)
    return BACKENDS[name]


class set_backend:  # noqa: N801 (reads as the function that it also is)
    """Forces backends where an argument ``backend`` is ``"auto"``, for good or in a ``with`` block.

    .. code-block:: python

        with tg_mlc.set_backend("reference"):
            out = model(batch)

    Both hold for the whole process, because backward passes have threads of their own. The latest
    setting that has not been left holds. A call takes the first backend that does not refuse it.

    Args:
        *names (str): The backends to take, or ``"auto"`` for the choice by measured crossovers.
    """

    def __init__(self, *names: str) -> None:
        chosen = tuple(get(name).name for name in names if name != "auto")
        if not names or ("auto" in names and chosen):
            message = f"Expected backends or 'auto' (got {names}); available are {sorted(BACKENDS)}"
            raise ValueError(message)
        self._chosen, self._was_entered = chosen, False
        with _lock():
            _hold(self)

    def __enter__(self) -> None:
        with _lock():
            if not self._was_entered:  # what was set for good is to hold within the block alone
                _SETTINGS.remove(self)
            self._was_entered = True
            _hold(self)

    def __exit__(self, *exception: object) -> None:
        with _lock():
            _SETTINGS.remove(self)
            _FORCED[:] = _SETTINGS[0]._chosen if _SETTINGS else ()


def _hold(setting: set_backend) -> None:
    _SETTINGS.insert(0, setting)
    _FORCED[:] = setting._chosen


def _lock() -> AbstractContextManager[Any]:
    """One thread at a time; a compiler, which cannot take a lock, traces in one."""
    return nullcontext() if torch.compiler.is_compiling() else _LOCK


_LOCK = Lock()
#: Settings that were made and have not been left, the latest first.
_SETTINGS: list[set_backend] = []
#: The names that hold: all that a compiled model has to look at.
_FORCED: list[str] = []


def forced() -> tuple[str, ...]:
    """Returns the names of the backends that were set."""
    return tuple(_FORCED)


def choose(shape: CallShape, name: str = "auto") -> tuple[Backend, str]:
    """Returns the backend for a call, and why, without the pattern's name."""
    if name != "auto":
        if reason := get(name).refuse(shape):
            raise ValueError(f"Backend '{name}' cannot take this call: {reason}")
        return BACKENDS[name], "is left to the option 'backend'"
    if _FORCED:
        reasons = []
        for forced_name in _FORCED:
            refused = BACKENDS[forced_name].refuse(shape)
            if refused is None:
                return BACKENDS[forced_name], "is left to the backends that were set"
            reasons.append(refused)
        message = f"None of the backends that were set takes this call: {'; '.join(reasons)}"
        raise ValueError(message)
    for backend in BACKENDS.values():
        if (reason := backend.prefer(shape)) and not backend.refuse(shape):
            return backend, reason
    raise RuntimeError(f"No backend takes {shape.pattern} on {shape.device} in {shape.dtype}")
