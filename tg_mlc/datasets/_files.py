from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tg_mlc.datasets._settings import describe

if TYPE_CHECKING:
    from pathlib import Path


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, which may be too large to hold in memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


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
    return sha256(describe(settings).encode())[:8]
