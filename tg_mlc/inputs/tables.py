"""Tables: CSV files, which pandas reads, and the columns of data frames as matrices of numbers."""

from __future__ import annotations

import codecs
import csv
import io
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tg_mlc._files import MAX_BYTES, open_unpacked
from tg_mlc._numbers import as_array, is_missing, parse_number, to_numbers
from tg_mlc._optional import require

MAX_VALUES = 100  #: of a nominal column; one with more is likely to name samples
MIN_NAMED = 20  #: samples; fewer may have other values by chance
#: The spellings of a missing cell, in lower case; C writes signs.
MISSING = {"", "na", "nan", "-nan", "+nan", "null"}
_BLOCK = 2**12  # rows that are read at once
_LONGEST = 2**31 - 1  # characters of a cell, for the module csv
_BLANK = dict.fromkeys(("", "NA", "NULL", "null"), math.nan)
_LABELS = {"0": 0.0, "0.0": 0.0, "1": 1.0, "1.0": 1.0, **dict.fromkeys(MISSING, math.nan)}


def nominal_values(cells: Iterable[str]) -> list[str] | None:
    """The role of a column of texts, which is decided here and nowhere else: its sorted values if it is nominal, so
    that none of its cells is a number, or nothing if it holds numbers or is blank.

    Numbers are those of Python: ``1_000`` and ``inf`` are meant as numbers, and refused as such later on.
    """
    found: set[str] = set()
    for value in map(str.strip, cells):
        if value not in found and value.lower() not in MISSING:
            if _like_a_number(value):
                return None
            found.add(value)
    return sorted(found) or None


def nominal_names(frame: Any, names: Sequence[str] | None = None) -> list[str] | None:
    """The names of the columns of a data frame, with ``column=value`` for each value of nominal ones, in which all
    cells are strings or missing; nothing for a data frame without any, and for anything else.

    Args:
        frame (DataFrame): The data frame, of pandas or polars.
        names (list of str, optional): Other names for its columns. (default: :obj:`None`)

    Raises:
        ValueError: If a column has more than 100 values.
    """
    if not (hasattr(frame, "columns") and hasattr(frame, "dtypes")):
        return None
    own = [str(column) for column in frame.columns]
    called = own if names is None else list(names)
    if len(set(own)) < len(own) or len(called) != len(own):
        return None  # which others refuse
    spread: dict[str, list[str]] = {}
    for name, column, dtype in zip(called, frame.columns, frame.dtypes, strict=True):
        cells = frame[column].to_numpy() if getattr(dtype, "kind", "O") in "OU" else (0,)
        values = nominal_values(_texts(cells)) if all(isinstance(c, str) or is_missing(c) for c in cells) else None
        if values is None:
            continue
        if len(values) > MAX_VALUES:
            expected = f"numbers, or at most {MAX_VALUES} different values, in column '{name}'"
            raise ValueError(
                f"Expected {expected} (got {len(values)}, such as {values[0][:40]!r}); leave the column out"
            )
        if len(values) == len(cells) >= MIN_NAMED:
            warnings.warn(
                f"Column '{name}' has another value in each of {len(cells)} rows. Names of samples say nothing about "
                f"new samples: leave it out of the inputs",
                stacklevel=2,
            )
        spread[name] = [f"{name}={value}" for value in values]
    return [name for given in called for name in spread.get(given, [given])] if spread else None


def column_of(name: str, columns: Sequence[str]) -> str:
    """The column that one of :func:`nominal_names` is of, which may be missing; the name itself if it is a column."""
    if name in columns:
        return name
    return next((one for one in columns if name.startswith(f"{one}=")), name.partition("=")[0])


def matrix_of(frame: Any, names: Sequence[str], columns: Sequence[str] | None = None) -> np.ndarray:
    """The columns of a data frame by the names of :func:`nominal_names`, with other names for its own if given: as
    numbers, or as 0 and 1, which are all 0 where a value is missing or has no column.
    """
    columns = [str(column) for column in frame.columns] if columns is None else columns
    series = dict(zip(columns, frame.columns, strict=True))
    parts = []
    for column, group in groupby(names, lambda name: column_of(name, columns)):
        if (spread := list(group)) == [column]:
            parts.append(to_numbers(as_array(frame[series[column]])[:, None], spread, "inputs"))
        else:
            place = {name: i for i, name in enumerate(spread)}
            cells = _texts(frame[series[column]].to_numpy())
            codes = {cell: place.get(f"{column}={cell.strip()}", -1) for cell in set(cells)}
            parts.append(np.eye(len(spread) + 1)[[codes[cell] for cell in cells], :-1])
    return np.concatenate(parts, axis=1)


def _texts(cells: Iterable[Any]) -> list[str]:
    return ["" if is_missing(cell) else str(cell) for cell in cells]


def _like_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class CSVTable:
    """The columns of a file, or of some of its rows.

    pandas divides the file into cells; the meaning of a cell is decided here, so that none is misread silently.
    """

    path: Path
    header: list[str]
    frame: Any  #: the cells, all of them texts, in columns by their number
    first: int  #: the number in the file of the first of these rows
    _find_lines: Callable[[], list[int]]

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def lines(self) -> list[int]:
        """The line of the file on which each row ends."""
        return self._find_lines()

    def where(self, row: int) -> str:
        """The place in the file of one of these rows."""
        return f"row {self.first + row} (line {self.lines[row]})"

    def require(self, labels: Sequence[str], features: Sequence[str], *, may_lack_labels: bool = False) -> None:
        """Refuses columns that are missing, used twice, or none."""
        check_columns([*labels, *features], self.header, f"'{self.path}'")
        if not (labels or may_lack_labels) or not features:
            got = f"labels={list(labels)}, inputs={list(features)}"
            raise ValueError(f"Expected at least one column of labels and one of inputs (got {got}) in '{self.path}'")

    def texts(self, column: str) -> list[str]:
        """The cells of a column as they are."""
        cells: list[str] = self.frame[self.header.index(column)].tolist()
        return cells

    def features(self, columns: Sequence[str]) -> tuple[np.ndarray, list[str]]:
        """Columns of numbers, NaN where blank, with one of 0 and 1 for each value of nominal ones; and their names."""
        nominal = {column for column in columns if nominal_values(self.texts(column))}
        frame = self._inputs(columns, nominal)
        names = nominal_names(frame)
        return (frame.to_numpy(), list(columns)) if names is None else (matrix_of(frame, names), names)

    def named_features(self, names: Sequence[str]) -> np.ndarray:
        """Columns by the names that :meth:`features` gives them."""
        columns = list(dict.fromkeys(column_of(name, self.header) for name in names))
        return matrix_of(self._inputs(columns, set(columns) - set(names)), names)

    def labels(self, columns: Sequence[str]) -> np.ndarray:
        """Columns of 0 and 1, NaN where blank."""
        hint = "; name the columns that are labels with 'label_columns'"
        return self._matrix(columns, _labels, "a label to be 0, 1 or blank (unknown)", hint)

    def label_sets(self, column: str, separator: str) -> list[set[str]]:
        """The names that the cells of a column list."""
        names = [[name.strip() for name in cell.split(separator)] for cell in self.texts(column)]
        return [{name for name in cell if name} for cell in names]

    def _inputs(self, columns: Sequence[str], nominal: Collection[str]) -> Any:
        """A data frame of numbers, and of the texts of nominal columns."""
        numeric = [column for column in columns if column not in nominal]
        numbers = self._matrix(numeric, _numbers, "a number, or blank (missing)")
        frame = require("pandas", extra="data").DataFrame(numbers, columns=numeric)
        for place, column in enumerate(columns):
            if column in nominal:
                frame.insert(place, column, self.frame[self.header.index(column)].to_numpy())
        return frame

    def _matrix(
        self, columns: Sequence[str], convert: Callable[[list[str]], list[float | None]], expected: str, hint: str = ""
    ) -> np.ndarray:
        values = np.empty((len(self), len(columns)), dtype=np.float64)
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
    return next(_read_blocks(Path(path), delimiter, encoding, min_rows, header, None))


def read_csv_blocks(
    path: str | Path,
    delimiter: str = ",",
    encoding: str = "utf-8-sig",
    min_rows: int = 1,
    header: Sequence[str] | None = None,
) -> Iterator[CSVTable]:
    """Reads a file as :func:`read_csv_table` does, some rows at a time; a file without rows has one block."""
    return _read_blocks(Path(path), delimiter, encoding, min_rows, header, _BLOCK)


def read_molecules(
    path: str | Path, smiles_column: str, label_columns: Sequence[str] | None = None, delimiter: str = ","
) -> tuple[list[str], Tensor, list[str]]:
    """Reads the SMILES, the labels ``[num_rows, num_labels]`` and their names from a CSV file.

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
    return smiles, torch.from_numpy(table.labels(names)).float(), names


def _read_blocks(
    path: Path, delimiter: str, encoding: str, min_rows: int, given: Sequence[str] | None, size: int | None
) -> Iterator[CSVTable]:
    if not path.is_file():
        found = "a folder" if path.is_dir() else f"no such file in '{path.parent.absolute()}'"
        raise FileNotFoundError(f"Expected the CSV file '{path}' (got {found})")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"Expected 'delimiter' to be one character that may stand between cells (got {delimiter!r})")
    header = None if given is None else [name.strip() for name in given]
    records = _Records(path, delimiter, encoding)
    place = first = 0  # how many records were read, and how many of them are rows
    with open_unpacked(path, MAX_BYTES) as file, records.named_if_damaged(given):
        for read in _frames(file, delimiter, encoding, size):
            frame, start, place = read, place, place + len(read)
            if header is None:
                header = [name.strip() for name in frame.iloc[0]]
                frame, start = frame.iloc[1:], start + 1
            # pandas takes a row with too few cells, and a blank line, for a row with blank ones.
            if len(header) != frame.shape[1] or not all(frame.iloc[:, -1].tolist()):
                widths = [width for _, width in records.take(start, place)]
                if not {0, len(header)}.issuperset(widths):
                    records.refuse_ragged(given)
                frame = frame[[width > 0 for width in widths]]
            if len(frame):
                yield CSVTable(path, header, frame, first, partial(records.lines, start, place))
            first += len(frame)
    header = header or []
    if first < min_rows:
        got = f"{len(header)} columns and no row"
        raise ValueError(f"Expected a header and at least one row in '{path}' (got {got})")
    if first == 0:
        frame = require("pandas", extra="data").DataFrame(columns=range(len(header)))
        yield CSVTable(path, header, frame, first, list)


def _frames(file: io.BufferedReader, delimiter: str, encoding: str, size: int | None) -> Iterator[Any]:
    """The records of a file as data frames of texts, the header and blank lines among them."""
    pandas = require("pandas", extra="data")
    text = io.TextIOWrapper(file, encoding=encoding, newline="")
    with suppress(pandas.errors.EmptyDataError, StopIteration):
        frames = pandas.read_csv(
            text,
            sep=delimiter,
            engine="c" if delimiter.isascii() else "python",
            header=None,  # whose names pandas would change if they occur twice
            dtype=object,
            na_filter=False,  # a cell "nan" may be a word
            skip_blank_lines=False,  # a line of spaces may be a cell
            iterator=True,
        )
        yield frames.get_chunk(None if size is None else size + 1)
        while True:
            yield frames.get_chunk(size)


class _Records:
    """The records of a file, read once more by the module csv where pandas leaves open how many cells they have, and
    on which line they end.
    """

    def __init__(self, path: Path, delimiter: str, encoding: str) -> None:
        self.path, self.delimiter, self.encoding = path, delimiter, encoding
        self._place = 0
        self._records = self._read()

    def take(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The line on which each of these records ends, and how many cells it has."""
        if start < self._place:
            self._place, self._records = 0, self._read()
        with _long_cells():
            records = islice(self._records, start - self._place, stop - self._place)
            found = [(line, len(cells)) for line, cells in records]
        self._place = stop
        return found

    def lines(self, start: int, stop: int) -> list[int]:
        """The lines on which these records end, without blank ones."""
        return [line for line, width in self.take(start, stop) if width]

    def refuse_ragged(self, header: Sequence[str] | None) -> None:
        """Names the first row that has not as many cells as the header."""
        with _long_cells():
            records = self._read()
            names = list(next(records, (0, ()))[1] if header is None else header)
            for row, (line, cells) in enumerate(record for record in records if record[1]):
                if len(cells) != len(names):
                    hint = f"quote cells that contain '{self.delimiter}'{_hint_of_delimiter(names)}"
                    expected = f"Expected {len(names)} cells, as in the header,"
                    where = f"row {row} (line {line}) of '{self.path}'"
                    raise ValueError(f"{expected} in {where} (got {len(cells)}); {hint}")

    @contextmanager
    def named_if_damaged(self, header: Sequence[str] | None) -> Iterator[None]:
        """Names the file, and the line where it can be told, in what is raised because the file is damaged."""
        refused = require("pandas.errors", extra="data").ParserError
        try:
            yield
        except (UnicodeError, LookupError, csv.Error, refused) as error:
            if isinstance(error, refused):
                self.refuse_ragged(header)
            where = ""
            if isinstance(error, UnicodeDecodeError):
                decoder = codecs.getincrementaldecoder(self.encoding)()
                with open_unpacked(self.path) as file, suppress(UnicodeDecodeError):
                    for number, line in enumerate(file, start=1):
                        where = f" in line {number}"
                        decoder.decode(line)
            got = f"{type(error).__name__}{where}: {error}"
            hint = "is it of another encoding, or a quote not closed?"
            raise ValueError(
                f"Expected '{self.path}' to be a CSV file in {self.encoding} (got {got}); {hint}"
            ) from error

    def _read(self) -> Iterator[tuple[int, list[str]]]:
        with open_unpacked(self.path, MAX_BYTES) as file:
            reader = csv.reader(io.TextIOWrapper(file, self.encoding, newline=""), delimiter=self.delimiter)
            for cells in reader:
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
    usual = csv.field_size_limit(_LONGEST)
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
