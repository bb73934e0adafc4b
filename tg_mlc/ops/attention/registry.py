"""Registry of the operator's backends, and the choice among them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

import torch

from tg_mlc.ops.attention import blocks, csr, dense, reference, scatter, triton
from tg_mlc.ops.attention.backend import AttentionCall, Backend

#: By name. Among those that prefer a call, ``"auto"`` takes the first.
BACKENDS: dict[str, Backend] = {
    module.BACKEND.name: module.BACKEND for module in (blocks, dense, triton, csr, scatter, reference)
}


def get(name: str) -> Backend:
    """The backend of that name."""
    if name not in BACKENDS:
        raise ValueError(f"Expected 'backend' to be 'auto' or one of {sorted(BACKENDS)} (got '{name}')")
    return BACKENDS[name]


class set_backend:  # noqa: N801 (reads as the function that it also is)
    """Forces backends wherever the argument ``backend`` is ``"auto"``, for good or within a ``with`` block.

    .. code-block:: python

        with tg_mlc.set_backend("reference"):
            out = model(batch)

    Either holds for the whole process, as a backward pass, which may compute a checkpoint anew, has threads of its own.
    Of what was set, in one thread or in several, and has not been left, the latest holds. Of several names, a call
    takes the first that does not refuse it.

    Args:
        *names (str): The backends to take, or ``"auto"`` for the choice by measured crossovers.

    Raises:
        ValueError: If a name is unknown.
    """

    def __init__(self, *names: str) -> None:
        chosen = tuple(get(name).name for name in names if name != "auto")
        if not names or ("auto" in names and chosen):
            raise ValueError(f"Expected backends or 'auto' (got {names}); available are {sorted(BACKENDS)}")
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
#: What was set and has not been left, the latest first.
_SETTINGS: list[set_backend] = []
#: The names that hold: all that a compiled model has to look at.
_FORCED: list[str] = []


def is_forced() -> bool:
    """Tells whether backends were set."""
    return bool(_FORCED)


def choose(call: AttentionCall) -> tuple[Backend, str]:
    """The backend that ``"auto"`` takes, and why, without the pattern's name (whose sizes may be symbolic)."""
    if is_forced():
        return _first_that_takes(call, _FORCED), "is left to the backends that were set"
    for backend in BACKENDS.values():
        if (reason := backend.prefer(call)) and not backend.refuse(call):
            return backend, reason
    raise RuntimeError(f"No backend takes {call.pattern} on {call.query.device} in {call.query.dtype}")


def _first_that_takes(call: AttentionCall, names: list[str]) -> Backend:
    reasons = []
    for name in names:
        reason = BACKENDS[name].refuse(call)
        if reason is None:
            return BACKENDS[name]
        reasons.append(reason)
    raise ValueError(f"None of the backends that were set takes this call: {'; '.join(reasons)}")
