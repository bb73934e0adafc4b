import numpy as np
import pytest

from tests.baselines.test_baseline import NAN, X, Y
from tg_mlc.baselines import MLkNN


def by_hand(x, y, sample, k, s):
    """Returns the scores of a sample by the paper's algorithm. Unknown labels are skipped."""
    distance = np.linalg.norm(x[:, None] - x[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    nearest = distance.argsort(axis=1)[:, :k]
    near = np.linalg.norm(x - sample, axis=-1).argsort()[:k]
    scores = []
    for label in range(y.shape[1]):
        known = [n for n in range(len(x)) if not np.isnan(y[n, label])]
        counts = np.zeros((2, k + 1))
        for n in known:
            counts[int(y[n, label]), int(np.nansum(y[nearest[n], label]))] += 1
        prior = (s + counts.sum(axis=1)) / (2 * s + len(known))
        likelihood = (s + counts) / (s * (k + 1) + counts.sum(axis=1, keepdims=True))
        no, yes = prior * likelihood[:, int(np.nansum(y[near, label]))]
        scores.append(yes / (yes + no))
    return scores


@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_scores_equal_those_of_the_paper(fraction):
    y = np.where(np.random.default_rng(1).random(Y.shape) < fraction, NAN, Y)
    scores = MLkNN(n_neighbors=5, smoothing=0.5).fit(X[:120], y[:120]).predict_proba(X[120:130])
    np.testing.assert_allclose(scores, [by_hand(X[:120], y[:120], at, 5, 0.5) for at in X[120:130]])
