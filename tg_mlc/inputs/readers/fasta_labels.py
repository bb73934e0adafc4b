"""Labels of sequences in FASTA files: from a table, from their names, or from the file that they are in."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from tg_mlc._csv_table import CSVTable, read_csv_blocks
from tg_mlc._files import FilePath
from tg_mlc.inputs.readers.byte_arrays import UNKNOWN_LABEL, label_bytes, map_temporarily
from tg_mlc.inputs.readers.fasta_files import FastaFiles

ROWS_AT_ONCE = 1 << 14


class LabelTable:
    """The labels of sequences by their names, from a table that is read some rows at a time."""

    def __init__(self, path: FilePath, id_column: str, label_columns: Sequence[str] | None) -> None:
        self.path = Path(os.fsdecode(path))
        blocks = read_csv_blocks(self.path, "\t" if ".tsv" in map(str.lower, self.path.suffixes) else ",")
        first = next(blocks)
        others = [name for name in first.header if name != id_column]
        self.names = others if label_columns is None else list(label_columns)
        first.require(self.names, [id_column])
        self._row: dict[str, int] = {}
        self._lines = array("q")
        values = map_temporarily(self._read(block, id_column) for block in chain([first], blocks))
        self._values = values.reshape(len(self._lines), len(self.names))

    def labels_of(self, files: FastaFiles) -> Iterator[np.ndarray]:
        """The labels ``[N, L]`` of sequences, in blocks."""
        rows = self._rows_of(files)
        return (self._values[rows[start : start + ROWS_AT_ONCE]] for start in range(0, len(rows), ROWS_AT_ONCE))

    def _read(self, block: CSVTable, id_column: str) -> np.ndarray:
        self._lines.extend(block.lines)
        for number, cell in enumerate(block.texts(id_column), start=block.first):
            name = cell.strip()
            if self._row.setdefault(name, number) != number:
                lines = f"lines {self._lines[self._row[name]]} and {self._lines[number]}"
                raise ValueError(f"Expected one row for every sequence in '{self.path}' (got '{name}' in {lines})")
        return label_bytes(block.labels(self.names))

    def _rows_of(self, files: FastaFiles) -> np.ndarray:
        rows = np.empty(len(files), dtype=np.int64)
        taken = array("q", [-1]) * len(self._lines)
        for number, header in enumerate(files.headers):
            name = (header.split(maxsplit=1) or [""])[0]
            if name not in self._row:
                where = files.where(number)
                raise ValueError(f"Expected a row in '{self.path}' for every sequence (got none for '{name}', {where})")
            row = rows[number] = self._row[name]
            if taken[row] >= 0:
                where = f"{files.where(taken[row])} and in {files.where(number)}"
                raise ValueError(f"Expected every sequence to have a name of its own (got '{name}' in {where})")
            taken[row] = number
        return rows


def listed_labels(
    files: FastaFiles, column: dict[str, int], parse: Callable[[str], Iterable[str]]
) -> Iterator[np.ndarray]:
    """The labels ``[L]`` of each sequence, whose name lists those that are 1."""
    for number, header in enumerate(files.headers):
        labels = np.zeros(len(column), dtype=np.uint8)
        for name in parse(header):
            if name not in column:
                expected = f"the name in {files.where(number)} to list some of the {len(column)} labels"
                raise ValueError(f"Expected {expected} (got '{name}')")
            labels[column[name]] = 1
        yield labels


def one_known(files: FastaFiles, num_labels: int) -> Iterator[np.ndarray]:
    """The labels ``[n, L]`` of the sequences of each file, of which only one is known: that of the file's own number,
    counted over and over, which is the name of the sequence.
    """
    for file, numbers in enumerate(files.of_each_file()):
        strange = next((number for number in numbers if files.headers[number] not in ("0", "1")), None)
        if strange is not None:
            got = f"'{files.headers[strange][:80]}'"
            raise ValueError(f"Expected the name '0' or '1', its label, in {files.where(strange)} (got {got})")
        labels = np.full((len(numbers), num_labels), UNKNOWN_LABEL, dtype=np.uint8)
        labels[:, file % num_labels] = [int(files.headers[number]) for number in numbers]
        yield labels
