"""The cells of a CSV file, and where they are wrong."""

from __future__ import annotations

import csv
import lzma
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DAMAGED = (EOFError, UnicodeError, LookupError, TypeError, csv.Error, zlib.error, lzma.LZMAError)
_MISSING = {"", "na", "nan", "null"}


class CSVTable(NamedTuple):
    """The rows of a file, all of the width of its header."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]  #: where in the file each row ends

    def check_columns(self, labels: Sequence[str], features: Sequence[str]) -> None:
        """Refuses columns that are missing, used twice, or none."""
        used = [*labels, *features]
        missing = [name for name in used if name not in self.header]
        if missing:
            raise ValueError(f"Expected the columns {missing} in '{self.path}' (got the columns {self.header})")
        repeated = sorted({name for name in used if used.count(name) > 1 or self.header.count(name) > 1})
        if repeated:
            raise ValueError(f"Expected every column to be used once (got {repeated} more than once in '{self.path}')")
        if not labels or not features:
            raise ValueError(
                f"Expected at least one column of labels and one of inputs (got labels={list(labels)}, "
                f"inputs={list(features)})"
            )

    def texts(self, column: str) -> list[str]:
        """The cells of a column as they are."""
        place = self.header.index(column)
        return [row[place] for row in self.rows]

    def numbers(self, columns: Sequence[str]) -> np.ndarray:
        """Columns of numbers, NaN where blank."""
        return self._matrix(columns, _number, "a number, or blank (missing)")

    def labels(self, columns: Sequence[str]) -> np.ndarray:
        """Columns of 0 and 1, NaN where blank."""
        return self._matrix(columns, _label, "a label to be 0, 1 or blank (unknown)")

    def label_sets(self, column: str, separator: str) -> list[set[str]]:
        """The names that the cells of a column list."""
        names = [[name.strip() for name in cell.split(separator)] for cell in self.texts(column)]
        return [{name for name in cell if name} for cell in names]

    def _matrix(self, columns: Sequence[str], convert: Callable[[str], float | None], expected: str) -> np.ndarray:
        values = np.empty((len(self.rows), len(columns)), dtype=np.float64)
        for target, column in enumerate(columns):
            place = self.header.index(column)
            for index, row in enumerate(self.rows):
                value = convert(row[place].strip().lower())
                if value is None:
                    where = f"row {index} (line {self.lines[index]}), column '{column}' of '{self.path}'"
                    raise ValueError(f"Expected {expected} in {where} (got '{row[place][:80]}')")
                values[index, target] = value
        return values


def read_csv_table(path: Path, delimiter: str, encoding: str) -> CSVTable:
    """Reads a CSV file with a header (as it is, or compressed as ``.gz``, ``.bz2`` or ``.xz``).

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, of another encoding, or a row has too few or too many cells.
    """
    from tg_mlc.datasets._table import OPENERS  # data sets import the splits of this package

    if not path.is_file():
        raise FileNotFoundError(f"Expected the CSV file '{path}' (got no such file in '{path.parent.absolute()}')")
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        with OPENERS.get(path.suffix, open)(path, mode="rt", newline="", encoding=encoding) as file:
            reader = csv.reader(file, delimiter=delimiter)
            header = [name.strip() for name in next(reader, [])]
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise ValueError(
                        f"Expected {len(header)} cells, as in the header, in row {len(rows)} (line {reader.line_num}) "
                        f"of '{path}' (got {len(cells)}); quote cells that contain '{delimiter}'"
                    )
                rows.append(cells)
                lines.append(reader.line_num)
    except (*_DAMAGED, OSError) as error:
        raise ValueError(
            f"Expected '{path}' to be a CSV file in {encoding} (got {type(error).__name__}: {error})"
        ) from error
    if not rows:
        raise ValueError(f"Expected a header and at least one row in '{path}' (got {len(header)} columns and no row)")
    return CSVTable(path, header, rows, lines)


def _number(cell: str) -> float | None:
    if cell in _MISSING:
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return None


def _label(cell: str) -> float | None:
    from tg_mlc.datasets._table import LABEL_VALUES

    return math.nan if cell in _MISSING else LABEL_VALUES.get(cell)
