"""Limits on tables, which readers check before a table takes many times the memory of its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

#: Cells of a table per byte of its file. Tables have about one, and sparse ones below ten.
CELLS_PER_BYTE = 32
#: Maximum compression ratio of files that are unpacked as a whole, and bytes that are allowed at
#: any ratio. Tables stay below 200.
MAX_WHOLE_RATIO, ALWAYS_WHOLE = 200, 2**26
ALWAYS_CELLS = 2**22  #: Cells that are allowed in a file of any size.
MAX_CHARACTERS = 10_000_000  #: Characters of a cell: longer texts take minutes and gigabytes.


class TooLargeError(ValueError):
    """The error of a table beyond a limit on its rows, columns, cells or bytes."""

    def __init__(self, message: str, unit: str) -> None:
        super().__init__(message)
        self.unit = unit


class TableLimits(NamedTuple):
    """Limits on the table of a file or of a request."""

    source: str  #: the name of the file, for messages
    max_rows: float = float("inf")
    max_columns: float = float("inf")
    max_cells: float = float("inf")
    hint: str = "divide it, or save it as CSV"
    max_characters: int = MAX_CHARACTERS  #: of each cell
    shorten_hint: str = "is a quote not closed? Otherwise, shorten the text"

    @classmethod
    def of_file(cls, path: Path, size: int | None = None) -> TableLimits:
        """Returns the limits of a file that may hold many more cells than bytes.

        Args:
            path (Path): The file.
            size (int, optional): Its size. (default: :obj:`None`, read from the disk)
        """
        size = path.stat().st_size if size is None else size
        return cls(f"'{path}'", max_cells=max(ALWAYS_CELLS, CELLS_PER_BYTE * size))

    def check(self, num_rows: int, num_columns: int) -> None:
        """Raises TooLargeError for too many rows, columns, or cells of all rows."""
        self._check(num_rows, self.max_rows, "rows")
        self._check(num_columns, self.max_columns, "columns")
        self.check_cells(num_rows * num_columns)

    def check_cells(self, number: int) -> None:
        """Raises TooLargeError for too many cells."""
        self._check(number, self.max_cells, "cells")

    def check_texts(self, cells: Iterable[Any]) -> None:
        """Raises TooLargeError for a text that is too long. Other cells have any size."""
        longest = max((len(cell) for cell in cells if isinstance(cell, str)), default=0)
        if longest > self.max_characters:
            raise self.too_long(f"{longest:,}")

    def too_long(self, got: str) -> TooLargeError:
        """Returns the error for a cell with too many characters."""
        expected = f"at most {self.max_characters:,} characters in a cell of {self.source}"
        return _error(expected, got, self.shorten_hint, "characters")

    def _check(self, number: int, limit: float, unit: str) -> None:
        if number > limit:
            expected = f"at most {limit:,} {unit} in {self.source}"
            raise _error(expected, f"{number:,}", self.hint, unit)


def _error(expected: str, got: str, hint: str, unit: str) -> TooLargeError:
    message = f"Expected {expected} (got {got})"
    return TooLargeError(f"{message}; {hint}" if hint else message, unit)


def check_unpacked(path: Path, size: int) -> None:
    """Raises TooLargeError if the parts of a file have too many bytes unpacked."""
    limit = max(ALWAYS_WHOLE, MAX_WHOLE_RATIO * path.stat().st_size)
    if size > limit:
        expected = f"'{path}' to have at most {limit:,} bytes unpacked"
        raise TooLargeError(f"Expected {expected} (got {size:,}); save it as CSV", "bytes")


@contextmanager
def explain_memory(path: Any) -> Iterator[None]:
    """Turns errors of memory that a file does not fit into into errors that name it."""
    try:
        yield
    except MemoryError as error:
        expected, hint = f"'{path}' to fit into memory", "divide it, or take a larger machine"
        raise ValueError(f"Expected {expected} (got a file that needs more); {hint}") from error
