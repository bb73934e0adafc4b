from __future__ import annotations

from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fresh import run_python
from tg_mlc.inputs.vocabulary import UNKNOWN, build_vocabulary, check_words, encode, tokenize

DOCUMENTS = [["b", "a", "b"], ["c", "a", "b"], []]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Sales rose 3.5 pct in the U.S.", "sales rose 3.5 pct in the u s"),
        ("C#, C++ and F#; a+b HTML5", "c# c++ and f# a b html5"),
        ("C++17 C#8", "c++17 c#8"),
        ("Café_au lait, cafe\u0301", "café au lait café"),
        (" 12 -- ", "12"),
        ("हिन्दी में", "हिन्दी में"),
        ("חָתוּל", "חָתוּל"),
        ("红苹果 red", "红苹 苹果 red"),
        ("Ｃ＋＋ ソフト", "c++ ソフ フト"),
    ],
)
def test_tokenize(text, words):
    assert [normalize("NFC", word) for word in tokenize(text)] == [
        normalize("NFC", word) for word in words.split(" ")
    ]


def test_letters_alone_as_models_of_before_have_them():
    expected = ["sales", "rose", "pct", "in", "the", "u", "s"]
    assert tokenize("Sales rose 3.5 pct in the U.S.", "letters") == expected
    assert tokenize("Café_au lait, naïve1x", "letters") == ["café", "au", "lait", "naïve", "x"]


def test_the_order_is_by_frequency_then_alphabet():
    words = build_vocabulary([["z", "y", "x"], ["y", "w"]])
    assert words == [UNKNOWN, "y", "w", "x", "z"]
    assert words == build_vocabulary([["w", "y"], ["x", "y", "z"]])


def test_rare_words_and_words_beyond_the_size_are_left_out():
    assert build_vocabulary(DOCUMENTS, min_count=2) == [UNKNOWN, "b", "a"]
    assert build_vocabulary(DOCUMENTS, max_size=1) == [UNKNOWN, "b"]
    assert build_vocabulary(DOCUMENTS, min_count=9) == [UNKNOWN]


def numbers(words):
    return {word: number for number, word in enumerate(words)}


def test_documents_become_tokens():
    tokens = encode([["a", "new", "b"], [], ["c"]], numbers(build_vocabulary(DOCUMENTS)), 0)
    assert tokens.ids.tolist() == [2, 0, 1, 3]
    assert tokens.ptr.tolist() == [0, 3, 3, 4]
    assert np.issubdtype(tokens.ids.dtype, np.integer)


def test_no_documents():
    tokens = encode([], numbers(build_vocabulary([])), 0)
    assert (tokens.ids.tolist(), tokens.ptr.tolist()) == ([], [0])


def test_documents_are_taken_one_at_a_time():
    alive = 0

    class Words(list):
        def __del__(self):
            nonlocal alive
            alive -= 1

    def stream():
        nonlocal alive
        for _ in range(100):
            alive += 1
            assert alive <= 3
            yield Words(["a", "b"])

    words = build_vocabulary(stream())
    assert encode(stream(), numbers(words), 0).ptr[-1] == 200


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=3))))
def test_training_documents_come_back(documents):
    words = build_vocabulary(documents)
    tokens = encode(documents, numbers(words), 0)
    for row, document in enumerate(documents):
        assert [words[i] for i in tokens.ids[tokens.ptr[row] : tokens.ptr[row + 1]]] == document


def test_the_word_for_the_unknown_is_never_counted():
    assert build_vocabulary([[UNKNOWN, UNKNOWN, "a"]]) == [UNKNOWN, "a"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([UNKNOWN, "a", "b", "a"], r"unique \(got \['a'\] more than once\)"),
        ([UNKNOWN, "a\nb"], r"without line breaks \(got 'a\\nb'\)"),
    ],
)
def test_words_that_are_no_vocabulary(words, message):
    with pytest.raises(ValueError, match=message):
        check_words(words)


@pytest.mark.parametrize(
    ("name", "value"), [("min_count", 0), ("min_count", True), ("max_size", 0), ("max_size", 1.5)]
)
def test_options_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"'{name}' to be a whole number of at least 1"):
        build_vocabulary(DOCUMENTS, **{name: value})


def test_texts_instead_of_lists_of_words():
    with pytest.raises(ValueError, match=r"\(got the text 'some text'\); split it with 'tokenize'"):
        build_vocabulary(["some text"])
    with pytest.raises(ValueError, match="lists of words"):
        encode(["some text"], {}, 0)


def test_it_can_be_imported_first():
    # Data sets import it, and it needs one of their types.
    assert run_python("import tg_mlc.inputs.vocabulary") == ("", "")
