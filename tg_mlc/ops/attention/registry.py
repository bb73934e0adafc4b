"""Registry of the backends of the operator, and the choice of a backend for a call."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

import torch

from tg_mlc.ops.attention import blocks, compressed, dense, gather
from tg_mlc.ops.attention.backend import Backend, CallShape

_SPARSE = (compressed.TRITON, compressed.CSR, gather.SCATTER, gather.REFERENCE)
_ORDERED = (blocks.BACKEND, dense.BACKEND, *_SPARSE)
#: Backends by name. ``"auto"`` chooses the first backend that prefers and supports a call.
BACKENDS: dict[str, Backend] = {backend.name: backend for backend in _ORDERED}


def get(name: str) -> Backend:
    """Returns the backend with this name."""
    if name not in BACKENDS:
        message = f"Expected 'backend' to be 'auto' or one of {sorted(BACKENDS)} (got '{name}')"
        raise ValueError(message)
    return BACKENDS[name]


class set_backend:  # noqa: N801 (reads as the function that it also is)
    """Sets backends for ``backend="auto"``, permanently or in a ``with`` block.

    .. code-block:: python

        with tg_mlc.set_backend("reference"):
            out = model(batch)

    A setting applies to the whole process, because backward passes run in other threads. The latest
    active setting applies. A call uses the first of its backends that supports the call.

    Args:
        *names (str): The allowed backends, or ``"auto"`` for a choice by measured crossovers.
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
            if not self._was_entered:  # A setting used in a block applies only there.
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
    """Returns a lock for settings. Compilers cannot trace locks, and get none."""
    return nullcontext() if torch.compiler.is_compiling() else _LOCK


_LOCK = Lock()
#: Active settings, the latest first.
_SETTINGS: list[set_backend] = []
#: Names of the backends that are set; compiled models read only this list.
_FORCED: list[str] = []


def forced() -> tuple[str, ...]:
    """Returns the names of the backends that were set."""
    return tuple(_FORCED)


def choose(shape: CallShape, name: str = "auto") -> tuple[Backend, str]:
    """Returns the backend for a call, and the reason as the predicate of a sentence."""
    if name != "auto":
        if reason := get(name).refuse(shape):
            raise ValueError(f"Backend '{name}' cannot take this call: {reason}")
        return BACKENDS[name], "uses the option 'backend'"
    if _FORCED:
        reasons = []
        for forced_name in _FORCED:
            refused = BACKENDS[forced_name].refuse(shape)
            if refused is None:
                return BACKENDS[forced_name], "uses the backends that were set"
            reasons.append(refused)
        message = f"None of the backends that were set takes this call: {'; '.join(reasons)}"
        raise ValueError(message)
    for backend in BACKENDS.values():
        if (reason := backend.prefer(shape)) and not backend.refuse(shape):
            return backend, reason
    raise RuntimeError(f"No backend takes {shape.pattern} on {shape.device} in {shape.dtype}")
