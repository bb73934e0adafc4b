"""Names for settings, so that samples that were made with the same settings are reused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from torch import Tensor

from tg_mlc._files import sha256

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def settings_key(*settings: Any) -> str | None:
    """A short name for settings, the same in every run; none if there is a function among them, as what one does is not
    told by how it is printed.

    Objects are told apart by their class and their attributes.
    """
    try:
        words = _words(settings)
    except RecursionError:  # of an object that leads to itself
        return None
    return None if _ADDRESS.search(words) else sha256(words.encode())[:16]


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_words, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"set {sorted(map(_words, value))}"  # else in the order of hashes, which runs do not share
    if isinstance(value, dict):
        return f"dict {_words(list(value.items()))}"
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{value.dtype} {value.tolist()}"  # whole, and not shortened as when it is printed
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return repr(value)
    # What an object prints by itself is its address.
    printed = str(type(value)) if repr(value) == object.__repr__(value) else repr(value)
    return f"{printed} {_words(vars(value))}"
