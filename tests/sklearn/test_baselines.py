from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from tg_mlc.baselines import KernelRidgeBaseline, MorganForest
from tg_mlc.sklearn import (
    ChainEnsembleClassifier,
    ForestClassifier,
    KernelRidgeClassifier,
    LabelFrequencyClassifier,
    LabelTreesClassifier,
    LinearClassifier,
    MLkNNClassifier,
    MorganForestClassifier,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 5))
Y = (X[:, :3] > 0).astype(int)
HOLES = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
KINDS = [LinearClassifier, KernelRidgeClassifier, ChainEnsembleClassifier, MLkNNClassifier, ForestClassifier]
SMILES = ["CCO", "CCN", "c1ccccc1O", "CC(=O)O"] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_baselines_learn_from_labels_of_which_some_are_unknown(kind: type) -> None:
    classifier = kind().fit(X, HOLES)
    assert (classifier.predict(X) == Y).mean() > 0.8


def test_scores_are_those_of_the_baseline() -> None:
    expected = KernelRidgeBaseline(0.5, 0.1).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(KernelRidgeClassifier(0.5, 0.1).fit(X, Y).predict_proba(X), expected, atol=1e-9)


def test_the_threshold_decides() -> None:
    counts = [ChainEnsembleClassifier(3, threshold=t, random_state=0).fit(X, Y).predict(X).sum() for t in (0.1, 0.9)]
    assert counts[0] > counts[1]


def test_the_frequency_needs_no_inputs() -> None:
    np.testing.assert_allclose(LabelFrequencyClassifier().fit(X, Y).predict_proba(X[:2]), [Y.mean(axis=0)] * 2)


def test_settings_can_be_searched() -> None:
    search = GridSearchCV(LinearClassifier(), {"C": [0.01, 1.0], "loss": ["hinge", "logistic"]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.7


def test_forests_of_molecules() -> None:
    y = np.array([["N" in smiles, "c" in smiles] for smiles in SMILES]).astype(int)
    forest = MorganForestClassifier(10, random_state=0).fit(SMILES, y)
    assert forest.score(SMILES, y) == 1.0
    assert isinstance(forest.baseline_, MorganForest)
    with pytest.raises(ValueError, match="Expected a list or column of strings for inputs 'smiles'"):
        forest.predict(X)


def test_label_trees() -> None:
    pytest.importorskip("napkinxc")
    assert LabelTreesClassifier().fit(X, Y).score(X, Y) > 0.7
