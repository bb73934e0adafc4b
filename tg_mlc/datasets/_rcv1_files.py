"""Texts of RCV1: the token files of the LYRL2004 distribution, and lines of JSON, of NeuralNLP-NeuralClassifier."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import numpy as np

from tg_mlc._files import SUFFIXES, read_lines
from tg_mlc.data.records import Records
from tg_mlc.datasets._download import DatasetUnavailableError
from tg_mlc.datasets._sources import find, placed_in
from tg_mlc.datasets._texts import TextOptions, label_matrix
from tg_mlc.datasets.registry import published

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


class Document(NamedTuple):
    """One document: its number, or its labels, and its words."""

    key: Any
    tokens: list[str]


def read_tokens(paths: Sequence[Path], options: TextOptions, reverse_split: bool) -> Records:
    """Makes a table of the token files, that of the training part first, and the file of topics; with
    :obj:`reverse_split`, the test part gives the vocabulary.
    """
    train, *test, judged = paths
    topics = read_topics(judged)
    names = sorted(set(chain.from_iterable(topics.values())))
    records, numbers = _read_parts(read_token_documents, [train], test, test if reverse_split else [train], options)
    repeated = [number for number, count in Counter(numbers).items() if count > 1]
    others = sorted(topics.keys() ^ set(numbers))
    if repeated or others:
        expected = f"the token files to hold every document of '{judged}' once"
        got = f"{len(others)} in one of both alone, {others[:3]}, and {len(repeated)} twice, {repeated[:3]}"
        raise ValueError(f"Expected {expected} (got {got}); is a file truncated?")
    y = label_matrix((topics[number] for number in numbers), names)
    return records._replace(y=y, label_names=names)


def read_json(paths: Mapping[str, Path], topics: Sequence[str], options: TextOptions) -> Records:
    """Makes a table of the files of the parts that are there.

    With both ``train`` and ``test``, these are the official split (``dev`` belongs to training) and the vocabulary is
    that of the training documents. Otherwise there is no official split, and all documents give the vocabulary.
    """
    train = [paths[part] for part in TRAINING_PARTS if part in paths]
    test = [path for part, path in paths.items() if part == "test"]
    is_split = {"train", "test"} <= paths.keys()
    read = partial(read_json_documents, topics=set(topics))
    records, labels = _read_parts(read, train, test, train if is_split else [*train, *test], options)
    if not labels:
        raise ValueError(f"Expected documents in {', '.join(map(str, paths.values()))} (got none)")
    records = records._replace(y=label_matrix(labels, topics), label_names=list(topics))
    return records if is_split else records._replace(train=None, test=None)


def find_tokens(raw: Path) -> list[Path]:
    """The token files, that for training first, and the file of topics, in ``root/raw`` or in the data folder."""
    folders = placed_in(raw, "rcv1v2/raw")
    found = {name: next(filter(None, (find(name, folder) for folder in folders)), None) for name in TOKEN_FILES}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        places = " or ".join(f"'{folder}'" for folder in folders)
        raise DatasetUnavailableError(
            f"Expected {', '.join(missing)} in {places}, also with {', '.join(SUFFIXES)} (got no such file); place "
            f"the LYRL2004 distribution of {published('rcv1').urls[0]} there, or take form='vectors'"
        )
    return [path for path in found.values() if path is not None]


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
        raise ValueError(f"Expected '.W' after the last '.I' of '{path}' (got its end); is the file truncated?")
    if document is not None:
        yield document


def read_topics(path: Path) -> dict[int, list[str]]:
    """Reads the topics of documents from lines ``topic number 1``, as those of ``rcv1-v2.topics.qrels``."""
    topics: dict[int, list[str]] = {}
    for at, line in read_lines(path):
        judged = JUDGED.fullmatch(line)
        if judged is None:
            raise ValueError(f"Expected line {at} of '{path}' to be a topic, a number and 1 (got {line[:40]!r})")
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
            raise ValueError(f"Expected {expected} (got {line[:40]!r}: {error!r}); is the file truncated?") from error
        for words in (labels, tokens):
            if not isinstance(words, list) or not all(isinstance(word, str) and "\n" not in word for word in words):
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
