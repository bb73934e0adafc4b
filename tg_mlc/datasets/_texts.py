"""Options that data sets of texts share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from tg_mlc._options import check_count
from tg_mlc.data.records import Tokens
from tg_mlc.inputs.vocabulary import build_vocabulary, encode


def label_matrix(labels: Iterable[Iterable[str]], names: Sequence[str]) -> sp.csr_array:
    """The labels of samples, ``[N, L]``, of which one that is listed twice counts once."""
    column = {name: number for number, name in enumerate(names)}
    tokens = encode((sorted(set(each)) for each in labels), column, 0)
    ones = np.ones(len(tokens.ids), dtype=np.float32)
    return sp.csr_array((ones, *tokens), shape=(len(tokens.ptr) - 1, len(names)))


class TextOptions(NamedTuple):
    """The settings that turn texts into numbers."""

    min_count: int = 1  #: how often a word must occur in the training documents
    max_size: int | None = None  #: how many words to keep
    max_tokens: int | None = None  #: how many words of a document to keep, from its beginning

    def check(self) -> TextOptions:
        """Raises :class:`ValueError` if an option is out of range."""
        check_count("min_count", self.min_count)
        check_count("max_size", self.max_size, or_none=True)
        check_count("max_tokens", self.max_tokens, or_none=True)
        return self

    def encode(self, train: Iterable[Sequence[str]], documents: Iterable[Sequence[str]]) -> tuple[Tokens, list[str]]:
        """The numbers of all documents by the vocabulary of the training documents, and its words."""
        words = build_vocabulary(self._cut(train), self.min_count, self.max_size)
        return encode(self._cut(documents), {word: number for number, word in enumerate(words)}, 0), words

    def _cut(self, documents: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        return (list(islice(document, self.max_tokens)) for document in documents)
