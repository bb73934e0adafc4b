"""Text files, compressed or not, line by line in little memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

CHUNK = 2**18
MAX_LINE = 2**20  # a longer one is no table, and could fill the memory

OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yields the numbers, from one, and the texts of the lines of a UTF-8 file (also :obj:`.gz`, :obj:`.xz` or
    :obj:`.bz2`), those without anything but white space left out.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is truncated, not UTF-8, or has a line without end.
    """
    path = Path(path)
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
        number = 1
        for block in _blocks(file, path):
            for line in _decode(block, path, number).split("\n"):
                if line and not line.isspace():
                    yield number, line.rstrip("\r")
                number += 1


def _blocks(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Whole lines, about a chunk of them at a time, without the last line's end."""
    rest = b""
    while chunk := _read(file, path):
        whole, end, last = (rest + chunk).rpartition(b"\n")
        if end:
            yield whole
        if len(last) > MAX_LINE:
            raise ValueError(f"Expected '{path}' to hold lines of text (got one of more than {MAX_LINE} bytes)")
        rest = last
    if rest:
        yield rest


def _read(file: IO[bytes], path: Path) -> bytes:
    try:
        return file.read(CHUNK)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, error) from error
    except OSError as error:
        if error.errno is not None:  # one of the disk, which says enough
            raise
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(f"Expected '{path}' to be a whole {path.suffix} file (got: {error}); get it once more")


def _decode(block: bytes, path: Path, number: int) -> str:
    try:
        return block.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        line = number + block.count(b"\n", 0, error.start)
        raise ValueError(
            f"Expected '{path}' to be text in UTF-8 (got byte {block[error.start]:#x} in line {line})"
        ) from error
