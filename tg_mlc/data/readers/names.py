"""Reader of files of one name per line."""

from __future__ import annotations

import os

from tg_mlc._files import FilePath, byte_lines, decode

MAX_NAME = 2**16  # bytes


def read_names(path: FilePath) -> list[str]:
    """Reads a file of one name per line, without the spaces around it; empty lines at the end are left out."""
    names = [decode(line, path, number).strip() for number, line in byte_lines(path, MAX_NAME)]
    while names and not names[-1]:
        names.pop()
    called = f"'{os.fsdecode(path)}'"
    if not names:
        raise ValueError(f"Expected at least one name in {called} (got none)")
    if "" in names:
        raise ValueError(f"Expected a name in every line of {called} (got none in line {names.index('') + 1})")
    return names
