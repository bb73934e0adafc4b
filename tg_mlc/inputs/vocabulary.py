"""Vocabularies: words and their numbers."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from tg_mlc._names import check_names
from tg_mlc._options import check_count
from tg_mlc.data.records import Tokens

#: The word that stands for every word outside the vocabulary; its number is 0.
UNKNOWN = "<unk>"
#: Scripts without spaces between words: Thai to Myanmar, Khmer, Chinese and Japanese.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007"
_UNSPACED += "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
#: Signs within words that are no letters for Python: accents, Hebrew and Arabic points, vowels.
_SIGNS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u200c\u200d"
_WORD = rf"(?:[^\W_{_UNSPACED}]|[{_SIGNS}])"
#: How texts are split, by the names that models store.
PATTERNS = {
    "letters": re.compile(r"[^\W\d_]+"),
    "words": re.compile(
        rf"[0-9]+(?:[.,][0-9]+)+|{_WORD}+(?:[+#]+(?:[0-9]+|(?![+#]|{_WORD})))?|[{_UNSPACED}]+"
    ),
}
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]{{2,}}")


def tokenize(text: str, how: str = "words") -> list[str]:
    """Splits a text into words, in lower case and in order.

    .. code-block:: python

        tokenize("C++ sales rose 3.5 pct")  # ['c++', 'sales', 'rose', '3.5', 'pct']
        tokenize("红苹果")  # ['红苹', '苹果']

    Args:
        text (str): The text.
        how (str, optional): :obj:`"words"`, runs of letters and digits, with ``+`` and ``#`` at
            their ends, and pairs of neighbours in scripts without spaces; or :obj:`"letters"`, runs
            of letters alone. (default: :obj:`"words"`)
    """
    if how == "letters" or text.isascii():
        return PATTERNS[how].findall(text.lower())
    words: list[str] = []
    for word in PATTERNS[how].findall(unicodedata.normalize("NFKC", text).lower()):
        is_unspaced = _IS_UNSPACED.fullmatch(word) is not None
        words += [word[i : i + 2] for i in range(len(word) - 1)] if is_unspaced else [word]
    return words


def build_vocabulary(
    documents: Iterable[Sequence[str]], min_count: int = 1, max_size: int | None = None
) -> list[str]:
    """The words of training documents in the order of their numbers, as :obj:`feature_names` of a
    data set of texts: first :obj:`"<unk>"`, which stands for all others, then the most frequent
    ones, and words of one frequency in the order of the alphabet.

    Args:
        documents (iterable of list of str): The words of each *training* document. Only counts stay
            in memory.
        min_count (int, optional): How often a word must occur in all. (default: :obj:`1`)
        max_size (int, optional): How many words to keep, not counting the unknown one. (default:
            :obj:`None`, all)

    Raises:
        ValueError: If an option is out of range, a document is a string instead of a list of words,
            or a word has a line break in it.
    """
    check_count("min_count", min_count)
    check_count("max_size", max_size, or_none=True)
    counts: Counter[str] = Counter()
    for document in _lists_of_words(documents):
        counts.update(document)
    del counts[UNKNOWN]
    frequent = ((word, count) for word, count in counts.items() if count >= min_count)
    ordered = sorted(frequent, key=lambda item: (-item[1], item[0]))
    return check_words([UNKNOWN, *(word for word, _ in islice(ordered, max_size))])


def check_words(words: list[str]) -> list[str]:
    """Refuses words that are there twice or have a line break in them."""
    check_names(words, len(words), "words")
    broken = next((word for word in words if "\n" in word), None)
    if broken is not None:  # The processed file of a data set keeps one word a line.
        raise ValueError(f"Expected 'words' without line breaks (got {broken!r})")
    return words


def encode(documents: Iterable[Sequence[str]], numbers: Mapping[str, int], unknown: int) -> Tokens:
    """The numbers of the words of documents; a word that has none gets that of unknown words."""
    ids, ends = array("i"), array("q", [0])
    for document in _lists_of_words(documents):
        ids.extend([numbers.get(word, unknown) for word in document])
        ends.append(len(ids))
    return Tokens(np.frombuffer(ids, dtype=np.intc), np.frombuffer(ends, dtype=np.int64))


def _lists_of_words(documents: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    for document in documents:
        if isinstance(document, str):
            got = f"the text {document[:40]!r}"
            raise ValueError(f"Expected lists of words (got {got}); split it with 'tokenize'")
        yield document
