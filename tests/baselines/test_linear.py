import sys
import warnings
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain as SklearnChain
from sklearn.svm import LinearSVC

from tests.baselines.test_baseline import NAN, X, Y
from tg_mlc.baselines import ChainEnsemble, ClassifierChain, LabelTrees, LinearBaseline


def test_linear_models_equal_those_of_scikit_learn():
    model = LinearBaseline("hinge", C=0.3).fit(sp.csr_array(X), Y)
    for label in range(3):
        expected = LinearSVC(C=0.3).fit(X, Y[:, label]).decision_function(X)
        np.testing.assert_allclose(model.decision_function(X)[:, label], expected, atol=1e-3)
    logistic = LinearBaseline("logistic", C=3.0).fit(X, Y)
    reference = LogisticRegression(C=3.0, solver="liblinear").fit(X, Y[:, 1])
    expected = reference.predict_proba(X)[:, 1]
    np.testing.assert_allclose(logistic.predict_proba(X)[:, 1], expected, atol=1e-3)


def test_sparse_matrices_may_have_long_indices():
    x = sp.csr_array(X)
    x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    expected = LinearBaseline("logistic").fit(X, Y).weight
    np.testing.assert_allclose(LinearBaseline("logistic").fit(x, Y).weight, expected)


def test_scores_keep_the_order_of_distances():
    model = LinearBaseline().fit(X, Y)
    distance, score = model.decision_function(X)[:, 0], model.predict_proba(X)[:, 0]
    assert (np.argsort(distance) == np.argsort(score)).all()
    assert 0 < score.min() < score.max() < 1


def test_unknown_labels_are_skipped():
    y = Y.copy()
    y[60:, 0] = np.nan
    model, reference = LinearBaseline().fit(X, y), LinearBaseline().fit(X[:60], Y[:60])
    np.testing.assert_allclose(model.weight[:, 0], reference.weight[:, 0], atol=1e-3)


def test_a_label_of_one_class_is_predicted_with_certainty():
    y = Y.copy()
    y[:, 0], y[:, 1] = 0, 1
    score = LinearBaseline().fit(X, y).predict_proba(X)
    assert score[:, 0].max() < 0.01
    assert score[:, 1].min() > 0.99


def test_chains_equal_those_of_scikit_learn():
    chain = ClassifierChain(C=1.0, random_state=3).fit(X[:150], Y[:150])
    estimator = LogisticRegression(C=1.0, solver="liblinear", random_state=0)
    reference = SklearnChain(estimator, order=chain.order_.tolist()).fit(X[:150], Y[:150])
    expected = reference.predict_proba(X[150:])
    np.testing.assert_allclose(chain.predict_proba(X[150:]), expected, atol=1e-3)


def test_labels_of_a_chain_use_earlier_labels():
    # Both labels are the XOR of two signs, which no linear function predicts.
    x = np.random.default_rng(0).standard_normal((300, 2))
    y = np.repeat((x[:, :1] > 0) ^ (x[:, 1:] > 0), 2, axis=1).astype(float)
    chain = ClassifierChain(order=None).fit(x, y)
    assert chain.order_.tolist() == [0, 1]
    assert abs(chain._links[1].weight[2, 0]) > 5 * np.abs(chain._links[1].weight[:2, 0]).max()


def test_unknown_labels_of_a_chain_are_filled_with_predictions():
    y = Y.copy()
    y[100:, 0] = NAN
    chain = ClassifierChain(order=None).fit(X, y)
    first = LinearBaseline("logistic", 10.0).fit(X[:100], Y[:100, :1])
    filled = np.concatenate([Y[:100, :1], first.predict_proba(X[100:]) > 0.5])
    second = LinearBaseline("logistic", 10.0).fit(np.hstack([X, filled]), Y[:, 1:2])
    np.testing.assert_allclose(chain._links[1].weight, second.weight)


def test_chains_predict_only_unknown_labels_in_training(monkeypatch):
    rows, predict = [], LinearBaseline.predict_proba
    record = lambda self, x: rows.append(len(x)) or predict(self, x)  # noqa: E731
    monkeypatch.setattr(LinearBaseline, "predict_proba", record)
    y = Y.copy()
    ClassifierChain().fit(X, y)
    assert rows == []
    y[100:, 0] = NAN
    ClassifierChain().fit(X, y)
    assert rows == [len(y) - 100]


def test_a_label_that_is_never_known_does_not_change_others():
    y = Y.copy()
    y[:, 0] = NAN
    scores = ClassifierChain(order=None).fit(X, y).predict_proba(X)
    expected = ClassifierChain(order=None).fit(X, Y[:, 1:]).predict_proba(X)
    np.testing.assert_allclose(scores[:, 1:], expected, atol=1e-3)


def test_an_ensemble_is_the_mean_of_its_chains_and_repeatable():
    ensemble, second = (ChainEnsemble(3, 0.5, random_state=1).fit(X, Y) for _ in range(2))
    scores = [chain.predict_proba(X) for chain in ensemble.estimators_]
    np.testing.assert_allclose(ensemble.predict_proba(X), np.mean(scores, axis=0))
    assert len({tuple(chain.order_) for chain in ensemble.estimators_}) > 1
    np.testing.assert_array_equal(second.predict_proba(X), ensemble.predict_proba(X))


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "napkinxc.models", raising=False)
    monkeypatch.setitem(sys.modules, "napkinxc", None)
    with pytest.raises(ImportError, match=r"tg_mlc\[extreme\]"):
        LabelTrees().fit(X, Y)


@pytest.mark.filterwarnings("ignore:Label trees count")
def test_unknown_labels_do_not_apply_to_trees():
    pytest.importorskip("napkinxc")
    y = Y.copy()
    y[:40][Y[:40] == 0] = NAN
    # The solver stops early and starts at random, whatever the seed.
    scores = [LabelTrees().fit(X, labels).predict_proba(X) for labels in (y, Y)]
    np.testing.assert_allclose(*scores, atol=0.03)


def test_label_trees_warn_of_unknown_labels(monkeypatch):
    monkeypatch.setitem(sys.modules, "napkinxc", Mock())
    monkeypatch.setitem(sys.modules, "napkinxc.models", Mock())
    with pytest.warns(UserWarning, match="count 2 unknown labels .NaN. as absent"):
        LabelTrees().fit(X, np.where(np.arange(Y.size).reshape(Y.shape) < 2, NAN, Y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelTrees().fit(X, Y)


def test_inputs_of_label_trees_may_be_whole_numbers():
    pytest.importorskip("napkinxc")
    x = X.round().astype(int)
    assert LabelTrees().fit(x, Y).predict_proba(x).shape == Y.shape
