"""RCV1: news stories of 1996 and 1997 with their topics."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from sys import intern
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse as sp
from typing_extensions import Unpack

from tg_mlc._files import SUFFIXES, file_sha256, read_lines
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.data.records import Records
from tg_mlc.data.samples import settings_key
from tg_mlc.datasets.base import DatasetOptions, PublishedTable, TextOptions, label_matrix
from tg_mlc.datasets.downloads import (
    DatasetUnavailableError,
    fetch_all,
    find,
    placed_in,
    read_checked,
)
from tg_mlc.datasets.registry import published
from tg_mlc.graphs import read_parents

RCV1Form = Literal["vectors", "tokens", "json"]

ROOT = "Root"
(DESCRIPTIONS,) = published("rcv1").optional_files
TAXONOMY, SAMPLE = published("rcv1-sample").files[0]
NUM_TRAIN = 23_149  # of LYRL2004; scikit-learn puts these documents first
TRAINING_PARTS = ("train", "dev")
PARTS = (*TRAINING_PARTS, "test")
# Without known checksums and too large to hold in memory: the user places them.
TOKEN_FILES = (
    "lyrl2004_tokens_train.dat",
    *(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)),
    "rcv1-v2.topics.qrels",
)
BEGIN = re.compile(r"\.I ([0-9]{1,9})\s*")
JUDGED = re.compile(r"(\S+) ([0-9]{1,9}) 1\s*")


class RCV1(PublishedTable):
    """The Reuters stories with 103 topics of the `"RCV1: A New Benchmark Collection for Text Categorization Research"
    <https://jmlr.org/papers/v5/lewis04a.html>`_ paper (RCV1-v2).

    The topics are a hierarchy, which is the known label graph, see :attr:`label_parents`. :doc:`The page on data sets
    </datasets>` has a table of the forms:

    * ``"vectors"`` are those of :func:`sklearn.datasets.fetch_rcv1`, which keeps them in its own folder.
    * ``"tokens"`` come from the token files of the `LYRL2004 distribution
      <http://www.ai.mit.edu/projects/jmlr/papers/volume5/lewis04a/lyrl2004_rcv1v2_README.htm>`_ (B.12.i) with
      ``rcv1-v2.topics.qrels`` (B.8), in ``root/raw`` or in ``rcv1v2/raw`` in the folder that the environment variable
      :obj:`TG_MLC_DATA` names.
    * ``"json"`` files have one object with ``doc_label`` and ``doc_token`` a line, as in the `"NeuralClassifier: An
      Open-source Neural Hierarchical Multi-label Text Classification Toolkit" <https://aclanthology.org/P19-3015>`_
      paper. They are split by their names, development documents counting as training; a file alone has no split, and
      then all documents give the vocabulary.

    Files placed by hand may be compressed (:obj:`.gz`, :obj:`.xz`, :obj:`.bz2`). Words stay as the file has them; word
    0, ``"<unk>"``, stands for those outside the vocabulary.

    The official split trains on the 23,149 documents up to 31 August 1996 and tests on the 781,265 later ones. The
    `"Neural Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper does the
    opposite (703,135 for training, 78,126 for validation and these 23,149 for testing): see :obj:`reverse_split`.

    **Licence of the data:** the stories are Reuters', for research; the vectors and tokens are distributed openly.

    Args:
        root (str or Path): Folder to keep the data set in.
        form (str, optional): The form to read: :obj:`"vectors"`, :obj:`"tokens"`, :obj:`"json"`.
            (default: :obj:`"vectors"`)
        reverse_split (bool, optional): Whether the large part trains and the small one tests. (default: :obj:`False`)
        binary (bool, optional): If set to :obj:`True`, bags are without weights. (default: :obj:`False`)
        min_count, max_size, max_tokens (int, optional): As in :class:`Reuters21578`, for training documents.
        data_home (str or Path, optional): The folder of scikit-learn, which keeps pickles there: give only one whose
            files you trust. (default: :obj:`None`, scikit-learn's own)
        **options (optional), and further errors: As in :class:`~tg_mlc.datasets.base.PublishedDataset`.

    Raises:
        DatasetUnavailableError: If a file is missing and cannot be had; the message says how to place it by hand.
        ValueError: If a file is damaged or not of its form, with the line; or an option is out of range or means
            nothing for this form.
    """

    license = published("rcv1").licence

    def __init__(
        self,
        root: str | Path,
        form: RCV1Form = "vectors",
        *,
        reverse_split: bool = False,
        binary: bool = False,
        min_count: int = 1,
        max_size: int | None = None,
        max_tokens: int | None = None,
        data_home: str | Path | None = None,
        **options: Unpack[DatasetOptions],
    ) -> None:
        self.form, self.reverse_split, self.binary, self.data_home = (
            form,
            reverse_split,
            binary,
            data_home,
        )
        self.options = TextOptions(min_count, max_size, max_tokens).check()
        check_choice("form", form, get_args(RCV1Form))
        if form == "json" and reverse_split:
            raise ValueError(
                "Expected 'reverse_split' for the LYRL2004 split only (got form='json')"
            )
        if form != "vectors" and binary:
            raise ValueError(f"Expected 'binary' for form='vectors' only (got form={form!r})")
        if form == "vectors" and self.options != TextOptions():
            raise ValueError(
                "Expected options of words for texts only (got form='vectors', which has its own words)"
            )
        super().__init__(root, **options)

    @property
    def processed_file_names(self) -> str:
        """The processed file, one for each form, choice of options, and content of the JSON files in ``root/raw``."""
        settings = (self.reverse_split, self.binary, *self.options, *self._digests.values())
        plain = settings == (False, False, *TextOptions())
        source = "-".join([self.form, *self._digests])
        return f"{source}.pt" if plain else f"{source}_{settings_key(*settings)}.pt"

    @cached_property
    def _digests(self) -> dict[str, str]:
        """The SHA-256 of the parts that the user has placed, of which others may take their place some day."""
        return (
            {part: file_sha256(path) for part, path in self._json_parts().items()}
            if self.form == "json"
            else {}
        )

    @property
    def label_parents(self) -> list[tuple[str, str]]:
        """The edges of the topic hierarchy as pairs of codes ``(child, parent)``, as :func:`tg_mlc.graphs.tree` takes
        them: 103, of which 4 lead to the root, ``"Root"``, which is no label.
        """
        return [(code, topic_parent(code, self.label_names)) for code in self.label_names]

    @property
    def label_descriptions(self) -> dict[str, str]:
        """The name of each topic."""
        fetch_all([DESCRIPTIONS], Path(self.raw_dir))
        descriptions: dict[str, str] = json.loads(read_checked(DESCRIPTIONS, Path(self.raw_dir)))
        return descriptions

    def download(self) -> None:
        """Nothing: which files are needed depends on the form, see :meth:`read`."""

    def read(self) -> Records:
        if self.form == "tokens":
            records = read_tokens(Path(self.raw_dir), self.options, self.reverse_split)
        else:
            records = self._read_json() if self.form == "json" else self._read_vectors()
        return (
            records._replace(train=records.test, test=records.train)
            if self.reverse_split
            else records
        )

    def _read_vectors(self) -> Records:
        home = None if self.data_home is None else str(self.data_home)
        try:
            bunch = require("sklearn.datasets", extra="data").fetch_rcv1(data_home=home)
        except OSError as error:
            got = f"{type(error).__name__}: {error}"
            hint = "run 'sklearn.datasets.fetch_rcv1(data_home=...)' on a machine with network and copy that folder"
            raise DatasetUnavailableError(
                f"Expected scikit-learn to reach RCV1 (got {got}); {hint}"
            ) from error
        x = sp.csr_array(bunch.data)
        if self.binary:
            x = sp.csr_array((np.ones(x.nnz, dtype=np.float32), x.indices, x.indptr), shape=x.shape)
        parts = np.arange(NUM_TRAIN), np.arange(NUM_TRAIN, x.shape[0])
        return Records(
            x, sp.csr_array(bunch.target), [str(name) for name in bunch.target_names], None, *parts
        )

    def _read_json(self) -> Records:
        raw = Path(self.raw_dir)
        fetch_all([TAXONOMY], raw)
        topics = sorted(
            child for child, _ in read_parents(read_checked(TAXONOMY, raw).decode(), "taxonomy")
        )
        paths = self._json_parts()
        if not paths:
            # In a folder of its own, because it may share documents with parts that are placed later.
            fetch_all([SAMPLE], raw)
            paths = {"dev": raw / SAMPLE.name}
        return read_json(paths, topics, self.options)

    def _json_parts(self) -> dict[str, Path]:
        """The parts that the user has placed."""
        return {
            part: path for part in PARTS if (path := find(f"rcv1_{part}.json", Path(self.raw_dir)))
        }


def topic_parent(code: str, codes: list[str]) -> str:
    """The parent of an RCV1 topic, which its code tells: ``C1511`` is below ``C151``, that below ``C15``, ``CCAT``."""
    prefixes = (code[:length] for length in range(len(code) - 1, 0, -1))
    top = f"{code[0]}CAT"
    return next((prefix for prefix in prefixes if prefix in codes), ROOT if code == top else top)


class Document(NamedTuple):
    """One document: its number, or its labels, and its words."""

    key: Any
    tokens: list[str]


def read_tokens(raw: Path, options: TextOptions, reverse_split: bool) -> Records:
    """Makes a table of the token files and the file of topics, in ``root/raw`` or in the data folder; with
    :obj:`reverse_split`, the test part gives the vocabulary.
    """
    folders = placed_in(raw, "rcv1v2/raw")
    found = {name: find(name, *folders) for name in TOKEN_FILES}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        places = (
            " or ".join(f"'{folder}'" for folder in folders) + f", also with {', '.join(SUFFIXES)}"
        )
        hint = f"place the LYRL2004 distribution of {published('rcv1').urls[0]} there, or take form='vectors'"
        raise DatasetUnavailableError(
            f"Expected {', '.join(missing)} in {places} (got no such file); {hint}"
        )
    train, *test, judged = [path for path in found.values() if path is not None]
    topics = read_topics(judged)
    names = sorted(set(chain.from_iterable(topics.values())))
    records, numbers = _read_parts(
        read_token_documents, [train], test, test if reverse_split else [train], options
    )
    repeated = [number for number, count in Counter(numbers).items() if count > 1]
    others = sorted(topics.keys() ^ set(numbers))
    if repeated or others:
        expected = f"the token files to hold every document of '{judged}' once"
        got = f"{len(others)} in one of both alone, {others[:3]}, and {len(repeated)} twice, {repeated[:3]}"
        raise ValueError(f"Expected {expected} (got {got}); is a file truncated?")
    y = label_matrix((topics[number] for number in numbers), names)
    return records._replace(y=y, label_names=names)


def read_json(paths: Mapping[str, Path], topics: Sequence[str], options: TextOptions) -> Records:
    """Makes a table of the parts that are there. With both ``train`` and ``test``, these are the official split
    (``dev`` belongs to training), and training documents give the vocabulary; else all documents do, without a split.
    """
    train = [paths[part] for part in TRAINING_PARTS if part in paths]
    test = [path for part, path in paths.items() if part == "test"]
    is_split = {"train", "test"} <= paths.keys()
    read = partial(read_json_documents, topics=set(topics))
    records, labels = _read_parts(
        read, train, test, train if is_split else [*train, *test], options
    )
    if not labels:
        raise ValueError(f"Expected documents in {', '.join(map(str, paths.values()))} (got none)")
    records = records._replace(y=label_matrix(labels, topics), label_names=list(topics))
    return records if is_split else records._replace(train=None, test=None)


def read_token_documents(path: Path) -> Iterator[Document]:
    """Yields the documents of a file, one at a time: ``.I number``, ``.W``, and lines of words, which are stemmed and
    without stop words.
    """
    document, has_words = None, True
    for at, line in read_lines(path):
        if (begin := BEGIN.fullmatch(line)) and has_words:
            if document is not None:
                yield document
            document, has_words = Document(int(begin[1]), []), False
        elif line.rstrip() == ".W" and not has_words:
            has_words = True
        elif document is not None and has_words and not line.startswith((".I", ".W")):
            document.tokens.extend(line.split())
        else:
            expected = f"line {at} of '{path}' to be '.I' with a number, '.W' below it, or words"
            raise ValueError(f"Expected {expected} (got {line[:40]!r})")
    if not has_words:
        raise ValueError(
            f"Expected '.W' after the last '.I' of '{path}' (got its end); is the file truncated?"
        )
    if document is not None:
        yield document


def read_topics(path: Path) -> dict[int, list[str]]:
    """Reads the topics of documents from lines ``topic number 1`` such as those of ``rcv1-v2.topics.qrels``."""
    topics: dict[int, list[str]] = {}
    for at, line in read_lines(path):
        judged = JUDGED.fullmatch(line)
        if judged is None:
            raise ValueError(
                f"Expected line {at} of '{path}' to be a topic, a number and 1 (got {line[:40]!r})"
            )
        topics.setdefault(int(judged[2]), []).append(intern(judged[1]))
    return topics


def read_json_documents(path: Path, topics: Collection[str]) -> Iterator[Document]:
    """Yields the documents of a file, one line at a time."""
    for number, line in read_lines(path):
        where = f"line {number} of '{path}'"
        try:
            record = json.loads(line)
            labels, tokens = record["doc_label"], record["doc_token"]
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            expected = f"{where} to be a JSON object with 'doc_label' and 'doc_token'"
            raise ValueError(
                f"Expected {expected} (got {line[:40]!r}: {error!r}); is the file truncated?"
            ) from error
        for words in (labels, tokens):
            if not isinstance(words, list) or not all(
                isinstance(word, str) and "\n" not in word for word in words
            ):
                raise ValueError(f"Expected lists of words in {where} (got {str(words)[:40]})")
        unknown = [label for label in labels if label not in topics]
        if unknown:
            raise ValueError(f"Expected {where} to have topics of RCV1 (got {unknown[:3]})")
        yield Document([intern(label) for label in labels], tokens)


def _read_parts(
    read: Callable[[Path], Iterator[Document]],
    train: Sequence[Path],
    test: Sequence[Path],
    counted: Sequence[Path],
    options: TextOptions,
) -> tuple[Records, list[Any]]:
    """The words of all documents by the vocabulary of some files, yet without labels, and the keys of the documents."""
    keys: list[Any] = []
    num_train = 0

    def collect() -> Iterator[list[str]]:
        nonlocal num_train
        for path in (*train, *test):
            for document in read(path):
                keys.append(document.key)
                yield document.tokens
            num_train = len(keys) if path in train else num_train

    words = (document.tokens for path in counted for document in read(path))
    tokens, names = options.encode(words, collect())
    first, second = np.split(np.arange(len(keys)), [num_train])
    return Records(tokens, np.empty((len(keys), 0)), [], names, first, second), keys
