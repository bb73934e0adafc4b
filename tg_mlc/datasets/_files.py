from __future__ import annotations

import hashlib
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


@contextmanager
def replace_when_done(path: str | Path) -> Iterator[Path]:
    """Gives a temporary name beside :obj:`path`, and renames it to :obj:`path` only if nothing went wrong."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".unfinished", dir=path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        _share_like_a_new_file(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _share_like_a_new_file(path: Path) -> None:
    # mkstemp gives files to their owner alone; a data folder is often shared.
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


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
