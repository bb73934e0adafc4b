"""Options that data sets of texts share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tg_mlc.data.records import Tokens
from tg_mlc.data.vocabulary import Vocabulary, check_at_least_one


class TextOptions(NamedTuple):
    """The settings that turn texts into numbers."""

    min_count: int = 1  #: how often a word must occur in the training documents
    max_size: int | None = None  #: how many words to keep
    max_tokens: int | None = None  #: how many words of a document to keep, from its beginning

    def check(self) -> TextOptions:
        """Raises :class:`ValueError` if an option is out of range."""
        check_at_least_one("min_count", self.min_count)
        check_at_least_one("max_size", self.max_size, or_none=True)
        check_at_least_one("max_tokens", self.max_tokens, or_none=True)
        return self

    def encode(self, train: Iterable[Sequence[str]], documents: Iterable[Sequence[str]]) -> tuple[Tokens, list[str]]:
        """The numbers of all documents by the vocabulary of the training documents, and its words."""
        vocabulary = Vocabulary.build(self._cut(train), self.min_count, self.max_size)
        return vocabulary.encode(self._cut(documents)), vocabulary.words

    def _cut(self, documents: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        return (list(islice(document, self.max_tokens)) for document in documents)
