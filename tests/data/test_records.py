import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tg_mlc.data import ArrayDataset
from tg_mlc.data.records import Records, Tokens
from tg_mlc.data.samples import Samples

Y = np.array([[1, 0], [0, np.nan], [1, 1]], dtype=np.float32)


def test_bags_hold_the_indices_of_words():
    x = sp.csr_array(np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]]))
    dataset = ArrayDataset(Records(x, Y, ["a", "b"], ["u", "v", "w"]).to_samples())
    assert (dataset.kind, dataset.num_inputs, dataset.feature_names) == ("bag", 3, ["u", "v", "w"])
    assert [data.x.tolist() for data in dataset] == [[1, 2], [], [0]]
    assert "weight" not in dataset[0]
    torch.testing.assert_close(dataset.y, torch.tensor(Y), equal_nan=True)
    assert dataset[1].y.shape == (1, 2)


def test_values_other_than_one_become_weights():
    x = sp.csr_array(np.array([[0, 2.5], [1, 0], [0, 0]]))
    dataset = ArrayDataset(Records(x, Y, ["a", "b"]).to_samples())
    assert dataset[0].weight.tolist() == [2.5]
    assert dataset[2].weight.tolist() == []


def test_vectors_and_sequences_keep_their_values():
    vectors = ArrayDataset(Records(np.arange(6.0).reshape(3, 2), Y, ["a", "b"]).to_samples())
    assert (vectors.kind, vectors.num_inputs, vectors[1].x.tolist()) == ("vector", 2, [[2.0, 3.0]])
    words = ArrayDataset(Records(Tokens.of([[3, 1, 3], [], [0]]), Y, ["a", "b"]).to_samples())
    assert (words.kind, words.num_inputs) == ("sequence", 4)
    assert [data.x.tolist() for data in words] == [[3, 1, 3], [], [0]]


def test_samples_survive_saving_and_loading(tmp_path):
    x, parts = sp.csr_array(np.eye(3)), (np.array([0, 2]), np.array([1]))
    samples = Records(x, Y, ["a", "b"], ["u", "v", "w"], *parts).to_samples()
    samples.save(tmp_path / "data.pt")
    loaded = Samples.load(tmp_path / "data.pt")
    assert (loaded.kind, loaded.feature_names, loaded.num_features) == ("bag", ["u", "v", "w"], 3)
    assert (loaded.train.tolist(), loaded.test.tolist()) == ([0, 2], [1])
    assert torch.equal(loaded.data.x, samples.data.x)


def test_the_official_split_keeps_its_test_part_and_divides_the_rest():
    y = np.random.default_rng(0).integers(0, 2, (50, 3)).astype(np.float32)
    records = Records(np.ones((50, 1)), y, ["a", "b", "c"], None, np.arange(40), np.arange(40, 50))
    dataset = ArrayDataset(records.to_samples())
    split = dataset.official_split()
    assert split.sizes == (36, 4, 10)
    assert split.test.tolist() == list(range(40, 50))
    assert sorted([*split.train.tolist(), *split.val.tolist()]) == list(range(40))
    assert split == dataset.official_split() != dataset.official_split(seed=1)
    with pytest.raises(ValueError, match="a part of a data set"):
        dataset[:10].official_split()


def test_a_missing_official_split_is_named():
    dataset = ArrayDataset(Records(np.ones((3, 1)), Y, ["a", "b"]).to_samples())
    with pytest.raises(ValueError, match="published with a split"):
        dataset.official_split()
