"""Availability of Numba, which compiles kernels on a CPU."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import torch

from tg_mlc._optional import how_to_install


@cache
def _numba_problem() -> str | None:
    try:
        import_module("numba")
    except ModuleNotFoundError:
        return f"Numba is not installed; {how_to_install('numba')}"
    except ImportError as error:
        return f"Numba cannot be imported: {error}"
    return None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def numba_problem() -> str | None:
    """Reason why there is no Numba, if so. It is imported at the first call, and a compiler takes the answer as it
    is.
    """
    return _numba_problem()
