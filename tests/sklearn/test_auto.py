from __future__ import annotations

import numpy as np
import pytest

from tg_mlc.sklearn import AutoClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = (X[:, :2] > 0).astype(int)


def test_it_fits_the_default() -> None:
    classifier = AutoClassifier(seconds=5, random_state=0).fit(X[:40], Y[:40])
    assert classifier.score(X[40:], Y[40:]) > 0.6
    np.testing.assert_allclose(classifier.predict_proba(X), classifier.model_.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(classifier.predict(X), classifier.model_.predict(X))


def test_a_metric_is_needed_for_thresholds() -> None:
    with pytest.raises(ValueError, match="Expected 'threshold' to be one of"):
        AutoClassifier(threshold="f1").fit(X, Y)
