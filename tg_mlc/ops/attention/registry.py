"""All backends of the operator, and the choice among them."""

from __future__ import annotations

from tg_mlc.ops.attention import blocks, csr, dense, reference, scatter, sddmm, triton
from tg_mlc.ops.attention.backend import AttentionCall, Backend

#: By name. Among those that prefer a call, ``"auto"`` takes the first.
BACKENDS: dict[str, Backend] = {
    module.BACKEND.name: module.BACKEND for module in (blocks, dense, triton, csr, sddmm, scatter, reference)
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

    It holds for the whole process. Of several names, a call takes the first that does not refuse it.

    Args:
        *names (str): The backends to take, or ``"auto"`` for the choice by measured crossovers.

    Raises:
        ValueError: If a name is unknown.
    """

    def __init__(self, *names: str) -> None:
        chosen = tuple(get(name).name for name in names if name != "auto")
        if not names or ("auto" in names and chosen):
            raise ValueError(f"Expected backends or 'auto' (got {names}); available are {sorted(BACKENDS)}")
        self._chosen, self._before = chosen, _FORCED[:]
        _FORCED[:] = chosen

    def __enter__(self) -> None:
        _FORCED[:] = self._chosen

    def __exit__(self, *exception: object) -> None:
        _FORCED[:] = self._before


_FORCED: list[str] = []


def choose(call: AttentionCall) -> tuple[Backend, str]:
    """The backend that ``"auto"`` takes, and why, without the pattern's name (whose sizes may be symbolic)."""
    if _FORCED:
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
