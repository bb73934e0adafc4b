from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tg_mlc.data import MoleculeDataset, from_arrays, random_split
from tg_mlc.data.bags import bag_of_words
from tg_mlc.datasets import Planted
from tg_mlc.inputs import DNAInputs, Fingerprint, MoleculeInputs, TableInputs, from_state, to_state

Y = np.eye(4, 2)


def repr_of(value):
    return type(value).__name__


def fitted(inputs, dataset):
    """What a file would keep of it."""
    return from_state(to_state(inputs.fit(dataset, random_split(len(dataset), (0.5, 0.25, 0.25), seed=0))))


@pytest.mark.parametrize("kind", ["sequence", "bag"])
def test_texts_get_the_numbers_of_known_words(kind):
    dataset = from_arrays([["red", "pear"], ["pear"], ["plum", "red"], ["pear"]], Y, ["a", "b"], kind=kind)
    inputs = fitted(TableInputs(), dataset)
    samples = inputs.transform(["A pear, and a PLUM!", ["red", "red"]])
    like = from_arrays([["a", "pear", "and", "a", "plum"], ["red", "red"]], like=dataset)
    assert [data.x.tolist() for data in samples] == [data.x.tolist() for data in like]
    assert (samples.kind, samples.num_inputs, samples.label_names) == (kind, dataset.num_inputs, ["a", "b"])
    assert samples.y.isnan().all()
    assert inputs.transform(dataset) is dataset


def test_words_without_names_are_numbers():
    inputs = fitted(TableInputs(), from_arrays([[0, 2], [1], [2, 2, 1], [5]], Y, ["a", "b"]))
    assert [data.x.tolist() for data in inputs.transform([[5, 0], [1]])] == [[5, 0], [1]]
    with pytest.raises(ValueError, match="from 0 to 5"):
        inputs.transform([[6], [1, 2]])


def test_rows_are_those_of_the_same_columns():
    dataset = from_arrays(np.arange(12.0).reshape(4, 3) + 0.5, Y, ["a", "b"], ["u", "v", "w"], kind="vector")
    inputs = fitted(TableInputs(), dataset)
    assert inputs.transform([[1, 2, 3.5]])[0].x.tolist() == [[1, 2, 3.5]]
    with pytest.raises(ValueError, match="3 columns"):
        inputs.transform([[1.0, 2.0]])


def test_samples_of_other_words_are_refused():
    inputs = fitted(TableInputs(), from_arrays([["red"], ["pear"], ["red"], ["pear"]], Y, ["a", "b"]))
    other = from_arrays([["pear"], ["red"]], Y[:2], ["a", "b"])
    same = from_arrays([["pear"], ["red"]], Y[:2], ["a", "b"], ["red", "pear", "plum"])
    for samples in (same, from_arrays(np.eye(2, 3), Y[:2], ["a", "b"], kind="bag")):
        with pytest.raises(ValueError, match=r"kind 'sequence' with the 3 words or columns .*pass raw inputs"):
            inputs.transform(samples)
    assert inputs.transform(other) is other  # the very words, in the same order


def test_samples_without_a_table_are_refused():
    with pytest.raises(ValueError, match="'bag', 'sequence' or 'vector'"):
        fitted(TableInputs(), Planted())


def test_letters_of_dna_get_their_codes():
    inputs = fitted(DNAInputs(), from_arrays([["A"], ["C"], ["G"], ["T"]], Y, ["a", "b"], kind="sequence"))
    samples = inputs.transform(["acGTu", "NNry A"])
    assert [data.x.tolist() for data in samples] == [[0, 1, 2, 3, 3], [4, 4, 4, 4, 0]]
    assert samples[0].y.isnan().all()
    for text in ("AC5", ""):
        with pytest.raises(ValueError, match="letters of DNA"):
            inputs.transform([text])


def test_molecules_get_the_vectors_that_others_have():
    pytest.importorskip("rdkit")
    dataset = MoleculeDataset.from_smiles(
        ["C", "CC", "CO", "CN"], Y, ["a", "b"], pre_transform=Fingerprint("morgan", 64)
    )
    inputs = fitted(MoleculeInputs(), dataset)
    (sample,) = inputs.transform(["CO"])
    assert sample.morgan.equal(dataset[2].morgan)
    assert sample.edge_index.equal(dataset[2].edge_index)
    assert "maccs" not in sample
    with pytest.raises(ValueError, match=r"valid molecule in row 1 \(got 'C\(':"):
        inputs.transform(["C", "C("])
    inputs.sizes["descriptors"] = 7
    with pytest.raises(ValueError, match=r"RDKit of 7 descriptors.*install the same version"):
        inputs.transform(["C"])


@pytest.mark.parametrize("raw", ["CCO", b"ACGT"])
@pytest.mark.parametrize("inputs", [TableInputs(), MoleculeInputs(), DNAInputs()], ids=repr_of)
def test_a_string_is_not_taken_for_a_list(inputs, raw):
    inputs.label_names = ["a", "b"]
    with pytest.raises(ValueError, match=r"a list of raw inputs \(got the string .*\[input\]"):
        inputs.transform(raw)


@pytest.mark.parametrize("raw", [[], np.zeros((0, 3)), pd.Series([], dtype=object)], ids=["list", "matrix", "series"])
@pytest.mark.parametrize("inputs", [TableInputs(), MoleculeInputs(), DNAInputs()], ids=repr_of)
def test_no_inputs_are_refused(inputs, raw):
    inputs.label_names = ["a", "b"]
    with pytest.raises(ValueError, match=r"at least one raw input \(got none\)"):
        inputs.transform(raw)


@pytest.mark.parametrize("column", [list, tuple, np.array, pd.Series, lambda texts: np.array(texts, dtype=object)])
def test_texts_may_be_a_column(column):
    inputs = fitted(TableInputs(), from_arrays([["red"], ["pear"], ["red"], ["pear"]], Y, ["a", "b"]))
    assert [data.x.tolist() for data in inputs.transform(column(["Red pear", "pear"]))] == [[2, 1], [1]]
    dna = fitted(DNAInputs(), from_arrays([["A"], ["C"], ["G"], ["T"]], Y, ["a", "b"], kind="sequence"))
    assert [data.x.tolist() for data in dna.transform(column(["AC", "T"]))] == [[0, 1], [3]]


def test_the_only_column_of_a_frame_is_taken_and_one_of_several_has_to_be_chosen():
    texts = fitted(TableInputs(), from_arrays([["red"], ["pear"], ["red"], ["pear"]], Y, ["a", "b"]))
    assert [data.x.tolist() for data in texts.transform(pd.DataFrame({"text": ["Red pear"]}))] == [[2, 1]]
    dna = fitted(DNAInputs(), from_arrays([["A"], ["C"], ["G"], ["T"]], Y, ["a", "b"], kind="sequence"))
    assert [data.x.tolist() for data in dna.transform(pd.DataFrame({"site": ["AC", "T"]}))] == [[0, 1], [3]]
    with pytest.raises(
        ValueError, match=r"data frame of the columns \['id', 'site'\]\); choose one, as in frame\['id'\]"
    ):
        dna.transform(pd.DataFrame({"id": [1], "site": ["AC"]}))


def bags(*rows):
    return from_arrays(np.array(rows, dtype=float), Y, ["a", "b"], ["red", "pear"], kind="bag")


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [(bags([1, 0], [0, 1], [1, 1], [0, 0]), [1, 1]), (bags([2, 0], [0, 2], [2, 2], [3, 3]), [2, 1])],
    ids=["presence", "counts"],
)
@pytest.mark.parametrize("raw", ["Red, red pear or plum", ["red", "red", "pear"], [0, 0, 1]], ids=repr_of)
def test_words_of_bags_are_counted_as_in_training(dataset, expected, raw):
    samples = fitted(TableInputs(), dataset).transform([raw])
    assert bag_of_words(samples).toarray().tolist() == [expected]
    assert (samples.kind, samples.num_inputs, samples.label_names) == ("bag", 2, ["a", "b"])


def test_texts_are_refused_where_words_had_weights():
    inputs = fitted(TableInputs(), bags([0.5, 0], [0, 0.5], [0.5, 0.5], [0.5, 1]))
    with pytest.raises(ValueError, match=r"a matrix with the weights of words.*\(got texts"):
        inputs.transform(["red pear"])
    assert inputs.transform(np.array([[0.5, 2]]))[0].weight.tolist() == [0.5, 2]


def test_lists_of_as_many_numbers_as_columns_are_rows():
    rows = [[1, 0, 0, 1], [0, 1, 0, 0]]
    inputs = fitted(TableInputs(), from_arrays(np.array(rows * 4), np.ones((8, 1)), kind="bag"))
    for raw in (rows, np.array(rows)):
        assert bag_of_words(inputs.transform(raw)).toarray().tolist() == rows
    assert bag_of_words(inputs.transform([[1, 3], [0, 2]])).toarray().tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]


def test_columns_of_a_frame_that_training_did_not_have_are_left_out():
    frame = pd.DataFrame({"size": [1.0, 2, 3, 4] * 2, "colour": ["red", "blue"] * 4})
    inputs = fitted(TableInputs(), from_arrays(frame, np.ones((8, 1)), kind="vector"))
    more = frame.assign(label=1, name=list("abcdefgh"))[["name", "colour", "label", "size"]]
    np.testing.assert_array_equal(inputs.transform(more).rows("x"), inputs.transform(frame).rows("x"))
    with pytest.raises(ValueError, match=r"1 missing: \['size'\], 2 too many: \['label', 'name'\]"):
        inputs.transform(more.drop(columns="size"))
