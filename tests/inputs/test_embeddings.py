from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import tg_mlc
from tg_mlc.data import from_arrays, stratified_split
from tg_mlc.inputs import Embeddings, kind_of
from tg_mlc.inputs.embeddings import Pooled
from tg_mlc.inputs.kinds import infer_form
from tg_mlc.sklearn import AutoClassifier, LaMPClassifier

SIZE, NAMES = 4, ["red", "round"]


def planted(num_samples: int = 80) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns samples of 2 to 5 vectors, and labels. Label i adds 3 to entry i of one vector."""
    rng = np.random.default_rng(0)
    y = (rng.random((num_samples, 2)) < 0.5).astype(np.float32)
    shapes = [(rng.integers(2, 6), SIZE) for _ in range(num_samples)]
    X = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    for rows, labels in zip(X, y, strict=True):
        rows[rng.integers(len(rows)), :2] += 3 * labels
    return X, y


X, Y = planted()


@pytest.mark.parametrize(
    "inputs",
    [
        *(X, tuple(X), [torch.from_numpy(x) for x in X], [x.tolist() for x in X]),
        *(pd.Series(X), pd.DataFrame({"x": X})["x"]),
    ],
    ids=["arrays", "tuple", "tensors", "lists", "series", "column"],
)
def test_matrices_of_several_lengths_become_samples(inputs):
    dataset = from_arrays(inputs, Y, NAMES)
    assert (dataset.kind, dataset.num_inputs, kind_of(dataset)) == ("embeddings", SIZE, Embeddings)
    assert all(np.array_equal(data.x, x) for data, x in zip(dataset, X, strict=True))
    assert infer_form(inputs) == "embeddings"


def test_a_3d_array_is_a_list_of_matrices():
    stacked = np.stack([x[:2] for x in X])
    assert from_arrays(stacked, Y, NAMES)[3].x.tolist() == stacked[3].tolist()
    assert from_arrays(torch.from_numpy(stacked), Y, NAMES)[3].x.tolist() == stacked[3].tolist()


@pytest.mark.parametrize(
    "rows",
    [np.eye(3), [[0.5, 1.0]] * 3, [np.array([0.5, 1.0])] * 3],
    ids=["matrix", "lists", "1-d"],
)
def test_rows_of_numbers_stay_vectors(rows):
    assert from_arrays(rows, Y[:3], NAMES).kind == "vector"


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3)), r"\[2, 3\]"),
        (np.zeros((0, SIZE)), r"\[0, 4\]"),
        (np.zeros(SIZE), r"\[4\]"),
        (np.full((1, SIZE), np.nan), "nan"),
        (np.full((1, SIZE), 1e300), "inf"),
        ("text", "shape"),
        (None, "shape"),
        ([[1.0], [1.0, 2.0]], "several lengths"),
    ],
    ids=["size", "empty", "one-dimensional", "missing", "too large", "text", "none", "ragged"],
)
def test_wrong_matrices_are_refused_by_row(matrix, message):
    with pytest.raises(ValueError, match=rf"of finite numbers.*{message}.* in row 2"):
        from_arrays([X[0], X[1], matrix], Y[:3], NAMES)


def test_views_pool_the_vectors_of_a_sample():
    dataset = from_arrays(X, Y, NAMES)
    pooled = Pooled("standard").fit(dataset).matrix(dataset)
    expected = np.stack([np.concatenate([x.mean(axis=0), x.max(axis=0)]) for x in X])
    expected = (expected - expected.mean(axis=0)) / expected.std(axis=0) / np.sqrt(2 * SIZE)
    np.testing.assert_allclose(pooled, expected, atol=1e-5)
    subset = Pooled("standard").fit(dataset).matrix(dataset[[5, 3]])
    np.testing.assert_allclose(subset, pooled[[5, 3]], atol=1e-6)


def test_the_estimator_learns_embeddings_and_is_saved(tmp_path):
    classifier = LaMPClassifier(base_scores=None, max_epochs=25, random_state=0, learning_rate=1e-2)
    classifier.fit(X[:60], Y[:60])
    assert classifier.inputs_ == "embeddings"
    scores = classifier.predict_proba(X[60:])
    assert ((scores > 0.5) == Y[60:]).mean() > 0.8
    classifier.save(tmp_path / "model")
    predictor = tg_mlc.load(tmp_path / "model")
    np.testing.assert_allclose(predictor.probabilities(X[60:]), scores, atol=1e-6)
    # A sample has the same probabilities alone and in a batch.
    np.testing.assert_allclose(predictor.probabilities(X[60:61]), scores[:1], atol=1e-5)
    with pytest.warns(UserWarning, match="2 inputs cannot be read, the first of them row 1"):
        frame = predictor.predict([X[60], X[61][:, :2], None])
    assert frame["probability"].isna().all(axis=1).tolist() == [False, True, True]
    with pytest.raises(ValueError, match="row 1"):
        predictor.predict([X[60], X[61][:, :2]], on_error="raise")


def test_the_default_takes_embeddings(tmp_path):
    classifier = AutoClassifier(seconds=0, random_state=0).fit(X[:60], Y[:60])
    probabilities = tg_mlc.load(classifier.save(tmp_path / "model")).probabilities(X[60:])
    np.testing.assert_allclose(probabilities, classifier.predict_proba(X[60:]), atol=1e-6)


def test_components_are_named_by_index():
    dataset = from_arrays(X, Y, NAMES)
    inputs = Embeddings().fit(dataset, stratified_split(dataset.y, (0.5, 0.25, 0.25)))
    assert inputs.components(dataset[0]) == [f"vector {index}" for index in range(len(X[0]))]
    assert inputs.transform(X[:2])[1].x.tolist() == X[1].tolist()
