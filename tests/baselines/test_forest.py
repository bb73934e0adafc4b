from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tg_mlc.baselines import ForestBaseline

pytest.importorskip("sklearn")


@pytest.fixture
def samples():
    x = np.random.default_rng(0).normal(size=(120, 6)).astype(np.float32)
    return x, np.stack([x[:, 0] > 0, x[:, 1] + x[:, 2] > 0, x[:, 3] > 1], axis=1).astype(float)


def test_scores_are_those_of_scikit_learn(samples):
    from sklearn.ensemble import RandomForestRegressor

    x, y = samples
    forest = ForestBaseline(20).fit(x[:80], y[:80])
    theirs = RandomForestRegressor(20, max_features="sqrt", random_state=0).fit(x[:80], y[:80])
    np.testing.assert_allclose(forest.predict_proba(x), theirs.predict(x), atol=1e-12)


def test_sparse_features_give_the_scores_of_dense_ones(samples):
    x, y = samples
    x = np.where(np.abs(x) > 0.5, x, 0)
    dense, sparse = ForestBaseline(10).fit(x, y), ForestBaseline(10).fit(sp.csr_array(x), y)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(x)), dense.predict_proba(x))


def test_out_of_bag_scores_have_not_seen_the_labels(samples):
    x, _ = samples
    y = np.random.default_rng(1).integers(0, 2, size=(120, 1)).astype(float)
    forest = ForestBaseline(100).fit(x, y)
    seen = np.corrcoef(forest.predict_proba(x)[:, 0], y[:, 0])[0, 1]
    assert seen > 0.8
    assert np.corrcoef(forest.out_of_bag()[:, 0], y[:, 0])[0, 1] < 0.4


def test_unknown_labels_count_as_their_frequency(samples):
    x, y = samples
    y[:, 2] = np.nan
    y[:4, 2] = [0, 1, 0, 0]
    np.testing.assert_allclose(ForestBaseline(50).fit(x, y).predict_proba(x)[:, 2].mean(), 0.25, atol=0.05)


def test_state_predicts_the_same(samples):
    x, y = samples
    forest = ForestBaseline(5).fit(x, y)
    restored = ForestBaseline().load_state_dict(forest.state_dict())
    assert (restored.predict_proba(x) == forest.predict_proba(x)).all()
    assert repr(restored) == repr(forest)


def test_needs_to_be_fitted(samples):
    with pytest.raises(RuntimeError, match="Expected 'fit' to be called before 'predict_proba'"):
        ForestBaseline().predict_proba(samples[0])
