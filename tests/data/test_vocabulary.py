from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tg_mlc.data.vocabulary import UNKNOWN, Vocabulary, tokenize

DOCUMENTS = [["b", "a", "b"], ["c", "a", "b"], []]


def test_tokenize():
    assert tokenize("Sales rose 3.5 pct in the U.S.") == ["sales", "rose", "pct", "in", "the", "u", "s"]
    assert tokenize("Café_au lait, naïve1x") == ["café", "au", "lait", "naïve", "x"]
    assert tokenize(" 12 -- ") == []


def test_the_order_is_by_frequency_then_alphabet():
    vocabulary = Vocabulary.build([["z", "y", "x"], ["y", "w"]])
    assert vocabulary.words == [UNKNOWN, "y", "w", "x", "z"]
    assert vocabulary.words == Vocabulary.build([["w", "y"], ["x", "y", "z"]]).words


def test_rare_words_and_words_beyond_the_size_are_left_out():
    assert Vocabulary.build(DOCUMENTS, min_count=2).words == [UNKNOWN, "b", "a"]
    assert Vocabulary.build(DOCUMENTS, max_size=1).words == [UNKNOWN, "b"]
    assert Vocabulary.build(DOCUMENTS, min_count=9).words == [UNKNOWN]


def test_words_and_numbers():
    vocabulary = Vocabulary.build(DOCUMENTS)
    assert (vocabulary["b"], vocabulary["a"], vocabulary["other"]) == (1, 2, 0)
    assert "a" in vocabulary
    assert "other" not in vocabulary
    assert len(vocabulary) == 4
    assert repr(vocabulary) == "Vocabulary(4 words, ['b', 'a', 'c']...)"


def test_documents_become_tokens():
    tokens = Vocabulary.build(DOCUMENTS).encode([["a", "new", "b"], [], ["c"]])
    assert tokens.ids.tolist() == [2, 0, 1, 3]
    assert tokens.ptr.tolist() == [0, 3, 3, 4]
    assert np.issubdtype(tokens.ids.dtype, np.integer)


def test_no_documents():
    tokens = Vocabulary.build([]).encode([])
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

    assert Vocabulary.build(stream()).encode(stream()).ptr[-1] == 200


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=3))))
def test_training_documents_come_back(documents):
    vocabulary = Vocabulary.build(documents)
    tokens = vocabulary.encode(documents)
    for row, document in enumerate(documents):
        assert vocabulary.decode(tokens.ids[tokens.ptr[row] : tokens.ptr[row + 1]]) == document


def test_the_word_for_the_unknown_is_never_counted():
    vocabulary = Vocabulary.build([[UNKNOWN, UNKNOWN, "a"]])
    assert vocabulary.words == [UNKNOWN, "a"]
    assert vocabulary[UNKNOWN] == 0


def test_it_is_made_again_from_its_words():
    vocabulary = Vocabulary.build(DOCUMENTS)
    assert Vocabulary(vocabulary.words).encode(DOCUMENTS).ids.tolist() == vocabulary.encode(DOCUMENTS).ids.tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], r"first of 'words' to be '<unk>' \(got \[\]\)"),
        (["a", UNKNOWN], r"first of 'words' to be '<unk>' \(got \['a'\]\)"),
        ([UNKNOWN, "a", "b", "a"], r"unique \(got \['a'\] more than once\)"),
        ([UNKNOWN, "a\nb"], r"without line breaks \(got 'a\\nb'\)"),
    ],
)
def test_words_that_are_no_vocabulary(words, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(words)


@pytest.mark.parametrize("options", [{"min_count": 0}, {"min_count": True}, {"max_size": 0}, {"max_size": 1.5}])
def test_options_out_of_range(options):
    with pytest.raises(ValueError, match=f"Expected '{next(iter(options))}' to be a whole number of at least 1"):
        Vocabulary.build(DOCUMENTS, **options)


def test_texts_instead_of_lists_of_words():
    with pytest.raises(ValueError, match=r"lists of words \(got the text 'some text'\); split it with 'tokenize'"):
        Vocabulary.build(["some text"])
    with pytest.raises(ValueError, match="lists of words"):
        Vocabulary.build(DOCUMENTS).encode(["some text"])


def test_it_can_be_imported_first():
    # Data sets import it, and it needs one of their types.
    done = subprocess.run([sys.executable, "-c", "import tg_mlc.data.vocabulary"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
