"""Small inputs for comparisons of labels that know each other."""

import numpy as np

from benchmarks.accuracy.base_scores import Inputs


def twins(num_samples=120, seed=0):
    """Returns labels of which two follow the inputs and two repeat each other, some unknown."""
    rng = np.random.default_rng(seed)
    x, coin = rng.normal(size=(num_samples, 3)), rng.random((num_samples, 1)) < 0.5
    follows = x[:, :2] + 0.3 * rng.normal(size=(num_samples, 2)) > 0
    y = np.hstack([follows, coin, coin]).astype(float)
    squares = ((x[:, None] - x) ** 2).sum(axis=-1)
    return Inputs(y, {"vector": squares}, {"name": "twins", "sha256": "0123456789abcdef"})


def with_test_labels_inverted(inputs, test):
    y = inputs.y.copy()
    y[test] = 1 - y[test]
    return inputs._replace(y=y)
