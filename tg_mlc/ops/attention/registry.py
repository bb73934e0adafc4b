"""All backends of the operator, and the choice among them."""

from __future__ import annotations

from tg_mlc.ops.attention import dense, reference, scatter
from tg_mlc.ops.attention.backend import AttentionCall, Backend

#: By name. Among those that prefer a call, ``"auto"`` takes the first.
BACKENDS: dict[str, Backend] = {b.name: b for b in (dense.BACKEND, scatter.BACKEND, reference.BACKEND)}


def get(name: str) -> Backend:
    """The backend of that name."""
    if name not in BACKENDS:
        raise ValueError(f"Expected 'backend' to be 'auto' or one of {sorted(BACKENDS)} (got '{name}')")
    return BACKENDS[name]


def choose(call: AttentionCall) -> tuple[Backend, str]:
    """The backend that ``"auto"`` takes, and why, without the pattern's name (whose sizes may be symbolic)."""
    for backend in BACKENDS.values():
        if (reason := backend.prefer(call)) and not backend.refuse(call):
            return backend, reason
    raise RuntimeError(f"No backend takes {call.pattern} on {call.query.device} in {call.query.dtype}")
