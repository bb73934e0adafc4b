"""Data sets of labelled DNA sequences from FASTA files."""

from __future__ import annotations

import logging
import math
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc._files import FilePath, byte_lines, decode, read_names
from tg_mlc._names import check_names, few
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.samples import Samples
from tg_mlc.inputs.label_columns import find_labels
from tg_mlc.inputs.tables import Table, read_blocks

logger = logging.getLogger(__name__)

#: The letters in the order of their codes; N stands for all unknown letters.
LETTERS = "ACGTN"
UNKNOWN_LETTER = LETTERS.index("N")
UNKNOWN_LABEL = 2  # code of unknown labels in bytes
MAX_LETTERS = 1 << 28  # the longest human chromosome has 248 million
ROWS_AT_ONCE = 1 << 14  # rows of labels per block
# IUPAC's letters for several bases (https://doi.org/10.1093/nar/13.9.3021), and X for masked bases.
_KNOWN = {**dict.fromkeys("NRYSWKMBDHVX", UNKNOWN_LETTER), "A": 0, "C": 1, "G": 2, "T": 3, "U": 3}
_LETTERS_IN_WORDS = f"{', '.join(LETTERS)} or another of IUPAC"
_STRANGE = 255  # code of bytes that are not letters of DNA
_CODES = bytes(
    _KNOWN.get(chr(byte).upper(), _STRANGE) if byte < 128 else _STRANGE for byte in range(256)
)
_WHITESPACE = b" \t\r\n\v\f"


def letter_codes(text: Any) -> np.ndarray:
    """Returns the codes of DNA letters, as in :func:`read_fasta`."""
    if not isinstance(text, str):
        got = f"{str(text)[:40]!r} of {type(text).__name__}"
        raise ValueError(f"Expected DNA as a string of letters (got {got})")
    codes = np.frombuffer(text.encode().translate(_CODES, _WHITESPACE), dtype=np.uint8)
    if not codes.size or (codes == _STRANGE).any():
        raise ValueError(f"Expected letters of DNA ({_LETTERS_IN_WORDS}; got {text[:40]!r})")
    return codes


class FastaRecord(NamedTuple):
    """One sequence of a FASTA file."""

    header: str  #: the header line, without the ``>``
    letters: np.ndarray  #: the codes of its letters, uint8
    line: int  #: the number of the header line, from 1


def read_fasta(path: FilePath) -> Iterator[FastaRecord]:
    """Reads a FASTA file (plain, ``.gz``, ``.bz2`` or ``.xz``), one sequence at a time.

    The letters A, C, G and T, in upper or lower case, become 0 to 3, and U becomes 3 like T; other
    letters of IUPAC, such as N, become 4 for unknown.
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
            new_codes = line.translate(_CODES, _WHITESPACE)
            if _STRANGE in new_codes:
                invalid = bytes([line.translate(None, _WHITESPACE)[new_codes.index(_STRANGE)]])
                expected = f"letters of DNA ({_LETTERS_IN_WORDS}) in line {number} of '{path}'"
                raise ValueError(f"Expected {expected} (got {invalid!r})")
            codes += new_codes
        elif line.strip():
            expected = f"a name that begins with '>' in line {number} of '{path}'"
            raise ValueError(f"Expected {expected} (got {line[:40]!r})")
    if header is None:
        raise ValueError(f"Expected at least one sequence in '{path}' (got none)")
    yield record(header)


class FastaFiles:
    """The sequences of several files, training files first. Letters are stored on disk."""

    def __init__(self, train: Sequence[FilePath], test: Sequence[FilePath] = ()) -> None:
        self.headers: list[str] = []  #: the header of each sequence
        self.ends: list[int] = []  #: cumulative number of sequences after each file
        self._paths = [os.fsdecode(path) for path in (*train, *test)]
        self._ptr, self._lines = array("q", [0]), array("q")
        self._hashes = array("q")  # 64-bit hashes; chance collisions are negligible
        self.letters = map_temporarily(self._read())  #: the codes of the letters of all sequences
        #: the index of each sequence's first letter, then the number of letters
        self.ptr = np.frombuffer(self._ptr, dtype=np.int64)
        self.num_train = self.ends[len(train) - 1]

    def __len__(self) -> int:
        return len(self.headers)

    def where(self, number: int) -> str:
        """Returns the line and file of a sequence's header."""
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
    """The labels of sequences by name, from a table that is read in blocks of rows."""

    def __init__(self, path: FilePath, id_column: str, label_columns: Sequence[str] | None) -> None:
        self.path = Path(os.fsdecode(path))
        self._delimiter = "\t" if ".tsv" in map(str.lower, self.path.suffixes) else ","
        blocks = read_blocks(self.path, self._delimiter)
        first = next(blocks)
        self.names = [name for name in first.header if name != id_column]
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
        used = array("q", [-1]) * len(self._row)
        for number, header in enumerate(files.headers):
            name = (header.split(maxsplit=1) or [""])[0]
            if name not in self._row:
                got = f"none for '{name}', {files.where(number)}"
                raise ValueError(f"Expected a row in '{self.path}' for every sequence (got {got})")
            row = rows[number] = self._row[name]
            if used[row] >= 0:
                got = f"'{name}' in {files.where(used[row])} and in {files.where(number)}"
                raise ValueError(f"Expected every sequence to have a name of its own (got {got})")
            used[row] = number
        starts = range(0, len(rows), ROWS_AT_ONCE)
        return (self._values[rows[start : start + ROWS_AT_ONCE]] for start in starts)


def listed_labels(
    files: FastaFiles, column: dict[str, int], parse: Callable[[str], Iterable[str]]
) -> Iterator[np.ndarray]:
    """Yields the labels ``[L]`` of each sequence; headers list the labels that are 1."""
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
    known, and headers are its values. Training files, then test files, are in label order.
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
    """Stores bytes in a memory-mapped temporary file, which is deleted with its last view."""
    with TemporaryFile() as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
        if file.tell() == 0:  # An empty file cannot be mapped.
            return np.empty(0, dtype=np.uint8)
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="r+"))


def label_floats(labels: Tensor) -> Tensor:
    """Converts byte labels to float32, NaN where unknown."""
    return labels.to(torch.float32).masked_fill_(labels == UNKNOWN_LABEL, math.nan)


class DNADataset(MultiLabelDataset):
    """Sequences of DNA with any number of labels: :meth:`from_fasta` reads labels from a table,
    :meth:`from_headers` from the names of sequences, and :meth:`from_files` from one file per
    label.

    Letters and labels are bytes in memory-mapped temporary files (in the folder of the environment
    variable :obj:`TMPDIR`), deleted with the data set. Labels become floats on access.

    A sample has the codes of its letters as ``x`` of shape ``[n]`` in uint8: 0 to 3 for A, C, G and
    T, and 4 for unknown letters, as input of :class:`~tg_mlc.nn.encoders.DNAEncoder`. With a test
    file, the two files are the parts of :meth:`official_split`.
    """

    def __init__(
        self,
        samples: Samples,
        headers: Sequence[str],
        transform: Callable[[Data], Data] | None = None,
    ) -> None:
        super().__init__(None, transform)
        self._adopt(samples)
        self._headers = list(headers)

    @property
    def headers(self) -> list[str]:
        """The header line of each sequence, without the ``>``."""
        if not self._is_part():
            return self._headers
        return [self._headers[index] for index in self._places()]

    def get(self, idx: int) -> Data:
        """Returns a sample. Unlike in PyG, samples are not cached: a million take gigabytes."""
        x = slice(None) if self.slices is None else slice(*self.slices["x"][idx : idx + 2].tolist())
        return Data(x=self._data.x[x], y=label_floats(self._data.y[idx : idx + 1]))

    def rows(self, key: str) -> Tensor:
        """Returns an attribute of all samples; see :meth:`MultiLabelDataset.rows`."""
        values = super().rows(key)
        return label_floats(values) if key == "y" else values

    def sparse_y(self) -> csr_array:
        """Returns the labels of all samples as a sparse matrix of ones and NaNs, *e.g.* for
        :func:`~tg_mlc.graphs.co_occurrence`.
        """
        stored = csr_array(super().rows("y").numpy()).astype(np.float32)
        stored.data[stored.data == UNKNOWN_LABEL] = np.nan
        return stored

    def _labels_of(self, rows: Tensor) -> csr_array:
        return self.sparse_y()[rows.numpy()]

    @classmethod
    def from_fasta(
        cls,
        fasta: FilePath,
        labels: FilePath,
        *,
        test: FilePath | None = None,
        id_column: str = "id",
        label_columns: Sequence[str] | None = None,
        transform: Callable[[Data], Data] | None = None,
    ) -> DNADataset:
        """Makes a data set from sequences and a table of their labels.

        Sequences and rows are joined by the first word of a sequence's name; rows without a
        sequence are skipped.

        Args:
            fasta (str or Path): The sequences (plain, ``.gz``, ``.bz2`` or ``.xz``).
            labels (str or Path): The table with a header, with tabs between cells if its name ends
                in ``.tsv``, and commas otherwise.
            test (str or Path, optional): Sequences of the test part. (default: :obj:`None`)
            id_column (str, optional): The column of the names of sequences.
                (default: :obj:`"id"`)
            label_columns (list[str], optional): The columns of labels, with cells 0, 1 or blank
                (unknown); also patterns, as in :func:`~tg_mlc.data.from_csv`.
                (default: all but :obj:`id_column`)
            transform (callable, optional): Applied to a sample at every access.
                (default: :obj:`None`)

        Raises:
            ValueError: If a file is malformed, two sequences or rows have the same name, or a
                sequence has no row.
        """
        table = LabelTable(labels, id_column, label_columns)
        files = FastaFiles([fasta], [] if test is None else [test])
        return cls._from_parts(files, table.labels_of(files), table.names, transform)

    @classmethod
    def from_headers(
        cls,
        fasta: FilePath,
        labels: FilePath | Sequence[str],
        *,
        test: FilePath | None = None,
        parse: Callable[[str], Iterable[str]] | None = None,
        transform: Callable[[Data], Data] | None = None,
    ) -> DNADataset:
        """Makes a data set from sequences whose names list their labels.

        Args:
            fasta, test, transform: As in :meth:`from_fasta`.
            labels (list[str], str or Path): The names of all labels, or a file with one per line.
            parse (callable, optional): Returns the labels that are 1 from the name of a sequence.
                (default: :func:`labels_of_header` with :obj:`labels`)

        Raises:
            ValueError: If a file is malformed, or a name has a label that is not in :obj:`labels`.
        """
        if isinstance(labels, (str, bytes, os.PathLike)):
            labels = read_names(labels)
        names = list(labels)
        check_names(names, len(names), "labels")
        column = {name: index for index, name in enumerate(names)}
        files = FastaFiles([fasta], [] if test is None else [test])
        parse = parse or partial(labels_of_header, labels=column)
        return cls._from_parts(files, listed_labels(files, column, parse), names, transform)

    @classmethod
    def from_files(
        cls,
        files: Mapping[str, FilePath],
        *,
        test: Mapping[str, FilePath] | None = None,
        transform: Callable[[Data], Data] | None = None,
    ) -> DNADataset:
        """Makes a data set from one file per label, whose sequences are named ``0`` or ``1``.

        Only this label of a sequence is known; other labels are NaN. Sequences that occur in
        several files, or several times in one, are separate samples.

        Args:
            files (dict[str, str or Path]): The file of each label.
            test (dict[str, str or Path], optional): The test files. (default: :obj:`None`)
            transform: As in :meth:`from_fasta`.

        Raises:
            ValueError: If a file is malformed, a sequence has another name, or :obj:`test` has
                other labels.
        """
        names = list(files)
        if test is not None and set(test) != set(names):
            expected = f"'test' to have the labels of 'files', {few(names)}"
            raise ValueError(f"Expected {expected} (got {few(list(test))})")
        sequences = FastaFiles(list(files.values()), [test[name] for name in names] if test else [])
        return cls._from_parts(sequences, one_known(sequences, len(names)), names, transform)

    @classmethod
    def _from_parts(
        cls,
        files: FastaFiles,
        labels: Iterable[np.ndarray],
        names: list[str],
        transform: Callable[[Data], Data] | None,
    ) -> DNADataset:
        y = torch.from_numpy(map_temporarily(labels)).view(len(files), len(names))
        rows = torch.arange(len(files) + 1)
        data = Data(x=torch.from_numpy(files.letters), y=y)
        slices = {"x": torch.from_numpy(files.ptr), "y": rows}
        samples = Samples(data, slices, names, None, "sequence", list(LETTERS), len(LETTERS))
        if num_test := len(files) - files.num_train:
            train, test = rows[: files.num_train], rows[files.num_train : -1]
            samples = samples._replace(train=train, test=test)
            if overlap := files.num_repeated():
                message = "%d of %d test sequences occur among the training sequences too"
                logger.warning(message, overlap, num_test)
        return cls(samples, files.headers, transform)


def labels_of_header(header: str, labels: Container[str] = ()) -> list[str]:
    """Returns the labels in the name of a sequence, separated by commas before ``::``. They may end
    in a value: ``"A_1,B_1,C_0::9:1024-2048"`` has the labels A and B.

    If an entry such as C_0 is itself in :obj:`labels`, it is a label without a value.
    """
    entries = [entry.strip() for entry in header.partition("::")[0].split(",")]
    valid = [entry for entry in entries if entry and (entry in labels or not entry.endswith("_0"))]
    return [entry if entry in labels else entry.removesuffix("_1") for entry in valid]
