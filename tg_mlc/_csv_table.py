"""Columns of a CSV file, and errors that name the cell."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tg_mlc._files import MAX_BYTES, open_unpacked
from tg_mlc._numbers import parse_number
from tg_mlc._one_hot import MISSING, named_columns, value_names

MAX_CELL = 2**24  # characters: four times the longest novel
_BLOCK = 2**12  # rows that are turned into columns at once
_DAMAGED = (UnicodeError, LookupError, TypeError, csv.Error)
_BLANK = dict.fromkeys(("", "NA", "NULL", "null"), math.nan)
_LABELS = {"0": 0.0, "0.0": 0.0, "1": 1.0, "1.0": 1.0, **dict.fromkeys(MISSING, math.nan)}


class CSVTable(NamedTuple):
    """The columns of a file, or of some of its rows, which are all of the width of its header."""

    path: Path
    header: list[str]
    columns: list[list[str]]
    lines: array[int]  #: where in the file each row ends
    first: int = 0  #: the number in the file of the first of these rows

    def require(self, labels: Sequence[str], features: Sequence[str], *, may_lack_labels: bool = False) -> None:
        """Refuses columns that are missing, used twice, or none."""
        check_columns([*labels, *features], self.header, f"'{self.path}'")
        if not (labels or may_lack_labels) or not features:
            got = f"labels={list(labels)}, inputs={list(features)}"
            raise ValueError(f"Expected at least one column of labels and one of inputs (got {got}) in '{self.path}'")

    def texts(self, column: str) -> list[str]:
        """The cells of a column as they are."""
        return self.columns[self.header.index(column)]

    def numbers(self, columns: Sequence[str]) -> np.ndarray:
        """Columns of numbers, NaN where blank."""
        return self._matrix(columns, _numbers, "a number, or blank (missing)")

    def features(self, columns: Sequence[str]) -> tuple[np.ndarray, list[str]]:
        """Columns of numbers, and a column of 0 and 1 for every value of nominal ones; and their names."""
        values = {column: value_names(column, self.texts(column)) for column in columns}
        names = [name for column in columns for name in values[column] or [column]]
        return self.named_features(names), names

    def named_features(self, names: Sequence[str]) -> np.ndarray:
        """Columns by the names that :meth:`features` gives them."""
        return named_columns(names, self.header, self.numbers, self.texts)

    def labels(self, columns: Sequence[str]) -> np.ndarray:
        """Columns of 0 and 1, NaN where blank."""
        hint = "; name the columns that are labels with 'label_columns'"
        return self._matrix(columns, _labels, "a label to be 0, 1 or blank (unknown)", hint)

    def label_sets(self, column: str, separator: str) -> list[set[str]]:
        """The names that the cells of a column list."""
        names = [[name.strip() for name in cell.split(separator)] for cell in self.texts(column)]
        return [{name for name in cell if name} for cell in names]

    def where(self, row: int) -> str:
        """The place in the file of one of these rows."""
        return f"row {self.first + row} (line {self.lines[row]})"

    def _matrix(
        self, columns: Sequence[str], convert: Callable[[list[str]], list[float | None]], expected: str, hint: str = ""
    ) -> np.ndarray:
        values = np.empty((len(self.lines), len(columns)), dtype=np.float64)
        for target, column in enumerate(columns):
            converted = convert(cells := self.texts(column))
            if None in converted:
                row = converted.index(None)
                where = f"{self.where(row)}, column '{column}' of '{self.path}'"
                raise ValueError(f"Expected {expected} in {where} (got '{cells[row][:80]}'){hint}")
            values[:, target] = converted
        return values


def check_columns(used: Sequence[str], header: Sequence[str], source: str) -> None:
    """Refuses columns that are missing, or used twice."""
    missing = [name for name in used if name not in header]
    if missing:
        hint = _hint_of_delimiter(header)
        raise ValueError(f"Expected the columns {missing} in {source} (got the columns {header}){hint}")
    repeated = sorted({name for name in used if used.count(name) > 1 or header.count(name) > 1})
    if repeated:
        raise ValueError(f"Expected every column to be used once (got {repeated} more than once in {source})")


def read_csv_table(
    path: str | Path,
    delimiter: str = ",",
    encoding: str = "utf-8-sig",
    min_rows: int = 1,
    header: Sequence[str] | None = None,
) -> CSVTable:
    """Reads a CSV file (as it is, or compressed as ``.gz``, ``.bz2`` or ``.xz``), whose first row is its header unless
    that is given.

    It may hold at most 4 GiB, and, compressed, at most 64 MiB or 1,000 times its own size, whichever is more.
    """
    blocks = read_csv_blocks(path, delimiter, encoding, min_rows, header)
    table = next(blocks)
    for block in blocks:
        for column, cells in zip(table.columns, block.columns, strict=True):
            column.extend(cells)
        table.lines.extend(block.lines)
    return table


def read_csv_blocks(
    path: str | Path,
    delimiter: str = ",",
    encoding: str = "utf-8-sig",
    min_rows: int = 1,
    header: Sequence[str] | None = None,
) -> Iterator[CSVTable]:
    """Reads a file as :func:`read_csv_table` does, some rows at a time; of a file without rows, there is one block."""
    path = Path(path)
    if not path.is_file():
        found = "a folder" if path.is_dir() else f"no such file in '{path.parent.absolute()}'"
        raise FileNotFoundError(f"Expected the CSV file '{path}' (got {found})")
    with open_unpacked(path, MAX_BYTES) as file:
        for block in _read(path, file, delimiter, encoding, header):
            if block.first + len(block.lines) < min_rows:
                got = f"{len(block.header)} columns and no row"
                raise ValueError(f"Expected a header and at least one row in '{path}' (got {got})")
            yield block


def _read(
    path: Path, file: io.BufferedReader, delimiter: str, encoding: str, given: Sequence[str] | None
) -> Iterator[CSVTable]:
    line = 0
    try:
        text = io.TextIOWrapper(file, encoding=encoding, newline="")
        reader = csv.reader(text, delimiter=delimiter)
        with _long_cells():
            header = [name.strip() for name in (next(reader, []) if given is None else given)]
        rows = _rows(reader, path, header, delimiter)
        block = _block(path, header, rows, first=0)
        yield block
        line = reader.line_num
        while (block := _block(path, header, rows, block.first + len(block.lines))).lines:
            yield block
            line = reader.line_num
    except _DAMAGED as error:
        got = f"{type(error).__name__} after line {line}: {error}"
        hint = "is it of another encoding, or a quote not closed?"
        raise ValueError(f"Expected '{path}' to be a CSV file in {encoding} (got {got}); {hint}") from error


def _block(path: Path, header: list[str], rows: Iterator[tuple[int, list[str]]], first: int) -> CSVTable:
    """The next rows as columns, which take less than half of the memory: each row is an object of its own."""
    with _long_cells():
        block = list(islice(rows, _BLOCK))
    columns = map(list, zip(*(cells for _, cells in block), strict=True)) if block else ([] for _ in header)
    return CSVTable(path, header, list(columns), array("q", [line for line, _ in block]), first)


def _rows(reader: Any, path: Path, header: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    for row, cells in enumerate(filter(None, reader)):
        if len(cells) != len(header):
            hint = f"quote cells that contain '{delimiter}'{_hint_of_delimiter(header)}"
            where = f"row {row} (line {reader.line_num}) of '{path}'"
            raise ValueError(f"Expected {len(header)} cells, as in the header, in {where} (got {len(cells)}); {hint}")
        yield reader.line_num, cells


def _hint_of_delimiter(header: Sequence[str]) -> str:
    """Advice on a header of one cell that seems to be several."""
    found = [mark for mark in (";", "\t", "|", ",") if len(header) == 1 and mark in header[0]]
    return (
        f"; if {found[0]!r} stands between cells, pass it as 'delimiter' of 'from_csv', or --delimiter" if found else ""
    )


@contextmanager
def _long_cells() -> Iterator[None]:
    """Lets cells be longer than the 131,072 characters that the module csv allows."""
    usual = csv.field_size_limit(MAX_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _numbers(cells: list[str]) -> list[float | None]:
    with suppress(ValueError):
        numbers: list[float | None] = [float(_BLANK.get(cell, cell)) for cell in cells]
        text = "".join(cells)  # of which float takes more than parse_number does
        if text.isascii() and "_" not in text and math.inf not in numbers and -math.inf not in numbers:
            return numbers
    return [math.nan if (text := cell.strip().lower()) in MISSING else parse_number(text) for cell in cells]


def _labels(cells: list[str]) -> list[float | None]:
    value = {cell: _LABELS.get(cell.strip().lower()) for cell in set(cells)}
    return [value[cell] for cell in cells]
