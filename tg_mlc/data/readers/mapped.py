"""Arrays in files that are mapped into memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np


class MappedRows:
    """The rows of a file of bytes, of which none is read before it is asked for; a copy in another process maps the
    file anew instead of taking its content along.

    Args:
        path (Path): The file.
        shape (tuple[int, int]): The number of rows, and of bytes in each.

    Raises:
        ValueError: If the file has another size.
    """

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self._made_of = path, shape
        self.rows = np.memmap(path, dtype=np.uint8, mode="r").reshape(shape)

    def __reduce__(self) -> tuple[type[MappedRows], tuple[Path, tuple[int, int]]]:
        return MappedRows, self._made_of


def map_temporarily(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Writes bytes to a temporary file and maps it into memory; it is gone when nothing shows a part of it any more."""
    with TemporaryFile() as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
        if file.tell() == 0:  # which cannot be mapped
            return np.empty(0, dtype=np.uint8)
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="r+"))
