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
from tg_mlc._names import check_names, few
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
    """Sequences of DNA with any number of labels: from :meth:`from_fasta` if a table has labels,
    :meth:`from_headers` if the names of sequences list them, and :meth:`from_files` if there is a
    file for each label.

    Letters and labels, at a byte each, are memory-mapped temporary files (in the folder of the
    environment variable :obj:`TMPDIR`), deleted with the data set; labels become floats on access.

    A sample has the codes of its letters as ``x`` of shape ``[n]`` in uint8: 0 to 3 for A, C, G and
    T, and 4 for unknown letters; :class:`~tg_mlc.nn.encoders.DNAEncoder` takes them. With a test
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
        """The line before each sequence in its file, without the ``>``."""
        if not self._is_part():
            return self._headers
        return [self._headers[index] for index in self._places()]

    def get(self, idx: int) -> Data:
        """Returns a sample, which is not cached as in PyG: a million of them take gigabytes."""
        x = slice(None) if self.slices is None else slice(*self.slices["x"][idx : idx + 2].tolist())
        return Data(x=self._data.x[x], y=label_floats(self._data.y[idx : idx + 1]))

    def rows(self, key: str) -> Tensor:
        """Returns an attribute of all samples; see :meth:`MultiLabelDataset.rows`."""
        values = super().rows(key)
        return label_floats(values) if key == "y" else values

    def sparse_y(self) -> csr_array:
        """Returns the labels of all samples as a sparse matrix of ones and NaNs, which
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
                (unknown); also patterns, as of :func:`~tg_mlc.data.from_csv`.
                (default: all but :obj:`id_column`)
            transform (callable, optional): Applied to a sample at every access.
                (default: :obj:`None`)

        Raises:
            ValueError: If a file is malformed, two sequences or two rows have one name, or a
                sequence has no row.
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
        return cls._of(files, listed_labels(files, column, parse), names, transform)

    @classmethod
    def from_files(
        cls,
        files: Mapping[str, FilePath],
        *,
        test: Mapping[str, FilePath] | None = None,
        transform: Callable[[Data], Data] | None = None,
    ) -> DNADataset:
        """Makes a data set from a file for each label, whose sequences are called ``0`` or ``1``.

        Only that one label of a sequence is known; the others are NaN. Sequences that occur in
        several files, or several times in one, are separate samples.

        Args:
            files (dict[str, str or Path]): The file of each label.
            test (dict[str, str or Path], optional): The file of each label for the test part.
                (default: :obj:`None`)
            transform (callable, optional): Applied to a sample at every access.
                (default: :obj:`None`)

        Raises:
            ValueError: If a file is malformed, a sequence has another name, or :obj:`test` has
                other labels.
        """
        names = list(files)
        if test is not None and set(test) != set(names):
            expected = f"'test' to have the labels of 'files', {few(names)}"
            raise ValueError(f"Expected {expected} (got {few(list(test))})")
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
    """Returns the labels in the name of a sequence, between commas and before ``::``, where each
    may have a value: ``"A_1,B_1,C_0::9:1024-2048"`` has the labels A and B.

    An entry that is in :obj:`labels` itself has no value: a label C_0 is in the example, too.
    """
    entries = [entry.strip() for entry in header.partition("::")[0].split(",")]
    listed = [entry for entry in entries if entry and (entry in labels or not entry.endswith("_0"))]
    return [entry if entry in labels else entry.removesuffix("_1") for entry in listed]
