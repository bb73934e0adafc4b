"""Reads files of all common formats as tables of cells, and the labels in them."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tg_mlc._numbers import NUMBER, is_blank, is_missing
from tg_mlc._optional import require
from tg_mlc._options import argument
from tg_mlc._warnings import warn
from tg_mlc.data._label_values import DASHES, label_of, names_in, read_labels
from tg_mlc.inputs._arff_table import Arff, read_arff
from tg_mlc.inputs.binary_files import read_binary
from tg_mlc.inputs.cells import array_of, clean, texts_of
from tg_mlc.inputs.hierarchies import pairs
from tg_mlc.inputs.label_columns import find_labels
from tg_mlc.inputs.limits import TableLimits, explain_memory
from tg_mlc.inputs.schema import Column, Hints, Role, Schema, folded, match_names, repeated
from tg_mlc.inputs.smiles import is_sdf, read_sdf_cells
from tg_mlc.inputs.text_files import DELIMITERS, TextFile

#: Likely separators between names of labels.
_SEPARATORS = (*DELIMITERS, "\n", "\uff1b", "\u3001", " #")
#: Words for unknown labels that may also mean no labels.
_NO_LABELS = ("none", "n/a", *DASHES)
_BLOCK = 2**12  # rows that are read at once
_LIST = re.compile(r"\s*(?:array|set|frozenset|list)?[\[({]")  # start of a list in text form
_LABEL_CODES = ({"1", "-1"}, {"+1", "-1"}, {"1", "2"})  # common codes of labels besides 0 and 1
#: Unsupported binary files by their first bytes, with a hint for each.
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as .xlsx or CSV",
    b"SQLite format": "an SQLite database; export the table as CSV",
    b"%PDF": "a PDF document; export the table as CSV",
    b"\x80\x04": "a pickle; save the data frame as CSV or Parquet",
    b"\x93NUMPY": "a NumPy file; load it, and use 'from_arrays'",
    b"\x28\xb5\x2f\xfd": "a file packed by zstd; unpack it",
    b"version https://git-lfs": "a pointer of Git LFS; get the file itself with 'git lfs pull'",
}


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file, or of some of its rows.

    Cells of text files are texts; those of other files have types.
    """

    path: Path
    header: list[str]
    frame: Any  #: the cells, with column indices as names
    first: int = 0  #: index of the first row in the file
    lines: Sequence[int] = ()  #: line number in the text file at which each row ends
    delimiter: str | None = None
    arff: Arff | None = None  #: the header, if the file is ARFF

    def __len__(self) -> int:
        return len(self.frame)

    def where(self, row: int) -> str:
        """Returns the location of a row in the file, for messages."""
        line = f" (line {self.lines[row]})" if self.lines else ""
        return f"row {self.first + row}{line}"

    def place(self, row: int, column: str) -> str:
        """Returns the location of a cell in the file, for messages."""
        return f"{self.where(row)}, column '{column}' of '{self.path}'"

    def require(
        self, labels: Sequence[str], features: Sequence[str], *, may_lack_labels: bool = False
    ) -> None:
        """Raises ValueError if columns are missing or used twice, or labels or inputs are empty."""
        check_columns([*labels, *features], self.header, f"'{self.path}'")
        if not (labels or may_lack_labels) or not features:
            expected = "at least one column of labels and one of inputs"
            got = f"labels={list(labels)}, inputs={list(features)}"
            raise ValueError(f"Expected {expected} (got {got}) in '{self.path}'")

    def cells(self, columns: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Returns the cells of some or all columns by name. Raises if two columns share a name."""
        names = self.header if columns is None else columns
        check_columns(names, self.header, f"'{self.path}'")
        return {name: self._cells(self.header.index(name)) for name in names}

    def _cells(self, index: int) -> np.ndarray:
        return array_of(self.frame[index])

    def inputs(self, columns: Sequence[str] = (), *, single: bool = False) -> Any:
        """Returns raw inputs for a model: the training columns in :obj:`columns` (by default, all
        columns of the table), or only the cells of the first column if :obj:`single`.
        """
        names = match_names(columns, self.header, f"'{self.path}'")
        if single and names:
            return self.documents(names[0])
        # All spellings of a column are kept, so that the schema can refuse duplicates.
        spellings = set(map(folded, columns or self._named()))
        indices = [i for i, name in enumerate(self.header) if folded(name) in spellings]
        return self.frame[indices].set_axis([self.header[index] for index in indices], axis=1)

    def texts(self, column: str) -> list[str]:
        """Returns the cells of a column as texts, blank where missing."""
        return texts_of(self._cells(self.header.index(column)))

    def all_texts(self) -> list[list[str]]:
        """Returns the texts of each column, as :meth:`texts` does; columns may share a name."""
        return [texts_of(self._cells(index)) for index in range(len(self.header))]

    def documents(self, column: str) -> list[str]:
        """Returns the cells of a column of inputs as texts. Words such as NA become blank."""
        return ["" if is_blank(text) else text for text in self.texts(column)]

    def labels(self, columns: Sequence[str]) -> np.ndarray:
        """Returns columns of 0 and 1, or of words for 0 and 1, as numbers; NaN where unknown."""
        values = np.empty((len(self), len(columns)), dtype=np.float64)
        for target, column in enumerate(columns):
            cells = self.texts(column)
            label_by_cell = {cell: label_of(cell) for cell in set(cells)}
            converted = [label_by_cell[cell] for cell in cells]
            if None in converted:
                row, words = converted.index(None), {cell.strip() for cell in cells}
                hint = "choose other columns of labels"
                if len(columns) > 1 and len(label_by_cell) == len(cells):
                    hint += f", or if 'rest' chose this one, pass {argument('ignore', [column])}"
                if len(columns) == 1:
                    symbols = (symbol for symbol in (*_SEPARATORS, " ") if symbol in cells[row])
                    option = argument("label_separator", next(symbols, _SEPARATORS[0]))
                    hint += f", or pass {option} if its cells are names of labels"
                if 2 * converted.count(None) < len(converted):
                    hint = "correct the cell, or leave it blank if the label is unknown"
                if _LIST.match(cells[row]):
                    hint = "if a column lists label names, make it the only label column"
                elif {word for word in words if not is_blank(word)} in _LABEL_CODES:
                    hint = "write 1 where the label applies, and 0 where it does not"
                where, got = self.place(row, column), f"'{cells[row][:80]}'"
                expected = f"a label to be 0, 1 or blank (unknown) in {where}"
                raise ValueError(f"Expected {expected} (got {got}); {hint}")
            values[:, target] = converted
        return values

    def schema(
        self, columns: Sequence[str], labels: Sequence[str], hints: Hints, text: Role | None = None
    ) -> Schema:
        """Returns the schema of the columns. :obj:`columns` are the chosen inputs, if any, and
        :obj:`text` is the role of a single column of inputs that are not numbers.
        """
        inputs = columns or [name for name in self._named() if name not in labels]
        self.require(labels, inputs, may_lack_labels=True)
        roles: dict[str, Role] = dict.fromkeys(labels, "label")
        if text is not None:
            roles[columns[0]] = text
        hints = replace(hints, delimiter=self.delimiter)
        if self.arff is not None and text is None and hints.schema is None:
            schema = self.arff.schema(hints, labels, columns)
        else:
            cells = self.cells([*columns, *labels] if columns else self._named())
            schema = Schema.infer(cells, roles, hints, self.place, chosen=bool(columns))
            others = [name for name in self.header if columns and name not in cells]
            schema.columns += [Column(name, "ignored", "not asked for") for name in others]
        texts = [item for item in schema.columns if item.role == "text" and item.name in columns]
        if texts and (missing := texts[0].missing):
            note = f"{missing} cells of column '{columns[0]}' have no text"
            warn(f"{note}, and become samples without words")
        if text is None and not schema.inputs:
            reasons = [f"'{c.name}': {c.reason}" for c in schema.columns if c.role != "label"]
            got = f"none: {', '.join(reasons)}"
            raise ValueError(f"Expected a column of inputs in '{self.path}' (got {got})")
        return schema

    def _named(self) -> list[str]:
        """Returns the columns, except blank ones without a name, which spreadsheets add."""
        if self.header.count("") < 2:
            return self.header
        unnamed = [index for index, name in enumerate(self.header) if not name]
        is_blank_column = (all(map(is_blank, texts_of(self._cells(i)))) for i in unnamed)
        return [name for name in self.header if name] if all(is_blank_column) else self.header

    def targets(
        self, labels: Sequence[str] | str, separator: str | None, paths: str | None = None
    ) -> tuple[np.ndarray, list[str]]:
        """Returns the labels ``[N, L]`` of all rows, and their names.

        Args:
            labels (Sequence[str] or str): The columns of labels, or the column that lists names.
            separator (str, optional): The separator of names; :obj:`None` if cells are lists.
            paths (str, optional): The separator of the parts of names that are paths, whose
                ancestors apply as well. (default: :obj:`None`)
        """
        lists_names = isinstance(labels, str) or separator is not None
        if self.arff is not None and self.arff.declares(labels, lists_names=lists_names):
            return self.arff.targets([labels] if isinstance(labels, str) else labels)
        if not lists_names and len(labels) == 1:
            cells = self.cells(labels)[labels[0]].tolist()
            lists_names = any(
                _LIST.match(c) if isinstance(c, str) else np.iterable(c) for c in cells
            )
        if not lists_names:
            return read_labels(self.labels(labels), labels)
        column = labels if isinstance(labels, str) else labels[0]
        sets: list[Any] = self.label_sets(column, separator)
        self._warn_of_separator(column, separator)
        if paths is None:
            _judge_paths(set().union(*filter(None, sets)), f"column '{column}' of '{self.path}'")
        if paths:
            sets = [
                names and {path for name in names for path in ancestors(name, paths)}
                for names in sets
            ]
        return read_labels(sets, None)

    def hierarchy(
        self, labels: Sequence[str] | str, names: Sequence[str], paths: str | None
    ) -> list[tuple[str, str | None]] | None:
        """Returns the pairs of child and parent of the labels of :meth:`targets`, or None if they
        do not form a hierarchy.
        """
        if self.arff is not None and (parents := self.arff.parents(labels)):
            return pairs(parents)
        return [(name, [None, *ancestors(name, paths)][-2]) for name in names] if paths else None

    def label_sets(self, column: str, separator: str | None) -> list[set[str] | None]:
        """Returns the label names in each cell: None if unknown, and an empty set if blank."""
        cells = self.cells([column])[column].tolist()
        texts = [cell for cell in cells if isinstance(cell, str) and not is_blank(cell)]
        texts = [text for text in texts if not _LIST.match(text)]
        is_used = separator is not None and any(separator in text for text in texts)
        if texts and not is_used and (separator is None or len(texts) > 1):
            self._check_separator(column, separator, texts)
        is_word = [isinstance(c, str) and c.strip().lower() in _NO_LABELS for c in cells]
        if any(is_word):
            row = is_word.index(True)
            example = f"{sum(is_word)} cells of column '{column}', such as {cells[row]!r}"
            message = f"{example} in {self.where(row)}, say that labels are unknown"
            hint = "If they mean that there is no label, leave them blank"
            warn(f"{message}. {hint}")
        locations = [partial(self.place, row, column) for row in range(len(cells))]
        return list(map(parse_names, cells, repeat(separator), locations))

    def _check_separator(self, column: str, separator: str | None, texts: list[str]) -> None:
        """Raises if ``separator``, which no cell has, is None or many cells have another one."""
        counts = {symbol: sum(symbol in text for text in texts) for symbol in (*_SEPARATORS, " ")}
        other = next((symbol for symbol in _SEPARATORS if counts[symbol] * 4 > len(texts)), None)
        if other is None and separator is not None:
            return
        example = next((text for text in texts if (other or " ") in text), texts[0])
        hint = f"pass {argument('label_separator', other)}"
        if other is None:
            spaces = f"{argument('label_separator', ' ')} if spaces separate names"
            hint = f"pass {argument('label_separator', ';')} if each cell is one name"
            if counts[" "] and all(re.fullmatch(r"[\d\s]+", text) for text in texts):
                hint = f"pass {spaces}"
            elif counts[" "]:
                hint += f", {spaces}"
        expected = f"{separator!r} between"
        if not separator:
            expected = f"lists of, or {argument('label_separator')} between,"
        where = f"column '{column}' of '{self.path}'"
        got = f"cells such as {example[:60]!r}"
        raise ValueError(f"Expected {expected} the names of labels in {where} (got {got}); {hint}")

    def _warn_of_separator(self, column: str, separator: str | None) -> None:
        """Warns if no cell of training labels has the separator, and some are no lists."""
        texts = [text for text in self.texts(column) if not (is_blank(text) or _LIST.match(text))]
        if separator and texts and not any(separator in text for text in texts):
            note = f"No cell of column '{column}' has the separator {separator!r}"
            hint = f"If names are separated otherwise, pass {argument('label_separator')}"
            warn(f"{note}, so each is one name, such as {texts[0]!r:.40}. {hint}")


def parse_names(cell: Any, separator: str | None, where: Callable[[], str]) -> set[str] | None:
    """Returns the label names in a cell: separated names, or a list of Python, JSON or NumPy.

    Raises:
        ValueError: If the cell begins like a list but is not a valid list.
    """
    names: Iterable[Any] = cell
    if not isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        names = _names_in_text("NA" if is_missing(cell) else clean(str(cell)), separator, where)
    return names_in([clean(name) if isinstance(name, str) else name for name in names], where)


def _names_in_text(text: str, separator: str | None, where: Callable[[], str]) -> Iterable[Any]:
    match = re.fullmatch(r"(?:set|frozenset|array|list)\((.*?)(?:, dtype=.*)?\)", text, re.DOTALL)
    text = match[1].strip() if match else text
    is_list, is_tuple = text[:1] in ("[", "{"), (text[:1], text[-1:]) == ("(", ")")
    names = _literal_names(text) if is_list or is_tuple else None
    if names is None and is_list:
        alternative = "" if separator is None else f", or {separator!r} between them"
        got = f"{text[:60]!r} in {where()}, which begins like a list or a set, but is neither"
        hint = """write it as ["a", "b"]"""
        raise ValueError(f"Expected a list of names of labels{alternative} (got {got}); {hint}")
    return text.split(separator) if names is None else names


def _literal_names(text: str) -> Iterable[Any] | None:
    """Returns the entries of a list or set in text form, or None."""
    # Python would join NumPy's strings, because no commas separate them.
    if re.search(r"""['"]\s+['"]""", text) is None:
        for parse in (ast.literal_eval, json.loads):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                names = parse(text)
                if isinstance(names, (list, tuple, set)):
                    return names
    if re.fullmatch(rf"\[\s*(?:{NUMBER}\s+)*{NUMBER}\s*\]", text) is not None:
        with suppress(SyntaxError):  # Python has no numbers with leading zeros, nor does NumPy.
            return [ast.literal_eval(number) for number in text[1:-1].split()]
    if re.fullmatch(r"""\[\s*(?:(?:'[^']*'|"[^"]*")\s*)*\]""", text) is None:
        return None
    quoted = re.findall(r"""'([^']*)'|"([^"]*)\"""", text)
    return {name.strip() for pair in quoted for name in pair if name.strip()}


def _judge_paths(names: set[str], where: str) -> None:
    """Raises if a name is a path above another name, because only the user knows the meaning.
    Warns if all names are paths and share ancestors.
    """
    for separator in "/>":
        parents = {name: ancestors(name, separator)[:-1] for name in sorted(names)}
        child = next((name for name in parents if not names.isdisjoint(parents[name])), None)
        option = argument("label_paths", separator)
        hint = f"pass {option} to add all ancestors, or '' to take the names as they are"
        if child is not None:
            expected = f"{argument('label_paths')} for names of labels that are paths"
            got = f"'{child}', which lies below another name, in {where}"
            raise ValueError(f"Expected {expected} (got {got}); {hint}")
        shared = Counter(path for paths in parents.values() for path in paths).most_common(1)
        if all(parents.values()) and shared and shared[0][1] > 1:
            parent, count = shared[0]
            note = f"All names in {where} have '{separator}', and {count} lie below '{parent}'"
            warn(f"{note}. If they are paths, {hint}")


def ancestors(name: str, mark: str) -> list[str]:
    """Returns a path and all paths above it, from the top."""
    parts = [part.strip() for part in name.split(mark) if part.strip()]
    between = f" {mark} " if f" {mark} " in name else mark
    return [between.join(parts[: depth + 1]) for depth in range(len(parts))]


def check_columns(used: Sequence[str], header: Sequence[str], source: str) -> None:
    """Raises ValueError if columns are missing or used twice."""
    duplicates = {*repeated(used), *(name for name in repeated(header) if name in used)}
    if duplicates:
        got = f"{sorted(duplicates)} more than once in {source}"
        raise ValueError(f"Expected every column to be used once (got {got})")
    if missing := [name for name in used if name not in header]:
        match_names(used, header, source)
        [similar] = match_names(missing[:1], header)
        got = f"{similar!r}, which differs in case or spaces"
        raise ValueError(f"Expected the column {missing[0]!r} in {source} (got {got})")


def read_table(
    path: str | Path,
    delimiter: str | None = None,
    encoding: str | None = None,
    min_rows: int = 1,
    header: Sequence[str] | None = None,
) -> Table:
    """Reads a file of text, Parquet, Excel, ARFF, SDF or JSON.

    Args:
        path (str or Path): The file. A text has at most 4 GiB; a compressed one, at most 64 MiB or
            200 times its own size, whichever is more.
        delimiter (str, optional): The delimiter. (default: :obj:`None`, specified by a first
            line ``sep=``, else the most frequent of ``,``, ``;``, tab and ``|`` in the header)
        encoding (str, optional): The encoding. (default: detected from the first bytes, else UTF-8)
        min_rows (int, optional): The minimum number of rows. (default: :obj:`1`)
        header (Sequence[str], optional): The columns of a text file without header.
    """
    return next(read_blocks(path, delimiter, encoding, min_rows, header, whole=True))


def read_text(
    content: bytes,
    name: str,
    delimiter: str | None = None,
    encoding: str | None = None,
    limits: TableLimits | None = None,
) -> Table:
    """Reads the content of a text file as :func:`read_table` does; messages contain the name."""
    _refuse_foreign(content[: 2**12], name)
    file = TextFile(Path(name), delimiter, encoding, content=content, limits=limits)
    if file.is_json:
        hint = "send it as 'application/json'"
        raise ValueError(f"Expected CSV in '{name}' (got JSON); {hint}")
    frame, first, lines = next(file.blocks(1, None))
    return Table(file.path, file.header or [], frame, first, lines, file.delimiter)


def read_molecules(
    path: str | Path,
    smiles_column: str,
    label_columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> tuple[list[str], Tensor, list[str]]:
    """Reads the SMILES, the labels ``[num_rows, num_labels]`` and their names from a file."""
    if isinstance(label_columns, str):
        got = f"the string '{label_columns}'"
        raise ValueError(f"Expected 'label_columns' to be a list of names (got {got})")
    table = read_table(path, delimiter, encoding, min_rows=0)
    names = [name for name in table.header if name != smiles_column]
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
    """Reads a file as :func:`read_table` does, and yields one or more blocks of rows."""
    path = Path(path)
    _check_file(path)
    size = None if whole else _BLOCK
    with explain_memory(path):
        yield from _read_blocks(path, delimiter, encoding, min_rows, header, size)


def _read_blocks(
    path: Path,
    delimiter: str | None,
    encoding: str | None,
    min_rows: int,
    header: Sequence[str] | None,
    size: int | None,
) -> Iterator[Table]:
    arff = None
    if ".arff" in map(str.lower, path.suffixes):
        arff = read_arff(path, encoding=encoding or "utf-8", keep_text=True)
        cells = dict(zip(arff.names, arff.cells(), strict=True))
        frame = require("pandas", extra="data").DataFrame(cells)
    else:
        with path.open("rb") as opened:
            head = opened.read(2**12)
        _refuse_foreign(head, path)
        frame = read_sdf_cells(path) if is_sdf(path) else read_binary(path, head)
    if frame is None:
        file = TextFile(path, delimiter, encoding, header)
        if not file.is_json:
            for frame, first, lines in file.blocks(min_rows, size):
                yield Table(path, file.header or [], frame, first, lines, file.delimiter)
            return
        frame = file.records()
    if header is not None:
        expected = "'columns' only for a text file without header"
        raise ValueError(f"Expected {expected} (got them for '{path}')")
    names = [clean(str(name)) for name in frame.columns]
    frame.columns = range(len(names))
    for index in frame:
        if frame[index].dtype.kind == "O":
            TableLimits(f"'{path}'").check_texts(frame[index])
    # A workbook has a header in its first line; blank rows are no samples.
    lines = (frame.index + 2).tolist() if len(frame) and frame.index[-1] >= len(frame) else []
    if len(frame) < max(min_rows, 1) and min_rows:
        got = f"{len(names)} columns and no row"
        raise ValueError(f"Expected at least one row in '{path}' (got {got})")
    size = size or max(len(frame), 1)
    for start in range(0, max(len(frame), 1), size):
        rows = frame.iloc[start : start + size].reset_index(drop=True)
        arff_rows = None if arff is None else arff.rows(start, start + size)
        yield Table(path, names, rows, start, lines[start : start + size], arff=arff_rows)


def _check_file(path: Path) -> None:
    if re.match(r"\w{2,}:/", str(path)):
        hint = "download it, and pass the file"
        raise ValueError(f"Expected a file (got the address '{path}'); {hint}")
    if path.is_file():
        return
    got = "a folder" if path.is_dir() else f"no such file in '{path.parent.absolute()}'"
    # Devices and pipes may never end, and links may be broken.
    if (path.exists() or path.is_symlink()) and not path.is_dir():
        got = "no regular file"
    raise FileNotFoundError(f"Expected the file '{path}' (got {got})")


def _refuse_foreign(head: bytes, name: Any) -> None:
    foreign = next((hint for start, hint in _FOREIGN.items() if head.startswith(start)), None)
    if foreign is not None:
        raise ValueError(f"Expected a table in '{name}' (got {foreign})")
