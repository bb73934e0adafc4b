"""Sequences of DNA with labels, from FASTA files."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc._files import FilePath, read_names
from tg_mlc._names import check_names
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.samples import Samples
from tg_mlc.inputs.fasta import (
    LETTERS,
    UNKNOWN_LABEL,
    FastaFiles,
    LabelTable,
    label_floats,
    listed_labels,
    map_temporarily,
    one_known,
)

logger = logging.getLogger(__name__)


class DNADataset(MultiLabelDataset):
    """Sequences of DNA with any number of labels, read by :meth:`from_fasta` where a table has the labels, by
    :meth:`from_headers` where the names of the sequences have them, and by :meth:`from_files` where each file stands
    for one label.

    Letters and labels lie, at a byte each, in temporary files (in the folder that the environment variable
    :obj:`TMPDIR` names) that are mapped into memory and go with the data set; labels become floats as they are asked
    for.

    A sample has the codes of its letters as ``x`` of shape ``[n]`` in uint8: 0 to 3 for A, C, G and T and 4 for one
    that is not known; :class:`~tg_mlc.nn.encoders.DNAEncoder` takes them. Given a test file, the two files are the
    parts of :meth:`official_split`.
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
        """The line before each sequence in its file, without the ``>``."""
        return (
            [self._headers[place] for place in self._places()] if self._is_part() else self._headers
        )

    def get(self, idx: int) -> Data:
        """The sample of a number, which is not kept, as PyG would do: a million of them take gigabytes."""
        x = slice(None) if self.slices is None else slice(*self.slices["x"][idx : idx + 2].tolist())
        return Data(x=self._data.x[x], y=label_floats(self._data.y[idx : idx + 1]))

    def rows(self, key: str) -> Tensor:
        """An attribute of which every sample has one row, of all samples; see :meth:`MultiLabelDataset.rows`."""
        values = super().rows(key)
        return label_floats(values) if key == "y" else values

    def sparse_y(self) -> csr_array:
        """The labels of all samples as a sparse matrix that stores ones and NaNs, which
        :func:`~tg_mlc.graphs.co_occurrence` takes as well.
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
        table = LabelTable(labels, id_column, label_columns)
        files = FastaFiles([fasta], [] if test is None else [test])
        return cls._of(files, table.labels_of(files), table.names, transform)

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
            fasta, test, transform: As of :meth:`from_fasta`.
            labels (list[str], str or Path): The names of all labels, or a file with one in each line.
            parse (callable, optional): Gives the labels that are 1 from the name of a sequence.
                (default: :func:`labels_of_header` with :obj:`labels`)

        Raises:
            ValueError: If a file is malformed or a sequence's name has a label that is not among :obj:`labels`.
        """
        names = (
            read_names(labels) if isinstance(labels, (str, bytes, os.PathLike)) else list(labels)
        )
        check_names(names, len(names), "labels")
        column = {name: place for place, name in enumerate(names)}
        files = FastaFiles([fasta], [] if test is None else [test])
        parse = parse or partial(labels_of_header, labels=column)
        return cls._of(files, listed_labels(files, column, parse), names, transform)

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

        Args:
            files (dict[str, str or Path]): The file of each label.
            test (dict[str, str or Path], optional): The file of each label for the test part. (default: :obj:`None`)
            transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

        Raises:
            ValueError: If a file is malformed, a sequence has another name, or :obj:`test` has other labels.
        """
        names = list(files)
        if test is not None and set(test) != set(names):
            raise ValueError(
                f"Expected 'test' to have the labels of 'files', {names} (got {list(test)})"
            )
        sequences = FastaFiles(list(files.values()), [test[name] for name in names] if test else [])
        return cls._of(sequences, one_known(sequences, len(names)), names, transform)

    @classmethod
    def _of(
        cls,
        files: FastaFiles,
        labels: Iterable[np.ndarray],
        names: list[str],
        transform: Callable[[Data], Data] | None,
    ) -> DNADataset:
        y = torch.from_numpy(map_temporarily(labels)).view(len(files), len(names))
        each = torch.arange(len(files) + 1)
        data = Data(x=torch.from_numpy(files.letters), y=y)
        slices = {"x": torch.from_numpy(files.ptr), "y": each}
        samples = Samples(data, slices, names, None, "sequence", list(LETTERS), len(LETTERS))
        if num_test := len(files) - files.num_train:
            samples = samples._replace(
                train=each[: files.num_train], test=each[files.num_train : -1]
            )
            if overlap := files.num_repeated():
                logger.warning(
                    "%d of %d test sequences occur among the training sequences too",
                    overlap,
                    num_test,
                )
        return cls(samples, files.headers, transform)


def labels_of_header(header: str, labels: Container[str] = ()) -> list[str]:
    """The labels that the name of a sequence lists, divided by commas and perhaps followed by ``::`` and a place, each
    perhaps with its value: ``"A_1,B_1,C_0::9:1024-2048"`` has the labels A and B.

    An entry that is one of :obj:`labels` as it stands has no value: if there is a label C_0, the example has that, too.
    """
    entries = [entry.strip() for entry in header.partition("::")[0].split(",")]
    listed = [entry for entry in entries if entry and (entry in labels or not entry.endswith("_0"))]
    return [entry if entry in labels else entry.removesuffix("_1") for entry in listed]
