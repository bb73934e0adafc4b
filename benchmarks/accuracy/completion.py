"""Methods that complete a matrix of samples and labels: neighbours, regressions, factors.

All functions take and return arrays; ``x`` and ``y`` are binary, samples by labels, and ``z`` are
residuals, 0 where unknown. Scores rank pairs of a sample and a label, and need not be
probabilities.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tg_mlc.metrics import micro_average_precision, micro_roc_auc

Array = npt.NDArray[np.float64]


def tanimoto(counts: Array) -> Array:
    """The Tanimoto kernel :math:`(N, N)` of samples, from their counts of substructures."""
    totals, kernel = counts.sum(axis=1), np.empty((len(counts), len(counts)))
    for row, sample_counts in enumerate(counts):
        present = sample_counts > 0
        shared = np.minimum(sample_counts[present], counts[:, present]).sum(axis=1)
        kernel[row] = shared / np.maximum(totals[row] + totals - shared, 1)
    return kernel


def cosine(x: Array) -> Array:
    """The cosines of all pairs of rows. A row of zeros is similar to itself alone."""
    length = np.linalg.norm(x, axis=1).clip(min=1e-9)
    kernel = np.asarray((x / length[:, None]) @ (x / length[:, None]).T)
    np.fill_diagonal(kernel, 1.0)
    return kernel


def neighbours(similarity: Array, y: Array, frequency: Array, power: float, prior: float) -> Array:
    """Weighted fractions of neighbours with each label; ``prior`` weighs the label frequencies."""
    weight = similarity.clip(0, 1) ** power
    total = weight.sum(axis=1, keepdims=True) + prior
    return np.asarray((weight @ y + prior * frequency) / total)


def ridge(
    kernel: Array, y: Array, alpha: float, labels: Array | None = None
) -> tuple[Array, Array]:
    """Ridge regression on a kernel of samples, times a kernel of labels if specified.

    Returns:
        Leave-one-out predictions, and the dual coefficients. The kernel of new and training samples
        times the coefficients gives predictions for new samples.
    """
    values, u = np.linalg.eigh(kernel)
    label_values, v = (np.ones(y.shape[1]), None) if labels is None else np.linalg.eigh(labels)
    inverse = 1 / (values.clip(min=0)[:, None] * label_values.clip(min=0) + alpha)
    dual = u @ (inverse * (u.T @ (y if v is None else y @ v)))
    residual = dual / (u**2 @ inverse)
    if v is None:
        return y - residual, dual
    return y - residual @ v.T, (dual * label_values) @ v.T


def crossed(kernel: Array, labels: Array, y: Array, alpha: float) -> Array:
    """Predictions of sample-label pairs, each by ridge regression on all other pairs."""
    (values, u), (label_values, v) = np.linalg.eigh(kernel), np.linalg.eigh(labels)
    product = values.clip(min=0)[:, None] * label_values.clip(min=0)
    fraction = product / (product + alpha)
    leverage = u**2 @ fraction @ (v**2).T
    return np.asarray(y - (y - u @ (fraction * (u.T @ y @ v)) @ v.T) / (1 - leverage))


def autoencoder(gram: Array, penalty: float, prior: Array | None = None) -> Array:
    """Weights :math:`(L, L)` with a zero diagonal that reconstruct rows, in the closed form of the
    `"Embarrassingly Shallow Autoencoders" <https://arxiv.org/abs/1905.03375>`_ paper (EASE).

    Args:
        gram: Counts of co-occurrences of labels.
        penalty: The penalty on squared weights.
        prior: Counts that are added to ``gram``.
    """
    inverse = np.linalg.inv(gram + (0 if prior is None else prior) + penalty * np.eye(len(gram)))
    weight = -inverse / np.diag(inverse)
    np.fill_diagonal(weight, 0.0)
    return np.asarray(weight)


def weighted_gram(x: Array) -> Array:
    """Co-occurrences of labels, where a sample counts less the more labels it has."""
    weight = (x.sum(axis=1, keepdims=True) + 10) ** -0.5
    return np.asarray((x * weight).T @ x / weight.mean())


def factors(x: Array, rank: int, penalty: float, weight: float, rounds: int = 6) -> Array:
    """The product of factors of samples and labels. A 1 counts ``1 + weight`` times as much as a 0
    (`Hu et al. 2008 <https://doi.org/10.1109/ICDM.2008.22>`_).
    """
    rng = np.random.default_rng(0)
    samples, labels = (rng.normal(0, 0.1, (size, rank)) for size in x.shape)

    def solve(matrix: Array, fixed: Array) -> Array:
        gram = fixed.T @ fixed + penalty * np.eye(rank)
        solved = np.empty((len(matrix), rank))
        for row, ones in enumerate(matrix > 0):
            observed = fixed[ones]
            target = (1 + weight) * observed.sum(axis=0)
            solved[row] = np.linalg.solve(gram + weight * observed.T @ observed, target)
        return solved

    for _ in range(rounds):
        samples = solve(x, labels)
        labels = solve(x.T, samples)
    return np.asarray(samples @ labels.T)


def soft_impute(z: Array, is_known: Array, rank: int, penalty: float, rounds: int = 15) -> Array:
    """Factors of labels :math:`(L, K)` whose products with factors of samples fit the known
    entries, with a nuclear norm (`Hastie et al. 2015 <https://jmlr.org/papers/v16/hastie15a.html>`_).
    """
    labels = np.random.default_rng(0).normal(0, 0.1, (z.shape[1], rank))
    for _ in range(rounds):
        samples = factors_of(z, is_known, labels, penalty)
        labels = factors_of(z.T, is_known.T, samples, penalty)
    return labels


def factors_of(z: Array, is_known: Array, fixed: Array, penalty: float) -> Array:
    """The factors of rows, given those of columns: a ridge regression on the known entries."""
    rank = fixed.shape[1]
    products = (fixed[:, :, None] * fixed[:, None, :]).reshape(len(fixed), -1)
    grams = (is_known.astype(float) @ products).reshape(-1, rank, rank)
    right = np.where(is_known, z, 0.0) @ fixed
    return np.asarray(np.linalg.solve(grams + penalty * np.eye(rank), right[..., None])[..., 0])


def partial_least_squares(x: Array, y: Array, components: int) -> tuple[Array, Array]:
    """Coefficients and intercept of a label for 1 to ``components`` components, from products of
    the inputs alone (`Dayal and MacGregor 1997
    <https://doi.org/10.1002/(SICI)1099-128X(199701)11:1%3C73::AID-CEM435%3E3.0.CO;2-%23>`_).
    """
    centre, level = x.mean(axis=0), y.mean()
    gram, right = (x - centre).T @ (x - centre), (x - centre).T @ (y - level)
    coefficient, coefficients = np.zeros(x.shape[1]), []
    rotations, loadings = [], []
    for _ in range(components):
        norm = np.linalg.norm(right)
        if norm < 1e-9:  # Nothing of the label is left.
            coefficients.append(coefficient)
            continue
        weight = right / norm
        rotation = weight - sum(
            ((loading @ weight) * used for loading, used in zip(loadings, rotations, strict=True)),
            start=np.zeros_like(weight),
        )
        image = gram @ rotation
        square = rotation @ image
        loading, slope = image / square, rotation @ right / square
        right = right - loading * slope * square
        coefficient = coefficient + slope * rotation
        rotations.append(rotation)
        loadings.append(loading)
        coefficients.append(coefficient)
    stacked = np.stack(coefficients)
    return stacked, level - stacked @ centre


def goodness(y: Array, scores: Array) -> float:
    """The criterion for settings: ROC-AUC plus average precision over all known pairs."""
    return micro_roc_auc(y, scores) + micro_average_precision(y, scores)


def logit(p: Array, least: float = 1e-3) -> Array:
    """Log odds of probabilities that are first clipped to ``[least, 1 - least]``."""
    clipped = np.clip(p, least, 1 - least)
    return np.asarray(np.log(clipped / (1 - clipped)))
