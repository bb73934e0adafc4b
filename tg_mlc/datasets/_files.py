from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def set_aside(path: Path) -> Path:
    """Renames a bad file to the first free one of ``<name>.bad``, ``<name>.bad1``, ... and returns that path."""
    number = 0
    aside = path.with_name(f"{path.name}.bad")
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.bad{number}")
    return path.rename(aside)


def settings_key(*settings: Any) -> str:
    """A short name for settings, the same in every run."""
    # Addresses in the names of functions change from run to run.
    return sha256(re.sub(r" at 0x[0-9a-f]+", "", repr(settings)).encode())[:8]
