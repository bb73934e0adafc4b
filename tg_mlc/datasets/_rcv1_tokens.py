"""RCV1 as the token files of the LYRL2004 distribution."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from tg_mlc._files import SUFFIXES, read_lines
from tg_mlc.data.records import Records
from tg_mlc.datasets._download import DatasetUnavailableError
from tg_mlc.datasets._sources import data_folder, find
from tg_mlc.datasets._texts import TextOptions
from tg_mlc.datasets.registry import published

# Without known checksums and too large to hold in memory: the user places them.
FILES = (
    "lyrl2004_tokens_train.dat",
    *(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)),
    "rcv1-v2.topics.qrels",
)
BEGIN = re.compile(r"\.I ([0-9]{1,9})\s*")
JUDGED = re.compile(r"(\S+) ([0-9]{1,9}) 1\s*")


class TokenDocument(NamedTuple):
    """One document: its number, and its words, which are stemmed and without stop words."""

    number: int
    tokens: list[str]


class Topics(NamedTuple):
    """The topics of documents by their numbers."""

    names: list[str]
    numbers: np.ndarray  #: of the documents, in order, each once
    y: sp.csr_array  #: the topics of these, ``[num_documents, num_topics]``


def find_tokens(raw: Path) -> list[Path]:
    """The token files, those for training first, and the file of topics, in ``root/raw`` or in the data folder."""
    shared = data_folder()
    folders = [raw.absolute(), *([shared / "rcv1v2" / "raw"] if shared else [])]
    found = [next((path for folder in folders if (path := find(name, folder))), None) for name in FILES]
    missing = [name for name, path in zip(FILES, found, strict=True) if path is None]
    if missing:
        places = " or ".join(f"'{folder}'" for folder in folders)
        raise DatasetUnavailableError(
            f"Expected {', '.join(missing)} in {places}, also with {', '.join(SUFFIXES)} (got no such file); place "
            f"the LYRL2004 distribution of {published('rcv1').urls[0]} there, or take form='vectors'"
        )
    return [path for path in found if path is not None]


def read_token_documents(path: Path) -> Iterator[TokenDocument]:
    """Yields the documents of a file, one at a time: ``.I number``, ``.W``, and lines of words."""
    number, tokens, has_words = None, list[str](), False
    for at, line in read_lines(path):
        where = f"line {at} of '{path}'"
        if begin := BEGIN.fullmatch(line):
            if number is not None:
                yield _whole(number, tokens, has_words, where)
            number, tokens, has_words = int(begin[1]), [], False
        elif line.rstrip() == ".W" and number is not None and not has_words:
            has_words = True
        elif has_words and not line.startswith((".I", ".W")):
            tokens.extend(line.split())
        else:
            raise ValueError(f"Expected {where} to be '.I' with a number, '.W' below it, or words (got {line[:40]!r})")
    if number is not None:
        yield _whole(number, tokens, has_words, f"the end of '{path}'")


def read_topics(path: Path) -> Topics:
    """Reads a file whose lines are ``topic number 1``, such as ``rcv1-v2.topics.qrels``."""
    column: dict[str, int] = {}
    numbers, columns = array("q"), array("i")
    for at, line in read_lines(path):
        judged = JUDGED.fullmatch(line)
        if judged is None:
            raise ValueError(f"Expected line {at} of '{path}' to be a topic, a number and 1 (got {line[:40]!r})")
        columns.append(column.setdefault(judged[1], len(column)))
        numbers.append(int(judged[2]))
    if not column:
        raise ValueError(f"Expected '{path}' to hold the topics of documents (got no line)")
    names = sorted(column)
    place = np.argsort(np.argsort(np.array(list(column))))
    documents, rows = np.unique(np.frombuffer(numbers, dtype=np.int64), return_inverse=True)
    entries = (np.ones(len(rows), dtype=np.float32), (rows, place[np.frombuffer(columns, dtype=np.intc)]))
    y = sp.csr_array(entries, shape=(len(documents), len(names)))
    y.data[:] = 1  # a line that is there twice counts once
    return Topics(names, documents, y)


def read_tokens(
    train: Sequence[Path], test: Sequence[Path], topics: Path, options: TextOptions, reverse_split: bool
) -> Records:
    """Makes a table of the files, those of the training part first; with :obj:`reverse_split`, one that trains on the
    test part, which then gives the vocabulary.
    """
    judged = read_topics(topics)
    numbers, num_train = array("q"), 0

    def collect() -> Iterator[list[str]]:
        nonlocal num_train
        for path in (*train, *test):
            for document in read_token_documents(path):
                numbers.append(document.number)
                num_train += path in train
                yield document.tokens

    words = (document.tokens for path in (test if reverse_split else train) for document in read_token_documents(path))
    tokens, names = options.encode(words, collect())
    rows = _rows(np.frombuffer(numbers, dtype=np.int64), judged.numbers, topics)
    parts = np.arange(num_train), np.arange(num_train, len(rows))
    first, second = reversed(parts) if reverse_split else parts
    return Records(tokens, judged.y[rows], judged.names, names, first, second)


def _whole(number: int, tokens: list[str], has_words: bool, where: str) -> TokenDocument:
    if not has_words:
        raise ValueError(f"Expected '.W' after '.I {number}' (got {where}); is the file truncated?")
    return TokenDocument(number, tokens)


def _rows(numbers: np.ndarray, judged: np.ndarray, path: Path) -> np.ndarray:
    """The places of the documents among the judged ones, which have to be the same."""
    found, counts = np.unique(numbers, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"Expected every document once (got document {found[counts > 1][0]} twice)")
    without, missing = np.setdiff1d(numbers, judged), np.setdiff1d(judged, numbers)
    if len(without) or len(missing):
        got = f"{len(without)} that have no topic there, {without[:3]}, and "
        got += f"{len(missing)} that have no tokens, {missing[:3]}"
        raise ValueError(f"Expected the token files to hold those of '{path}' (got {got}); is a file truncated?")
    return np.searchsorted(judged, numbers)
