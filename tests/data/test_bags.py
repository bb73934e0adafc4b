import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tg_mlc.data import ArrayDataset
from tg_mlc.data.bags import bag_of_words, with_attribute, with_words
from tg_mlc.data.records import Records, Tokens

Y = np.eye(4, 2, dtype=np.float32)
DOCUMENTS = Tokens.of([[0, 2, 2], [1], [], [2, 1, 0]])


@pytest.fixture
def documents():
    rows = np.arange(3), np.arange(3, 4)
    return ArrayDataset(Records(DOCUMENTS, Y, ["a", "b"], ["u", "v", "w"], *rows).to_samples())


def test_words_are_counted(documents):
    expected = [[1, 0, 2], [0, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert bag_of_words(documents).toarray().tolist() == expected
    # The samples of the argument do not change.
    assert [data.x.tolist() for data in documents] == [[0, 2, 2], [1], [], [2, 1, 0]]
    assert bag_of_words(documents[[3, 1]]).toarray().tolist() == [[1, 1, 1], [0, 1, 0]]


def test_weights_are_kept():
    x = sp.csr_array(np.array([[0.5, 0], [0, 2.0], [0, 0], [1, 1]]))
    dataset = ArrayDataset(Records(x, Y, ["a", "b"]).to_samples())
    assert np.array_equal(bag_of_words(dataset).toarray(), x.toarray())


def test_a_subset_of_the_documents_has_no_official_split(documents):
    subset = documents[[3, 1]]
    bags = with_words(subset, bag_of_words(subset))
    assert [data.weight.tolist() for data in bags] == [[1, 1, 1], [1]]  # Ones are weights too.
    assert [data.x.tolist() for data in bags] == [[0, 1, 2], [1]]
    # The official rows count all documents.
    with pytest.raises(ValueError, match="published with a split"):
        bags.official_split()


def test_attributes_follow_their_samples(documents):
    values = torch.arange(8.0).view(4, 2)
    extended = with_attribute(documents, "base_scores", values)
    assert extended[2].base_scores.tolist() == [[4.0, 5.0]]
    assert [data.base_scores.tolist() for data in extended[[3, 0]]] == [[[6.0, 7.0]], [[0.0, 1.0]]]
    assert "base_scores" not in documents[2]
    subset = with_attribute(documents[[3, 1]], "base_scores", values[:2])
    assert [data.base_scores.tolist() for data in subset] == [[[0.0, 1.0]], [[2.0, 3.0]]]
    assert [data.x.tolist() for data in subset] == [[2, 1, 0], [1]]
    with pytest.raises(ValueError, match="a row for each of 4 samples"):
        with_attribute(documents, "base_scores", values[:2])


def test_vectors_are_refused():
    vectors = ArrayDataset(Records(np.ones((4, 2)), Y, ["a", "b"]).to_samples())
    with pytest.raises(ValueError, match=r"numbers of words \(got ArrayDataset"):
        bag_of_words(vectors)


def test_a_single_sample_gets_attributes(documents):
    single = documents.copy([3])
    extended = with_attribute(single, "base_scores", torch.tensor([[1.0, 2.0]]))
    assert extended.rows("base_scores").tolist() == [[1.0, 2.0]]
    assert extended.y.tolist() == single.y.tolist()
    assert bag_of_words(extended).toarray().tolist() == [[1, 1, 1]]
    assert extended[0].base_scores.tolist() == [[1.0, 2.0]]


def test_bags_keep_the_transform(documents):
    documents.transform = lambda data: data.clone().update({"seen": True})
    assert with_words(documents, bag_of_words(documents))[0].seen
