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
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from typing_extensions import Unpack

from tg_mlc._files import SUFFIXES, file_sha256, read_lines
from tg_mlc._names import shorten
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
Document = tuple[Any, list[str]]  #: number or labels of a document, and its words

ROOT = "Root"
(DESCRIPTIONS,) = published("rcv1").optional_files
TAXONOMY, SAMPLE = published("rcv1-sample").files[0]
NUM_TRAIN = 23_149  # Scikit-learn puts the training documents of LYRL2004 first.
TRAINING_PARTS = ("train", "dev")
PARTS = (*TRAINING_PARTS, "test")
# The user must place these files: their checksums are unknown, and they do not fit in memory.
TOKEN_FILES = (
    "lyrl2004_tokens_train.dat",
    *(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)),
    "rcv1-v2.topics.qrels",
)
BEGIN = re.compile(r"\.I ([0-9]{1,9})\s*")
TOPIC_LINE = re.compile(r"(\S+) ([0-9]{1,9}) 1\s*")


class RCV1(PublishedTable):
    """The Reuters stories with 103 topics of the `"RCV1: A New Benchmark Collection for Text
    Categorization Research" <https://jmlr.org/papers/v5/lewis04a.html>`_ paper (RCV1-v2).

    The topics form a hierarchy, which is the known label graph (:attr:`label_parents`). :doc:`The
    page on data sets </datasets>` has a table of the forms:

    * ``"vectors"`` are read by :func:`sklearn.datasets.fetch_rcv1`, into its own folder.
    * ``"tokens"`` come from the token files of the `LYRL2004 distribution
      <http://www.ai.mit.edu/projects/jmlr/papers/volume5/lewis04a/lyrl2004_rcv1v2_README.htm>`_
      (B.12.i) with ``rcv1-v2.topics.qrels`` (B.8), in ``root/raw`` or in ``rcv1v2/raw`` of the
      folder :obj:`TG_MLC_DATA`.
    * ``"json"`` files have an object with ``doc_label`` and ``doc_token`` per line, as in the
      `"NeuralClassifier: An Open-source Neural Hierarchical Multi-label Text Classification
      Toolkit" <https://aclanthology.org/P19-3015>`_ paper. Development documents are part of
      training; without training and test files there is no split, and the vocabulary is built
      from all documents.

    Files placed by hand may be compressed. Words are not changed; word 0, ``"<unk>"``, replaces
    words outside the vocabulary. The official split trains on the 23,149 documents up to 31 August
    1996 and tests on the 781,265 later ones; the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper tests on the 23,149.

    **Licence of the data:** the stories are Reuters', for research; the vectors and tokens are
    distributed openly.

    Args:
        root (str or Path): Folder to keep the data set in.
        form (str, optional): :obj:`"vectors"`, :obj:`"tokens"` or :obj:`"json"`.
            (default: :obj:`"vectors"`)
        reverse_split (bool, optional): Whether to train on the large part, and test on the other.
            (default: :obj:`False`)
        binary (bool, optional): Whether words have no weights. (default: :obj:`False`)
        min_count, max_size, max_tokens (int, optional): As in :class:`Reuters21578`.
        data_home (str or Path, optional): A trusted folder for scikit-learn, which keeps pickles
            there. (default: :obj:`None`, scikit-learn's own)
        **options (optional), and further errors: As in
            :class:`~tg_mlc.datasets.base.PublishedDataset`.

    Raises:
        DatasetUnavailableError: If a file is missing; the message says how to place it by hand.
        ValueError: If a line of a file is malformed, or an option is out of range or does not apply
            to the form.
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
        self.form, self.reverse_split = form, reverse_split
        self.binary, self.data_home = binary, data_home
        self.options = TextOptions(min_count, max_size, max_tokens).check()
        check_choice("form", form, get_args(RCV1Form))
        misplaced = {
            "'reverse_split' for the LYRL2004 split": form == "json" and reverse_split,
            "'binary' for form='vectors'": form != "vectors" and binary,
            "options of words for texts": form == "vectors" and self.options != TextOptions(),
        }
        for option, is_misplaced in misplaced.items():
            if is_misplaced:
                raise ValueError(f"Expected {option} only (got form={form!r})")
        super().__init__(root, **options)

    @property
    def processed_file_names(self) -> str:
        """A file name that depends on form, options, and contents of JSON files in ``root/raw``."""
        settings = (self.reverse_split, self.binary, *self.options, *self._digests.values())
        is_default = settings == (False, False, *TextOptions())
        source = "-".join([self.form, *self._digests])
        return f"{source}.pt" if is_default else f"{source}_{settings_key(*settings)}.pt"

    @cached_property
    def _digests(self) -> dict[str, str]:
        """The SHA-256 of each JSON file in ``root/raw``, which the user may replace."""
        if self.form != "json":
            return {}
        return {part: file_sha256(path) for part, path in self._json_parts().items()}

    @property
    def label_parents(self) -> list[tuple[str, str]]:
        """The 103 pairs ``(child, parent)`` of the topic hierarchy for :func:`tg_mlc.graphs.tree`.
        The parent of 4 topics is ``"Root"``, which is not a label.
        """
        return [(code, topic_parent(code, self.label_names)) for code in self.label_names]

    @property
    def label_descriptions(self) -> dict[str, str]:
        """The name of each topic, by its code."""
        fetch_all([DESCRIPTIONS], Path(self.raw_dir))
        descriptions: dict[str, str] = json.loads(read_checked(DESCRIPTIONS, Path(self.raw_dir)))
        return descriptions

    def download(self) -> None:
        """Does nothing, because the files depend on the form, see :meth:`read`."""

    def read(self) -> Records:
        if self.form == "tokens":
            records = read_tokens(Path(self.raw_dir), self.options, self.reverse_split)
        else:
            records = self._read_json() if self.form == "json" else self._read_vectors()
        if not self.reverse_split:
            return records
        return records._replace(train=records.test, test=records.train)

    def _read_vectors(self) -> Records:
        home = None if self.data_home is None else str(self.data_home)
        try:
            bunch = require("sklearn.datasets", extra="data").fetch_rcv1(data_home=home)
        except OSError as error:
            got = f"(got {type(error).__name__}: {error})"
            hint = "run 'sklearn.datasets.fetch_rcv1(data_home=...)' online and copy that folder"
            expected = "Expected scikit-learn to reach RCV1"
            raise DatasetUnavailableError(f"{expected} {got}; {hint}") from error
        x = sp.csr_array(bunch.data)
        if self.binary:
            x = sp.csr_array((np.ones(x.nnz, dtype=np.float32), x.indices, x.indptr), shape=x.shape)
        parts = np.arange(NUM_TRAIN), np.arange(NUM_TRAIN, x.shape[0])
        return Records(x, sp.csr_array(bunch.target), [*map(str, bunch.target_names)], None, *parts)

    def _read_json(self) -> Records:
        raw = Path(self.raw_dir)
        fetch_all([TAXONOMY], raw)
        pairs = read_parents(read_checked(TAXONOMY, raw).decode(), "taxonomy")
        topics = sorted(child for child, _ in pairs)
        paths = self._json_parts()
        if not paths:
            # The sample is not in the folder of placed parts, which may contain its documents.
            fetch_all([SAMPLE], raw)
            paths = {"dev": raw / SAMPLE.name}
        return read_json(paths, topics, self.options)

    def _json_parts(self) -> dict[str, Path]:
        """Returns the paths of JSON files that the user has placed, by part."""
        paths = {part: find(f"rcv1_{part}.json", Path(self.raw_dir)) for part in PARTS}
        return {part: path for part, path in paths.items() if path is not None}


def topic_parent(code: str, codes: list[str]) -> str:
    """Returns the parent of an RCV1 topic by its code: ``C1511``, ``C151``, ``C15``, ``CCAT``."""
    prefixes = (code[:length] for length in range(len(code) - 1, 0, -1))
    top = f"{code[0]}CAT"
    return next((prefix for prefix in prefixes if prefix in codes), ROOT if code == top else top)


def read_tokens(raw: Path, options: TextOptions, reverse_split: bool) -> Records:
    """Reads the token files and the file of topics, in ``root/raw`` or in the data folder. With
    :obj:`reverse_split`, the vocabulary is built from the test files, which become training files.
    """
    folders = placed_in(raw, "rcv1v2/raw")
    paths = {name: find(name, *folders) for name in TOKEN_FILES}
    if missing := [name for name, path in paths.items() if path is None]:
        locations = " or ".join(f"'{folder}'" for folder in folders)
        expected = f"{', '.join(missing)} in {locations}, also with {', '.join(SUFFIXES)}"
        hint = f"place the LYRL2004 distribution of {published('rcv1').urls[0]} there"
        got = f"(got no such file); {hint}, or pass form='vectors'"
        raise DatasetUnavailableError(f"Expected {expected} {got}")
    train, *test, topic_file = [path for path in paths.values() if path is not None]
    topics = read_topics(topic_file)
    names = sorted(set(chain.from_iterable(topics.values())))
    for_vocabulary = test if reverse_split else [train]
    records, numbers = _read_parts(read_token_documents, [train], test, for_vocabulary, options)
    repeated = [number for number, count in Counter(numbers).items() if count > 1]
    unmatched = sorted(topics.keys() ^ set(numbers))
    if repeated or unmatched:
        expected = f"the token files to hold every document of '{topic_file}' once"
        got = f"{len(unmatched)} in only one of the two, {unmatched[:3]}"
        got += f", and {len(repeated)} twice, {repeated[:3]}"
        raise ValueError(f"Expected {expected} (got {got}); is a file truncated?")
    y = label_matrix((topics[number] for number in numbers), names)
    return records._replace(y=y, label_names=names)


def read_json(paths: Mapping[str, Path], topics: Sequence[str], options: TextOptions) -> Records:
    """Reads the existing parts. ``train`` and ``test``, if both exist, become the official split
    (``dev`` belongs to training), and the vocabulary is built from training documents; otherwise
    there is no split, and the vocabulary is built from all documents.
    """
    train = [paths[part] for part in TRAINING_PARTS if part in paths]
    test = [path for part, path in paths.items() if part == "test"]
    is_split = {"train", "test"} <= paths.keys()
    read, all_paths = partial(read_json_documents, topics=set(topics)), [*train, *test]
    records, labels = _read_parts(read, train, test, train if is_split else all_paths, options)
    if not labels:
        raise ValueError(f"Expected documents in {', '.join(map(str, paths.values()))} (got none)")
    records = records._replace(y=label_matrix(labels, topics), label_names=list(topics))
    return records if is_split else records._replace(train=None, test=None)


def read_token_documents(path: Path) -> Iterator[Document]:
    """Yields the documents of a file: ``.I number``, ``.W``, and lines of stemmed words."""
    document, has_words = None, True
    for line_number, line in read_lines(path):
        if (begin := BEGIN.fullmatch(line)) and has_words:
            if document is not None:
                yield document
            document, has_words = (int(begin[1]), list[str]()), False
        elif line.rstrip() == ".W" and not has_words:
            has_words = True
        elif document is not None and has_words and not line.startswith((".I", ".W")):
            document[1].extend(line.split())
        else:
            expected = f"line {line_number} of '{path}' to be '.I' with a number, '.W', or words"
            raise ValueError(f"Expected {expected} (got {line[:40]!r})")
    if not has_words:
        got = "(got its end); is the file truncated?"
        raise ValueError(f"Expected '.W' after the last '.I' of '{path}' {got}")
    if document is not None:
        yield document


def read_topics(path: Path) -> dict[int, list[str]]:
    """Reads the topics of documents from lines ``topic number 1``."""
    topics: dict[int, list[str]] = {}
    for line_number, line in read_lines(path):
        if (match := TOPIC_LINE.fullmatch(line)) is None:
            expected = f"line {line_number} of '{path}' to be a topic, a number and 1"
            raise ValueError(f"Expected {expected} (got {line[:40]!r})")
        topics.setdefault(int(match[2]), []).append(intern(match[1]))
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
            got = f"(got {line[:40]!r}: {shorten(repr(error))}); is the file truncated?"
            raise ValueError(f"Expected {expected} {got}") from error
        for words in (labels, tokens):
            is_list = isinstance(words, list) and all(isinstance(word, str) for word in words)
            if not is_list or any("\n" in word for word in words):
                raise ValueError(f"Expected lists of words in {where} (got {str(words)[:40]})")
        if unknown := [label for label in labels if label not in topics]:
            raise ValueError(f"Expected {where} to have topics of RCV1 (got {unknown[:3]})")
        yield [intern(label) for label in labels], tokens


def _read_parts(
    read: Callable[[Path], Iterator[Document]],
    train: Sequence[Path],
    test: Sequence[Path],
    for_vocabulary: Sequence[Path],
    options: TextOptions,
) -> tuple[Records, list[Any]]:
    """Returns all documents in the vocabulary of some files, and their numbers or labels."""
    keys: list[Any] = []
    num_train = 0

    def collect() -> Iterator[list[str]]:
        nonlocal num_train
        for path in (*train, *test):
            for key, tokens in read(path):
                keys.append(key)
                yield tokens
            num_train = len(keys) if path in train else num_train

    words = (tokens for path in for_vocabulary for _, tokens in read(path))
    tokens, names = options.encode(words, collect())
    train_rows, test_rows = np.split(np.arange(len(keys)), [num_train])
    return Records(tokens, np.empty((len(keys), 0)), [], names, train_rows, test_rows), keys
