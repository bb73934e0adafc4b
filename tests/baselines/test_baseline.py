"""What every baseline promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tg_mlc._optional import is_installed
from tg_mlc.baselines import (
    Baseline,
    ChainEnsemble,
    ClassifierChain,
    KernelRidgeBaseline,
    LabelTrees,
    LinearBaseline,
    MLkNN,
    MorganForest,
)
from tg_mlc.metrics import macro_roc_auc

NAN = np.nan
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 6))
Y = (X @ rng.standard_normal((6, 4)) + 0.3 * rng.standard_normal((200, 4)) > 0.8).astype(float)
SMILES = ["C" * (1 + i % 7) + "O" * (i % 3) + "N" * (i % 2) for i in range(200)]

BASELINES = {
    "svm": LinearBaseline,
    "logistic": lambda: LinearBaseline("logistic"),
    "ridge": lambda: KernelRidgeBaseline(gamma=0.1),
    "chain": ClassifierChain,
    "chains": lambda: ChainEnsemble(3),
    "ml-knn": MLkNN,
    "forest": lambda: MorganForest(20, n_jobs=1),
    "trees": lambda: LabelTrees(2),
}
NEEDED = {"forest": "rdkit", "trees": "napkinxc"}


@pytest.fixture(params=BASELINES)
def kind(request):
    if not is_installed(NEEDED.get(request.param, "sklearn")):
        pytest.skip(f"needs {NEEDED[request.param]}")
    return request.param


def inputs(kind):
    return SMILES if kind == "forest" else X


def labels(kind):
    if kind != "forest":
        return Y
    return np.array([["O" in text, "N" in text, "CCC" in text, len(text) > 5] for text in SMILES], dtype=float)


def test_it_ranks_new_samples(kind):
    x, y = inputs(kind), labels(kind)
    model = BASELINES[kind]().fit(x[:150], torch.from_numpy(y[:150]))
    assert isinstance(model, Baseline)
    scores = model.predict_proba(x[150:])
    assert scores.shape == (50, 4)
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert macro_roc_auc(y[150:], scores) > 0.8


@pytest.mark.filterwarnings("ignore:Label trees count")
def test_unknown_labels_are_no_obstacle(kind):
    x, y = inputs(kind), labels(kind)
    y = np.where(np.random.default_rng(1).random(y.shape) < 0.2, NAN, y)
    scores = BASELINES[kind]().fit(x[:150], y[:150]).predict_proba(x[150:])
    assert np.isfinite(scores).all()
    assert macro_roc_auc(labels(kind)[150:], scores) > 0.75


def test_a_label_that_never_occurs_gets_low_scores(kind):
    y = labels(kind).copy()
    y[:, 1] = 0
    scores = BASELINES[kind]().fit(inputs(kind), y).predict_proba(inputs(kind))
    assert scores[:, 1].max() < 0.1


@pytest.mark.parametrize("kind", ["svm", "ridge", "chain", "chains", "ml-knn", "trees"], indirect=True)
def test_sparse_features_are_the_same_as_dense_ones(kind):
    dense, sparse = (BASELINES[kind]().fit(x[:150], Y[:150]).predict_proba(x[150:]) for x in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense, sparse, atol=0.03 if kind == "trees" else 2e-3)  # its solver stops early


def test_before_fit(kind):
    with pytest.raises(RuntimeError, match="'fit'"):
        BASELINES[kind]().predict_proba(inputs(kind))


@pytest.mark.parametrize("kind", ["svm", "ridge", "chain", "chains", "ml-knn", "trees"], indirect=True)
def test_rows_have_to_agree(kind):
    with pytest.raises(ValueError, match="one row of 'y' per row of 'x', 200"):
        BASELINES[kind]().fit(X, Y[:50])
