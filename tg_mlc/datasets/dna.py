"""Sequences of DNA with labels, from FASTA files."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import Data

from tg_mlc._files import FilePath
from tg_mlc.datasets._fasta import LETTERS, FastaRecord
from tg_mlc.datasets._fasta_labels import FastaPart, check_unique, one_known, read_label_table
from tg_mlc.datasets._names import read_names
from tg_mlc.datasets._processed import Samples
from tg_mlc.datasets.base import MultiLabelDataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

logger = logging.getLogger(__name__)


class DNADataset(MultiLabelDataset):
    """Sequences of DNA with any number of labels, read by :meth:`from_fasta` where a table has the labels, by
    :meth:`from_headers` where the names of the sequences have them, and by :meth:`from_files` where each file stands
    for one label.

    A sample has the codes of its letters as ``x`` of shape ``[n]`` in uint8: 0 to 3 for A, C, G and T and 4 for one
    that is not known; :class:`~tg_mlc.nn.encoders.DNAEncoder` takes them. Given a test file, the two files are the
    parts of :meth:`official_split`.

    .. code-block:: python

        dataset = DNADataset.from_fasta("peaks.fa.gz", "peaks.tsv", test="held_out.fa.gz")

    Attributes:
        headers (list[str]): The line before each sequence in its file, without the ``>``.
    """

    headers: list[str]

    def __init__(
        self, samples: Samples, headers: Sequence[str], transform: Callable[[Data], Data] | None = None
    ) -> None:
        super().__init__(None, transform)
        self._adopt(samples)
        self.headers = list(headers)

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
        """Makes a data set from sequences and a table that has their labels.

        Sequences and rows are joined by the first word of a sequence's name; rows without a sequence are left out.

        Args:
            fasta (str or Path): The sequences (plain, ``.gz``, ``.bz2`` or ``.xz``).
            labels (str or Path): The table with a header, its cells divided by tabs if it is called ``.tsv`` and by
                commas otherwise.
            test (str or Path, optional): Sequences of the test part. (default: :obj:`None`)
            id_column (str, optional): The column of the names of sequences. (default: :obj:`"id"`)
            label_columns (list[str], optional): The columns of labels, with cells 0, 1 or blank (unknown).
                (default: all but :obj:`id_column`)
            transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

        Raises:
            ValueError: If a file is malformed, two sequences or two rows have one name, or a sequence has no row.
        """
        table = read_label_table(labels, id_column, label_columns)
        parts = [FastaPart.read(path) for path in _files(fasta, test)]
        check_unique(parts)
        return cls._of(parts, [table.labels_of(part) for part in parts], table.names, transform)

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
            fasta (str or Path): The sequences (plain, ``.gz``, ``.bz2`` or ``.xz``).
            labels (list[str], str or Path): The names of all labels, or a file with one in each line.
            test (str or Path, optional): Sequences of the test part. (default: :obj:`None`)
            parse (callable, optional): Gives the labels that are 1 from the name of a sequence.
                (default: :func:`labels_of_header`)
            transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

        Raises:
            ValueError: If a file is malformed or a sequence's name has a label that is not among :obj:`labels`.
        """
        names = read_names(labels) if isinstance(labels, (str, bytes, os.PathLike)) else list(labels)
        column = {name: place for place, name in enumerate(names)}
        if len(column) != len(names):
            raise ValueError(f"Expected 'labels' to be unique (got {_repeated(names)} more than once)")
        parts = [FastaPart.read(path) for path in _files(fasta, test)]
        values = [part.listed_labels(column, parse or labels_of_header) for part in parts]
        return cls._of(parts, values, names, transform)

    @classmethod
    def from_files(
        cls,
        files: Mapping[str, FilePath],
        *,
        test: Mapping[str, FilePath] | None = None,
        transform: Callable[[Data], Data] | None = None,
    ) -> DNADataset:
        """Makes a data set from a file for each label, in which a sequence is called ``0`` or ``1``.

        Only that one label of a sequence is known, the others are NaN. Sequences that occur in several files, or
        several times in one, are kept apart.

        .. code-block:: python

            factors = ["CTCF", "EP300", "JUND", "RAD21", "SIN3A"]
            dataset = DNADataset.from_files(
                {name: f"{name}.train.fasta.xz" for name in factors},
                test={name: f"{name}.test.fasta.xz" for name in factors},
            )

        Args:
            files (dict[str, str or Path]): The file of each label.
            test (dict[str, str or Path], optional): The file of each label for the test part. (default: :obj:`None`)
            transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

        Raises:
            ValueError: If a file is malformed, a sequence has another name, or :obj:`test` has other labels.
        """
        names = list(files)
        if test is not None and set(test) != set(names):
            raise ValueError(f"Expected 'test' to have the labels of 'files', {names} (got {list(test)})")
        parts, values = [], []
        for of_part in (files, test):
            if of_part is None:
                continue
            each = [FastaPart.read(of_part[name]) for name in names]
            parts.append(FastaPart.join(each))
            values.append(one_known(each))
        return cls._of(parts, values, names, transform)

    @classmethod
    def _of(
        cls,
        parts: Sequence[FastaPart],
        values: Sequence[np.ndarray],
        names: list[str],
        transform: Callable[[Data], Data] | None,
    ) -> DNADataset:
        records = [record for part in parts for record in part.records]
        train = np.arange(len(parts[0].records))
        test = np.arange(len(train), len(records)) if len(parts) > 1 else None
        if test is not None:
            _warn_of_overlap(records[: len(train)], records[len(train) :])
        samples = _samples(records, np.concatenate(values), names, train if test is not None else None, test)
        return cls(samples, [record.header for record in records], transform)


def labels_of_header(header: str) -> list[str]:
    """The labels that the name of a sequence lists, divided by commas and perhaps followed by ``::`` and a place, each
    perhaps with its value: ``"A_1,B_1::9:1024-2048"`` has the labels A and B.
    """
    entries = [entry.strip() for entry in header.partition("::")[0].split(",")]
    return [entry.removesuffix("_1") for entry in entries if entry and not entry.endswith("_0")]


def _files(fasta: FilePath, test: FilePath | None) -> list[FilePath]:
    return [fasta] if test is None else [fasta, test]


def _warn_of_overlap(train: Sequence[FastaRecord], test: Sequence[FastaRecord]) -> None:
    known = {record.letters.tobytes() for record in train}
    overlap = sum(record.letters.tobytes() in known for record in test)
    if overlap:
        logger.warning("%d of %d test sequences occur among the training sequences too", overlap, len(test))


def _samples(
    records: Sequence[FastaRecord], y: np.ndarray, names: list[str], train: np.ndarray | None, test: np.ndarray | None
) -> Samples:
    ptr = np.cumsum([0, *(len(record.letters) for record in records)])
    each = torch.arange(len(records) + 1)
    x = torch.from_numpy(np.concatenate([record.letters for record in records]))
    return Samples(
        Data(x=x, y=torch.from_numpy(y)),
        {"x": torch.from_numpy(ptr), "y": each},
        names,
        report=None,
        kind="sequence",
        feature_names=list(LETTERS),
        num_features=len(LETTERS),
        train=None if train is None else torch.from_numpy(train),
        test=None if test is None else torch.from_numpy(test),
    )


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})[:5]
