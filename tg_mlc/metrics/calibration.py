"""Calibration errors of probabilities, and functions that calibrate probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor, nn

from tg_mlc._optional import require
from tg_mlc.metrics._inputs import (
    ArrayLike,
    FloatArray,
    IntArray,
    Targets,
    check_scale,
    read_scores,
    read_targets,
)

NUM_BINS = 15  #: number of bins of equal width, a common choice
#: Labels with fewer known positives or negatives share one calibration function.
MIN_OWN = 30
NUM_FOLDS = 5
_EPS = 1e-9  # Least probability, so that logits are finite; least distance between knots.


@dataclass(frozen=True)
class Reliability:
    """Calibration errors of the probabilities of known entries; ``to_svg()`` draws them."""

    #: The expected calibration error of each label: the mean over bins of equal width, weighted by
    #: entries, of the distance between mean probability and fraction of positives; NaN if all
    #: entries are unknown.
    ece: list[float]
    brier: list[float]  #: the mean squared error of the probabilities of each label
    #: (mean probability, share of positives, number of entries) per bin that has entries
    bins: list[tuple[float, float, int]]

    @classmethod
    def of(cls, targets: Targets, scores: FloatArray) -> Reliability:
        """Measures probabilities :math:`(N, L)`."""
        bins = np.minimum((scores * NUM_BINS).astype(int), NUM_BINS - 1)
        weights = (targets.observed, np.where(targets.observed, scores, 0.0), targets.positive)
        shape = (scores.shape[1], NUM_BINS)
        cells = (bins + NUM_BINS * np.arange(shape[0])).ravel()
        sums = (np.bincount(cells, w.ravel(), np.prod(shape)).reshape(shape) for w in weights)
        count, total, positive = sums
        squared = np.where(targets.observed, (scores - targets.positive) ** 2, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):  # labels without known entries
            ece = np.abs(total - positive).sum(axis=1) / count.sum(axis=1)
            brier = squared / count.sum(axis=1)
        pooled = np.stack([total, positive, count]).sum(axis=1).T.tolist()
        bin_means = [(p / n, y / n, int(n)) for p, y, n in pooled if n]
        return cls(ece.tolist(), brier.tolist(), bin_means)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain values for JSON, with None for NaN."""
        fields = vars(self).items()
        return {k: [None if np.any(np.isnan(x)) else x for x in values] for k, values in fields}

    def to_svg(self) -> str:
        """Draws frequencies over mean probabilities; areas of dots show entries per bin."""
        largest = max((n for *_, n in self.bins), default=1)
        radii = [1.5 + 6 * (n / largest) ** 0.5 for *_, n in self.bins]
        pairs = zip(self.bins, radii, strict=True)
        points = [(20 + 200 * p, 220 - 200 * y, r) for (p, y, _), r in pairs]
        dot = '<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" stroke="none"/>'
        dots = "".join(dot.format(*point) for point in points)
        curve = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        style = 'text-anchor="middle" font-size="11" stroke="none"'
        axis_titles = f'<text x="120" y="236" {style}>mean probability</text>'
        rotation = 'transform="rotate(-90 12 120)"'
        axis_titles += f'<text x="12" y="120" {style} {rotation}>share of positives</text>'
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 240" width="240" '
            'fill="currentColor" stroke="currentColor" role="img" '
            'aria-label="Share of positives by mean probability">'
            '<path d="M20 20v200h200" fill="none"/>'
            '<path d="M20 220L220 20" fill="none" stroke-dasharray="4"/>'
            f'<polyline points="{curve}" fill="none"/>{dots}{axis_titles}</svg>'
        )


class Calibration(nn.Module):
    r"""Maps logits by increasing functions, so that probabilities agree with frequencies.

    The log loss in five-fold cross-validation chooses temperature scaling (:math:`a z`), Platt's
    function (:math:`a z + b`), or isotonic regression with linear interpolation. The identity stays
    unless one of them is better by more than a standard error. Labels with fewer than 30 known
    positives or negatives share one function.

    Args:
        methods (Sequence[str]): The method of each label.
        num_knots (int, optional): The largest number of knots of a function. (default: :obj:`0`)
    """

    scale: Tensor
    shift: Tensor
    knots: Tensor
    bends: Tensor

    def __init__(self, methods: Sequence[str], num_knots: int = 0) -> None:
        super().__init__()
        self.methods, size = list(methods), len(methods)
        self.register_buffer("scale", torch.ones(size).double())
        self.register_buffer("shift", torch.zeros(size).double())
        for name in ("knots", "bends"):
            self.register_buffer(name, torch.zeros(num_knots, size).double())

    def forward(self, logits: Tensor) -> Tensor:
        """Returns calibrated logits :math:`(N, L)`."""
        mapped = self.scale * logits + self.shift
        # An index is used, because an iteration over zero rows cannot be exported.
        for i in range(len(self.knots)):
            mapped = mapped + self.bends[i] * (logits - self.knots[i]).relu()
        return mapped

    def probabilities(self, scores: Tensor) -> Tensor:
        """Returns calibrated probabilities :math:`(N, L)`; 0 and 1 are unchanged."""
        mapped = self(torch.logit(scores.double(), torch.finfo(scores.dtype).eps)).sigmoid()
        return torch.where((scores > 0) & (scores < 1), mapped, scores)

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, seed: int = 0) -> Calibration:
        """Chooses and fits the functions.

        Args:
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
            scores (Tensor or numpy.ndarray): Held-out probabilities :math:`(N, L)`.
            seed (int, optional): Seed of the folds. (default: :obj:`0`)

        Raises:
            ValueError: If the shapes disagree, or a value is not allowed.
        """
        targets = read_targets(y, "y")
        matrix = check_scale(read_scores(scores, targets), (0.5,))
        z = logit(np.clip(matrix, _EPS, 1 - _EPS))
        positives = targets.positive.sum(axis=0)
        own = np.minimum(positives, targets.observed.sum(axis=0) - positives) >= MIN_OWN
        folds = np.random.default_rng(seed).permutation(len(z)) % NUM_FOLDS
        functions: dict[int, tuple[str, FloatArray, FloatArray]] = {}
        for labels in [np.array([label]) for label in np.flatnonzero(own)] + [np.flatnonzero(~own)]:
            row, column = np.nonzero(targets.observed[:, labels])
            positive = targets.positive[row, labels[column]].astype(float)
            function = _best_function(row, z[row, labels[column]], positive, folds[row])
            functions |= dict.fromkeys(labels.tolist(), function)
        num_knots = max(len(knots) for _, _, knots in functions.values())
        calibration = cls([functions[label][0] for label in range(len(own))], num_knots)
        for label, (_, weights, knots) in functions.items():
            calibration.shift[label], calibration.scale[label] = weights[:2].tolist()
            calibration.bends[: len(knots), label] = torch.from_numpy(weights[2:])
            calibration.knots[: len(knots), label] = torch.from_numpy(knots)
        return calibration


# Weights and knots of max(0, logit - knot). The first two weights are intercept and slope.
_Fitted = tuple[FloatArray, FloatArray]
_IDENTITY: _Fitted = np.array([0.0, 1.0]), np.empty(0)


def _losses(fitted: _Fitted, z: FloatArray, y: FloatArray) -> FloatArray:
    weights, knots = fitted
    mapped = weights[0] + weights[1] * z + np.maximum(z[:, None] - knots, 0) @ weights[2:]
    return np.asarray(np.logaddexp(0, mapped) - y * mapped)


def _platt(z: FloatArray, y: FloatArray, shifts: bool = True) -> _Fitted:
    from scipy.optimize import minimize  # This import is slow.

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        delta, error = weights - _IDENTITY[0], expit(weights[0] + weights[1] * z) - y
        value = _losses((weights, _IDENTITY[1]), z, y).sum() + delta @ delta / 2
        return float(value), np.array([shifts * (error.sum() + delta[0]), error @ z + delta[1]])

    bounds = [(None, None), (0.01, None)]
    return minimize(loss, _IDENTITY[0], jac=True, method="L-BFGS-B", bounds=bounds).x, _IDENTITY[1]


def _isotonic(z: FloatArray, y: FloatArray) -> _Fitted:
    """Fits isotonic regression, interpolated linearly, with slope 1 outside of its range."""
    order, margin = np.argsort(z, kind="stable"), 0.5 / len(y)
    means = require("sklearn.isotonic", extra="data").isotonic_regression(y[order])
    levels, block, sizes = np.unique(means.round(12), return_inverse=True, return_counts=True)
    knots = np.bincount(block, z[order]) / sizes
    is_distinct = np.append(True, np.diff(knots) > _EPS)
    knots, values = knots[is_distinct], logit(np.clip(levels[is_distinct], margin, 1 - margin))
    bends = np.diff(np.concatenate([[1.0], np.diff(values) / np.diff(knots), [1.0]]))
    return np.concatenate([[values[0] - knots[0], 1.0], bends]), knots


_FITS: dict[str, Callable[[FloatArray, FloatArray], _Fitted]] = {
    "identity": lambda z, y: _IDENTITY,
    "temperature": partial(_platt, shifts=False),
    "platt": _platt,
    "isotonic": _isotonic,
}


def _best_function(
    row: IntArray, z: FloatArray, y: FloatArray, fold: IntArray
) -> tuple[str, FloatArray, FloatArray]:
    """Returns the function with the least loss in cross-validation, fitted to all folds."""
    if len(np.unique(fold)) < NUM_FOLDS:
        return "identity", *_IDENTITY
    losses = {name: np.empty(len(z)) for name in _FITS}
    for test in (fold == index for index in range(NUM_FOLDS)):
        for name, fit in _FITS.items():
            losses[name][test] = _losses(fit(z[~test], y[~test]), z[test], y[test])
    best = min(losses, key=lambda name: float(losses[name].sum()))
    gains = np.bincount(row, losses["identity"] - losses[best])[np.unique(row)]
    if gains.mean() <= gains.std() / np.sqrt(len(gains)):
        best = "identity"
    return best, *_FITS[best](z, y)
