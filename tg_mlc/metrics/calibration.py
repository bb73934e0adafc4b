"""Calibration: how far probabilities are from the shares of what applies, and functions that bring them closer."""

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

NUM_BINS = 15  #: of equal width, as is usual
#: Labels with fewer known positives, or negatives, share the function that calibrates them.
MIN_OWN = 30
NUM_FOLDS = 5
_LEAST = 1e-9  # of probabilities, so that logits are finite


@dataclass(frozen=True)
class Reliability:
    """How far the probabilities of known entries are from shares of positives; ``to_svg()`` draws it."""

    #: The expected calibration error of each label: of bins of equal width, the mean distance of mean probability and
    #: share of positives, weighted by entries; NaN where all entries are unknown.
    ece: list[float]
    #: the mean squared distance of the probabilities of each label from its targets
    brier: list[float]
    #: mean probability, share of positives and entries of each bin that has any, of all labels together
    bins: list[tuple[float, float, int]]

    @classmethod
    def of(cls, targets: Targets, scores: FloatArray) -> Reliability:
        """Measures probabilities :math:`(N, L)`."""
        place = np.minimum((scores * NUM_BINS).astype(int), NUM_BINS - 1)
        weights = (targets.observed, np.where(targets.observed, scores, 0.0), targets.positive)
        shape = (scores.shape[1], NUM_BINS)
        cells = (place + NUM_BINS * np.arange(shape[0])).ravel()
        count, total, positive = (
            np.bincount(cells, w.ravel(), shape[0] * NUM_BINS).reshape(shape) for w in weights
        )
        squared = np.where(targets.observed, (scores - targets.positive) ** 2, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):  # labels without known entries
            ece, brier = (
                np.abs(total - positive).sum(axis=1) / count.sum(axis=1),
                squared / count.sum(axis=1),
            )
        pooled = zip(*(each.sum(axis=0).tolist() for each in (total, positive, count)), strict=True)
        return cls(
            ece.tolist(), brier.tolist(), [(p / n, y / n, int(n)) for p, y, n in pooled if n]
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain values for JSON, with None for NaN."""
        return {
            name: [None if np.any(np.isnan(each)) else each for each in values]
            for name, values in vars(self).items()
        }

    def to_svg(self) -> str:
        """Draws shares of positives over mean probabilities, in the colour of the text around; calibrated ones lie on
        the dashed line, and the area of a dot is that of its bin's entries.
        """
        most = max((n for *_, n in self.bins), default=1)
        at = [
            (20 + 200 * p, 220 - 200 * share, 1.5 + 6 * (n / most) ** 0.5)
            for p, share, n in self.bins
        ]
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" stroke="none"/>' for x, y, r in at
        )
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in at)
        words = "".join(
            f'<text x="{x}" y="{y}" text-anchor="middle" font-size="11" stroke="none"{turned}>{text}</text>'
            for x, y, text, turned in (
                (120, 236, "mean probability", ""),
                (12, 120, "share of positives", ' transform="rotate(-90 12 120)"'),
            )
        )
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 240" width="240" fill="currentColor" '
            'stroke="currentColor" role="img" aria-label="Share of positives by mean probability">'
            '<path d="M20 20v200h200" fill="none"/><path d="M20 220L220 20" fill="none" stroke-dasharray="4"/>'
            f'<polyline points="{line}" fill="none"/>{dots}{words}</svg>'
        )


class Calibration(nn.Module):
    r"""Maps the logit of each label by an increasing function, to probabilities that agree with shares.

    It is that of temperature scaling (:math:`a z`), of Platt (:math:`a z + b`), both with a prior of the identity, or
    isotonic regression, whose means of pooled neighbours are joined by lines. The log loss of samples that it was not
    fitted to chooses, in five folds: the identity, unless another function is better by more than a standard error.
    Labels with fewer than 30 known positives, or negatives, share one.

    Args:
        methods (Sequence[str]): The method of each label.
        num_knots (int, optional): The number of bends of a function. (default: :obj:`0`)
    """

    scale: Tensor
    shift: Tensor
    knots: Tensor
    bends: Tensor

    def __init__(self, methods: Sequence[str], num_knots: int = 0) -> None:
        super().__init__()
        self.methods, size = list(methods), len(methods)
        for name, value in (("scale", torch.ones(size)), ("shift", torch.zeros(size))):
            self.register_buffer(name, value.double())
        for name in ("knots", "bends"):
            self.register_buffer(name, torch.zeros(num_knots, size, dtype=torch.double))

    def forward(self, logits: Tensor) -> Tensor:
        """Returns calibrated logits :math:`(N, L)`."""
        mapped = self.scale * logits + self.shift
        # by number, because an unbind of no rows cannot be exported
        for place in range(len(self.knots)):
            mapped = mapped + self.bends[place] * (logits - self.knots[place]).relu()
        return mapped

    def probabilities(self, scores: Tensor) -> Tensor:
        """Returns calibrated probabilities :math:`(N, L)` for others; 0 and 1 stay what they are."""
        mapped = self(torch.logit(scores.double(), torch.finfo(scores.dtype).eps)).sigmoid()
        return torch.where((scores > 0) & (scores < 1), mapped, scores)

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, seed: int = 0) -> Calibration:
        """Chooses and fits the functions.

        Args:
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
            scores (Tensor or numpy.ndarray): Probabilities :math:`(N, L)` by models that have not seen the samples.
            seed (int, optional): Seed of the folds. (default: :obj:`0`)

        Raises:
            ValueError: If the shapes disagree, or a value is not allowed.
        """
        targets = read_targets(y, "y")
        matrix = check_scale(read_scores(scores, targets), (0.5,))
        z = logit(np.clip(matrix, _LEAST, 1 - _LEAST))
        positives = targets.positive.sum(axis=0)
        own = np.minimum(positives, targets.observed.sum(axis=0) - positives) >= MIN_OWN
        folds = np.random.default_rng(seed).permutation(len(z)) % NUM_FOLDS
        chosen: dict[int, tuple[str, FloatArray, FloatArray]] = {}
        for labels in [np.array([label]) for label in np.flatnonzero(own)] + [np.flatnonzero(~own)]:
            row, place = np.nonzero(targets.observed[:, labels])
            entries = row, z[row, labels[place]], targets.positive[row, labels[place]].astype(float)
            chosen |= dict.fromkeys(labels.tolist(), _chosen(*entries, folds[row]))
        found = cls(
            [chosen[label][0] for label in range(len(own))],
            max(len(each[2]) for each in chosen.values()),
        )
        for label, (_, weights, knots) in chosen.items():
            found.shift[label], found.scale[label] = weights[:2].tolist()
            found.bends[: len(knots), label] = torch.from_numpy(weights[2:])
            found.knots[: len(knots), label] = torch.from_numpy(knots)
        return found


# A function is the weights of one, of the logit, and of what exceeds each of its knots.
_Fitted = tuple[FloatArray, FloatArray]
_IDENTITY: _Fitted = np.array([0.0, 1.0]), np.empty(0)


def _losses(fitted: _Fitted, z: FloatArray, y: FloatArray) -> FloatArray:
    weights, knots = fitted
    mapped = weights[0] + weights[1] * z + np.maximum(z[:, None] - knots, 0) @ weights[2:]
    return np.asarray(np.logaddexp(0, mapped) - y * mapped)


def _platt(z: FloatArray, y: FloatArray, shifts: bool = True) -> _Fitted:
    from scipy.optimize import minimize  # takes long to import

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        away, slope = weights - _IDENTITY[0], expit(weights[0] + weights[1] * z) - y
        value = _losses((weights, _IDENTITY[1]), z, y).sum() + away @ away / 2
        return float(value), np.array([shifts * (slope.sum() + away[0]), slope @ z + away[1]])

    bounds = [(None, None), (0.01, None)]
    return minimize(loss, _IDENTITY[0], jac=True, method="L-BFGS-B", bounds=bounds).x, _IDENTITY[1]


def _isotonic(z: FloatArray, y: FloatArray) -> _Fitted:
    """Means of neighbours, joined by lines; beyond the first and the last, as steep as the identity."""
    order, edge = np.argsort(z, kind="stable"), 0.5 / len(y)
    means = require("sklearn.isotonic", extra="data").isotonic_regression(y[order])
    shares, block, sizes = np.unique(means.round(12), return_inverse=True, return_counts=True)
    knots = np.bincount(block, z[order]) / sizes
    kept = np.append(True, np.diff(knots) > _LEAST)  # of equal logits
    knots, values = knots[kept], logit(np.clip(shares[kept], edge, 1 - edge))
    bends = np.diff(np.concatenate([[1.0], np.diff(values) / np.diff(knots), [1.0]]))
    return np.concatenate([[values[0] - knots[0], 1.0], bends]), knots


_FITS: dict[str, Callable[[FloatArray, FloatArray], _Fitted]] = {
    "identity": lambda z, y: _IDENTITY,
    "temperature": partial(_platt, shifts=False),
    "platt": _platt,
    "isotonic": _isotonic,
}


def _chosen(
    row: IntArray, z: FloatArray, y: FloatArray, fold: IntArray
) -> tuple[str, FloatArray, FloatArray]:
    """The function that does best on folds that it was not fitted to, fitted to all."""
    if len(np.unique(fold)) < NUM_FOLDS:
        return "identity", *_IDENTITY
    losses = {name: np.empty(len(z)) for name in _FITS}
    for out in (fold == part for part in range(NUM_FOLDS)):
        for name, fit in _FITS.items():
            losses[name][out] = _losses(fit(z[~out], y[~out]), z[out], y[out])
    best = min(losses, key=lambda name: float(losses[name].sum()))
    gains = np.bincount(row, losses["identity"] - losses[best])[np.unique(row)]  # of samples
    if gains.mean() <= gains.std() / np.sqrt(len(gains)):
        best = "identity"
    return best, *_FITS[best](z, y)
