"""What every baseline promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

from tg_mlc._optional import is_installed
from tg_mlc.baselines import (
    Baseline,
    ChainEnsemble,
    ClassifierChain,
    ForestBaseline,
    KernelRidgeBaseline,
    LabelTrees,
    LinearBaseline,
    MLkNN,
)
from tg_mlc.metrics import macro_roc_auc

NAN = np.nan
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 6))
Y = (X @ rng.standard_normal((6, 4)) + 0.3 * rng.standard_normal((200, 4)) > 0.8).astype(float)

BASELINES = {
    "svm": LinearBaseline,
    "logistic": lambda: LinearBaseline("logistic"),
    "ridge": lambda: KernelRidgeBaseline(gamma=0.1),
    "chain": ClassifierChain,
    "chains": lambda: ChainEnsemble(3),
    "ml-knn": MLkNN,
    "forest": lambda: ForestBaseline(20),
    "trees": lambda: LabelTrees(2),
}
NEEDED = {"trees": "napkinxc"}


@pytest.fixture(params=BASELINES)
def kind(request):
    if not is_installed(NEEDED.get(request.param, "sklearn")):
        pytest.skip(f"needs {NEEDED[request.param]}")
    return request.param


def test_it_ranks_new_samples(kind):
    model = BASELINES[kind]().fit(X[:150], torch.from_numpy(Y[:150]))
    assert isinstance(model, Baseline)
    scores = model.predict_proba(X[150:])
    assert scores.shape == (50, 4)
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert macro_roc_auc(Y[150:], scores) > 0.8


@pytest.mark.filterwarnings("ignore:Label trees count")
def test_unknown_labels_are_no_obstacle(kind):
    y = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, NAN, Y)
    scores = BASELINES[kind]().fit(X[:150], y[:150]).predict_proba(X[150:])
    assert np.isfinite(scores).all()
    assert macro_roc_auc(Y[150:], scores) > 0.75


def test_a_label_that_never_occurs_gets_low_scores(kind):
    y = Y.copy()
    y[:, 1] = 0
    scores = BASELINES[kind]().fit(X, y).predict_proba(X)
    assert scores[:, 1].max() < 0.1


def test_sparse_features_are_the_same_as_dense_ones(kind):
    dense, sparse = (BASELINES[kind]().fit(x[:150], Y[:150]).predict_proba(x[150:]) for x in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense, sparse, atol=0.03 if kind == "trees" else 2e-3)  # its solver stops early


def test_before_fit(kind):
    with pytest.raises(RuntimeError, match="'fit'"):
        BASELINES[kind]().predict_proba(X)


def test_rows_have_to_agree(kind):
    with pytest.raises(ValueError, match="one row of 'y' per row of 'x', 200"):
        BASELINES[kind]().fit(X, Y[:50])


def test_it_keeps_the_contract_of_scikit_learn(kind):
    model = BASELINES[kind]()
    name, value = list(model.get_params().items())[-1]
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(**{name: value}) is copy
    assert repr(copy) == repr(model)
    assert f"{name}={value!r}" in repr(model)
    with pytest.raises(ValueError, match="depths"):
        copy.set_params(depths=1)


def test_held_out_scores_have_not_seen_the_labels(kind):
    noise = (np.random.default_rng(3).random((200, 4)) < 0.4).astype(float)
    wide = np.random.default_rng(4).standard_normal((200, 100))
    held_out = BASELINES[kind]().held_out_scores(wide, noise, refit=False)
    assert held_out.shape == noise.shape
    assert np.isfinite(held_out).all()
    assert abs(macro_roc_auc(noise, held_out) - 0.5) < 0.12


def test_held_out_scores_come_with_a_fit_to_all_samples(kind):
    model = BASELINES[kind]()
    assert macro_roc_auc(Y, model.held_out_scores(X, Y, cv=4)) > 0.8
    expected = BASELINES[kind]().fit(X, Y).decision_function(X[:9])
    np.testing.assert_allclose(model.decision_function(X[:9]), expected, atol=0.03 if kind == "trees" else 1e-12)


def test_held_out_scores_of_given_parts():
    parts = [(np.arange(50, 200), np.arange(50)), (np.arange(50), np.arange(50, 200))]
    held_out = LinearBaseline().held_out_scores(X, Y, cv=parts)
    np.testing.assert_array_equal(held_out[:50], LinearBaseline().fit(X[50:], Y[50:]).decision_function(X[:50]))
    np.testing.assert_array_equal(held_out, LinearBaseline().held_out_scores(X, Y, cv=iter(parts)))
    for cv in (1, 201):
        with pytest.raises(ValueError, match="'cv' between 2 and the 200 samples"):
            LinearBaseline().held_out_scores(X, Y, cv=cv)
