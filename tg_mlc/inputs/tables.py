"""Columns of a CSV file, and errors that name the cell."""

from __future__ import annotations

import csv
import io
import math
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tg_mlc._files import MAX_BYTES, open_unpacked
from tg_mlc._numbers import as_array, is_missing, parse_number, to_numbers

MAX_VALUES = 100  #: of a column; one with more is likely to name samples
MIN_NAMED = 20  #: samples; fewer may have other values by chance
#: What a cell without a value may hold, in lower case; C writes signs.
MISSING = {"", "na", "nan", "-nan", "+nan", "null"}
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


def value_names(column: str, cells: Iterable[str]) -> list[str] | None:
    """The names of the columns of a nominal one, in which no cell is a number; nothing for any other.

    Raises:
        ValueError: If there are more than :obj:`MAX_VALUES`.
    """
    found: set[str] = set()
    number = 0
    for number, value in enumerate(map(str.strip, cells), start=1):  # noqa: B007
        if value not in found and value.lower() not in MISSING:
            if _like_a_number(value):
                return None
            found.add(value)
    values = sorted(found)
    if len(values) > MAX_VALUES:
        expected = f"numbers, or at most {MAX_VALUES} different values, in column '{column}'"
        raise ValueError(f"Expected {expected} (got {len(values)}, such as {values[0][:40]!r}); leave the column out")
    if len(values) == number >= MIN_NAMED:
        warnings.warn(
            f"Column '{column}' has another value in each of {number} rows, as names of samples have, which say "
            f"nothing of new ones; leave it out of the inputs",
            stacklevel=2,
        )
    return [f"{column}={value}" for value in values] or None


def one_hot(column: str, cells: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """The columns of these names; where a value is missing, or has no column, all are 0."""
    place = {name: i for i, name in enumerate(names)}
    of_cell = {cell: place.get(f"{column}={cell.strip()}", -1) for cell in set(cells)}
    return np.eye(len(names) + 1)[[of_cell[cell] for cell in cells], :-1]


def column_of(name: str, columns: Sequence[str]) -> str:
    """The column that one of :func:`value_names` is of, which may be missing; the name itself if it is a column."""
    if name in columns:
        return name
    return next((one for one in columns if name.startswith(f"{one}=")), name.partition("=")[0])


def named_columns(
    names: Sequence[str],
    columns: Sequence[str],
    numbers: Callable[[list[str]], np.ndarray],
    cells: Callable[[str], Sequence[str]],
) -> np.ndarray:
    """A matrix of columns by their own names, as numbers, or by those of :func:`value_names`, as 0 and 1."""
    groups = [(column, list(group)) for column, group in groupby(names, lambda name: column_of(name, columns))]
    return np.concatenate(
        [numbers(group) if group == [column] else one_hot(column, cells(column), group) for column, group in groups],
        axis=1,
    )


def _like_a_number(text: str) -> bool:
    """Whether Python reads a number, with 1_000 and inf, which are refused as numbers and meant as such."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def nominal_names(frame: Any, names: Sequence[str] | None = None) -> list[str] | None:
    """The names of columns with one for each value of nominal ones, in which all cells are strings or missing; nothing
    for a data frame without any, and for anything else.
    """
    if not (hasattr(frame, "columns") and hasattr(frame, "dtypes")):
        return None
    own = [str(column) for column in frame.columns]
    called = own if names is None else list(names)
    if len(set(own)) < len(own) or len(called) != len(own):
        return None  # which others refuse
    objects = [getattr(dtype, "kind", "O") in "OU" for dtype in frame.dtypes]
    values = [
        value_names(name, cells) if is_object and (cells := _cells(frame[column])) is not None else None
        for name, column, is_object in zip(called, frame.columns, objects, strict=True)
    ]
    if not any(values):
        return None
    return [name for given, several in zip(called, values, strict=True) for name in several or [given]]


def matrix_of(frame: Any, names: Sequence[str], columns: Sequence[str] | None = None) -> np.ndarray:
    """The columns of a data frame by the names of :func:`nominal_names`, with other names for its own if given."""
    columns = [str(column) for column in frame.columns] if columns is None else columns
    series = {name: frame[column] for name, column in zip(columns, frame.columns, strict=True)}
    return named_columns(
        names,
        columns,
        lambda group: to_numbers(as_array(series[group[0]])[:, None], group, "inputs"),
        lambda column: ["" if is_missing(cell) else str(cell) for cell in series[column].to_numpy()],
    )


def _cells(series: Any) -> list[str] | None:
    """Strings, blank where missing, or nothing if there is anything else."""
    cells = series.to_numpy()
    if not all(isinstance(cell, str) or is_missing(cell) for cell in cells):
        return None
    return ["" if is_missing(cell) else cell for cell in cells]


class MoleculeTable(NamedTuple):
    """The columns of a table that matter: SMILES, labels ``[num_rows, num_labels]`` and the labels' names."""

    smiles: list[str]
    y: Tensor
    label_names: list[str]


def read_molecules(
    path: str | Path, smiles_column: str, label_columns: Sequence[str] | None = None, delimiter: str = ","
) -> MoleculeTable:
    """Reads a CSV file (as it is, or compressed as ``.gz``, ``.bz2`` or ``.xz``).

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, a column is missing, a row has too few or too many cells, or a label is not
            0, 1 or blank.
    """
    if isinstance(label_columns, str):
        raise ValueError(f"Expected 'label_columns' to be a list of names (got the string '{label_columns}')")
    table = read_csv_table(path, delimiter, min_rows=0)
    others = [name for name in table.header if name != smiles_column]
    names = others if label_columns is None else list(label_columns)
    table.require(names, [smiles_column])
    smiles = [text.strip() for text in table.texts(smiles_column)]
    return MoleculeTable(smiles, torch.from_numpy(table.labels(names)).float(), names)
