from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

from tg_mlc.baselines import KernelRidgeBaseline
from tg_mlc.sklearn import (
    ChainEnsembleClassifier,
    ForestClassifier,
    KernelRidgeClassifier,
    LabelFrequencyClassifier,
    LabelTreesClassifier,
    LinearClassifier,
    MLkNNClassifier,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 5))
Y = (X[:, :3] > 0).astype(int)
PARTLY_KNOWN = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
KINDS = [LinearClassifier, KernelRidgeClassifier, ChainEnsembleClassifier, MLkNNClassifier]
DNA = ["ACGTACGTAC", "TTTTTTTTTT", "GGGGACGGGG"] * 4
TEXTS = ["no sea", "blue sea", "red car"] * 4
SMILES = ["CCO", "CCN", "c1ccccc1O", "CC(=O)O"] * 3


@pytest.mark.parametrize("cls", [*KINDS, ForestClassifier])
def test_baselines_learn_from_partly_unknown_labels(cls: type) -> None:
    classifier = cls().fit(X, PARTLY_KNOWN)
    assert (classifier.predict(X) == Y).mean() > 0.8


def test_scores_equal_those_of_the_baseline() -> None:
    expected = KernelRidgeBaseline(0.5, 0.1).fit(X, Y).predict_proba(X)
    scores = KernelRidgeClassifier(0.5, 0.1).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(scores, expected, atol=1e-9)
    scores = LabelFrequencyClassifier().fit(X, Y).predict_proba(X[:2])
    np.testing.assert_allclose(scores, [Y.mean(axis=0)] * 2)


def test_the_threshold_decides() -> None:
    make = partial(ChainEnsembleClassifier, 3, random_state=0)
    low, high = (make(threshold=threshold).fit(X, Y).predict(X).sum() for threshold in (0.1, 0.9))
    assert low > high


def test_settings_can_be_searched() -> None:
    grid = {"C": [0.01, 1.0], "loss": ["hinge", "logistic"]}
    assert GridSearchCV(LinearClassifier(), grid, cv=2).fit(X, Y).best_score_ > 0.7


@pytest.mark.parametrize(
    ("texts", "options"), [(SMILES, {}), (TEXTS, {"inputs": "texts"}), (DNA, {"inputs": "dna"})]
)
def test_baselines_learn_from_raw_inputs(texts: list[str], options: dict[str, str]) -> None:
    y = np.array([[text in texts[:1], text in texts[1:3]] for text in texts]).astype(int)
    for classifier in (ForestClassifier(50, **options), LinearClassifier(C=100.0, **options)):
        assert classifier.fit(texts, y).score(texts, y) == 1.0
        with pytest.raises(ValueError, match="Expected a list or column of strings for inputs"):
            classifier.predict(X)


@pytest.mark.parametrize("random_state", [3, None, np.random.RandomState(0)])
def test_integer_random_states_give_equal_fits(random_state: Any) -> None:
    forests = [ForestClassifier(5, random_state=random_state).fit(X, Y) for _ in range(2)]
    first, second = (forest.predict_proba(X) for forest in forests)
    assert (first == second).all() == (random_state == 3)


def test_label_trees_learn() -> None:
    pytest.importorskip("napkinxc")
    assert LabelTreesClassifier().fit(X, Y).score(X, Y) > 0.7


def test_sparse_and_dense_matrices_give_the_same_scores():
    x = sp.random(40, 6, 0.5, format="csr", random_state=0)
    y = np.random.default_rng(0).integers(2, size=(40, 3))
    classifier = LinearClassifier().fit(x, y)
    scores = [classifier.predict_proba(matrix) for matrix in (x, x.toarray())]
    np.testing.assert_allclose(*scores, atol=1e-6)
    assert classifier.predict(x).shape == (40, 3)
