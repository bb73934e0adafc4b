"""The labels of sequences in FASTA files: from a table, from their names, or from the file that they are in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tg_mlc._csv_table import read_csv_table
from tg_mlc.datasets._fasta import MAX_BYTES, FastaRecord, read_fasta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tg_mlc._files import FilePath


class FastaPart(NamedTuple):
    """The sequences of one file, or of one part of several."""

    path: str
    records: list[FastaRecord]

    @classmethod
    def read(cls, path: FilePath, max_bytes: int = MAX_BYTES) -> FastaPart:
        return cls(os.fsdecode(path), list(read_fasta(path, max_bytes)))

    @classmethod
    def join(cls, parts: Sequence[FastaPart]) -> FastaPart:
        return cls(parts[0].path, [record for part in parts for record in part.records])

    def listed_labels(self, column: dict[str, int], parse: Callable[[str], Iterable[str]]) -> np.ndarray:
        """The labels ``[N, L]``, of which a sequence's name lists those that are 1."""
        values = np.zeros((len(self.records), len(column)), dtype=np.float32)
        for row, record in enumerate(self.records):
            for name in parse(record.header):
                if name not in column:
                    raise ValueError(
                        f"Expected the name in line {record.line} of '{self.path}' to list some of the {len(column)} "
                        f"labels (got '{name}')"
                    )
                values[row, column[name]] = 1
        return values

    def own_label(self) -> np.ndarray:
        """The one label ``[N]`` that is the name of each sequence."""
        for record in self.records:
            if record.header not in ("0", "1"):
                raise ValueError(
                    f"Expected the name '0' or '1', the label of the sequence, in line {record.line} of '{self.path}' "
                    f"(got '{record.header[:80]}')"
                )
        return np.array([float(record.header) for record in self.records], dtype=np.float32)


class LabelTable(NamedTuple):
    """The labels of sequences by their names."""

    path: str
    row: dict[str, int]  #: of each name of a sequence
    values: np.ndarray
    names: list[str]

    def labels_of(self, part: FastaPart) -> np.ndarray:
        """The labels ``[N, L]`` of the sequences of a file."""
        for record in part.records:
            if _id(record) not in self.row:
                raise ValueError(
                    f"Expected a row in '{self.path}' for every sequence (got none for '{_id(record)}', line "
                    f"{record.line} of '{part.path}')"
                )
        return self.values[[self.row[_id(record)] for record in part.records]]


def read_label_table(path: FilePath, id_column: str, label_columns: Sequence[str] | None) -> LabelTable:
    """Reads a table with a row for each sequence."""
    path = Path(os.fsdecode(path))
    table = read_csv_table(path, "\t" if ".tsv" in map(str.lower, path.suffixes) else ",")
    names = [name for name in table.header if name != id_column] if label_columns is None else list(label_columns)
    table.check_columns(names, [id_column])
    row: dict[str, int] = {}
    for number, name in enumerate(name.strip() for name in table.texts(id_column)):
        if row.setdefault(name, number) != number:
            lines = f"lines {table.lines[row[name]]} and {table.lines[number]}"
            raise ValueError(f"Expected one row for every sequence in '{path}' (got '{name}' in {lines})")
    return LabelTable(str(path), row, table.labels(names).astype(np.float32), names)


def check_unique(parts: Sequence[FastaPart]) -> None:
    """Refuses sequences of the same name."""
    seen: dict[str, str] = {}
    for part in parts:
        for record in part.records:
            where, name = f"line {record.line} of '{part.path}'", _id(record)
            if name in seen:
                raise ValueError(
                    f"Expected every sequence to have a name of its own (got '{name}' in {seen[name]} and in {where})"
                )
            seen[name] = where


def one_known(parts: Sequence[FastaPart]) -> np.ndarray:
    """The labels ``[N, L]`` of sequences of which only that of their own file is known."""
    blocks = []
    for column, part in enumerate(parts):
        block = np.full((len(part.records), len(parts)), np.nan, dtype=np.float32)
        block[:, column] = part.own_label()
        blocks.append(block)
    return np.concatenate(blocks)


def _id(record: FastaRecord) -> str:
    return (record.header.split(maxsplit=1) or [""])[0]
