from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.feature_extraction.text import TfidfTransformer

from tg_mlc.data import Split
from tg_mlc.data.bags import bag_of_words, tf_idf, with_attribute, with_words
from tg_mlc.datasets._records import Records, Tokens
from tg_mlc.datasets.base import ArrayDataset

Y = np.eye(4, 2, dtype=np.float32)
DOCUMENTS = Tokens.of([[0, 2, 2], [1], [], [2, 1, 0]])
SPLIT = Split(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3]), "by hand")


@pytest.fixture
def documents():
    return ArrayDataset(Records(DOCUMENTS, Y, ["a", "b"], ["u", "v", "w"], np.arange(3), np.arange(3, 4)).to_samples())


def test_words_are_counted(documents):
    assert bag_of_words(documents).toarray().tolist() == [[1, 0, 2], [0, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert [data.x.tolist() for data in documents] == [[0, 2, 2], [1], [], [2, 1, 0]]  # left as they were
    assert bag_of_words(documents[[3, 1]]).toarray().tolist() == [[1, 1, 1], [0, 1, 0]]


def test_weights_are_kept():
    x = sp.csr_array(np.array([[0.5, 0], [0, 2.0], [0, 0], [1, 1]]))
    assert np.array_equal(bag_of_words(ArrayDataset(Records(x, Y, ["a", "b"]).to_samples())).toarray(), x.toarray())


def test_rarity_is_that_of_training_documents(documents):
    counts = bag_of_words(documents).toarray()
    reference = TfidfTransformer(sublinear_tf=True).fit(counts[:2]).transform(counts)
    weighted = tf_idf(documents, SPLIT)
    np.testing.assert_allclose(weighted.toarray(), reference.toarray(), atol=1e-6)
    other = Split(torch.tensor([0, 3]), torch.tensor([1]), torch.tensor([2]), "by hand")
    assert not np.allclose(weighted.toarray(), tf_idf(documents, other).toarray())


def test_words_of_no_training_document_are_left_out(documents):
    first = Split(torch.tensor([1]), torch.tensor([2]), torch.tensor([0, 3]), "by hand")  # has the second word only
    assert tf_idf(documents, first).toarray().tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 0]]


def test_words_that_have_weights_keep_them():
    x = sp.csr_array(np.array([[0.3, 0.4, 0], [0.01, 0, 0], [0, 0, 0], [0.6, 0.8, 0.5]]))
    weighted = tf_idf(ArrayDataset(Records(x, Y, ["a", "b"]).to_samples()), SPLIT)
    np.testing.assert_allclose(weighted.toarray(), [[0.6, 0.8, 0], [1, 0, 0], [0, 0, 0], [0.6, 0.8, 0]], atol=1e-6)
    assert weighted.nnz == 5  # the third word is in no training document


def test_training_documents_alone_tell_whether_words_are_counts():
    counts = np.array([[1, 0], [0, 2], [0, 0], [0.5, 1]])  # the last one is a test document
    documents = ArrayDataset(Records(sp.csr_array(counts), Y, ["a", "b"]).to_samples())
    with pytest.raises(ValueError, match="'counts' of whole numbers"):
        tf_idf(documents, SPLIT)


def test_sequences_become_weighted_bags(documents):
    bags = with_words(documents, tf_idf(documents, SPLIT))
    assert (bags.kind, bags.num_inputs, bags.feature_names) == ("bag", 3, ["u", "v", "w"])
    assert bags[0].x.tolist() == [0, 2]
    assert bags[0].weight.square().sum().item() == pytest.approx(1.0)
    assert torch.equal(bags.y, documents.y)
    assert bags.official_split(val_fraction=0.34).test.tolist() == [3]


def test_a_part_of_the_documents_has_no_official_split(documents):
    part = documents[[3, 1]]
    bags = with_words(part, bag_of_words(part))
    assert [data.x.tolist() for data in bags] == [[0, 1, 2], [1]]
    with pytest.raises(ValueError, match="published with a split"):  # its rows are those of all documents
        bags.official_split()


def test_attributes_follow_their_samples(documents):
    values = torch.arange(8.0).view(4, 2)
    more = with_attribute(documents, "evidence", values)
    assert more[2].evidence.tolist() == [[4.0, 5.0]]
    assert [data.evidence.tolist() for data in more[[3, 0]]] == [[[6.0, 7.0]], [[0.0, 1.0]]]
    assert "evidence" not in documents[2]
    with pytest.raises(ValueError, match="a row for each of 4 samples"):
        with_attribute(documents, "evidence", values[:2])


def test_vectors_are_refused():
    vectors = ArrayDataset(Records(np.ones((4, 2)), Y, ["a", "b"]).to_samples())
    with pytest.raises(ValueError, match="'bag' or 'sequence'"):
        bag_of_words(vectors)
