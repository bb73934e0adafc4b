"""Reads files that may be compressed, and no more of them than asked for."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path
from typing import Any

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
MAX_BYTES = 2**32


def read_unpacked(path: str | Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Reads a file, unpacked if its name ends in ``.gz``, ``.bz2`` or ``.xz``.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it cannot be unpacked, or has more bytes than allowed, of which no more are unpacked.
    """
    path = Path(path)
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
        try:
            content: bytes = file.read(max_bytes + 1)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise ValueError(f"Expected '{path}' to be a file that can be read and unpacked ({error})") from error
    if len(content) > max_bytes:
        raise ValueError(f"Expected '{path}' to have at most {max_bytes:,} bytes unpacked (got more)")
    return content
