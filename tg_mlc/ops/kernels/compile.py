"""Compilation of kernels by Numba."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from tg_mlc import __version__

Array = np.ndarray[Any, Any]


def _digest_of_kernels() -> str:
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16] if files else __version__


_SOURCES = _digest_of_kernels()
#: Sums may be reordered, but NaN and infinity keep their meaning.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "_nrt": False,
    "error_model": "numpy",
    "fastmath": {"arcp", "contract", "nsz", "reassoc"},
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function at its first call, and keeps the result on disk until a kernel of any file changes."""
    function.__qualname__ += f"@{_SOURCES}"
    try:
        compiled: Callable[..., Any] = njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # there is no folder to keep it in
        compiled = njit(**OPTIONS)(function)
    return compiled


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Compiles a function under a name of its own, by which Numba tells functions in its cache apart."""
    function.__name__ = function.__qualname__ = name
    return kernel(function)
