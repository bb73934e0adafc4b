"""Reads files line by line with the numbers of the lines, and files of one name per line."""

from __future__ import annotations

import lzma
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from tg_mlc.datasets._table import OPENERS

if TYPE_CHECKING:
    from collections.abc import Iterator

FilePath = str | bytes | os.PathLike[str]

MAX_NAME = 1 << 16  # bytes
_BOM = b"\xef\xbb\xbf"
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)


def read_names(path: FilePath) -> list[str]:
    """Reads a file of one name per line, without the spaces around it; empty lines at the end are left out.

    Raises:
        ValueError: If there is no name, a line before the last name is empty or too long, or the file is not UTF-8 or
            cannot be unpacked.
    """
    path = as_path(path)
    names = [decode(line, path, number) for number, line in byte_lines(path, MAX_NAME)]
    while names and not names[-1]:
        names.pop()
    if not names:
        raise ValueError(f"Expected at least one name in '{path}' (got none)")
    if "" in names:
        raise ValueError(f"Expected a name in every line of '{path}' (got none in line {names.index('') + 1})")
    return names


def as_path(path: FilePath) -> Path:
    """The path of any usual form as one of :mod:`pathlib`."""
    return Path(os.fsdecode(path))


def byte_lines(path: Path, max_length: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, unpacked by its suffix, with their numbers; none of them is longer than it may be."""
    with OPENERS.get(path.suffix, open)(path, mode="rb") as file:
        number = 1
        while True:
            try:
                line: bytes = file.readline(max_length + 1)
            except DAMAGED as error:
                raise ValueError(
                    f"Expected '{path}' to be whole (got a file that cannot be read after line {number - 1}: {error})"
                ) from error
            if not line:
                return
            if len(line) > max_length:
                raise ValueError(f"Expected at most {max_length} bytes in line {number} of '{path}' (got more)")
            yield number, line.removeprefix(_BOM) if number == 1 else line
            number += 1


def decode(text: bytes, path: Path, number: int) -> str:
    """The text of a line, without the spaces around it."""
    try:
        return text.decode().strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"Expected UTF-8 in line {number} of '{path}' (got {text[:40]!r})") from error
