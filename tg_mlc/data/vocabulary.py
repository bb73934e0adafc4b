"""Vocabulary: words and their numbers."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from tg_mlc._names import check_names
from tg_mlc._options import check_count
from tg_mlc.data.records import Tokens

#: What stands for every word outside the vocabulary; its number is 0.
UNKNOWN = "<unk>"
_LETTERS = re.compile(r"[^\W\d_]+")


def tokenize(text: str) -> list[str]:
    """Splits a text into its runs of letters, in lower case and in order: digits and punctuation only separate.

    .. code-block:: python

        tokenize("Sales rose 3.5 pct in the U.S.")  # ['sales', 'rose', 'pct', 'in', 'the', 'u', 's']

    Args:
        text (str): The text.
    """
    return _LETTERS.findall(text.lower())


class Vocabulary:
    """The words of a model, each with its number; number 0 is reserved for all others.

    .. code-block:: python

        vocabulary = Vocabulary.build(training_documents, min_count=2)
        tokens = vocabulary.encode(test_documents)  # words not in it become 0

    Args:
        words (list of str): The words in the order of their numbers, of which the first is :obj:`"<unk>"`; the
            :obj:`feature_names` of a data set of texts are such a list.

    Raises:
        ValueError: If the first word is not :obj:`"<unk>"`, a word is there twice or has a line break in it.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        if not self.words or self.words[0] != UNKNOWN:
            raise ValueError(f"Expected the first of 'words' to be {UNKNOWN!r} (got {self.words[:1]})")
        self._index = {word: number for number, word in enumerate(self.words)}
        check_names(self.words, len(self.words), "words")
        broken = next((word for word in self.words if "\n" in word), None)
        if broken is not None:  # the processed file of a data set keeps one word a line
            raise ValueError(f"Expected 'words' without line breaks (got {broken!r})")

    @classmethod
    def build(cls, documents: Iterable[Sequence[str]], min_count: int = 1, max_size: int | None = None) -> Vocabulary:
        """The vocabulary of training documents: the more frequent a word, the lower its number, and words of one
        frequency in the order of the alphabet.

        Args:
            documents (iterable of list of str): The words of each *training* document. Only counts stay in memory.
            min_count (int, optional): How often a word must occur in all. (default: :obj:`1`)
            max_size (int, optional): How many words to keep, not counting the unknown one.
                (default: :obj:`None`, all)

        Raises:
            ValueError: If an option is out of range, or a document is a string instead of a list of words.
        """
        check_count("min_count", min_count)
        check_count("max_size", max_size, or_none=True)
        counts: Counter[str] = Counter()
        for document in _lists_of_words(documents):
            counts.update(document)
        del counts[UNKNOWN]
        frequent = ((word, count) for word, count in counts.items() if count >= min_count)
        ordered = sorted(frequent, key=lambda item: (-item[1], item[0]))
        return cls([UNKNOWN, *(word for word, _ in islice(ordered, max_size))])

    def encode(self, documents: Iterable[Sequence[str]]) -> Tokens:
        """The numbers of the words of documents, in order, of which only the numbers stay in memory.

        Args:
            documents (iterable of list of str): The words of each document.

        Raises:
            ValueError: If a document is a string instead of a list of words.
        """
        return encode(documents, self._index, 0)

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """The words of numbers.

        Args:
            numbers (iterable of int): The numbers.
        """
        return [self.words[number] for number in numbers]

    def __getitem__(self, word: str) -> int:
        """The number of a word, 0 if it is unknown."""
        return self._index.get(word, 0)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} words, {self.words[1:4]}...)"


def encode(documents: Iterable[Sequence[str]], numbers: Mapping[str, int], unknown: int) -> Tokens:
    """The numbers of the words of documents, where a word that has none gets that of unknown ones."""
    ids, ends = array("i"), array("q", [0])
    for document in _lists_of_words(documents):
        ids.extend([numbers.get(word, unknown) for word in document])
        ends.append(len(ids))
    return Tokens(np.frombuffer(ids, dtype=np.intc), np.frombuffer(ends, dtype=np.int64))


def _lists_of_words(documents: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    for document in documents:
        if isinstance(document, str):
            raise ValueError(f"Expected lists of words (got the text {document[:40]!r}); split it with 'tokenize'")
        yield document
