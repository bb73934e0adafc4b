import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.kernel_ridge import KernelRidge

from tests.baselines.test_baseline import X, Y
from tg_mlc.baselines import KernelRidgeBaseline, kernel_ridge

X, Y = X[:90], Y[:90]


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_scores_equal_those_of_scikit_learn(convert):
    model = KernelRidgeBaseline(gamma=0.2, alpha=0.3).fit(convert(X[:60]), Y[:60])
    reference = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.3)
    reference.fit(X[:60], Y[:60] - Y[:60].mean(axis=0))
    expected = reference.predict(X) + Y[:60].mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(convert(X)), np.clip(expected, 0, 1), atol=1e-9)
    np.testing.assert_allclose(model.decision_function(convert(X)), 2 * expected - 1, atol=1e-9)


def test_held_out_scores_equal_those_of_a_model_without_the_sample():
    held_out = KernelRidgeBaseline(gamma=0.2, alpha=0.3).held_out_scores(X, Y)
    centred = Y - Y.mean(axis=0)
    for sample in (0, 17, 89):
        train = np.arange(90) != sample
        reference = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.3).fit(X[train], centred[train])
        expected = reference.predict(X[[sample]])[0] + Y.mean(axis=0)
        np.testing.assert_allclose(held_out[sample], 2 * expected - 1, atol=1e-9)


def test_unknown_labels_count_as_their_frequency():
    y = Y.copy()
    y[60:, 0] = np.nan
    filled = y.copy()
    filled[60:, 0] = np.nanmean(y[:, 0])
    model = KernelRidgeBaseline(gamma=0.2).fit(X, torch.from_numpy(y))
    reference = KernelRidge(kernel="rbf", gamma=0.2, alpha=1.0).fit(X, filled - filled.mean(axis=0))
    expected = 2 * (reference.predict(X) + filled.mean(axis=0)) - 1
    np.testing.assert_allclose(model.decision_function(X), expected)


def correlated_labels(num_labels):
    """Returns noisy, correlated copies of a few columns, and a first label with one value."""
    rng = np.random.default_rng(0)
    columns = np.tile(Y, num_labels // Y.shape[1] + 1)[:, :num_labels]
    noisy = np.abs(columns - (rng.random(columns.shape) < 0.1))
    return np.where(np.arange(num_labels) == 0, 0.0, noisy)


def kronecker(x, y, fold_labels, gamma, alpha):
    """Returns the kernel of all pairs of sample and label, and the dual weights of the pairs."""
    distance = np.square(x[:, None] - x[None]).sum(axis=-1)
    z = fold_labels - fold_labels.mean(axis=0)
    z /= np.linalg.norm(z, axis=0).clip(1e-12)
    kernel = np.kron(np.exp(-gamma * distance), np.eye(y.shape[1]) + z.T @ z)
    return kernel, np.linalg.solve(kernel + alpha * np.eye(len(kernel)), y.ravel())


@pytest.mark.parametrize("num_labels", [6, 40])  # The number of samples, 30, lies between.
def test_correlated_labels_are_one_regression_of_all_pairs(num_labels):
    x, y = X[:30], correlated_labels(num_labels)[:30]
    kernel, dual = kronecker(x, y - y.mean(axis=0), y, 0.2, 2.0)
    ridge = KernelRidgeBaseline(gamma=0.2, alpha=2.0, correlated=True).fit(x, y)
    scores = ridge.decision_function(x)
    expected = 2 * ((kernel @ dual).reshape(y.shape) + y.mean(axis=0)) - 1
    np.testing.assert_allclose(scores, expected, atol=1e-8)
    plain = KernelRidgeBaseline(0.2, 2.0).fit(x, y).decision_function(x)
    assert np.abs(scores - plain).max() > 0.1


@pytest.mark.parametrize("num_labels", [6, 40])
def test_held_out_scores_use_the_correlations_of_other_folds(num_labels):
    x, y = X[:30], correlated_labels(num_labels)[:30]
    ridge, second = (KernelRidgeBaseline(0.2, 2.0, correlated=True) for _ in range(2))
    first, others = np.split(np.arange(30), [10])
    held_out = ridge.held_out_scores(x, y, cv=iter([(others, first), (first, others)]))
    centred = y - y.mean(axis=0)
    np.testing.assert_allclose(ridge.dual, second.fit(x, y).dual)
    for sample, fold in ((3, y[10:]), (20, y[:10])):
        others = np.arange(30) != sample
        kernel = kronecker(x, centred, fold, 0.2, 2.0)[0].reshape(30, num_labels, 30, num_labels)
        dual = kronecker(x[others], centred[others], fold, 0.2, 2.0)[1].reshape(29, num_labels)
        expected = np.einsum("lnk,nk->l", kernel[sample][:, others], dual) + y.mean(axis=0)
        np.testing.assert_allclose(held_out[sample], 2 * expected - 1, atol=1e-8)


def test_only_samples_of_the_folds_have_held_out_scores():
    x, y = X[:30], correlated_labels(5)[:30]
    ridge, fold = KernelRidgeBaseline(0.2, 2.0, correlated=True), (np.arange(10, 30), np.arange(10))
    scores = ridge.held_out_scores(x, y, cv=[fold])
    assert np.isnan(scores[10:]).all()
    np.testing.assert_array_equal(ridge.held_out_scores(x, y, cv=[fold, fold]), scores)


def test_samples_that_are_too_alike_or_too_many_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="larger 'alpha'"):
        KernelRidgeBaseline(alpha=1e-18).fit(np.vstack([X, X]), np.vstack([Y, Y]))
    monkeypatch.setattr(kernel_ridge, "MAX_SAMPLES", 80)
    with pytest.raises(ValueError, match="at most 80 samples"):
        KernelRidgeBaseline().fit(X, Y)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_a_restored_model_keeps_the_matrix_type_of_features(convert):
    model = KernelRidgeBaseline(0.2, 0.3).fit(convert(X), Y)
    restored = KernelRidgeBaseline().load_state_dict(model.state_dict())
    expected = model.predict_proba(convert(X))
    np.testing.assert_allclose(restored.predict_proba(convert(X)), expected, atol=1e-5)
    assert sp.issparse(restored.x) == (convert is sp.csr_array)


def test_samples_are_scored_in_chunks(monkeypatch):
    x = np.random.default_rng(0).normal(size=(20, 3))
    ridge = KernelRidgeBaseline(gamma=0.5, alpha=0.1).fit(x, (x > 0).astype(float))
    expected = ridge.decision_function(x)
    monkeypatch.setattr(kernel_ridge, "_CHUNK", 7)
    np.testing.assert_allclose(ridge.decision_function(x), expected, rtol=1e-12)
    assert ridge.decision_function(x[:0]).shape == (0, 3)


def test_a_module_of_too_many_training_features_is_refused(monkeypatch):
    ridge = KernelRidgeBaseline().fit(sp.csr_array(X), Y)
    monkeypatch.setattr(kernel_ridge, "MAX_MODULE_NUMBERS", 90 * 6)
    assert ridge.module()(torch.from_numpy(X).float()).shape == Y.shape
    monkeypatch.setattr(kernel_ridge, "MAX_MODULE_NUMBERS", 90 * 6 - 1)
    with pytest.raises(ValueError, match=r"at most 539 numbers .* \(got 90 x 6\)"):
        ridge.module()
