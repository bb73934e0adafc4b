"""FASTA files, read sequence by sequence, and the labels of their sequences."""

from __future__ import annotations

import math
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tg_mlc._files import FilePath, byte_lines, decode
from tg_mlc.inputs.label_columns import find_labels
from tg_mlc.inputs.tables import Table, read_blocks

#: The letters in the order of their codes; N stands for every letter that is not known.
LETTERS = "ACGTN"
UNKNOWN_LETTER = LETTERS.index("N")
UNKNOWN_LABEL = 2  # in a byte
MAX_LETTERS = 1 << 28  # the longest human chromosome has 248 million
ROWS_AT_ONCE = 1 << 14
# Codes of IUPAC (https://doi.org/10.1093/nar/13.9.3021) for several letters, and X for masked ones.
_KNOWN = {**dict.fromkeys("NRYSWKMBDHVX", UNKNOWN_LETTER), "A": 0, "C": 1, "G": 2, "T": 3, "U": 3}
_LETTERS_IN_WORDS = f"{', '.join(LETTERS)} or another of IUPAC"
_STRANGE = 255
_CODES = bytes(
    _KNOWN.get(chr(byte).upper(), _STRANGE) if byte < 128 else _STRANGE for byte in range(256)
)
_SPACES = b" \t\r\n\v\f"


def letter_codes(text: Any) -> np.ndarray:
    """Returns the codes of the letters of DNA, as those of :func:`read_fasta`."""
    if not isinstance(text, str):
        got = f"{str(text)[:40]!r} of {type(text).__name__}"
        raise ValueError(f"Expected DNA as a string of letters (got {got})")
    codes = np.frombuffer(text.encode().translate(_CODES, _SPACES), dtype=np.uint8)
    if not codes.size or (codes == _STRANGE).any():
        raise ValueError(f"Expected letters of DNA ({_LETTERS_IN_WORDS}; got {text[:40]!r})")
    return codes


class FastaRecord(NamedTuple):
    """One sequence of a FASTA file."""

    header: str  #: the line of its name, without the ``>``
    letters: np.ndarray  #: the codes of its letters, uint8
    line: int  #: the number of the line of its name, from 1


def read_fasta(path: FilePath) -> Iterator[FastaRecord]:
    """Reads a FASTA file (plain, ``.gz``, ``.bz2`` or ``.xz``), one sequence at a time.

    The letters A, C, G and T, in upper or lower case, become 0 to 3, and U becomes 3 as T; other
    letters of IUPAC, such as N, are unknown, and become 4.
    """
    path = os.fsdecode(path)
    header: str | None = None
    codes, first_line = bytearray(), 0

    def record(header: str) -> FastaRecord:
        if not codes:
            expected = f"letters after the name in line {first_line} of '{path}'"
            raise ValueError(f"Expected {expected} (got none for '{header[:80]}')")
        return FastaRecord(header, np.frombuffer(codes, dtype=np.uint8), first_line)

    for number, line in byte_lines(path, MAX_LETTERS):
        if line.startswith(b">"):
            if header is not None:
                yield record(header)
            header, codes, first_line = decode(line[1:], path, number).strip(), bytearray(), number
        elif header is not None:
            new = line.translate(_CODES, _SPACES)
            if _STRANGE in new:
                strange = bytes([line.translate(None, _SPACES)[new.index(_STRANGE)]])
                expected = f"letters of DNA ({_LETTERS_IN_WORDS}) in line {number} of '{path}'"
                raise ValueError(f"Expected {expected} (got {strange!r})")
            codes += new
        elif line.strip():
            expected = f"a name that begins with '>' in line {number} of '{path}'"
            raise ValueError(f"Expected {expected} (got {line[:40]!r})")
    if header is None:
        raise ValueError(f"Expected at least one sequence in '{path}' (got none)")
    yield record(header)


class FastaFiles:
    """The sequences of several files, the training files first, with letters on disk."""

    def __init__(self, train: Sequence[FilePath], test: Sequence[FilePath] = ()) -> None:
        self.headers: list[str] = []  #: the name of each sequence
        self.ends: list[int] = []  #: the number of sequences in each file and all before it
        self._paths = [os.fsdecode(path) for path in (*train, *test)]
        self._ptr, self._lines = array("q", [0]), array("q")
        self._hashes = array("q")  # of 64 bits: no two sequences have the same by chance
        self.letters = map_temporarily(self._read())  #: the codes of the letters of all sequences
        #: the index of the first letter of each sequence, and the number of letters
        self.ptr = np.frombuffer(self._ptr, dtype=np.int64)
        self.num_train = self.ends[len(train) - 1]

    def __len__(self) -> int:
        return len(self.headers)

    def where(self, number: int) -> str:
        """Returns the line and the file of the name of a sequence."""
        return f"line {self._lines[number]} of '{self._paths[bisect_right(self.ends, number)]}'"

    def num_repeated(self) -> int:
        """Returns the number of test sequences that occur among the training sequences."""
        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        return int(np.isin(hashes[self.num_train :], hashes[: self.num_train]).sum())

    def _read(self) -> Iterator[np.ndarray]:
        for path in self._paths:
            for record in read_fasta(path):
                self.headers.append(record.header)
                self._lines.append(record.line)
                self._hashes.append(hash(record.letters.tobytes()))
                self._ptr.append(self._ptr[-1] + len(record.letters))
                yield record.letters
            self.ends.append(len(self))


class LabelTable:
    """The labels of sequences by their names, from a table that is read some rows at a time."""

    def __init__(self, path: FilePath, id_column: str, label_columns: Sequence[str] | None) -> None:
        self.path = Path(os.fsdecode(path))
        self._delimiter = "\t" if ".tsv" in map(str.lower, self.path.suffixes) else ","
        blocks = read_blocks(self.path, self._delimiter)
        first = next(blocks)
        others = [name for name in first.header if name != id_column]
        self.names = others
        if label_columns is not None:
            self.names = find_labels(label_columns, first.header, [id_column])
        first.require(self.names, [id_column])
        self._row: dict[str, int] = {}
        values = map_temporarily(self._read(block, id_column) for block in chain([first], blocks))
        self._values = values.reshape(len(self._row), len(self.names))

    def _read(self, block: Table, id_column: str) -> np.ndarray:
        for number, cell in enumerate(block.texts(id_column), start=block.first):
            name = cell.strip()
            if self._row.setdefault(name, number) != number:
                blocks = read_blocks(self.path, self._delimiter)
                lines = [line for block in blocks for line in block.lines]
                expected = f"one row for every sequence in '{self.path}'"
                got = f"'{name}' in lines {lines[self._row[name]]} and {lines[number]}"
                raise ValueError(f"Expected {expected} (got {got})")
        labels = block.labels(self.names)
        return np.where(np.isnan(labels), UNKNOWN_LABEL, labels).astype(np.uint8)

    def labels_of(self, files: FastaFiles) -> Iterator[np.ndarray]:
        """Returns the labels ``[N, L]`` of sequences, in blocks."""
        rows = np.empty(len(files), dtype=np.int64)
        taken = array("q", [-1]) * len(self._row)
        for number, header in enumerate(files.headers):
            name = (header.split(maxsplit=1) or [""])[0]
            if name not in self._row:
                got = f"none for '{name}', {files.where(number)}"
                raise ValueError(f"Expected a row in '{self.path}' for every sequence (got {got})")
            row = rows[number] = self._row[name]
            if taken[row] >= 0:
                got = f"'{name}' in {files.where(taken[row])} and in {files.where(number)}"
                raise ValueError(f"Expected every sequence to have a name of its own (got {got})")
            taken[row] = number
        starts = range(0, len(rows), ROWS_AT_ONCE)
        return (self._values[rows[start : start + ROWS_AT_ONCE]] for start in starts)


def listed_labels(
    files: FastaFiles, column: dict[str, int], parse: Callable[[str], Iterable[str]]
) -> Iterator[np.ndarray]:
    """Yields the labels ``[L]`` of each sequence, whose name lists those that are 1."""
    for number, header in enumerate(files.headers):
        labels = np.zeros(len(column), dtype=np.uint8)
        for name in parse(header):
            if name not in column:
                expected = f"the name in {files.where(number)} to list some of the {len(column)}"
                raise ValueError(f"Expected {expected} labels (got '{name[:80]}')")
            labels[column[name]] = 1
        yield labels


def one_known(files: FastaFiles, num_labels: int) -> Iterator[np.ndarray]:
    """Yields the labels ``[n, L]`` of the sequences of each file. Only the label of the file is
    known, and its value is the name of the sequence; files of all labels repeat in order.
    """
    for file, (start, end) in enumerate(pairwise([0, *files.ends])):
        for number, header in enumerate(files.headers[start:end], start):
            if header not in ("0", "1"):
                expected = f"the name '0' or '1', its label, in {files.where(number)}"
                raise ValueError(f"Expected {expected} (got '{header[:80]}')")
        labels = np.full((end - start, num_labels), UNKNOWN_LABEL, dtype=np.uint8)
        labels[:, file % num_labels] = [int(header) for header in files.headers[start:end]]
        yield labels


def map_temporarily(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Writes bytes to a temporary file, memory-mapped, that is deleted with the last view of it."""
    with TemporaryFile() as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
        if file.tell() == 0:  # An empty file cannot be mapped.
            return np.empty(0, dtype=np.uint8)
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="r+"))


def label_floats(labels: Tensor) -> Tensor:
    """Returns labels of a byte each in float32, NaN where unknown."""
    return labels.to(torch.float32).masked_fill_(labels == UNKNOWN_LABEL, math.nan)
