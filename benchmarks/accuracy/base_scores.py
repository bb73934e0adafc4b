"""Base scores that all rows of a comparison share: kernel ridge regressions and calibrations.

Kernel and regularisation are chosen by scores of training samples that leave out one sample, the
same for all labels. A logistic calibration of each label follows, which leaves out a fifth of the
training samples in turn. Nothing depends on the speed of the machine.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.linear_model import LogisticRegression

from benchmarks.accuracy.completion import Array, logit
from benchmarks.files import describe_dataset
from tg_mlc.data import random_split
from tg_mlc.datasets.registry import load as load_published
from tg_mlc.inputs.kinds import views_of
from tg_mlc.metrics import macro_average_precision, macro_roc_auc
from tg_mlc.papers.recipes import RECIPES

ALPHAS = (0.03, 0.1, 0.3, 1.0, 3.0)
#: Rates at which kernels fall with the squared distance over its mean. Data sets with more than
#: :obj:`MAX_CHOSEN` samples have one rate, and their first view alone.
GAMMAS, MAX_CHOSEN = (0.3, 1.0, 3.0), 3000
CALIBRATION_FOLDS = 5
SHARES = (0.8, 0.0, 0.2)


class Kernel(NamedTuple):
    """Eigenvalues and eigenvectors of a kernel of training samples, and its values for others."""

    name: str
    values: Array
    vectors: Array
    cross: Array


class Inputs(NamedTuple):
    """Labels, and squared distances of all samples in each view that is used."""

    y: Array
    distances: dict[str, Array]
    about: dict[str, Any]

    def kernels(self, train: Array, test: Array) -> list[Kernel]:
        """Kernels of training samples, and of test samples with them."""
        kernels = []
        for view, squares in self.distances.items():
            for gamma in (1.0,) if len(self.y) > MAX_CHOSEN else GAMMAS:
                kernel = np.exp(-gamma / squares.mean() * squares)
                values, vectors = eigh(kernel[np.ix_(train, train)], overwrite_a=True)
                cross = kernel[np.ix_(test, train)]
                kernels.append(Kernel(f"{view}, {gamma}", values.clip(min=0), vectors, cross))
        return kernels


class BaseScores(NamedTuple):
    """Labels and logits of one split. Logits of training samples are held out."""

    logits: Array
    y: Array
    test_logits: Array
    y_test: Array
    about: dict[str, Any]  #: The data set, the split, and the choices.


@lru_cache(1)
def load(name: str, root: Path) -> Inputs:
    """Loads the labels and inputs of a data set."""
    dataset = RECIPES[name].load_dataset(root) if name in RECIPES else load_published(name, root)
    distances, views = {}, list(views_of(dataset).items())
    for view_name, view in views[:1] if len(dataset) > MAX_CHOSEN else views:
        x = view.fit(dataset).matrix(dataset)
        product = x @ x.T
        inner = np.asarray(product.todense() if sp.issparse(product) else product, dtype=float)
        square = np.diag(inner)
        distances[view_name] = (square[:, None] + square - 2 * inner).clip(min=0)
    return Inputs(dataset.y.double().numpy(), distances, describe_dataset(name, dataset))


@lru_cache(1)
def base_scores(name: str, seed: int, root: Path) -> BaseScores:
    """Base scores of a random split, 80% for training and 20% for testing."""
    inputs = load(name, root)
    split = random_split(len(inputs.y), SHARES, seed)
    train, test = split.train.numpy(), split.test.numpy()
    y = inputs.y[train]
    logits, test_logits, chosen = fitted(y, inputs.kernels(train, test), seed)
    about = {**inputs.about, "split": split.hash, "base": chosen}
    return BaseScores(logits, y, test_logits, inputs.y[test], about)


def fitted(y: Array, kernels: list[Kernel], seed: int) -> tuple[Array, Array, str]:
    """Held-out logits of training samples, logits of test samples, and the choice."""
    frequency = np.nan_to_num(np.nanmean(y, axis=0), nan=0.5)
    centred = np.nan_to_num(y - frequency)  # An unknown label counts as its frequency.
    best: tuple[float, str, Array, Array] | None = None
    for kernel, alpha in product(kernels, ALPHAS):
        inverse = 1 / (kernel.values + alpha)
        dual = kernel.vectors @ (inverse[:, None] * (kernel.vectors.T @ centred))
        scores = centred - dual / (kernel.vectors**2 @ inverse)[:, None]
        value = float(macro_roc_auc(y, scores) + macro_average_precision(y, scores))
        if best is None or value > best[0]:
            best = value, f"{kernel.name}, {alpha}", scores, kernel.cross @ dual
    assert best is not None
    _, chosen, scores, test_scores = best
    fold = np.random.default_rng(seed).permutation(len(y)) % CALIBRATION_FOLDS
    logits, test_logits = np.empty_like(scores), np.empty_like(test_scores)
    for label in range(y.shape[1]):
        column, target = scores[:, label], y[:, label]
        for held_out in (fold == index for index in range(CALIBRATION_FOLDS)):
            logits[held_out, label] = _calibrated(
                column[~held_out], target[~held_out], column[held_out]
            )
        test_logits[:, label] = _calibrated(column, target, test_scores[:, label])
    return logits, test_logits, chosen


def _calibrated(scores: Array, y: Array, new_scores: Array) -> Array:
    is_known = ~np.isnan(y)
    known = y[is_known]
    if len(set(known)) < 2:
        return np.full(len(new_scores), logit((known.sum() + 0.5) / (len(known) + 1)))
    if not len(new_scores):
        return new_scores
    model = LogisticRegression(C=1e3).fit(scores[is_known, None], known)
    return np.asarray(model.decision_function(new_scores[:, None]))
