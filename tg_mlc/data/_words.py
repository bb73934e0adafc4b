"""Lists of words as bags or sequences of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch

from tg_mlc.data._label_values import check_names
from tg_mlc.data.vocabulary import UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from tg_mlc.datasets._records import Kind, Tokens

Document = Sequence[Any]


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
    """Whether documents may as well be the rows of a matrix of numbers."""
    lengths = set(map(len, documents))
    if len(lengths) > 1 or 0 in lengths:
        return False
    return not any(isinstance(word, str) for word in chain.from_iterable(documents))


def from_documents(
    documents: list[Document], kind: Kind, feature_names: Sequence[str] | None, train: np.ndarray | None
) -> tuple[sp.csr_array | Tokens, list[str] | None]:
    """Bags or sequences of documents, and the vocabulary if the words are strings or it is given."""
    from tg_mlc.datasets._records import Tokens

    if kind == "vector":
        raise ValueError("Expected a matrix of numbers for kind='vector' (got lists of words)")
    words = None if feature_names is None else [str(name) for name in feature_names]
    if words is not None:
        check_names(words, len(words), "feature_names")
    if any(isinstance(word, str) for word in chain.from_iterable(documents)):
        _check_strings(documents)
        vocabulary = _vocabulary(documents if train is None else [documents[row] for row in train], words)
        words, tokens, known = vocabulary.words, vocabulary.encode(documents), 1
    else:
        _check_numbers(documents, None if words is None else len(words))
        tokens, known = Tokens.of(documents), 0
    return (tokens if kind == "sequence" else _bags(tokens, words, known)), words


def _vocabulary(documents: list[Document], words: list[str] | None) -> Vocabulary:
    if words is None:
        return Vocabulary.build(documents)
    return Vocabulary(words if words[:1] == [UNKNOWN] else [UNKNOWN, *words])


def _check_strings(documents: list[Document]) -> None:
    for row, document in enumerate(documents):
        for place, word in enumerate(document):
            if not isinstance(word, str):
                raise ValueError(
                    f"Expected words to be all strings or all numbers (got {word!r} as word {place} of row {row})"
                )


def _check_numbers(documents: list[Document], num_words: int | None) -> None:
    for row, document in enumerate(documents):
        for place, word in enumerate(document):
            if word < 0 or (num_words is not None and word >= num_words):
                upper = "" if num_words is None else f" to {num_words - 1}, as many as 'feature_names'"
                raise ValueError(
                    f"Expected the numbers of words from 0{upper} (got {word} as word {place} of row {row})"
                )


def _bags(tokens: Tokens, words: list[str] | None, known: int) -> sp.csr_array:
    """Which words are present, of those whose number is that of a known word."""
    width = len(words) if words is not None else int(tokens.ids.max()) + 1 if tokens.ids.size else 0
    rows = np.repeat(np.arange(len(tokens.ptr) - 1), np.diff(tokens.ptr))
    kept = tokens.ids >= known
    present = (np.ones(int(kept.sum()), dtype=np.float32), (rows[kept], tokens.ids[kept]))
    bags = sp.csr_array(present, shape=(len(tokens.ptr) - 1, width))
    bags.sum_duplicates()
    bags.data[:] = 1
    return bags
