"""Base classes of published data sets, which keep samples in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np
import scipy.sparse as sp
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc._options import check_count
from tg_mlc.data import ArrayDataset, MultiLabelDataset
from tg_mlc.data.records import Records, Tokens
from tg_mlc.data.samples import Samples, settings_key
from tg_mlc.datasets.downloads import RawFile, fetch_all, read_checked
from tg_mlc.inputs.molecule_dataset import LabeledMolecules, molecule_samples
from tg_mlc.inputs.words import build_vocabulary, encode


class DatasetOptions(TypedDict, total=False):
    """The options that every published data set has; see :class:`PublishedDataset`."""

    transform: Callable[[Data], Data] | None
    pre_transform: Callable[[Data], Data] | None
    pre_filter: Callable[[Data], bool] | None
    force_reload: bool


class PublishedDataset(MultiLabelDataset):
    """A published data set. Subclasses make its samples, which are kept in ``root/processed``.

    Samples with a :obj:`pre_transform` or :obj:`pre_filter` are kept in a separate folder, named
    after the class and attributes of that object. If it is a function, samples are made each time,
    because functions cannot be compared.

    Args:
        root (str or Path): Folder to keep the data set in.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored.
            (default: :obj:`None`)
        pre_filter (callable, optional): Returns whether to keep a sample. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the samples again. (default: :obj:`False`)

    Raises:
        DatasetUnavailableError: If no source of a file can be reached; the message says how to
            place the files by hand.
        ChecksumError: If a file in ``root/raw`` has another SHA-256; it is renamed to ``.bad``.
        RuntimeError: If the stored samples are damaged.
    """

    files: tuple[RawFile, ...] = ()  #: the raw files in ``root/raw``
    _unstored: Samples | None = None  # samples made by a function, which are not stored

    def __init__(
        self,
        root: str | Path,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
        force_reload: bool = False,
    ) -> None:
        super().__init__(str(root), transform, pre_transform, pre_filter, force_reload=force_reload)
        unstored, self._unstored = self._unstored, None
        self._adopt(unstored or Samples.load(self.processed_paths[0]))

    @cached_property  # A pre-transform's attributes may change in use.
    def processed_dir(self) -> str:
        """``root/processed``, or a folder beside it for each pre-transform and pre-filter."""
        if self.pre_transform is None and self.pre_filter is None:
            return super().processed_dir  # type: ignore[no-any-return]
        return f"{super().processed_dir}_{settings_key(self.pre_transform, self.pre_filter)}"

    @property
    def processed_file_names(self) -> str:
        return "data.pt"

    @property
    def raw_file_names(self) -> list[str]:
        return [file.name for file in self.files]

    def read_raw(self) -> dict[str, bytes]:
        """Returns the content of each raw file by name, after a check of its SHA-256."""
        return {file.name: read_checked(file, Path(self.raw_dir)) for file in self.files}

    def download(self) -> None:
        """Downloads missing raw files, each from the first source that has it."""
        fetch_all(self.files, Path(self.raw_dir))

    def process(self) -> None:
        """Makes the samples from the raw files, and stores them."""
        self.make().save(self.processed_paths[0])

    def _process(self) -> None:
        if settings_key(self.pre_transform, self.pre_filter) is None:
            self._unstored = self.make()
        else:
            super()._process()

    def make(self) -> Samples:
        """Makes the samples from the raw files, with :obj:`pre_transform` and :obj:`pre_filter`."""
        raise NotImplementedError


class PublishedTable(PublishedDataset):
    """A published table of features; subclasses read its raw files. With :obj:`pre_filter`, there
    is no official split, because the rows of the split refer to all samples.
    """

    def read(self) -> Records:
        """Makes the table from the raw files."""
        raise NotImplementedError

    def make(self) -> Samples:
        table = self.read().to_samples()
        if self.pre_transform is None and self.pre_filter is None:
            return table
        samples = list(filter(self.pre_filter or (lambda data: True), ArrayDataset(table)))
        if self.pre_transform is not None:
            samples = [self.pre_transform(data) for data in samples]
        collated = Samples.collate(samples, table.label_names, table.report)
        table = table._replace(data=collated.data, slices=collated.slices)
        return table if self.pre_filter is None else table._replace(train=None, test=None)


class PublishedMolecules(LabeledMolecules, PublishedDataset):
    """A published data set of molecules; subclasses read its raw files."""

    def read(self) -> tuple[Sequence[str], Tensor, Sequence[str]]:
        """Returns SMILES, labels and their names."""
        raise NotImplementedError

    @property
    def processed_file_names(self) -> str:
        # In files named data.pt, chiral tags depend on the spelling of molecules.
        return "molecules.pt"

    def make(self) -> Samples:
        options = {"pre_transform": self.pre_transform, "pre_filter": self.pre_filter}
        return molecule_samples(*self.read(), **options)


def label_matrix(labels: Iterable[Iterable[str]], names: Sequence[str]) -> sp.csr_array:
    """Returns the labels of samples ``[N, L]``; repeated labels of a sample count once."""
    column_of = {name: index for index, name in enumerate(names)}
    tokens = encode((sorted(set(sample)) for sample in labels), column_of, 0)
    ones = np.ones(len(tokens.ids), dtype=np.float32)
    return sp.csr_array((ones, *tokens), shape=(len(tokens.ptr) - 1, len(names)))


class TextOptions(NamedTuple):
    """The settings for the conversion of texts to word indices."""

    min_count: int = 1  #: smallest count of a word in training documents
    max_size: int | None = None  #: largest number of words in the vocabulary
    max_tokens: int | None = None  #: largest number of words of a document, from its beginning

    def check(self) -> TextOptions:
        """Raises :class:`ValueError` if an option is out of range."""
        check_count("min_count", self.min_count)
        check_count("max_size", self.max_size, or_none=True)
        check_count("max_tokens", self.max_tokens, or_none=True)
        return self

    def encode(
        self, train: Iterable[Sequence[str]], documents: Iterable[Sequence[str]]
    ) -> tuple[Tokens, list[str]]:
        """Returns the word ids of all documents, and the vocabulary of the training documents."""
        words = build_vocabulary(self._cut(train), self.min_count, self.max_size)
        ids = {word: index for index, word in enumerate(words)}
        return encode(self._cut(documents), ids, 0), words

    def _cut(self, documents: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        return (list(islice(document, self.max_tokens)) for document in documents)
