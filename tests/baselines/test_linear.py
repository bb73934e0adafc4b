from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tg_mlc.baselines import LinearBaseline
from tg_mlc.metrics import macro_roc_auc

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 6))
Y = (X @ rng.standard_normal((6, 3)) + 0.5 * rng.standard_normal((120, 3)) > 0.5).astype(float)


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


def test_cross_fitted_scores_have_not_seen_their_labels():
    noise = rng.integers(0, 2, (120, 3)).astype(float)
    wide = rng.standard_normal((120, 200))
    model = LinearBaseline(C=10.0)
    seen = macro_roc_auc(noise, model.fit(wide, noise).decision_function(wide))
    unseen = macro_roc_auc(noise, model.cross_fit(wide, noise))
    assert seen == 1.0
    assert unseen == pytest.approx(0.5, abs=0.12)


def test_cross_fitting_scores_every_sample_and_repeats():
    model = LinearBaseline()
    scores = model.cross_fit(X, Y, num_folds=3)
    assert scores.shape == (120, 3)
    assert macro_roc_auc(Y, scores) > 0.8
    assert np.array_equal(scores, model.cross_fit(X, Y, num_folds=3))
    assert model.weight is None  # nothing was fitted on all samples


def test_tuning_takes_the_best_on_validation_data():
    model = LinearBaseline.tuned(X[:80], Y[:80], X[80:], Y[80:], grid=(1e-4, 1.0), metric=macro_roc_auc)
    values = dict(model.search)
    assert values[model.C] == max(values.values())
    assert set(values) == {1e-4, 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearBaseline("square"), "'loss' to be one of hinge, logistic"),
        (lambda: LinearBaseline(C=0.0), "'C' to be above 0"),
        (lambda: LinearBaseline().fit(X, Y[:50]), "one row of 'y' per row of 'x', 120"),
        (lambda: LinearBaseline().cross_fit(X, Y, num_folds=1), "'num_folds' between 2"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_before_fit():
    with pytest.raises(RuntimeError, match="'fit'"):
        LinearBaseline().predict_proba(X)


def test_a_restored_model_says_the_same():
    model = LinearBaseline.tuned(X[:80], Y[:80], X[80:], Y[80:], loss="logistic", metric=macro_roc_auc)
    restored = LinearBaseline().load_state_dict(model.state_dict())
    np.testing.assert_allclose(restored.predict_proba(X), model.predict_proba(X), atol=1e-5)
    assert (repr(restored), restored.search) == (repr(model), model.search)
    again = LinearBaseline().load_state_dict(restored.state_dict())
    assert np.array_equal(again.decision_function(X), restored.decision_function(X))
