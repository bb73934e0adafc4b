from functools import partial
from sys import maxunicode
from unicodedata import category, normalize

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.inputs.test_kinds import fitted
from tg_mlc.data import from_arrays, from_csv
from tg_mlc.data.bags import bag_of_words
from tg_mlc.inputs import TfIdf, Words
from tg_mlc.inputs.words import UNKNOWN, build_vocabulary, check_words, encode, tokenize
from tg_mlc.sklearn import AutoClassifier, LinearClassifier

Y = np.eye(4, 2)
DOCUMENTS = [["b", "a", "b"], ["c", "a", "b"], []]


@pytest.mark.parametrize("kind", ["sequence", "bag"])
def test_texts_get_the_indices_of_known_words(kind):
    documents = [["red", "pear"], ["pear"], ["plum", "red"], ["pear"]]
    dataset = from_arrays(documents, Y, ["a", "b"], kind=kind)
    words = fitted(Words(), dataset)
    samples = words.transform(["A pear, and a PLUM!", ["red", "red"]])
    expected = from_arrays([["a", "pear", "and", "a", "plum"], ["red", "red"]], like=dataset)
    assert [data.x.tolist() for data in samples] == [data.x.tolist() for data in expected]
    assert words.components(samples[1]) == (["red"] if kind == "bag" else ["red", "red"])


def test_words_may_be_indices():
    words = fitted(Words(), from_arrays([[0, 2], [1], [2, 2, 1], [5]], Y, ["a", "b"]))
    samples = words.transform([[5, 0], [1]])
    assert [data.x.tolist() for data in samples] == [[5, 0], [1]]
    assert words.components(samples[0]) == ["word 5", "word 0"]
    with pytest.raises(ValueError, match="from 0 to 5"):
        words.transform([[6], [1, 2]])


def test_samples_of_other_words_are_refused():
    words = fitted(Words(), from_arrays([["red"], ["pear"], ["red"], ["pear"]], Y, ["a", "b"]))
    equal = from_arrays([["pear"], ["red"]], Y[:2], ["a", "b"])
    larger = from_arrays([["pear"], ["red"]], Y[:2], ["a", "b"], ["red", "pear", "plum"])
    for samples in (larger, from_arrays(np.eye(2, 3), Y[:2], ["a", "b"], kind="bag")):
        with pytest.raises(ValueError, match=r"with the 3 words or columns .*pass raw inputs"):
            words.transform(samples)
    assert words.transform(equal) is equal  # The words and their order are the same.


def bags(*rows):
    return from_arrays(np.array(rows, dtype=float), Y, ["a", "b"], ["red", "pear"], kind="bag")


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (bags([1, 0], [0, 1], [1, 1], [0, 0]), [1, 1]),
        (bags([2, 0], [0, 2], [2, 2], [3, 3]), [2, 1]),
    ],
    ids=["presence", "counts"],
)
@pytest.mark.parametrize(
    "raw",
    ["Red, red pear or plum", ["red", "red", "pear"], [0, 0, 1]],
    ids=["text", "list", "numbers"],
)
def test_words_of_bags_are_counted_as_in_training(dataset, expected, raw):
    samples = fitted(Words(), dataset).transform([raw])
    assert bag_of_words(samples).toarray().tolist() == [expected]
    assert (samples.kind, samples.num_inputs, samples.label_names) == ("bag", 2, ["a", "b"])


def test_texts_are_refused_where_words_had_weights():
    words = fitted(Words(), bags([0.5, 0], [0, 0.5], [0.5, 0.5], [0.5, 1]))
    with pytest.raises(ValueError, match=r"a matrix with weights of words.*\(got texts"):
        words.transform(["red pear"])
    assert words.transform(np.array([[0.5, 2]]))[0].weight.tolist() == [0.5, 2]


def test_lists_with_one_number_per_column_are_rows():
    rows = [[1, 0, 0, 1], [0, 1, 0, 0]]
    words = fitted(Words(), from_arrays(np.array(rows * 4), np.ones((8, 1)), kind="bag"))
    for raw in (rows, np.array(rows), sp.csr_array(rows)):
        assert bag_of_words(words.transform(raw)).toarray().tolist() == rows
    expected = [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert bag_of_words(words.transform([[1, 3], [0, 2]])).toarray().tolist() == expected


def test_steps_weigh_words_but_views_count():
    assert [type(step) for step in Words.steps()] == [Words, TfIdf]
    dataset = bags([2, 0], [0, 2], [2, 2], [3, 3])
    expected = [[2, 0], [0, 2], [2, 2], [3, 3]]
    assert Words.views["words"]().fit(dataset).matrix(dataset).toarray().tolist() == expected


@pytest.mark.parametrize("min_df", [1, 2])
def test_the_encoder_keeps_words_of_enough_documents(min_df):
    x = sp.csr_array([[1, 0.5, 0], [0, 2, 0], [0, 1, 3], [0, 0, 0]])
    dataset = from_arrays(x, Y, kind="bag")
    encoder = Words.encoder(dataset, 8, min_df=min_df)
    assert (encoder.kept is None) if min_df == 1 else encoder.kept.tolist() == [False, True, False]
    assert torch.equal(encoder(dataset[1]).ptr, torch.tensor([0, 1]))


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
        ("ދިވެހި ބަސް", "ދިވެހި ބަސް"),
        ("ܫܠܵܡܵܐ", "ܫܠܵܡܵܐ"),
        ("བོད་སྐད་ཡིན།", "བོད སྐད ཡིན"),
        ("ꯃꯤꯇꯩ ꯃꯌꯦꯛ", "ꯃꯤꯇꯩ ꯃꯌꯦꯛ"),
        ("בְּרֵאשִׁית", "בְּרֵאשִׁית"),
        ("hyphen\u00adation می\u200cخواهم", "hyphenation میخواهم"),
        ("one\u200btwo \u0301three", "one two three"),
        ("\U00020000\U00020001\U00030000", "\U00020000\U00020001 \U00020001\U00030000"),
        ("ភាសាខ្មែរ", "ភាសា សាខ្ ខ្មែ មែរ"),
    ],
)
def test_texts_are_split_into_words(text, words):
    expected = [normalize("NFC", word) for word in words.split(" ")]
    assert [normalize("NFC", word) for word in tokenize(text)] == expected


def test_every_mark_belongs_to_its_word_and_formats_vanish():
    characters = list(map(chr, range(maxunicode + 1)))
    marks = [char for char in characters if category(char) in ("Mn", "Mc")]
    assert [mark for mark in marks if len(tokenize(f"ක{mark}ක")) != 1] == []
    formats = [char for char in characters if category(char) == "Cf" and char != "\u200b"]
    assert [char for char in formats if tokenize(f"co{char}op") != ["coop"]] == []


def test_texts_that_lose_all_their_words_are_counted(tmp_path):
    texts, path = ["red apple", "\U0001f600", "", "\U0001f44d\U0001f44d"], tmp_path / "a.csv"
    lines = [f'"{text}",{row % 2}' for row, text in enumerate(texts)]
    path.write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    with pytest.warns(UserWarning, match="2 of 4 texts have no words, such as '\U0001f600'"):
        Words.split(texts)
    with pytest.warns(UserWarning, match="2 of 4 texts have no words, such as '\U0001f600'"):
        from_csv(path, ["label"], text_column="text")


@pytest.mark.filterwarnings("ignore:3 of 3 texts have no words")
@pytest.mark.parametrize("make", [LinearClassifier, partial(AutoClassifier, seconds=0)])
def test_classifiers_of_texts_without_any_word_are_refused(make):
    texts = ["\U0001f600", "\U0001f44d \U0001f44d", "..."]
    with pytest.raises(ValueError, match=r"documents with words \(got \d+ documents without any"):
        make().fit(texts * 4, [["x"], ["y"], ["x", "y"]] * 4)


def test_the_old_tokenizer_keeps_letters_alone():
    expected = ["sales", "rose", "pct", "in", "the", "u", "s"]
    assert tokenize("Sales rose 3.5 pct in the U.S.", "letters") == expected
    assert tokenize("Café_au lait, naïve1x", "letters") == ["café", "au", "lait", "naïve", "x"]


def test_words_are_ordered_by_frequency_then_alphabet():
    words = build_vocabulary([["z", "y", "x"], ["y", "w"]])
    assert words == [UNKNOWN, "y", "w", "x", "z"]
    assert words == build_vocabulary([["w", "y"], ["x", "y", "z"]])


def test_rare_words_and_words_beyond_the_size_are_left_out():
    assert build_vocabulary(DOCUMENTS, min_count=2) == [UNKNOWN, "b", "a"]
    assert build_vocabulary(DOCUMENTS, max_size=1) == [UNKNOWN, "b"]
    assert build_vocabulary(DOCUMENTS, min_count=9) == [UNKNOWN]
    assert build_vocabulary([[UNKNOWN, UNKNOWN, "a"]]) == [UNKNOWN, "a"]


def indices_by_word(words):
    return {word: index for index, word in enumerate(words)}


def test_documents_become_tokens():
    tokens = encode([["a", "new", "b"], [], ["c"]], indices_by_word(build_vocabulary(DOCUMENTS)), 0)
    assert tokens.ids.tolist() == [2, 0, 1, 3]
    assert tokens.ptr.tolist() == [0, 3, 3, 4]
    assert np.issubdtype(tokens.ids.dtype, np.integer)
    tokens = encode([], indices_by_word(build_vocabulary([])), 0)
    assert (tokens.ids.tolist(), tokens.ptr.tolist()) == ([], [0])


def test_documents_are_taken_one_at_a_time():
    alive = 0

    class Document(list):
        def __del__(self):
            nonlocal alive
            alive -= 1

    def stream():
        nonlocal alive
        for _ in range(100):
            alive += 1
            assert alive <= 3
            yield Document(["a", "b"])

    words = build_vocabulary(stream())
    assert encode(stream(), indices_by_word(words), 0).ptr[-1] == 200


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=3))))
def test_training_documents_can_be_decoded(documents):
    words = build_vocabulary(documents)
    tokens = encode(documents, indices_by_word(words), 0)
    for row, document in enumerate(documents):
        assert [words[i] for i in tokens.ids[tokens.ptr[row] : tokens.ptr[row + 1]]] == document


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (check_words, [[UNKNOWN, "a", "b", "a"]], r"unique \(got \['a'\] more than once\)"),
        (check_words, [[UNKNOWN, "a\nb"]], r"without line breaks \(got 'a\\nb'\)"),
        (build_vocabulary, [["a b"]], r"\(got the text 'a b'\); split it with 'tokenize'"),
        (encode, [["some text"], {}, 0], "lists of words"),
    ],
)
def test_wrong_arguments_are_named(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(*arguments)


@pytest.mark.parametrize(
    ("name", "value"), [("min_count", 0), ("min_count", True), ("max_size", 0), ("max_size", 1.5)]
)
def test_options_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=f"'{name}' to be a whole number of at least 1"):
        build_vocabulary(DOCUMENTS, **{name: value})
