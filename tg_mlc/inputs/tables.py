"""Tables: files of any usual format as cells in columns, which pandas reads, and the labels in them."""

from __future__ import annotations

import ast
import codecs
import csv
import io
import json
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tg_mlc._files import MAX_BYTES, open_unpacked, read_bounded
from tg_mlc._numbers import NUMBER, is_blank, is_missing
from tg_mlc._optional import require
from tg_mlc._options import argument
from tg_mlc.data._label_values import DASHES, label_of, names_in, read_labels
from tg_mlc.inputs._arff_table import Arff, read_arff
from tg_mlc.inputs.hierarchies import pairs
from tg_mlc.inputs.label_columns import find_labels
from tg_mlc.inputs.schema import Column, Hints, Role, Schema, clean, match_names, texts_of
from tg_mlc.inputs.sdf import is_sdf, read_sdf_cells

MARKS = (",", ";", "\t", "|")  #: that usually stand between cells
_BETWEEN = (*MARKS, "\n", "\uff1b", "\u3001", " #")  # that usually stand between names of labels
# words for unknown labels that people write for no labels, too
_NO_LABELS = ("none", "n/a", *DASHES)
_BLOCK = 2**12  # rows that are read at once
_LONGEST = 2**31 - 1  # characters of a cell, for the module csv
_WRITTEN = re.compile(r"\s*(?:array|set|frozenset|list)?[\[({]")  # how lists begin
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
# after those of 32 bits, which begin alike
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NUMBERS = r"[0-9]{1,9}(?:\.0*)?(?:,[0-9]{1,9}(?:\.0*)?)*"
LIBSVM_LINE = re.compile(
    rf"(?:({_NUMBERS})(?=\s|\Z))?\s*((?:[0-9]{{1,9}}:{NUMBER}(?:\s+|\Z))*)(?:#.*)?"
)
LIBSVM_SIZES = re.compile(r"\s*([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s*")
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as .xlsx or CSV",
    b"SQLite format": "an SQLite database; export the table as CSV",
    b"%PDF": "a PDF document; export the table as CSV",
    b"\x80\x04": "a pickle; save the data frame as CSV or Parquet",
    b"\x93NUMPY": "a NumPy file; load it, and use 'from_arrays'",
    b"\x28\xb5\x2f\xfd": "a file packed by zstd; unpack it",
    b"version https://git-lfs": "a pointer of Git LFS; get the file itself with 'git lfs pull'",
}
_READERS = {
    "sav": "spss",
    "dta": "stata",
    "h5": "hdf",
    "hdf5": "hdf",
    "sas7bdat": "sas",
    "xpt": "sas",
}
_READERS |= {"arrow": "feather", "feather": "feather", "orc": "orc"}
_ENCODINGS = ("cp1252", "cp1251", "gb18030", "shift_jis")  # that files in no UTF-8 are usually in


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file, or of some of its rows.

    Cells of text files are texts, whose meaning is decided by a :class:`~tg_mlc.inputs.schema.Schema`; those of others
    have types.
    """

    path: Path
    header: list[str]
    frame: Any  #: the cells in columns by their number
    first: int  #: the number in the file of the first of these rows
    _find_lines: Callable[[], list[int]] | None
    delimiter: str | None = None  #: the mark between cells
    arff: Arff | None = None  #: What its header says, if the file is ARFF.

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def lines(self) -> list[int]:
        """The line of the file on which each row ends."""
        return [] if self._find_lines is None else self._find_lines()

    def where(self, row: int) -> str:
        """The place in the file of one of these rows."""
        line = f" (line {self.lines[row]})" if self._find_lines is not None else ""
        return f"row {self.first + row}{line}"

    def place(self, row: int, column: str) -> str:
        """The place in the file of a cell."""
        return f"{self.where(row)}, column '{column}' of '{self.path}'"

    def require(
        self, labels: Sequence[str], features: Sequence[str], *, may_lack_labels: bool = False
    ) -> None:
        """Refuses columns that are missing, used twice, or none."""
        check_columns([*labels, *features], self.header, f"'{self.path}'")
        if not (labels or may_lack_labels) or not features:
            got = f"labels={list(labels)}, inputs={list(features)}"
            raise ValueError(
                f"Expected at least one column of labels and one of inputs (got {got}) in '{self.path}'"
            )

    def cells(self, columns: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """The cells by columns, of which none may have the name of another; all of them if none are named."""
        names = self.header if columns is None else columns
        check_columns(names, self.header, f"'{self.path}'")
        return {name: self._cells(self.header.index(name)) for name in names}

    def _cells(self, place: int) -> np.ndarray:
        return np.asarray(self.frame[place].to_numpy())

    def texts(self, column: str) -> list[str]:
        """The cells of a column as texts, blank where missing."""
        return texts_of(self._cells(self.header.index(column)))

    def documents(self, column: str) -> list[str]:
        """The cells of a column of inputs as texts, blank where they say that nothing is known."""
        return ["" if is_blank(text) else text for text in self.texts(column)]

    def labels(self, columns: Sequence[str]) -> np.ndarray:
        """Columns of 0 and 1, or of words for these, NaN where unknown."""
        values = np.empty((len(self), len(columns)), dtype=np.float64)
        for target, column in enumerate(columns):
            cells = self.texts(column)
            value = {cell: label_of(cell) for cell in set(cells)}
            converted = [value[cell] for cell in cells]
            if None in converted:
                row = converted.index(None)
                separator = argument("label_separator", ";")
                hint = f"pass {separator} if its cells are names of labels, or choose other columns"
                if 2 * converted.count(None) < len(converted):
                    hint = "correct the cell, or leave it blank if the label is unknown"
                if _WRITTEN.match(cells[row]):
                    hint = "name a column of lists of names alone, without others"
                elif {cell.strip() for cell in cells if not is_blank(cell)} in (
                    {"1", "-1"},
                    {"+1", "-1"},
                    {"1", "2"},
                ):
                    hint = "write 1 where the label applies, and 0 where it does not"
                expected = "Expected a label to be 0, 1 or blank (unknown) in"
                raise ValueError(
                    f"{expected} {self.place(row, column)} (got '{cells[row][:80]}'); {hint}"
                )
            values[:, target] = converted
        return values

    def schema(
        self, columns: Sequence[str], labels: Sequence[str], hints: Hints, text: Role | None = None
    ) -> Schema:
        """The schema of the columns, given those of inputs, if they are chosen, and of labels; :obj:`text` is the role
        of the only column of inputs, if that is no column of a matrix.
        """
        self.require(
            labels,
            columns or [name for name in self._named() if name not in labels],
            may_lack_labels=True,
        )
        roles: dict[str, Role] = dict.fromkeys(labels, "label")
        if text is not None:
            roles[columns[0]] = text
        hints = replace(hints, delimiter=self.delimiter)
        if self.arff is not None and text is None and hints.schema is None:
            schema = self.arff.schema(hints, labels, columns)
        elif not columns:
            schema = Schema.infer(self.cells(self._named()), roles, hints, self.place)
        else:
            chosen = self.cells([*columns, *labels])
            schema = Schema.infer(chosen, roles, hints, self.place, chosen=True)
            schema.columns += [
                Column(name, "ignored", "not asked for")
                for name in self.header
                if name not in (*columns, *labels)
            ]
        missing = next(
            (
                each.missing
                for each in schema.columns
                if each.role == "text" and each.name in columns
            ),
            0,
        )
        if missing:
            warnings.warn(
                f"{missing} cells of column '{columns[0]}' have no text, and become samples without words",
                stacklevel=2,
            )
        if text is None and not schema.inputs:
            got = ", ".join(
                f"'{each.name}': {each.reason}" for each in schema.columns if each.role != "label"
            )
            raise ValueError(f"Expected a column of inputs in '{self.path}' (got none: {got})")
        return schema

    def _named(self) -> list[str]:
        """All columns but blank ones without a name, of which spreadsheets add any number."""
        several = self.header.count("") > 1
        blank = [i for i, name in enumerate(self.header) if several and not name]
        cells = (cell for place in blank for cell in texts_of(self._cells(place)))
        return (
            [name for name in self.header if name]
            if blank and all(map(is_blank, cells))
            else self.header
        )

    def targets(
        self, labels: Sequence[str] | str, separator: str | None, paths: str | None = None
    ) -> tuple[np.ndarray, list[str]]:
        """The labels ``[N, L]`` of all rows, and their names, from the columns of labels or the one that lists names
        between separators, or in lists. Where names are paths, whose parts :obj:`paths` divides, their ancestors hold
        as well.
        """
        lists_names = isinstance(labels, str) or separator is not None
        if self.arff is not None and self.arff.declares(labels, lists_names=lists_names):
            return self.arff.targets([labels] if isinstance(labels, str) else labels)
        if not lists_names and len(labels) == 1:
            cells = self.cells(labels)[labels[0]].tolist()
            lists_names = any(
                _WRITTEN.match(cell) if isinstance(cell, str) else np.iterable(cell)
                for cell in cells
            )
        if not lists_names:
            return read_labels(self.labels(labels), labels)
        column = labels if isinstance(labels, str) else labels[0]
        sets: list[Any] = self.label_sets(column, separator)
        if paths is None:
            _judge_paths(set().union(*filter(None, sets)), f"column '{column}' of '{self.path}'")
        if paths:
            sets = [
                found and {path for name in found for path in ancestors(name, paths)}
                for found in sets
            ]
        return read_labels(sets, None)

    def hierarchy(
        self, labels: Sequence[str] | str, names: Sequence[str], paths: str | None
    ) -> list[tuple[str, str | None]] | None:
        """The pairs of child and parent among the names of labels that :meth:`targets` returned, if they form a
        hierarchy.
        """
        if self.arff is not None and (parents := self.arff.parents(labels)):
            return pairs(parents)
        return [(name, [None, *ancestors(name, paths)][-2]) for name in names] if paths else None

    def label_sets(self, column: str, separator: str | None) -> list[set[str] | None]:
        """The names that the cells of a column list, :obj:`None` where unknown; a blank cell has no label."""
        cells = self.cells([column])[column].tolist()
        texts = [
            cell
            for cell in cells
            if isinstance(cell, str) and not _WRITTEN.match(cell) and not is_blank(cell)
        ]
        if texts and (
            separator is None or (len(texts) > 1 and not any(separator in cell for cell in texts))
        ):
            shares = {mark: sum(mark in cell for cell in texts) / len(texts) for mark in _BETWEEN}
            other = next((mark for mark, share in shares.items() if share > 1 / 4), None)
            if other is not None or separator is None:
                mark = other or ";"
                got = f"cells such as {next((cell for cell in texts if mark in cell), texts[0])[:60]!r}"
                expected = (
                    f"{separator!r} between"
                    if separator
                    else f"lists of, or {argument('label_separator')} between,"
                )
                where = f"column '{column}' of '{self.path}'"
                raise ValueError(
                    f"Expected {expected} the names of labels in {where} (got {got}); "
                    f"pass {argument('label_separator', mark)}"
                )
        words = [
            row
            for row, cell in enumerate(cells)
            if isinstance(cell, str) and cell.strip().lower() in _NO_LABELS
        ]
        if words:
            told = f"{len(words)} cells of column '{column}', such as {cells[words[0]]!r} in {self.where(words[0])}, say"
            warnings.warn(
                f"{told} that labels are unknown. If they mean that there is no label, leave them blank",
                stacklevel=2,
            )
        return [
            parse_names(cell, separator, partial(self.place, row, column))
            for row, cell in enumerate(cells)
        ]


def parse_names(cell: Any, separator: str | None, where: Callable[[], str]) -> set[str] | None:
    """The names of labels in a cell: between separators, or as a list or set of Python, JSON or NumPy."""
    found: Iterable[Any] | None = (
        cell if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)) else None
    )
    text = "NA" if found is not None or is_missing(cell) else clean(str(cell))
    inner = re.fullmatch(r"(?:set|frozenset|array|list)\((.*?)(?:, dtype=.*)?\)", text, re.DOTALL)
    text = inner[1].strip() if inner else text
    if (text[:1], text[-1:]) == ("(", ")") or text[:1] in ("[", "{"):
        found = _literal_names(text)
        if found is None and text[0] != "(":
            got = f"{text[:60]!r} in {where()}, which begins as a list or a set, and is none"
            raise ValueError(
                f"Expected names of labels between {separator!r}, or a list of them (got {got})"
            )
    found = text.split(separator) if found is None else found
    return names_in([clean(name) if isinstance(name, str) else name for name in found], where)


def _literal_names(text: str) -> Iterable[Any] | None:
    """The entries of a written list or set."""
    # Python would join the strings of NumPy, without commas
    if re.search(r"""['"]\s+['"]""", text) is None:
        for parse in (ast.literal_eval, json.loads):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                names = parse(text)
                if isinstance(names, (list, tuple, set)):
                    return names
    if re.fullmatch(r"""\[\s*(?:(?:'[^']*'|"[^"]*")\s*)*\]""", text) is None:
        return None
    pairs = re.findall(r"""'([^']*)'|"([^"]*)\"""", text)
    return {name.strip() for pair in pairs for name in pair if name.strip()}


def _judge_paths(names: set[str], where: str) -> None:
    """Refuses names of which some are paths above others, because their meaning is for a person to decide, and warns of
    those that are paths and share the parts above them.
    """
    for mark in "/>":
        above = {name: ancestors(name, mark)[:-1] for name in sorted(names)}
        below = next((name for name in above if not names.isdisjoint(above[name])), None)
        option = argument("label_paths", mark)
        hint = f"pass {option} to add all ancestors, or '' to take the names as they are"
        if below is not None:
            got = f"'{below}', which lies below another name, in {where}"
            raise ValueError(
                f"Expected {argument('label_paths')} for names of labels that are paths (got {got}); {hint}"
            )
        shared = Counter(path for paths in above.values() for path in paths).most_common(1)
        if all(above.values()) and shared and shared[0][1] > 1:
            warnings.warn(
                f"All names in {where} have '{mark}', and {shared[0][1]} lie below '{shared[0][0]}'. If they "
                f"are paths, {hint}",
                stacklevel=2,
            )


def ancestors(name: str, mark: str) -> list[str]:
    """A path, and all paths above it."""
    parts = [part.strip() for part in name.split(mark) if part.strip()]
    space = " " if f" {mark} " in name else ""
    return [f"{space}{mark}{space}".join(parts[: depth + 1]) for depth in range(len(parts))]


def check_columns(used: Sequence[str], header: Sequence[str], source: str) -> None:
    """Refuses columns that are missing, or used twice."""
    repeated = sorted(
        {name for name, count in Counter(used).items() if count > 1 or header.count(name) > 1}
    )
    if repeated:
        raise ValueError(
            f"Expected every column to be used once (got {repeated} more than once in {source})"
        )
    if not set(used) <= set(header):
        match_names(used, header, source)
        wrong = next(name for name in used if name not in header)
        [found] = match_names([wrong], header)
        raise ValueError(
            f"Expected the column {wrong!r} in {source} (got {found!r}, which differs in case or spaces)"
        )


def read_table(
    path: str | Path,
    delimiter: str | None = None,
    encoding: str | None = None,
    min_rows: int = 1,
    header: Sequence[str] | None = None,
) -> Table:
    """Reads a file of text (as it is, or compressed), Parquet, Excel or JSON, whose first row is its header unless that
    is given. A text has at most 4 GiB; compressed, at most 64 MiB or 1,000 times its own size, whichever is more. By
    default, the mark between cells is what a first line ``sep=`` says, else the one of ``,``, ``;``, tab and ``|`` that
    occurs most in the header, and characters are stored as the first bytes say, else in UTF-8.
    """
    return next(read_blocks(path, delimiter, encoding, min_rows, header, whole=True))


def read_molecules(
    path: str | Path,
    smiles_column: str,
    label_columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> tuple[list[str], Tensor, list[str]]:
    """Reads the SMILES, the labels ``[num_rows, num_labels]`` and their names from a file."""
    if isinstance(label_columns, str):
        raise ValueError(
            f"Expected 'label_columns' to be a list of names (got the string '{label_columns}')"
        )
    table = read_table(path, delimiter, encoding, min_rows=0)
    others = [name for name in table.header if name != smiles_column]
    names = others
    if label_columns is not None:
        names = find_labels(label_columns, table.header, [smiles_column])
    table.require(names, [smiles_column])
    smiles = [text.strip() for text in table.texts(smiles_column)]
    return smiles, torch.from_numpy(table.labels(names)).float(), names


def read_blocks(
    path: str | Path,
    delimiter: str | None = None,
    encoding: str | None = None,
    min_rows: int = 1,
    header: Sequence[str] | None = None,
    *,
    whole: bool = False,
) -> Iterator[Table]:
    """Reads a file as :func:`read_table` does, some rows at a time; a file without rows has one block."""
    path, size = Path(path), None if whole else _BLOCK
    if re.match(r"\w{2,}:/", str(path)):
        raise ValueError(
            f"Expected a file (got the address '{path}'); download it, and pass the file"
        )
    if not path.is_file():
        # a device or a pipe, which may never end, or a link to nothing
        is_other = path.exists() or path.is_symlink()
        found = "no regular file" if is_other else f"no such file in '{path.parent.absolute()}'"
        found = "a folder" if path.is_dir() else found
        raise FileNotFoundError(f"Expected the file '{path}' (got {found})")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(
            f"Expected {argument('delimiter')} to be one character between cells (got {delimiter!r})"
        )
    arff = None
    if ".arff" in map(str.lower, path.suffixes):
        arff = read_arff(path, encoding=encoding or "utf-8", keep_text=True)
        cells = dict(zip(arff.names, arff.cells(), strict=True))
        frame = require("pandas", extra="data").DataFrame(cells)
    else:
        frame = read_sdf_cells(path) if is_sdf(path) else _typed(path)
    if frame is None:
        file = _TextFile(path, delimiter, encoding, header)
        if not file.is_json:
            yield from file.blocks(min_rows, size)
            return
        frame = file.records()
    if header is not None:
        raise ValueError(
            f"Expected 'columns' only for a text file without header (got them for '{path}')"
        )
    names = [clean(str(name)) for name in frame.columns]
    frame.columns = range(len(names))
    if len(frame) < max(min_rows, 1) and min_rows:
        raise ValueError(
            f"Expected at least one row in '{path}' (got {len(names)} columns and no row)"
        )
    size = size or max(len(frame), 1)
    for start in range(0, max(len(frame), 1), size):
        block = frame.iloc[start : start + size].reset_index(drop=True)
        of_block = None if arff is None else arff.rows(start, start + size)
        yield Table(path, names, block, start, None, arff=of_block)


def _typed(path: Path) -> Any:
    """The data frame of a file whose cells have types; nothing for a text file with marks between cells."""
    with path.open("rb") as file:
        head = file.read(2**12)
    foreign = next((what for mark, what in _FOREIGN.items() if head.startswith(mark)), None)
    if foreign is not None:
        raise ValueError(f"Expected a table in '{path}' (got {foreign})")
    try:
        if head.startswith(b"PAR1"):
            require("pyarrow.parquet", extra="parquet")
            return require("pandas", extra="parquet").read_parquet(path, engine="pyarrow")
        if head.startswith(b"PK\x03\x04") and "xl/workbook.xml" in zipfile.ZipFile(path).namelist():
            require("openpyxl", extra="excel")
            sheets = require("pandas", extra="excel").read_excel(
                path, sheet_name=None, dtype=object, na_filter=False
            )
            sheets = {name: sheet for name, sheet in sheets.items() if sheet.size}
            if len(sheets) != 1:
                raise ValueError(
                    f"one sheet with a table is needed, not {list(sheets)}; save it as CSV"
                )
            return next(iter(sheets.values()))
    except ImportError as error:
        raise ImportError(f"{error}; or save '{path}' as CSV") from error
    except (ValueError, OSError, NotImplementedError, KeyError, zipfile.BadZipFile) as error:
        what = "a parquet file" if head.startswith(b"PAR1") else "an Excel workbook"
        got = f"{type(error).__name__}: {error}"
        raise ValueError(f"Expected '{path}' to be {what} of one table (got {got})") from error
    if path.suffix.lower() == ".parquet":
        raise ValueError(
            f"Expected '{path}' to be a parquet file (got one that begins with {head[:4]!r})"
        )
    return None


def _records(text: str) -> list[dict[str, Any]]:
    """The objects of a JSON array, or of lines of JSON."""
    try:
        records = json.loads(text)
    except json.JSONDecodeError as whole:
        records = []
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                records += [json.loads(line)] if line.strip() else []
            except json.JSONDecodeError as error:
                raise whole if number == 1 else ValueError(f"line {number}: {error}") from None
    several = [records] if isinstance(records, dict) else records
    if not isinstance(several, list) or not all(isinstance(record, dict) for record in several):
        raise ValueError(
            "other values than objects with a name for each cell, in an array or one in each line"
        )
    if (
        several is not records
        and records
        and all(isinstance(cell, (list, dict)) for cell in records.values())
    ):
        hint = "pass a data frame to 'from_arrays'"
        raise ValueError(
            f"one object of lists or objects under {list(records)[:5]}, not one object for each row; {hint}"
        )
    return several


class _TextFile:
    """A text file with marks between cells.

    pandas divides it into cells. The module csv reads it once more where pandas leaves open how many cells a record
    has, on which line it ends, and whether a quote was closed.
    """

    def __init__(
        self, path: Path, delimiter: str | None, encoding: str | None, given: Sequence[str] | None
    ) -> None:
        self.path, self.given = path, None if given is None else [name.strip() for name in given]
        with self._open() as file:
            head = file.read(2**16)
        self.encoding = encoding or _encoding_of(head)
        if encoding is None and b"\0" in head and self.encoding == "utf-8-sig":
            reader = _READERS.get(path.suffix.lower().lstrip("."))
            hint = (
                f"read it with pandas.read_{reader}, and use 'from_arrays'"
                if reader
                else "export the table as CSV"
            )
            raise ValueError(f"Expected a table in '{path}' (got a binary file); {hint}")
        with self._named_if_damaged():
            text = codecs.getincrementaldecoder(self.encoding)().decode(head)
        lines = text.splitlines()
        begin = next((number for number, line in enumerate(lines) if line), 0)
        told = (
            re.fullmatch(r'"?sep=(.)"?', lines[begin].strip(" \r\n"), re.IGNORECASE)
            if lines
            else None
        )
        begin += told is not None
        width = None if given is None else len(given)
        rest = range(begin, len(lines))
        first = next(
            (number for number in rest if lines[number] and lines[number][0] != "#"), begin
        )
        mark = delimiter or (
            told[1] if told else _delimiter_of(lines[first] if first < len(lines) else "", width)
        )
        # Lines with '#' are comments, unless they have as many cells as the line after them: then one is the header.
        width = lines[first].count(mark) if first < len(lines) else 0
        wide = (
            number
            for number in rest[: first - begin]
            if lines[number] and lines[number].count(mark) == width
        )
        self.skips = next(wide, first)
        self.delimiter = mark
        names = {*path.name.lower().split(".")[1:]}
        self.is_json = re.match(r"\s*(?:\[\s*)?\{\s*[\"}]", text) is not None or (
            text.lstrip()[:1] in tuple("[{") and not names.isdisjoint(("json", "jsonl", "ndjson"))
        )
        self._refuse_foreign(lines[self.skips : self.skips + 3])
        self._place, self._records = 0, self._read()

    def records(self) -> Any:
        """The objects of a JSON file as a data frame."""
        with self._named_if_damaged(), self._text() as text:
            try:
                records = _records(text.read().removeprefix("\ufeff"))
                return require("pandas", extra="data").DataFrame(records, dtype=object)
            except ValueError as error:
                if isinstance(error, UnicodeDecodeError):
                    raise
                raise ValueError(
                    f"Expected '{self.path}' to be JSON of one table (got {error})"
                ) from error

    def blocks(self, min_rows: int, size: int | None) -> Iterator[Table]:
        """The rows of the file, some at a time, or all together."""
        # how many records were read, and how many of them are rows
        header, place, first = self.given, 0, 0
        with self._named_if_damaged():
            self._check_quotes()
            for read in _without_last_blanks(self._frames(size)):
                frame, start, place = read, place, place + len(read)
                if header is None:
                    header = [clean(name) for name in frame.iloc[0]]
                    frame, start = frame.iloc[1:], start + 1
                    if len(header) > 2 and sum(map(bool, header)) == 1:
                        got = f"the title {next(filter(None, header))!r}"
                        hint = "delete what stands above the line with the names of columns"
                        raise ValueError(
                            f"Expected names of columns in '{self.path}' (got {got}); {hint}"
                        )
                # pandas takes a row with too few cells, and a blank line, for a row with blank ones.
                if len(header) != frame.shape[1] or not all(frame.iloc[:, -1].tolist()):
                    widths = [width for _, width in self._take(start, place)]
                    if not {0, len(header)}.issuperset(widths):
                        self._refuse_ragged()
                    if len(header) > 1:  # else a blank line is a blank cell
                        frame = frame[[width > 0 for width in widths]]
                if len(frame):
                    find = partial(self._lines, start, place, keep_blank=len(header) == 1)
                    yield Table(self.path, header, frame, first, find, self.delimiter)
                first += len(frame)
        header = header or []
        if first < min_rows:
            got = f"{len(header)} columns and no row"
            raise ValueError(f"Expected a header and at least one row in '{self.path}' (got {got})")
        if first == 0:
            frame = require("pandas", extra="data").DataFrame(columns=range(len(header)))
            yield Table(self.path, header, frame, first, list, self.delimiter)

    def _open(self) -> io.BufferedReader:
        with self.path.open("rb") as file:
            head = file.read(4)
        if head != b"PK\x03\x04":
            return open_unpacked(self.path, MAX_BYTES)
        with zipfile.ZipFile(self.path) as archive:
            names = [
                name
                for name in archive.namelist()
                if not name.endswith("/") and "__MACOSX" not in name
            ]
            if len(names) != 1 or names[0].endswith(".npy"):
                are_arrays = bool(names) and all(name.endswith(".npy") for name in names)
                hint = (
                    "load the arrays with NumPy, and use 'from_arrays'"
                    if are_arrays
                    else "unpack it"
                )
                raise ValueError(
                    f"Expected one file in the zip archive '{self.path}' (got {names[:5]}); {hint}"
                )
            content = read_bounded(
                archive.open(names[0]), f"'{names[0]}' in '{self.path}'", MAX_BYTES
            )
        return open_unpacked(names[0], MAX_BYTES, content)

    def _text(self) -> Any:
        text = io.TextIOWrapper(self._open(), encoding=self.encoding, newline="")
        for _ in range(self.skips):
            text.readline()
        return text

    def _frames(self, size: int | None) -> Iterator[Any]:
        """The records as data frames of texts, the header and blank lines among them."""
        pandas = require("pandas", extra="data")
        # Before pandas 3, the fast engine drops surplus cells of the first of some records.
        is_exact = size is None or int(pandas.__version__.split(".")[0]) >= 3
        engine: Any = "c" if is_exact and self.delimiter.isascii() else "python"
        with self._text() as text, suppress(pandas.errors.EmptyDataError, StopIteration):
            with _long_cells():  # of which it reads the first
                frames = pandas.read_csv(
                    text,
                    sep=self.delimiter,
                    engine=engine,
                    header=None,  # whose names pandas would change if they occur twice
                    dtype=object,
                    na_filter=False,  # a cell "nan" may be a word
                    skip_blank_lines=False,  # a line of spaces may be a cell
                    iterator=True,
                )
            for number in chain([None if size is None else size + 1], repeat(size)):
                with _long_cells():
                    frame = frames.get_chunk(number)
                # which the other has in blank lines
                yield frame if engine == "c" else frame.fillna("")

    def _take(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The line on which each of these records ends, and how many cells it has."""
        if start < self._place:
            self._place, self._records = 0, self._read()
        found = [
            (line, len(cells))
            for line, cells in islice(self._records, start - self._place, stop - self._place)
        ]
        self._place = stop
        return found

    def _lines(self, start: int, stop: int, *, keep_blank: bool) -> list[int]:
        return [line for line, width in self._take(start, stop) if width or keep_blank]

    def _check_quotes(self) -> None:
        """Refuses a quoted cell that goes on after its closing quote, and warns of one that holds whole rows."""
        with self._open() as file:
            if not any(b'"' in block for block in iter(lambda: file.read(2**20), b"")):
                return
        before, swallowed = self.skips, 0
        for line, cells in self._read(strict=True):
            several = next((cell for cell in cells if "\n" in cell), None)
            if several is not None and len(cells) > 1:
                within = several.splitlines()[1:-1]
                is_whole = any(row.count(self.delimiter) == len(cells) - 1 for row in within)
                swallowed = swallowed or (before + 1) * is_whole
            before = line
        if swallowed:
            warnings.warn(
                f"A quoted cell that begins in line {swallowed} of '{self.path}' holds what look like whole rows, as "
                f"if its quote were closed too late",
                stacklevel=2,
            )

    def _refuse_ragged(self) -> None:
        """Names the first row that has not as many cells as the header."""
        records = self._read()
        names = list(next(records, (0, ()))[1] if self.given is None else self.given)
        rows = ((line, cells or [""]) for line, cells in records if cells or len(names) == 1)
        for row, (line, cells) in enumerate(rows):
            if len(cells) != len(names):
                hint = f"quote cells that contain '{self.delimiter}', or pass another {argument('delimiter')}"
                if len(cells) == len(names) + 1 and row == 0:
                    hint += ", or name the first column, if the file has names of rows without a name for them, as of R"
                if len(names) == 1:
                    hint = f"if {names[0][:40]!r} is a title or a comment, delete it"
                expected = f"Expected {len(names)} cells, as in the header,"
                where = f"row {row} (line {line}) of '{self.path}'"
                raise ValueError(f"{expected} in {where} (got {len(cells)}); {hint}")

    def _refuse_foreign(self, lines: list[str]) -> None:
        """Refuses text that is no table: web pages, ARFF, and LibSVM's form."""
        lines = [line for line in lines if line.strip()]
        what = None
        if looks_like_libsvm(lines):
            what = (
                "rows in the form of LibSVM, svmlight or XMC; read it with tg_mlc.data.from_libsvm"
            )
        elif lines and re.match(r"\s*<(?:!doctype|html|\?xml)", lines[0], re.IGNORECASE):
            what = "a web page or XML; get the file itself"
        elif lines and re.match(r"@relation\b", lines[0], re.IGNORECASE):
            what = "ARFF; read it with tg_mlc.data.from_arff"
        if what is not None:
            raise ValueError(f"Expected a table with a header in '{self.path}' (got {what})")

    @contextmanager
    def _named_if_damaged(self) -> Iterator[None]:
        """Names the file, and the line where it can be told, in what is raised because the file is damaged."""
        refused = require("pandas.errors", extra="data").ParserError
        try:
            yield
        except (UnicodeError, LookupError, csv.Error, refused) as error:
            if isinstance(error, refused) and "EOF inside string" not in str(error):
                self._refuse_ragged()
            if isinstance(error, UnicodeDecodeError):
                self._refuse_encoding(error)
            got = f"{type(error).__name__}: {error}"
            hint = "is a quote not closed, or is it of another encoding?"
            if isinstance(error, LookupError):
                hint = f"pass an {argument('encoding')} that Python knows"
            expected = (
                f"'{self.path}' to be a CSV file in {self.encoding.replace('utf-8-sig', 'UTF-8')}"
            )
            raise ValueError(f"Expected {expected} (got {got}); {hint}") from error

    def _refuse_encoding(self, error: UnicodeDecodeError) -> None:
        """Names the line, and how it reads in encodings that are likely, of which a person can choose."""
        decoder, where, content = codecs.getincrementaldecoder(self.encoding)(), "", b""
        with self._open() as file, suppress(UnicodeDecodeError):
            for number, line in enumerate(file, start=1):
                where, content = f" in line {number}", line
                decoder.decode(line)
        readings: dict[str, str] = {}
        for name in _ENCODINGS:
            with suppress(UnicodeDecodeError):
                text = content.decode(name).strip()
                at = max(
                    next((place for place, letter in enumerate(text) if not letter.isascii()), 0)
                    - 5,
                    0,
                )
                readings.setdefault(text[at : at + 20], name)
        told = " or ".join(
            f"{argument('encoding', name)} for {text!r}" for text, name in readings.items()
        )
        expected = (
            f"'{self.path}' to be a text file in {self.encoding.replace('utf-8-sig', 'UTF-8')}"
        )
        got = f"the byte {error.object[error.start]:#x}{where}"
        hint = f"pass how its characters are stored, such as {told}"
        raise ValueError(f"Expected {expected} (got {got}); {hint}") from error

    def _read(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        with self._text() as text:
            reader = csv.reader(text, delimiter=self.delimiter, strict=strict)
            while True:
                with _long_cells():
                    cells = next(reader, None)
                if cells is None:
                    return
                yield reader.line_num + self.skips, cells


@contextmanager
def _long_cells() -> Iterator[None]:
    """Lets the module csv read cells of any length, and restores the limit, which is that of the whole process."""
    usual = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _without_last_blanks(frames: Iterator[Any]) -> Iterator[Any]:
    """Records without the blank lines at the end of a file of one column."""
    # a frame and those after it that are blank, which are rows only if another one follows
    held: list[Any] = []
    for frame in frames:
        if held and (frame.shape[1] > 1 or any(frame.iloc[:, 0].tolist())):
            yield from held
            held = []
        held.append(frame)
    if held:
        last = held[0]
        kept = len(last)
        while last.shape[1] == 1 and kept and last.iloc[kept - 1, 0] == "":
            kept -= 1
        yield last.iloc[:kept]


def looks_like_libsvm(first_lines: list[str]) -> bool:
    """Tells whether lines are in the form of LibSVM, perhaps after one of three sizes."""
    lines = [line for line in first_lines if line.strip()]
    rows = lines[1:] if lines and LIBSVM_SIZES.fullmatch(lines[0]) else lines
    matches = [LIBSVM_LINE.fullmatch(line.rstrip()) for line in rows]
    return None not in matches and any(match is not None and match[2] for match in matches)


def _encoding_of(head: bytes) -> str:
    found = next((name for mark, name in _BOMS.items() if head.startswith(mark)), None)
    even, odd = head[0:200:2].count(0), head[1:200:2].count(0)
    if found is None and min(even, odd) == 0 and (even + odd) * 3 > len(head[:200]):
        return "utf-16-le" if odd else "utf-16-be"
    return found or "utf-8-sig"


def _delimiter_of(line: str, width: int | None) -> str:
    """The mark that occurs most in the header, or as often as needed."""
    outside = re.sub(r'"[^"]*"', "", line)
    counts: Mapping[str, int] = {mark: outside.count(mark) for mark in MARKS}
    if width is not None and width > 1 and width - 1 in counts.values():
        return next(mark for mark in MARKS if counts[mark] == width - 1)
    return max(MARKS, key=lambda mark: counts[mark])
