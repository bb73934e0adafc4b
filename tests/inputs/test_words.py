from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tests.inputs.test_kinds import fitted
from tg_mlc.data import from_arrays
from tg_mlc.data.bags import bag_of_words
from tg_mlc.inputs import TfIdf, Words

Y = np.eye(4, 2)


@pytest.mark.parametrize("kind", ["sequence", "bag"])
def test_texts_get_the_numbers_of_known_words(kind):
    dataset = from_arrays(
        [["red", "pear"], ["pear"], ["plum", "red"], ["pear"]], Y, ["a", "b"], kind=kind
    )
    words = fitted(Words(), dataset)
    samples = words.transform(["A pear, and a PLUM!", ["red", "red"]])
    like = from_arrays([["a", "pear", "and", "a", "plum"], ["red", "red"]], like=dataset)
    assert [data.x.tolist() for data in samples] == [data.x.tolist() for data in like]
    assert words.components(samples[1]) == (["red"] if kind == "bag" else ["red", "red"])


def test_words_without_names_are_numbers():
    words = fitted(Words(), from_arrays([[0, 2], [1], [2, 2, 1], [5]], Y, ["a", "b"]))
    samples = words.transform([[5, 0], [1]])
    assert [data.x.tolist() for data in samples] == [[5, 0], [1]]
    assert words.components(samples[0]) == ["word 5", "word 0"]
    with pytest.raises(ValueError, match="from 0 to 5"):
        words.transform([[6], [1, 2]])


def test_samples_of_other_words_are_refused():
    words = fitted(Words(), from_arrays([["red"], ["pear"], ["red"], ["pear"]], Y, ["a", "b"]))
    other = from_arrays([["pear"], ["red"]], Y[:2], ["a", "b"])
    same = from_arrays([["pear"], ["red"]], Y[:2], ["a", "b"], ["red", "pear", "plum"])
    for samples in (same, from_arrays(np.eye(2, 3), Y[:2], ["a", "b"], kind="bag")):
        with pytest.raises(ValueError, match=r"with the 3 words or columns .*pass raw inputs"):
            words.transform(samples)
    assert words.transform(other) is other  # The words and their order are the same.


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


def test_lists_of_as_many_numbers_as_columns_are_rows():
    rows = [[1, 0, 0, 1], [0, 1, 0, 0]]
    words = fitted(Words(), from_arrays(np.array(rows * 4), np.ones((8, 1)), kind="bag"))
    for raw in (rows, np.array(rows), sp.csr_array(rows)):
        assert bag_of_words(words.transform(raw)).toarray().tolist() == rows
    expected = [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert bag_of_words(words.transform([[1, 3], [0, 2]])).toarray().tolist() == expected


def test_steps_weigh_words_and_views_take_them():
    assert [type(step) for step in Words.steps()] == [Words, TfIdf]
    dataset = bags([2, 0], [0, 2], [2, 2], [3, 3])
    expected = [[2, 0], [0, 2], [2, 2], [3, 3]]
    assert Words.views["words"]().fit(dataset).matrix(dataset).toarray().tolist() == expected


@pytest.mark.parametrize("min_df", [1, 2])
def test_the_encoder_keeps_words_of_enough_documents(min_df):
    dataset = from_arrays(
        sp.csr_array([[1, 0.5, 0], [0, 2, 0], [0, 1, 3], [0, 0, 0]]), Y, kind="bag"
    )
    encoder = Words.encoder(dataset, 8, min_df=min_df)
    assert (encoder.kept is None) if min_df == 1 else encoder.kept.tolist() == [False, True, False]
    assert torch.equal(encoder(dataset[1]).ptr, torch.tensor([0, 1]))
