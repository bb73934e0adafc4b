import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import Ridge

from benchmarks.accuracy import completion


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def y(rng):
    """Returns noisy labels. Each of two groups of samples prefers one of two groups of labels."""
    group = np.arange(40) % 2
    probability = np.where(group[:, None] == np.arange(12) % 2, 0.7, 0.1)
    return (rng.random((40, 12)) < probability).astype(float)


@pytest.fixture(scope="module")
def kernel(rng):
    x = rng.random((40, 5))
    return x @ x.T


def test_tanimoto_of_shared_and_empty_counts():
    kernel = completion.tanimoto(np.array([[2.0, 1, 0], [1, 1, 1], [0, 0, 0]]))
    assert kernel.tolist() == [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize("has_labels", [False, True])
def test_ridge_predicts_a_sample_like_a_fit_without_this_sample(y, kernel, has_labels):
    labels = np.eye(12) + completion.cosine(y.T) if has_labels else None
    held_out, dual = completion.ridge(kernel, y, 2.0, labels)
    for row in (0, 7):
        others = np.arange(40) != row
        _, dual = completion.ridge(kernel[np.ix_(others, others)], y[others], 2.0, labels)
        np.testing.assert_allclose(held_out[row], kernel[row, others] @ dual)


def test_crossed_predicts_pairs_without_their_values(y, kernel):
    labels = completion.cosine(y.T)
    original_scores = completion.crossed(kernel, labels, y, 1.0)
    changed = y.copy()
    changed[3, 5] = 1 - changed[3, 5]
    changed_scores = completion.crossed(kernel, labels, changed, 1.0)
    assert changed_scores[3, 5] == pytest.approx(original_scores[3, 5])
    assert not np.allclose(changed_scores[3, 7], original_scores[3, 7])


def test_an_autoencoder_equals_the_regression_on_all_other_labels(y):
    weight = completion.autoencoder(y.T @ y, 3.0)
    assert np.diag(weight).tolist() == [0] * 12
    others = y[:, 1:]
    expected = np.linalg.solve(others.T @ others + 3 * np.eye(11), others.T @ y[:, 0])
    np.testing.assert_allclose(weight[1:, 0], expected)


def test_samples_with_many_labels_count_less():
    x = np.array([[1.0] * 30 + [0, 0], [0.0] * 30 + [1, 1]])
    gram = completion.weighted_gram(x)
    assert gram[0, 1] < 1 < gram[30, 31]


@pytest.mark.parametrize("method", ["autoencoder", "crossed", "factors"])
def test_hidden_pairs_have_high_scores(y, method):
    known = np.where(np.random.default_rng(1).random(y.shape) < 0.1, 0, y)
    samples, labels = completion.cosine(known), completion.cosine(known.T)
    scores = {
        "autoencoder": lambda: known @ completion.autoencoder(known.T @ known, 5.0),
        "crossed": lambda: completion.crossed(samples, labels, known, 1.0),
        "factors": lambda: completion.factors(known, rank=2, penalty=1.0, weight=5.0),
    }[method]()
    # Random scores have a goodness of 0.5 to 0.6.
    assert completion.goodness(np.where(known == 1, np.nan, y), scores) > 0.85


def test_samples_without_similar_neighbours_get_label_frequencies():
    y, frequency = np.array([[1.0, 0], [1, 1]]), np.array([0.9, 0.5])
    similarity = np.array([[0.0, 0], [0.5, 0]])
    scores = completion.neighbours(similarity, y, frequency, power=2.0, prior=0.75)
    np.testing.assert_allclose(scores, [[0.9, 0.5], [(0.25 + 0.75 * 0.9), 0.75 * 0.5]])


def test_log_odds_are_clipped():
    assert completion.logit(np.array([0.0, 0.5, 2.0]), 0.25).tolist() == [-np.log(3), 0, np.log(3)]


def test_partial_least_squares_are_those_of_scikit_learn(rng):
    x = rng.normal(size=(60, 8))
    y = 2 * x[:, 0] + x[:, 3] + rng.normal(size=60)
    coefficients, intercepts = completion.partial_least_squares(x, y, 4)
    for components in (1, 2, 4):
        model = PLSRegression(components, scale=False).fit(x, y)
        ours = x @ coefficients[components - 1] + intercepts[components - 1]
        np.testing.assert_allclose(ours, model.predict(x).ravel(), atol=1e-9)


def test_partial_least_squares_of_a_constant_label_are_constant(rng):
    coefficients, intercepts = completion.partial_least_squares(rng.random((9, 3)), np.ones(9), 2)
    assert not coefficients.any()
    assert intercepts.tolist() == [1, 1]


def test_factors_of_rows_are_ridge_regressions_on_their_known_entries(rng):
    z, fixed, is_known = rng.normal(size=(5, 7)), rng.normal(size=(7, 2)), rng.random((5, 7)) < 0.6
    factors = completion.factors_of(z, is_known, fixed, 0.5)
    for row in range(5):
        model = Ridge(0.5, fit_intercept=False).fit(fixed[is_known[row]], z[row, is_known[row]])
        np.testing.assert_allclose(factors[row], model.coef_)


def test_soft_impute_completes_a_matrix_of_low_rank(rng):
    z = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 20))
    is_known = rng.random(z.shape) < 0.6
    labels = completion.soft_impute(z, is_known, 4, 0.1)
    found = completion.factors_of(z, is_known, labels, 0.1) @ labels.T
    assert np.corrcoef(found[~is_known], z[~is_known])[0, 1] > 0.98
