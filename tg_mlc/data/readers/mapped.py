"""Arrays in files that are mapped into memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np


class MappedRows:
    """The rows of several ``.npy`` files of the same width, of which none is read before it is asked for.

    A copy in another process maps the files anew instead of taking their content along.

    Args:
        paths (list[Path]): The files.

    Raises:
        RuntimeError: If a file is damaged.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self._maps = [_open(path) for path in paths]
        widths = {rows.shape[1] for rows in self._maps}
        if len(widths) != 1:
            raise _damaged(paths[0], f"other widths than the files beside it, {sorted(widths)}")
        self.width = widths.pop()
        self.ends = np.cumsum([len(rows) for rows in self._maps])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def row(self, row: int) -> np.ndarray:
        """A copy of one row, ``[width]``."""
        file = int(np.searchsorted(self.ends, row, side="right"))
        return np.array(self._maps[file][row - self.ends[file]])  # counted from the end of the file

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """A copy of some rows, ``[len(rows), width]``."""
        chosen = np.empty((len(rows), self.width), dtype=np.uint8)
        file = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(file):
            chosen[file == number] = self._maps[number][rows[file == number] - self.ends[number]]
        return chosen

    def __reduce__(self) -> tuple[type[MappedRows], tuple[list[Path]]]:
        return MappedRows, (self.paths,)


def map_temporarily(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Writes bytes to a temporary file and maps it into memory; it is gone when nothing shows a part of it any more."""
    with TemporaryFile() as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
        if file.tell() == 0:  # which cannot be mapped
            return np.empty(0, dtype=np.uint8)
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="r+"))


def _open(path: Path) -> np.ndarray:
    try:
        rows: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path, f"{error}") from error
    if rows.ndim != 2 or rows.dtype != np.uint8:
        raise _damaged(path, f"shape {list(rows.shape)} and type {rows.dtype}")
    return rows


def _damaged(path: Path, why: str) -> RuntimeError:
    return RuntimeError(
        f"Expected '{path}' to be a file of whole rows (got {why}); pass force_reload=True to make it again"
    )
