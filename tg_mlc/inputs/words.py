"""Words: reads texts, words or word indices as sequences or bags, and builds vocabularies."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, groupby, islice
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch_geometric.data import Data
from typing_extensions import Self, Unpack

from tg_mlc._input_options import INPUT_OPTIONS
from tg_mlc._names import check_names
from tg_mlc._numbers import as_list, is_blank, is_missing, parse_number
from tg_mlc._options import check_count
from tg_mlc._warnings import collected_warnings, note, warn
from tg_mlc.data import ArrayDataset, MultiLabelDataset, Split
from tg_mlc.data.bags import bag_of_words
from tg_mlc.data.dataset import joined
from tg_mlc.data.records import Records, Tokens
from tg_mlc.inputs._features import (
    Document,
    TableKind,
    as_documents,
    dense_matrix,
    may_be_rows,
    read_matrix,
    sparse_matrix,
)
from tg_mlc.inputs.kind import EncoderOptions, Form, ReadOptions, Rows, View
from tg_mlc.inputs.preprocessor import Preprocessor
from tg_mlc.inputs.scalers import TfIdf

#: The word that replaces every word outside the vocabulary; its index is 0.
UNKNOWN = "<unk>"
#: Scripts without spaces between words: Thai to Myanmar, Khmer, Chinese and Japanese, of which the
#: rare characters fill two planes.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007"
_UNSPACED += "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_DECIMAL = r"[0-9]+(?:[.,][0-9]+)+"
_SUFFIX = r"(?:[+#]+(?:[0-9]+|(?![+#]|[^\W_])))?"  #: The end of a word such as C++.
#: Regular expressions that split texts, by the names that models store; "words" splits ASCII texts.
PATTERNS = {
    "letters": re.compile(r"[^\W\d_]+"),
    "words": re.compile(rf"{_DECIMAL}|[^\W_]+{_SUFFIX}", re.ASCII),
}
NO_NUMBER = -1  #: stands for the index of a word outside the vocabulary


class WordMatrix(View):
    """The weights of words, unchanged."""

    def matrix(self, dataset: MultiLabelDataset) -> sp.csr_array:
        return bag_of_words(dataset)


class Words(TableKind):
    """Converts texts, lists of words or matrices of words to samples with the vocabulary of a
    model; :func:`~tg_mlc.data.tokenize` splits texts into words.

    Raises:
        ValueError: On use, if texts are passed although training words had weights.
    """

    forms = {"bags": Form("bag", is_matrix=True), "texts": Form("sequence")}
    option = role = "text"
    command_option = INPUT_OPTIONS["text"]
    parts = "words"
    views = {"words": WordMatrix}
    #: The type of values in training bags; texts have no weights.
    values: Literal["presence", "counts", "weights"] = "presence"
    tokenizer: str = "words"  #: How :func:`~tg_mlc.data.tokenize` splits texts.

    @classmethod
    def claims(cls, texts: Sequence[Any]) -> bool:
        """Tells whether most strings have three words or more."""
        return 2 * sum(str(text).strip().count(" ") >= 2 for text in texts) > len(texts)

    @classmethod
    def check_column(cls, name: str, cells: Sequence[Any]) -> None:
        texts = [cell.strip() for cell in cells if isinstance(cell, str)]
        if cells and len(texts) == len(cells) and None not in map(parse_number, texts):
            got = f"(got numbers, such as {texts[0]!r:.40}); take it as a column of features"
            raise ValueError(f"Expected texts in column '{name}' {got}")

    @classmethod
    def recognise(cls, X: Any) -> tuple[str, str] | None:
        """Takes lists of words as sequences, sparse matrices and matrices of 0 and 1 as bags."""
        documents = as_documents(X)
        if documents is not None:
            if may_be_rows(documents):
                expected = "'kind' for lists of whole numbers all of one length"
                got = f"{len(documents)} of length {len(documents[0])}"
                hint = "if they are rows of a matrix, pass kind='vector'; "
                hint += "if numbers of words, pass kind='sequence' or 'bag'"
                raise ValueError(f"Expected {expected} (got {got}); {hint}")
            if any(isinstance(word, str) for document in documents for word in document):
                return "sequence", "they are lists of words"
            reason = "they are lists of whole numbers, not all of one length"
            return "sequence", f"{reason}, as numbers of words may be"
        if sparse_matrix(X) is not None:
            return "bag", "they are a sparse matrix"
        values = dense_matrix(X)
        if values.dtype.kind in "biu" and values.size and values.min() >= 0 and values.max() <= 1:
            return "bag", "they are a matrix of the whole numbers 0 and 1"
        return None

    @classmethod
    def read(
        cls, X: Any, kind: str | None, **options: Unpack[ReadOptions]
    ) -> tuple[Rows, list[str] | None]:
        """Reads lists of words, or a matrix of their weights."""
        documents, num_inputs = as_documents(X), options.get("num_inputs")
        if documents is None and kind == "bag":
            return read_matrix(X, options.get("feature_names"), num_inputs, sparse=True)
        if documents is None:
            hint = "pass one list per sample"
            raise ValueError(f"Expected lists of words for kind='sequence' (got a matrix); {hint}")
        tokens, words, unknown = number_words(documents, kind == "sequence", **options)
        if kind == "sequence":
            return tokens, words
        bags = count_words(tokens, num_inputs if words is None else len(words), unknown)
        bags.data[:] = 1
        return bags, words

    @classmethod
    def split(cls, raw: Any, how: str = "words") -> Any:
        """Splits texts into words; other inputs are returned unchanged."""
        if isinstance(raw, (list, tuple)) and any(isinstance(text, str) for text in raw):
            if how not in PATTERNS:
                got = "texts, but the training texts were split by a custom tokenizer"
                raise ValueError(f"Expected lists of words (got {got})")
            words = [tokenize(text, how) if isinstance(text, str) else text for text in raw]
            warn_of_lost(raw, words)
            return words
        return raw

    def _split(self, raw: Any) -> Any:
        return self.split(raw, self.tokenizer)

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Stores labels and words, and whether training bags have counts or weights."""
        super().fit(dataset, split)
        self.tokenizer = dataset.tokenizer
        if self.kind == "bag":
            values = bag_of_words(dataset[split.train]).data
            are_counts = ((values >= 0) & (values == np.floor(values))).all()
            self.values = "counts" if are_counts else "weights"
            self.values = "presence" if (values == 1).all() else self.values
        return self

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        # Older models, saved without a tokenizer, split texts into runs of letters.
        return super().load_state_dict({"tokenizer": "letters", **state})

    def _column(self, raw: Any) -> Any:
        """Returns the only column if it holds texts or lists, else the training columns."""
        if len(getattr(raw, "columns", ())) != 1:
            return super()._column(raw)
        column = as_list(raw[raw.columns[0]])
        return column if isinstance(column, list) else raw

    def _of_list(self, raw: list[Any]) -> MultiLabelDataset:
        """Makes samples of a mixed list of texts, lists of words, and rows of a matrix."""
        rows: dict[str, list[int]] = {}
        for row, entry in enumerate(raw):
            rows.setdefault(self._form(entry), []).append(row)
        parts = [self._of_form(form, [raw[i] for i in indices]) for form, indices in rows.items()]
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate([*rows.values()]))
        return joined(parts).copy(order.tolist())

    def _form(self, entry: Any) -> str:
        """Returns the form of one input, whatever the forms of other inputs are."""
        if isinstance(entry, Mapping):
            is_text = len(entry) == 1 and isinstance(next(iter(entry.values())), (str, list, tuple))
            return "cell" if is_text or self.kind != "bag" else "row"
        words = entry.tolist() if isinstance(entry, (np.ndarray, torch.Tensor)) else entry
        if isinstance(words, str):
            return "words"
        if not isinstance(words, (list, tuple)):
            return "other"
        types = {*map(type, words)}
        if all(issubclass(dtype, str) for dtype in types):
            return "words"
        is_number = bool not in types and all(issubclass(t, (int, np.integer)) for t in types)
        if is_number and not (self.kind == "bag" and len(words) == self.num_inputs):
            return "numbers"
        return "row" if self.kind == "bag" else "other"

    def _of_form(self, form: str, inputs: list[Any]) -> MultiLabelDataset:
        if form == "cell":
            return super()._of_list(inputs)
        if form == "row":
            return self._of_matrix(*self._read_rows(inputs))
        if form == "other":
            got = "nothing" if is_missing(inputs[0]) else f"{inputs[0]!r:.40}"
            raise ValueError(f"Expected a text, or a list of words or of their numbers (got {got})")
        return self._new_samples(self._split(inputs))

    def unreadable(self, raw: Any) -> dict[int, str]:
        """Returns by row why inputs cannot be read."""
        raw = as_list(self._column(raw))
        return self._unreadable(list(raw), 0) if isinstance(raw, (list, tuple)) else {}

    def _unreadable(self, inputs: list[Any], first: int) -> dict[int, str]:
        """Searches for unreadable inputs by bisection."""
        try:
            with collected_warnings():  # Readable inputs warn when they are read again.
                self._of_list(inputs)
            return {}
        except (ValueError, TypeError) as error:
            if len(inputs) == 1:
                return {first: str(error).replace(" of row 0)", ")").removesuffix(" in row 0")}
        middle = len(inputs) // 2
        refused = self._unreadable(inputs[:middle], first)
        return refused | self._unreadable(inputs[middle:], first + middle)

    def _new_samples(self, raw: Any) -> MultiLabelDataset:
        documents = as_documents(raw)
        is_bag = self.kind == "bag"
        if documents and is_bag and len(documents[0]) == self.num_inputs and may_be_rows(documents):
            # Lists with one entry per word of the vocabulary are taken as rows of a matrix.
            raw, documents = np.array(documents), None
        if documents is None or self.values == "presence":
            return super()._new_samples(raw)
        if self.values == "weights":
            expected = "a matrix with weights of words, as in training samples, which are no counts"
            got = "texts or lists of words"
            raise ValueError(f"Expected {expected} (got {got}); weight words as in training")
        size: dict[str, Any] = {"feature_names": self.feature_names, "num_inputs": self.num_inputs}
        tokens, words, unknown = number_words(documents, False, **size)
        counts = count_words(tokens, self.num_inputs, unknown)
        records = Records(counts, self._unknown(len(documents)), self.label_names, words)
        return ArrayDataset(records.to_samples())

    @classmethod
    def steps(cls, *, scaled: bool = False) -> list[Preprocessor]:
        return [cls(), TfIdf()]

    @classmethod
    def encoder(
        cls, train: MultiLabelDataset, channels: int, **options: Unpack[EncoderOptions]
    ) -> nn.Module:
        from tg_mlc.nn.encoders import BagEncoder, SequenceEncoder

        size, min_df = train.num_inputs or 0, options.get("min_df", 1)
        if train.kind == "sequence":
            return SequenceEncoder(size, channels)
        counts = (bag_of_words(train) != 0).sum(axis=0) if min_df > 1 else None
        is_kept = None if counts is None else torch.from_numpy(np.asarray(counts).ravel() >= min_df)
        normalized, dropout = "weight" in train[0], options.get("input_dropout", 0.2)
        return BagEncoder(size, channels, dropout=dropout, normalized=normalized, kept=is_kept)

    def examples(self, number: int) -> Any:
        rng, shape = np.random.default_rng(0), (number, self.num_inputs)
        if self.values == "weights":
            return rng.random(shape) * (rng.random(shape) < 0.1)
        names = [name for name in self.feature_names or range(self.num_inputs) if name != UNKNOWN]
        sizes = 2 + np.arange(number) % 25  # Rows of a matrix have one length; these lists differ.
        return [[names[index] for index in rng.integers(len(names), size=size)] for size in sizes]

    def components(self, sample: Data) -> list[str]:
        names, indices = self.feature_names, sample.x.tolist()
        return [f"word {number}" if names is None else names[number] for number in indices]

    def component_names(self, sample: Data, raw: Any) -> list[str]:
        """Returns the words of a text, including words outside the vocabulary."""
        names = self.components(sample)
        if not isinstance(raw, (str, list)):
            return names
        words = tokenize(raw, self.tokenizer) if isinstance(raw, str) else list(map(str, raw))
        return words if len(words) == len(names) else names

    def state_fractions(
        self, sample: Data, prepared: Data, network: nn.Module, num_rows: int
    ) -> np.ndarray | None:
        """Returns the fractions of words per row. There are fewer rows if a bag has every word
        once, or if an encoder keeps only frequent words.
        """
        fractions = super().state_fractions(sample, prepared, network, num_rows)
        if fractions is not None:
            return fractions
        is_kept = getattr(getattr(network, "encoder", None), "kept", None)
        words = prepared.x if is_kept is None else prepared.x[is_kept[prepared.x].cpu()]
        if len(words) != num_rows:
            return None
        is_same = (sample.x.view(-1, 1) == words.view(1, -1)).double()
        return np.asarray(is_same / is_same.sum(dim=0).clamp_min(1))


def warn_of_lost(texts: Sequence[Any], documents: Sequence[Sequence[Any]]) -> None:
    """Warns of texts that lose all their words, such as those of emoji alone."""
    pairs = zip(texts, documents, strict=True)
    lost = [text for text, words in pairs if not len(words) and isinstance(text, str)]
    if lost := [text for text in lost if not is_blank(text)]:
        reason = "because they have neither letters nor digits"
        got = f"{len(lost)} of {len(documents)} texts have no words"
        warn(f"{got}, such as {lost[0]!r:.40}, {reason}. Emoji are no words: write them out")


def number_words(
    documents: list[Document],
    ordered: bool,
    feature_names: Sequence[str] | None = None,
    train: np.ndarray | None = None,
    num_inputs: int | None = None,
) -> tuple[Tokens, list[str] | None, int]:
    """Returns the word indices of documents, the vocabulary (if words are strings, or it is
    passed), and the index of unknown words.

    With :obj:`num_inputs`, the vocabulary comes from an earlier data set and is not extended.
    """
    words = None if feature_names is None else list(map(str, feature_names))
    if words is not None:
        check_names(words, len(words), "feature_names")
    if not any(isinstance(word, str) for word in chain.from_iterable(documents)):
        size = num_inputs if words is None else len(words)
        owner = "'like' has" if num_inputs is not None else "'feature_names'"
        limit = "" if size is None else f" to {size - 1}, as many as {owner}"
        is_index = (lambda word: word >= 0) if size is None else range(size).__contains__
        _check(documents, is_index, f"the numbers of words from 0{limit}")
        return Tokens.of(documents), words, NO_NUMBER
    _check(documents, lambda word: isinstance(word, str), "words to be all strings or all numbers")
    if num_inputs is None and words is None:
        words = build_vocabulary(documents if train is None else [documents[row] for row in train])
    elif num_inputs is None and words is not None:
        words = check_words(words if words[:1] == [UNKNOWN] else [UNKNOWN, *words])
    elif words is None:
        reason = "those of 'like' have no names"
        raise ValueError(f"Expected the numbers of words, as {reason} (got strings)")
    index_of = {word: number for number, word in enumerate(words or ())}
    unknown = index_of.get(UNKNOWN, NO_NUMBER)
    if ordered and unknown == NO_NUMBER:
        expected = f"words that 'like' has, as it has no '{UNKNOWN}' for others"
        _check(documents, index_of.__contains__, expected)
    tokens = encode(documents, index_of, unknown)
    if num_inputs is not None:
        is_known = np.concatenate([[0], (tokens.ids != unknown).cumsum()])
        note(
            "no known word", "", int((is_known[tokens.ptr[1:]] == is_known[tokens.ptr[:-1]]).sum())
        )
    return tokens, words, unknown


def count_words(tokens: Tokens, num_words: int | None, unknown: int) -> sp.csr_array:
    """Returns the counts of known words in each document."""
    width = int(tokens.ids.max(initial=-1)) + 1 if num_words is None else num_words
    rows = np.repeat(np.arange(len(tokens.ptr) - 1), np.diff(tokens.ptr))
    is_known = tokens.ids != unknown
    words = tokens.ids[is_known]
    occurrences = np.ones(len(words), dtype=np.float32), (rows[is_known], words)
    bags = sp.csr_array(occurrences, shape=(len(tokens.ptr) - 1, width))
    bags.sum_duplicates()
    return bags


def _check(documents: list[Document], is_right: Callable[[Any], bool], expected: str) -> None:
    for row, document in enumerate(documents):
        for index, word in enumerate(document):
            if not is_right(word):
                raise ValueError(f"Expected {expected} (got {word!r} as word {index} of row {row})")


def tokenize(text: str, how: str = "words") -> list[str]:
    """Splits a text into words, in lower case and in order.

    .. code-block:: python

        tokenize("C++ sales rose 3.5 pct")  # ['c++', 'sales', 'rose', '3.5', 'pct']
        tokenize("红苹果")  # ['红苹', '苹果']

    Args:
        text (str): The text.
        how (str, optional): :obj:`"words"`, runs of letters and digits that may end in ``+`` or
            ``#``, and pairs of characters in scripts without spaces; or :obj:`"letters"`, runs of
            letters alone. Marks, such as accents and vowel signs, belong to the character before
            them, and characters without a shape vanish, such as soft hyphens.
            (default: :obj:`"words"`)
    """
    if how == "letters" or text.isascii():
        return PATTERNS[how].findall(text.lower())
    pattern, marks, formats = _unicode()
    text = text if text.isprintable() else formats.sub("", text)
    words: list[str] = []
    for word in pattern.findall(unicodedata.normalize("NFKC", text).lower()):
        if _IS_UNSPACED.match(word) is None:
            words.append(word)
        elif marks.isdisjoint(word):
            words += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        else:
            starts = [i for i, letter in enumerate(word) if letter not in marks]
            starts.append(len(word))
            pairs = zip(starts, starts[2:] or starts[1:], strict=False)
            words += [word[start:end] for start, end in pairs]
    return words


class _Unicode(NamedTuple):
    """What splits texts that are not ASCII."""

    word: re.Pattern[str]  #: a word, or a run of a script without spaces
    marks: frozenset[str]  #: accents, points of Hebrew and Arabic, and vowels of many scripts
    formats: re.Pattern[str]  #: a character without a shape, such as a soft hyphen


@cache
def _unicode() -> _Unicode:
    """Returns what splits texts, made on first use because it takes a tenth of a second."""
    # Only planes 0, 1 and 14 have marks and formats; the others are empty, ideographs or private.
    codes = chain(range(0x20000), range(0xE0000, 0xF0000))
    by_category: dict[str, list[int]] = {}
    for code in codes:
        by_category.setdefault(unicodedata.category(chr(code)), []).append(code)
    marks = sorted(by_category["Mn"] + by_category["Mc"])
    formats = [code for code in by_category["Cf"] if code != 0x200B]  # It separates words.
    # Python's \w excludes marks. Ranges beyond the basic plane are slow to search.
    basic, others = _ranges(c for c in marks if c < 2**16), _ranges(c for c in marks if c >= 2**16)
    mark = rf"(?![\0-\x7f])(?:[{basic}]|(?![\0-\uffff])[{others}])"
    word = rf"[^\W_{_UNSPACED}]+(?:{mark}[^\W_{_UNSPACED}]*)*"
    unspaced = f"[{_UNSPACED}]+(?:{mark}[{_UNSPACED}]*)*"
    pattern = re.compile(f"{_DECIMAL}|{word}{_SUFFIX}|{unspaced}")
    return _Unicode(pattern, frozenset(map(chr, marks)), re.compile(f"[{_ranges(formats)}]"))


def _ranges(codes: Iterable[int]) -> str:
    """Returns ascending codes as ranges for a regular expression."""
    numbered = enumerate(codes)
    runs = (
        [code for _, code in run] for _, run in groupby(numbered, lambda pair: pair[1] - pair[0])
    )
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)


def build_vocabulary(
    documents: Iterable[Sequence[str]], min_count: int = 1, max_size: int | None = None
) -> list[str]:
    """Returns the vocabulary of training documents, the :obj:`feature_names` of sequence data sets:
    :obj:`"<unk>"`, which replaces all other words, then words by decreasing frequency, and words
    with the same frequency in alphabetical order.

    Args:
        documents (iterable of list of str): The words of each *training* document. Only counts stay
            in memory.
        min_count (int, optional): The minimum number of occurrences of a word. (default: :obj:`1`)
        max_size (int, optional): The maximum number of words besides ``<unk>``. (default:
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
    """Raises ValueError if a word occurs twice or contains a line break."""
    check_names(words, len(words), "words")
    broken = next((word for word in words if "\n" in word), None)
    if broken is not None:  # The processed file of a data set has one word per line.
        raise ValueError(f"Expected 'words' without line breaks (got {broken!r})")
    return words


def encode(documents: Iterable[Sequence[str]], numbers: Mapping[str, int], unknown: int) -> Tokens:
    """Returns word indices of documents, with the index :obj:`unknown` for other words."""
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
