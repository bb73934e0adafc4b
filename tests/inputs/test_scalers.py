from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.feature_extraction.text import TfidfTransformer

from tg_mlc.data import ArrayDataset, Split
from tg_mlc.data.bags import bag_of_words
from tg_mlc.data.records import Records, Tokens
from tg_mlc.inputs import QuantileScaler, Scale, TfIdf
from tg_mlc.inputs.preprocessor import from_state, to_state
from tg_mlc.inputs.scalers import LogCounts

Y = np.eye(4, 2, dtype=np.float32)
SPLIT = Split(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3]), "by hand")
COUNTS = np.array([[1, 0, 2, 0], [0, 3, 1, 0], [4, 1, 1, 0]])


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_weights_of_known_words_are_those_of_scikit_learn(convert):
    known_counts = COUNTS[:, :3]
    reference = TfidfTransformer(sublinear_tf=True).fit(known_counts).transform(known_counts)
    weighted = TfIdf().learn(convert(known_counts)).weigh(convert(known_counts))
    np.testing.assert_allclose(weighted.toarray(), reference.toarray(), atol=1e-6)


def test_new_documents_are_weighed_one_by_one_from_the_state():
    restored = from_state(to_state(TfIdf().learn(COUNTS)))
    together = restored.weigh(COUNTS).toarray()
    for counts, weights in zip(COUNTS, together, strict=True):
        np.testing.assert_array_equal(restored.weigh(counts[None]).toarray()[0], weights)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_words_of_no_training_document_weigh_nothing():
    tfidf = TfIdf().learn(COUNTS)
    weights = tfidf.weigh([[1, 0, 2, 7]])
    np.testing.assert_array_equal(weights.toarray(), tfidf.weigh([[1, 0, 2, 0]]).toarray())
    assert weights.indices.tolist() == [0, 2]
    assert tfidf.weigh([[0, 0, 0, 7]]).nnz == 0


@pytest.mark.parametrize("weights", [COUNTS * 0.5, -COUNTS, COUNTS.astype(float) + 0.1])
def test_weights_are_not_taken_for_counts(weights):
    with pytest.raises(ValueError, match="whole numbers of words"):
        TfIdf().learn(COUNTS).weigh(weights)
    # Weights are kept, even in documents whose weights are whole numbers.
    tfidf = TfIdf().learn(weights)
    expected = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    np.testing.assert_allclose(tfidf.weigh(weights).toarray()[:, :3], expected[:, :3], atol=0.1)
    np.testing.assert_allclose(tfidf.weigh([[3, 4, 0, 0]]).toarray(), [[0.6, 0.8, 0, 0]], atol=1e-6)


@pytest.fixture
def documents():
    tokens = Tokens.of([[0, 2, 2], [1], [], [2, 1, 0]])
    rows = np.arange(3), np.arange(3, 4)
    return ArrayDataset(Records(tokens, Y, ["a", "b"], ["u", "v", "w"], *rows).to_samples())


def test_rarity_is_computed_from_training_documents(documents):
    counts = bag_of_words(documents).toarray()
    reference = TfidfTransformer(sublinear_tf=True).fit(counts[:2]).transform(counts)
    weighted = bag_of_words(TfIdf().fit_transform(documents, SPLIT))
    np.testing.assert_allclose(weighted.toarray(), reference.toarray(), atol=1e-6)
    other_split = Split(torch.tensor([0, 3]), torch.tensor([1]), torch.tensor([2]), "by hand")
    other_weighted = bag_of_words(TfIdf().fit_transform(documents, other_split))
    assert not np.allclose(weighted.toarray(), other_weighted.toarray())


def test_words_of_no_training_document_are_left_out(documents):
    # This document has the second word only.
    split = Split(torch.tensor([1]), torch.tensor([2]), torch.tensor([0, 3]), "by hand")
    weighted = bag_of_words(TfIdf().fit_transform(documents, split))
    assert weighted.toarray().tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 0]]


def test_weighted_words_keep_their_weights():
    x = sp.csr_array(np.array([[0.3, 0.4, 0], [0.01, 0, 0], [0, 0, 0], [0.6, 0.8, 0.5]]))
    dataset = ArrayDataset(Records(x, Y, ["a", "b"]).to_samples())
    weighted = bag_of_words(TfIdf().fit_transform(dataset, SPLIT))
    expected = [[0.6, 0.8, 0], [1, 0, 0], [0, 0, 0], [0.6, 0.8, 0]]
    np.testing.assert_allclose(weighted.toarray(), expected, atol=1e-6)
    assert weighted.nnz == 5  # The third word is in no training document.


@pytest.mark.parametrize("test_document", [[1.0, 2.0, 3.0], [0.5, 2.5, 3.0]])
def test_training_documents_alone_decide_if_words_are_counts(test_document):
    x = sp.csr_array(np.array([[0.3, 0.4, 0.5], [0.1, 0, 0], [0, 0, 0], test_document]))
    dataset = ArrayDataset(Records(x, Y, ["a", "b"]).to_samples())
    assert not TfIdf().fit(dataset, SPLIT).counts
    counts = sp.csr_array(np.array([[1.0, 2.0, 1.0], [1, 0, 0], [0, 0, 0], test_document]))
    tfidf = TfIdf().fit(ArrayDataset(Records(counts, Y, ["a", "b"]).to_samples()), SPLIT)
    np.testing.assert_allclose(tfidf.idf, TfIdf().learn(counts[:2]).idf, rtol=1e-6)


def test_sequences_become_weighted_bags(documents):
    documents.label_parents = [("a", "b")]
    bags = TfIdf().fit_transform(documents, SPLIT)
    assert (bags.kind, bags.num_inputs, bags.feature_names) == ("bag", 3, ["u", "v", "w"])
    assert bags[0].x.tolist() == [0, 2]
    assert bags[0].weight.square().sum().item() == pytest.approx(1.0)
    assert torch.equal(bags.y, documents.y)
    assert bags.official_split(val_fraction=0.34).test.tolist() == [3]
    assert bags.label_parents == [("a", "b")]


def test_log_counts_scale_rows() -> None:
    scaled = LogCounts()(torch.tensor([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]))
    torch.testing.assert_close(scaled[0], torch.tensor([0.0, 1.0, 2.0]) * (3 / 5) ** 0.5 * 0.5)
    assert (scaled[1] == 0).all()


def test_the_quantile_scaler_standardizes_columns() -> None:
    torch.manual_seed(0)
    x = torch.cat([torch.randn(1000, 1).exp() * 1e4, torch.ones(1000, 1)], dim=1)
    scaler = QuantileScaler(2).fit(x)
    scaled = scaler(x)
    assert scaled[:, 0].mean().item() == pytest.approx(0, abs=0.05)
    assert scaled[:, 0].std().item() == pytest.approx(1, abs=0.05)
    assert (scaled[:, 1] == 0).all()  # A column that does not vary is 0.
    assert (scaled[x[:, 0].argsort(), 0].diff() >= 0).all()
    assert scaler(torch.tensor([[torch.nan, 1.0], [torch.inf, 1.0], [-1e9, 1.0]])).isfinite().all()
    restored = QuantileScaler(2)
    with pytest.raises(ValueError, match="a scaler that knows quantiles"):
        restored(x)
    restored.load_state_dict(scaler.state_dict())
    assert torch.equal(restored(x), scaled)


SCALER = QuantileScaler(3).fit(torch.randn(9, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TfIdf().learn(COUNTS).weigh(COUNTS[:, :3]), "documents of 4 words"),
        (lambda: TfIdf().learn(COUNTS[:0]), "at least one document"),
        (lambda: SCALER(torch.randn(2, 4)), r"vectors to scale of shape \[N, 3\]"),
        (lambda: SCALER(torch.randn(3)), r"vectors to scale of shape \[N, 3\]"),
        (lambda: SCALER.fit(torch.ones(4, 2)), r"training .* of shape \[N, 3\] \(got \[4, 2\]\)"),
        (lambda: Scale("centred"), r"to be one of standard, quantile \(got 'centred'\)"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
