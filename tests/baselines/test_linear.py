from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tests.baselines.test_baseline import X, Y
from tg_mlc.baselines import LinearBaseline


def test_it_is_what_scikit_learn_fits():
    model = LinearBaseline("hinge", C=0.3).fit(sp.csr_array(X), Y)
    for label in range(3):
        reference = LinearSVC(C=0.3).fit(X, Y[:, label])
        np.testing.assert_allclose(model.decision_function(X)[:, label], reference.decision_function(X), atol=1e-3)
    logistic = LinearBaseline("logistic", C=3.0).fit(X, Y)
    reference = LogisticRegression(C=3.0, solver="liblinear").fit(X, Y[:, 1])
    np.testing.assert_allclose(logistic.predict_proba(X)[:, 1], reference.predict_proba(X)[:, 1], atol=1e-3)


def test_long_indices_are_shortened():
    x = sp.csr_array(X)
    x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    np.testing.assert_allclose(LinearBaseline("logistic").fit(x, Y).weight, LinearBaseline("logistic").fit(X, Y).weight)


def test_scores_keep_the_order_of_distances():
    model = LinearBaseline().fit(X, Y)
    distance, score = model.decision_function(X)[:, 0], model.predict_proba(X)[:, 0]
    assert (np.argsort(distance) == np.argsort(score)).all()
    assert (score > 0).all()
    assert (score < 1).all()


def test_unknown_labels_are_left_out():
    y = Y.copy()
    y[60:, 0] = np.nan
    model, reference = LinearBaseline().fit(X, y), LinearBaseline().fit(X[:60], Y[:60])
    np.testing.assert_allclose(model.weight[:, 0], reference.weight[:, 0], atol=1e-3)


def test_a_label_of_one_class_gets_its_side():
    y = Y.copy()
    y[:, 0], y[:, 1] = 0, 1
    score = LinearBaseline().fit(X, y).predict_proba(X)
    assert (score[:, 0] < 0.01).all()
    assert (score[:, 1] > 0.99).all()
