"""Combination of classifiers: weights of their logits, fitted to samples that none of them has seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.optimize
from scipy.special import expit
from typing_extensions import Self

from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray, read_targets

#: Labels with fewer positives or negatives say nothing of weights, unless all labels have fewer.
MIN_CLASS = 5
#: Pairs of sample and label for a handful of weights.
MAX_PAIRS = 2**20

# Standard deviation, a priori, of the bias of a label around that of all.
_SPREAD = 0.5


class Combination:
    r"""Weighs the logits of classifiers, by weights that all labels share.

    .. math::
        z_{nl} = b_l + \sum_c w_c \, s_{nlc}, \qquad w_c \ge 0

    by maximum likelihood, with biases that stay close to their mean where a label has few samples
    (:math:`b_l \sim \mathcal{N}(b, 0.5^2)`). Weights of at least zero cannot set classifiers that err alike against
    each other (Breiman 1996, *Stacked Regressions*, doi:10.1007/BF00117832). Entries of a label count in inverse
    proportion to the spread :math:`\sqrt{\pi_l (1 - \pi_l)}` of its values, so that rare labels have their say.

    .. code-block:: python

        combination = Combination().fit(out_of_fold, y_train)
        probabilities = combination.predict_proba(scores_of_new_samples)

    Attributes:
        weight (numpy.ndarray): The weights :math:`(C)`, after :meth:`fit`.
        bias (numpy.ndarray): The biases :math:`(L)`, after :meth:`fit`.

    Raises:
        RuntimeError: On use, if :meth:`fit` has not been called.
    """

    def __init__(self) -> None:
        self.weight: FloatArray | None = None
        self.bias: FloatArray | None = None

    def fit(self, logits: FloatArray, y: ArrayLike) -> Self:
        """Fits weights and biases.

        Args:
            logits (numpy.ndarray): Those of all classifiers :math:`(N, L, C)`, each fitted without these samples.
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.

        Raises:
            ValueError: If the shapes disagree, or a value is not allowed.
        """
        positive, known = read_targets(y, "y")
        if logits.shape[:2] != known.shape:
            raise ValueError(f"Expected 'logits' of shape {[*known.shape, 'C']} (got {list(logits.shape)})")
        sample, label = _pairs(known & learnable_labels(np.where(known, positive, np.nan)))
        share = (positive.sum(axis=0) + 1) / (known.sum(axis=0) + 2)
        importance = 1 / np.sqrt(share * (1 - share))
        self.weight, self.bias = _minimise(
            logits[sample, label],
            positive[sample, label].astype(float),
            label,
            importance[label] * len(label) / importance[label].sum(),
            np.append(np.full(logits.shape[2], 1 / logits.shape[2]), np.zeros(logits.shape[1])),
        )
        return self

    def decision_function(self, logits: FloatArray) -> FloatArray:
        """Returns combined logits :math:`(N, L)` for those of all classifiers :math:`(N, L, C)`."""
        if self.weight is None or self.bias is None:
            raise RuntimeError("Expected 'fit' to be called before a prediction")
        return np.asarray(logits @ self.weight + self.bias)

    def predict_proba(self, logits: FloatArray) -> FloatArray:
        """Returns probabilities :math:`(N, L)` for the logits of all classifiers :math:`(N, L, C)`."""
        return np.asarray(expit(self.decision_function(logits)))

    def state_dict(self) -> dict[str, Any]:
        """Returns weights and biases."""
        return {"weight": self.weight, "bias": self.bias}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes weights and biases from :meth:`state_dict`."""
        self.weight, self.bias = np.asarray(state["weight"]), np.asarray(state["bias"])
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}(weight={None if self.weight is None else self.weight.round(3).tolist()})"


def learnable_labels(y: FloatArray) -> BoolArray:
    """Which labels have at least :obj:`MIN_CLASS` known positives and negatives :math:`(L)`; all if none has."""
    positives = np.nansum(y, axis=0)
    enough = np.minimum(positives, (~np.isnan(y)).sum(axis=0) - positives) >= MIN_CLASS
    return enough if enough.any() else np.ones_like(enough)


def _pairs(known: BoolArray) -> tuple[np.ndarray, np.ndarray]:
    sample, label = np.nonzero(known)
    if len(sample) <= MAX_PAIRS:
        return sample, label
    chosen = np.random.default_rng(0).choice(len(sample), MAX_PAIRS, replace=False)
    return sample[chosen], label[chosen]


def _minimise(
    x: FloatArray, y: FloatArray, label: np.ndarray, importance: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    num_inputs, num_labels = x.shape[1], len(start) - x.shape[1]

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        weight, bias = np.split(parameters, [num_inputs])
        z, apart = x @ weight + bias[label], bias - bias.mean()
        value = importance @ (np.logaddexp(0, z) - y * z) + (apart**2).sum() / (2 * _SPREAD**2)
        slope = importance * (expit(z) - y)
        of_bias = np.bincount(label, slope, minlength=num_labels) + apart / _SPREAD**2
        return float(value), np.append(slope @ x, of_bias)

    bounds = [(0, None)] * num_inputs + [(None, None)] * num_labels
    found = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200})
    return found.x[:num_inputs], found.x[num_inputs:]
