from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.kernel_ridge import KernelRidge

from tests.baselines.test_baseline import X, Y
from tg_mlc.baselines import KernelRidgeBaseline, kernel_ridge

X, Y = X[:90], Y[:90]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_it_is_what_scikit_learn_fits(form):
    model = KernelRidgeBaseline(gamma=0.2, alpha=0.3).fit(form(X[:60]), Y[:60])
    reference = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.3).fit(X[:60], Y[:60] - Y[:60].mean(axis=0))
    expected = reference.predict(X) + Y[:60].mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(form(X)), np.clip(expected, 0, 1), atol=1e-9)
    np.testing.assert_allclose(model.decision_function(form(X)), 2 * expected - 1, atol=1e-9)


def test_left_out_samples_get_what_a_model_without_them_says():
    left_out = KernelRidgeBaseline(gamma=0.2, alpha=0.3).held_out_scores(X, Y)
    centred = Y - Y.mean(axis=0)
    for sample in (0, 17, 89):
        rest = np.arange(90) != sample
        reference = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.3).fit(X[rest], centred[rest])
        expected = reference.predict(X[[sample]])[0] + Y.mean(axis=0)
        np.testing.assert_allclose(left_out[sample], 2 * expected - 1, atol=1e-9)


def test_unknown_labels_count_as_their_frequency():
    y = Y.copy()
    y[60:, 0] = np.nan
    filled = y.copy()
    filled[60:, 0] = np.nanmean(y[:, 0])
    model = KernelRidgeBaseline(gamma=0.2).fit(X, torch.from_numpy(y))
    reference = KernelRidge(kernel="rbf", gamma=0.2, alpha=1.0).fit(X, filled - filled.mean(axis=0))
    np.testing.assert_allclose(model.decision_function(X), 2 * (reference.predict(X) + filled.mean(axis=0)) - 1)


def test_samples_that_are_too_alike_are_named():
    with pytest.raises(ValueError, match="larger 'alpha'"):
        KernelRidgeBaseline(alpha=1e-18).fit(np.vstack([X, X]), np.vstack([Y, Y]))


def test_too_many_samples_are_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr(kernel_ridge, "MAX_SAMPLES", 80)
    with pytest.raises(ValueError, match="at most 80 samples"):
        KernelRidgeBaseline().fit(X, Y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_restored_model_keeps_the_form_of_features(form):
    model = KernelRidgeBaseline(0.2, 0.3).fit(form(X), Y)
    restored = KernelRidgeBaseline().load_state_dict(model.state_dict())
    np.testing.assert_allclose(restored.predict_proba(form(X)), model.predict_proba(form(X)), atol=1e-5)
    assert sp.issparse(restored.x) == (form is sp.csr_array)


def test_many_samples_are_scored_some_at_a_time(monkeypatch):
    x = np.random.default_rng(0).normal(size=(20, 3))
    ridge = KernelRidgeBaseline(gamma=0.5, alpha=0.1).fit(x, (x > 0).astype(float))
    at_once = ridge.decision_function(x)
    monkeypatch.setattr(kernel_ridge, "_CHUNK", 7)
    np.testing.assert_allclose(ridge.decision_function(x), at_once, rtol=1e-12)
    assert ridge.decision_function(x[:0]).shape == (0, 3)
