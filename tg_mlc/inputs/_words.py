"""Lists of words as bags or sequences of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from tg_mlc._names import check_names
from tg_mlc.data.records import Kind, Tokens
from tg_mlc.inputs.vocabulary import UNKNOWN, build_vocabulary, check_words, encode

Document = Sequence[Any]
#: The number of words that have none.
NO_NUMBER = -1


def as_documents(X: Any) -> list[Document] | None:
    """Lists of strings or whole numbers, or nothing if the inputs are something else."""
    if not isinstance(X, (list, tuple)) or not X:
        return None
    documents = [row.tolist() if isinstance(row, (np.ndarray, torch.Tensor)) else row for row in X]
    if not all(isinstance(row, (list, tuple)) for row in documents):
        return None
    kinds = set(map(type, chain.from_iterable(documents)))
    if not all(issubclass(kind, (str, int, np.integer)) and kind is not bool for kind in kinds):
        return None
    return documents


def may_be_rows(documents: list[Document]) -> bool:
    """Tells whether documents may as well be the rows of a matrix of numbers."""
    lengths = set(map(len, documents))
    if len(lengths) > 1 or 0 in lengths:
        return False
    return not any(isinstance(word, str) for word in chain.from_iterable(documents))


def from_documents(
    documents: list[Document],
    kind: Kind,
    feature_names: Sequence[str] | None,
    train: np.ndarray | None,
    num_words: int | None = None,
    counts: bool = False,
) -> tuple[sp.csr_array | Tokens, list[str] | None]:
    """Bags or sequences of documents, and the vocabulary if the words are strings or it is given.

    With :obj:`num_words`, the vocabulary is that of an old data set, and stays as it is. With :obj:`counts`, bags have
    how often each word occurs, and not only which ones are present.
    """
    if kind == "vector":
        raise ValueError("Expected a matrix of numbers for kind='vector' (got lists of words)")
    words = None if feature_names is None else list(map(str, feature_names))
    if words is not None:
        check_names(words, len(words), "feature_names")
    if any(isinstance(word, str) for word in chain.from_iterable(documents)):
        _check(documents, lambda word: isinstance(word, str), "words to be all strings or all numbers")
        if words is None and num_words is None:
            words = build_vocabulary(documents if train is None else [documents[row] for row in train])
        elif words is not None and num_words is None:
            words = check_words(words if words[:1] == [UNKNOWN] else [UNKNOWN, *words])
        tokens, unknown = _encoded(documents, words, kind)
    else:
        size = num_words if words is None else len(words)
        whose = "'like' has" if num_words is not None else "'feature_names'"
        top = "" if size is None else f" to {size - 1}, as many as {whose}"
        is_number = (lambda word: word >= 0) if size is None else range(size).__contains__
        _check(documents, is_number, f"the numbers of words from 0{top}")
        tokens, unknown = Tokens.of(documents), NO_NUMBER
    if kind == "sequence":
        return tokens, words
    bags = _bags(tokens, num_words if words is None else len(words), unknown)
    if not counts:
        bags.data[:] = 1
    return bags, words


def _encoded(documents: list[Document], words: list[str] | None, kind: Kind) -> tuple[Tokens, int]:
    """The numbers of the words of documents, and the one that unknown words have."""
    if words is None:
        raise ValueError("Expected the numbers of words, as those of 'like' have no names (got strings)")
    numbers = {word: number for number, word in enumerate(words)}
    unknown = numbers.get(UNKNOWN, NO_NUMBER)
    if kind == "sequence" and unknown == NO_NUMBER:
        _check(documents, numbers.__contains__, f"words that 'like' has, as it has no '{UNKNOWN}' for others")
    return encode(documents, numbers, unknown), unknown


def _check(documents: list[Document], is_right: Callable[[Any], bool], expected: str) -> None:
    for row, document in enumerate(documents):
        for place, word in enumerate(document):
            if not is_right(word):
                raise ValueError(f"Expected {expected} (got {word!r} as word {place} of row {row})")


def _bags(tokens: Tokens, num_words: int | None, unknown: int) -> sp.csr_array:
    """The number of times that each known word occurs."""
    width = num_words if num_words is not None else int(tokens.ids.max()) + 1 if tokens.ids.size else 0
    rows = np.repeat(np.arange(len(tokens.ptr) - 1), np.diff(tokens.ptr))
    kept = tokens.ids != unknown
    occurrences = (np.ones(int(kept.sum()), dtype=np.float32), (rows[kept], tokens.ids[kept]))
    bags = sp.csr_array(occurrences, shape=(len(tokens.ptr) - 1, width))
    bags.sum_duplicates()
    return bags
