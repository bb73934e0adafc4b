"""Tests the contract of every baseline."""

import pickle

import numpy as np
import pandas as pd
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
    LabelFrequency,
    LabelTrees,
    LinearBaseline,
    MLkNN,
)
from tg_mlc.metrics import evaluate, macro_roc_auc, tune_thresholds

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
    "forest": lambda: ForestBaseline(30),
    "gini": lambda: ForestBaseline(30, criterion="gini"),
    "trees": lambda: LabelTrees(2),
}
#: Baselines that can be tuned, with a grid of two settings.
TUNED = {
    LinearBaseline: [1e-4, 1.0],
    KernelRidgeBaseline: [(0.2, 0.3), (50.0, 30.0)],
    ForestBaseline: {"n_estimators": [2, 20], "max_features": ["sqrt"]},
}


@pytest.fixture(params=BASELINES)
def kind(request):
    if request.param == "trees" and not is_installed("napkinxc"):
        pytest.skip("needs napkinxc")
    return request.param


def test_baselines_rank_new_samples(kind):
    model = BASELINES[kind]().fit(X[:150], torch.from_numpy(Y[:150]))
    assert isinstance(model, Baseline)
    scores = model.predict_proba(X[150:])
    assert scores.shape == (50, 4)
    assert 0 <= scores.min() <= scores.max() <= 1
    assert macro_roc_auc(Y[150:], scores) > 0.8
    np.testing.assert_array_equal(model.predict(X[150:]), scores >= 0.5)


@pytest.mark.filterwarnings("ignore:Label trees count")
def test_baselines_learn_from_partly_unknown_labels(kind):
    y = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, NAN, Y)
    scores = BASELINES[kind]().fit(X[:150], y[:150]).predict_proba(X[150:])
    assert np.isfinite(scores).all()
    assert macro_roc_auc(Y[150:], scores) > 0.75


def test_a_label_that_never_occurs_gets_low_scores(kind):
    y = Y.copy()
    y[:, 1] = 0
    assert BASELINES[kind]().fit(X, y).predict_proba(X)[:, 1].max() < 0.1


def test_sparse_and_dense_features_give_the_same_scores(kind):
    x = np.where(np.abs(X) > 0.3, X, 0)
    matrices, make = (x, sp.csr_array(x)), BASELINES[kind]
    dense, sparse = (make().fit(x[:150], Y[:150]).predict_proba(x[150:]) for x in matrices)
    # The solver of label trees stops early.
    np.testing.assert_allclose(dense, sparse, atol=0.03 if kind == "trees" else 2e-3)


def test_baselines_need_a_fit_with_equal_numbers_of_rows(kind):
    for method in ("predict_proba", "decision_function", "predict"):
        with pytest.raises(RuntimeError, match="'fit'"):
            getattr(BASELINES[kind](), method)(X)
    with pytest.raises(ValueError, match="one row of 'y' per row of 'x', 200"):
        BASELINES[kind]().fit(X, Y[:50])


def test_baselines_keep_the_contract_of_scikit_learn(kind):
    model = BASELINES[kind]()
    name, value = list(model.get_params().items())[-1]
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(**{name: value}) is copy
    assert repr(copy) == repr(model)
    assert f"{name}={value!r}" in repr(model)
    with pytest.raises(ValueError, match="depths"):
        copy.set_params(depths=1)
    model.fit(X, Y)
    assert (model.classes_.tolist(), model.n_features_in_) == ([0, 1, 2, 3], 6)
    if kind != "trees":
        expected = model.predict_proba(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)


def test_held_out_scores_do_not_depend_on_their_own_labels(kind):
    y = (np.random.default_rng(3).random((200, 4)) < 0.4).astype(float)
    x = np.random.default_rng(4).standard_normal((200, 100))
    held_out = BASELINES[kind]().held_out_scores(x, y, refit=False)
    assert held_out.shape == y.shape
    assert np.isfinite(held_out).all()
    assert abs(macro_roc_auc(y, held_out) - 0.5) < 0.12


def test_held_out_scores_come_with_a_fit_to_all_samples(kind):
    model = BASELINES[kind]()
    assert macro_roc_auc(Y, model.held_out_scores(X, torch.from_numpy(Y), cv=4)) > 0.8
    expected = BASELINES[kind]().fit(X, Y).decision_function(X[:9])
    tolerance = 0.03 if kind == "trees" else 1e-12
    np.testing.assert_allclose(model.decision_function(X[:9]), expected, atol=tolerance)


def test_held_out_scores_may_use_specified_folds():
    folds = [(np.arange(50, 200), np.arange(50)), (np.arange(50), np.arange(50, 200))]
    held_out = LinearBaseline().held_out_scores(X, Y, cv=iter(folds))
    for train, test in folds:
        expected = LinearBaseline().fit(X[train], Y[train]).decision_function(X[test])
        np.testing.assert_array_equal(held_out[test], expected)
    for cv in (1, 201):
        with pytest.raises(ValueError, match="'cv' between 2 and the 200 samples"):
            LinearBaseline().held_out_scores(X, Y, cv=cv)


@pytest.mark.parametrize("kind", TUNED)
def test_tuning_selects_the_best_setting_and_the_model_can_be_restored(kind):
    model = kind.tuned(X[:80], Y[:80], X[80:], Y[80:], grid=TUNED[kind], metric=macro_roc_auc)
    values = [row[-1] for row in model.search]
    assert len(set(values)) == 2
    assert macro_roc_auc(Y[80:], model.predict_proba(X[80:])) == max(values)
    restored = kind().load_state_dict(model.state_dict())
    np.testing.assert_allclose(restored.predict_proba(X), model.predict_proba(X), atol=1e-5)
    assert (repr(restored), restored.search) == (repr(model), model.search)
    second = kind().load_state_dict(restored.state_dict())
    assert np.array_equal(second.decision_function(X), restored.decision_function(X))
    with pytest.raises(ValueError, match="'metric' to be defined"):
        kind.tuned(X, Y, X, Y, grid=TUNED[kind], metric=lambda y, scores: NAN)
    with pytest.raises(RuntimeError, match="'fit' to be called before 'state_dict'"):
        kind().state_dict()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearBaseline("square"), "'loss' to be one of hinge, logistic"),
        (LinearBaseline(C=0.0), "'C' to be above 0"),
        (KernelRidgeBaseline(gamma=0.0), "'gamma' to be above 0"),
        (KernelRidgeBaseline(alpha=-1.0), "'alpha' to be above 0"),
        (ForestBaseline(criterion="entropy"), "'criterion'"),
        (ClassifierChain(order="columns"), "'order'"),
        (ClassifierChain(order=[0, 1, 1, 2]), r"'order' to hold .* once \(got \[0, 1, 1, 2\]"),
        (ChainEnsemble(0), "'n_estimators'"),
        (ChainEnsemble(max_samples=1.5), "'max_samples'"),
        (MLkNN(n_neighbors=0), "'n_neighbors'"),
        (MLkNN(smoothing=0.0), "'smoothing' to be above 0"),
        (MLkNN(n_neighbors=200), r"more than n_neighbors=200 samples \(got 200\)"),
    ],
)
def test_bad_parameters_are_named_by_fit(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


def test_frequencies_are_the_means_of_known_labels():
    y = torch.tensor([[1, 0, NAN, NAN], [1, 1, 0, NAN], [NAN, 0, 0, NAN]])
    baseline = LabelFrequency().fit(X[:3], y)
    # The last label is unknown in all rows, so it gets the mean of all known entries.
    np.testing.assert_allclose(baseline.predict_proba(["one", "two"]), [[1, 1 / 3, 0, 3 / 7]] * 2)
    assert repr(baseline) == "LabelFrequency()"
    assert evaluate(Y, LabelFrequency().fit(X, Y).predict_proba(X))["roc_auc_macro"] == 0.5
    with pytest.raises(RuntimeError, match="'fit'"):
        LabelFrequency().predict_proba(X)
    with pytest.raises(ValueError, match="at least one observed"):
        LabelFrequency().fit(X[:1], [[NAN]])


def test_constant_scores_reach_the_published_f1_on_sider(real_file):
    y = pd.read_csv(real_file("sider/raw/sider.csv")).drop(columns="smiles").to_numpy(dtype=float)
    generator, results = np.random.default_rng(0), []
    for _ in range(20):
        train, val, test = np.split(generator.permutation(len(y)), [1141, 1141 + 143])
        baseline = LabelFrequency().fit(train, y[train])
        tuners = tune_thresholds(y[val], baseline.predict_proba(val))
        results.append(evaluate(y[test], baseline.predict_proba(test), tuners))
    for metric, published in {"f1_samples": 0.768, "f1_micro": 0.80, "f1_macro": 0.675}.items():
        assert np.mean([result[metric] for result in results]) == pytest.approx(published, abs=0.01)
