"""Combination of the logits of classifiers, with weights fitted to held-out samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc.baselines.baseline import float_tensor, read_array
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray, Targets, read_targets
from tg_mlc.metrics.ranking import areas_per_label, mean_of_defined

#: Labels with fewer positives or negatives do not affect weights, unless all labels have fewer.
MIN_CLASS = 5
#: Weights are fitted to at most this number of entries (pairs of sample and label).
MAX_PAIRS = 2**20
#: Candidates of :math:`r`, the weight of :math:`v` for the rarest labels.
STRENGTHS = (1.0, 0.5, 0.0)

_SPREAD = 0.5  # Prior standard deviation of label biases around their mean.
_SHRINKAGE = 3.0  # Shrinks rare-label weights to their mean; multiplied by entries per sample.
_MIN_SPREAD = 1e-6  # Smaller standard deviations of logits count as zero.


class LogitStacking:
    r"""Combines the logits of classifiers, with weights shared by frequent and by rare labels.

    .. math::
        z_{nl} = b_l + \sum_c w_{lc} \, s_{nlc}, \qquad
        w_{lc} = (1 - r_l) \, w_c + r_l \, \frac{\gamma_l}{\sigma_{lc}} \, v_c, \qquad
        w_c, v_c \ge 0

    The weights of a label interpolate between :math:`w` for frequent and :math:`v` for rare labels.
    The rarity :math:`r_l` is 0 for labels with as many positives as negatives. It is linear in the
    logarithm of the smaller count of the two, and equals :math:`r` at :obj:`MIN_CLASS`. The value
    :math:`r` is 1, 0.5 or 0, whichever gives the best macro average precision.

    Weights :math:`w` maximise the likelihood, with a prior :math:`\mathcal{N}(b, 0.5^2)` on biases
    :math:`b_l`. Entries of a label with frequency :math:`\pi_l` have weights in inverse proportion
    to the standard deviation :math:`\sqrt{\pi_l (1 - \pi_l)}`.

    Rare labels have few positives and hardly affect this likelihood. Weights :math:`v` are fitted
    to logits divided by their standard deviation :math:`\sigma_{lc}`. Positives and negatives of a
    label then have the same total weight, and :math:`v` shrinks to its mean. The factor
    :math:`\gamma_l`, and the bias, keep the spread and mean of a label's logits under :math:`w`. A
    label with one value in all samples gets this mean as a constant logit.

    Weights of at least zero rule out large weights of opposite signs for similar classifiers
    (Breiman 1996, *Stacked Regressions*, doi:10.1007/BF00117832).

    .. code-block:: python

        probabilities = LogitStacking().fit(held_out, y_train).predict_proba(new_logits)

    Attributes:
        weight (numpy.ndarray): The weights :math:`(L, C)`, after :meth:`fit`.
        bias (numpy.ndarray): The biases :math:`(L)`, after :meth:`fit`.

    Raises:
        RuntimeError: In predictions, if :meth:`fit` has not been called.
    """

    def __init__(self) -> None:
        self.weight: FloatArray | None = None
        self.bias: FloatArray | None = None

    def fit(self, logits: FloatArray, y: ArrayLike) -> Self:
        """Fits weights and biases.

        Args:
            logits (numpy.ndarray): Held-out logits of all classifiers :math:`(N, L, C)`.
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.

        Raises:
            ValueError: If shapes disagree, or targets contain other values.
        """
        positive, known = read_targets(y, "y")
        if logits.shape[:2] != known.shape:
            expected = f"Expected 'logits' of shape {[*known.shape, 'C']}"
            raise ValueError(f"{expected} (got {list(logits.shape)})")
        entries = _Entries(logits, positive, known)
        frequency, label = entries.frequency[entries.label], entries.label
        entry_weight = 1 / np.sqrt(frequency * (1 - frequency))
        frequent_weight, bias = _minimise(entries, entries.x, entry_weight, 0.0)
        mean, spread = _moments(logits, known)
        rare_weight = np.ones(1) / spread
        if entries.x.shape[1] > 1:
            # Positives and negatives of a label have equal weight, proportional to root frequency.
            entry_weight = np.where(entries.y == 1, 1 / frequency, 1 / (1 - frequency))
            entry_weight *= np.sqrt(frequency)
            shrinkage = _SHRINKAGE * len(entries.y) / entries.num_samples
            x = (entries.x - mean[label]) / spread[label]
            rare_weight = _minimise(entries, x, entry_weight, shrinkage)[0] / spread
        # Rescale each label's logits to their mean and spread under the frequent-label weights.
        target_mean, target_spread = _moments((logits * frequent_weight).sum(axis=-1), known)
        rare_spread = _moments((logits * rare_weight).sum(axis=-1), known)[1]
        rare_weight *= (target_spread / rare_spread)[:, None]
        rare_bias = bias + target_mean - (mean * rare_weight).sum(axis=-1)
        count, total = positive.sum(axis=0), known.sum(axis=0)
        rarity, has_both = _rarity(count, total), (count > 0) & (count < total)
        best_value = -1.0
        for strength in STRENGTHS if entries.x.shape[1] > 1 else STRENGTHS[:1]:
            r = strength * rarity
            interpolated = (1 - r)[:, None] * frequent_weight + r[:, None] * rare_weight
            weights = np.where(has_both[:, None], interpolated, 0.0)
            scores = np.einsum("nlc,lc->nl", logits, weights)
            areas = areas_per_label(Targets(positive, known), scores)[1]
            value = np.nan_to_num(mean_of_defined(areas))
            if value > best_value:
                best_value, self.weight = float(value), weights
                self.bias = np.where(has_both, (1 - r) * bias + r * rare_bias, bias + target_mean)
        return self

    def decision_function(self, logits: FloatArray) -> FloatArray:
        """Combines classifiers' logits :math:`(N, L, C)` to logits :math:`(N, L)`."""
        if self.weight is None or self.bias is None:
            raise RuntimeError("Expected 'fit' to be called before a prediction")
        return np.asarray(np.einsum("nlc,lc->nl", logits, self.weight) + self.bias)

    def predict_proba(self, logits: FloatArray) -> FloatArray:
        """Combines classifiers' logits :math:`(N, L, C)` to probabilities :math:`(N, L)`."""
        return np.asarray(expit(self.decision_function(logits)))

    def module(self) -> nn.Module:
        """Returns the :meth:`decision_function` as a module of tensor operators."""
        if self.weight is None or self.bias is None:
            raise RuntimeError("Expected 'fit' to be called before 'module'")
        return _WeightedLogits(self.weight, self.bias)

    def state_dict(self) -> dict[str, Any]:
        """Returns weights and biases."""
        return {"weight": self.weight, "bias": self.bias}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads weights and biases from :meth:`state_dict`."""
        self.bias = read_array(state, "bias", None)
        self.weight = read_array(state, "weight", len(self.bias), None)
        return self

    def __repr__(self) -> str:
        mean_weight = None if self.weight is None else self.weight.mean(axis=0).round(3).tolist()
        return f"{type(self).__name__}(mean weight={mean_weight})"


class _WeightedLogits(nn.Module):
    weight: Tensor
    bias: Tensor

    def __init__(self, weight: FloatArray, bias: FloatArray) -> None:
        super().__init__()
        self.register_buffer("weight", float_tensor(weight))
        self.register_buffer("bias", float_tensor(bias))

    def forward(self, logits: Tensor) -> Tensor:
        return (logits * self.weight).sum(dim=-1) + self.bias


def learnable_labels(y: FloatArray) -> BoolArray:
    """Returns a mask :math:`(L)` of labels with enough of both classes, or of all if none has."""
    positives = np.nansum(y, axis=0)
    enough = np.minimum(positives, (~np.isnan(y)).sum(axis=0) - positives) >= MIN_CLASS
    return enough if enough.any() else np.ones_like(enough)


class _Entries:
    """At most :obj:`MAX_PAIRS` known entries (pairs of sample and label) of learnable labels."""

    def __init__(self, logits: FloatArray, positive: BoolArray, known: BoolArray) -> None:
        sample, label = np.nonzero(known & learnable_labels(np.where(known, positive, np.nan)))
        if len(sample) > MAX_PAIRS:
            subset = np.random.default_rng(0).choice(len(sample), MAX_PAIRS, replace=False)
            sample, label = sample[subset], label[subset]
        self.label, self.x = label, logits[sample, label]
        self.y = positive[sample, label].astype(float)
        self.num_samples, self.num_labels = known.shape
        self.frequency = (positive.sum(axis=0) + 1) / (known.sum(axis=0) + 2)


def _moments(values: FloatArray, known: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Returns mean and standard deviation of known entries by label (0 and 1 without entries)."""
    mask = known.reshape(*known.shape, *(1,) * (values.ndim - 2))
    count = np.maximum(mask.sum(axis=0), 1)
    mean = np.where(mask, values, 0).sum(axis=0) / count
    spread = np.sqrt(np.where(mask, (values - mean) ** 2, 0).sum(axis=0) / count)
    return mean, np.where(spread > _MIN_SPREAD, spread, 1.0)


def _rarity(num_positives: FloatArray, num_known: FloatArray) -> FloatArray:
    """Returns rarities from 0 (half of samples positive) to 1 (:obj:`MIN_CLASS` or fewer are)."""
    rarer = np.maximum(np.minimum(num_positives, num_known - num_positives), MIN_CLASS)
    half = np.maximum(num_known / 2, MIN_CLASS + 1)
    return np.clip(1 - np.log(rarer / MIN_CLASS) / np.log(half / MIN_CLASS), 0, 1)


def _minimise(
    entries: _Entries, x: FloatArray, entry_weight: FloatArray, shrinkage: float
) -> tuple[FloatArray, FloatArray]:
    y, label, num_inputs = entries.y, entries.label, x.shape[1]
    entry_weight = entry_weight * len(entry_weight) / entry_weight.sum()

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        weight, bias = np.split(parameters, [num_inputs])
        z, offset, excess = x @ weight + bias[label], bias - bias.mean(), weight - weight.mean()
        value = entry_weight @ (np.logaddexp(0, z) - y * z)
        value += (offset**2).sum() / (2 * _SPREAD**2) + shrinkage * (excess**2).sum() / 2
        grad = entry_weight * (expit(z) - y)
        bias_grad = np.bincount(label, grad, minlength=entries.num_labels) + offset / _SPREAD**2
        return float(value), np.append(grad @ x + shrinkage * excess, bias_grad)

    start = np.append(np.full(num_inputs, 1 / num_inputs), np.zeros(entries.num_labels))
    bounds = [(0, None)] * num_inputs + [(None, None)] * entries.num_labels
    from scipy.optimize import minimize  # The import is slow, and loaded models do not need it.

    options = {"bounds": bounds, "options": {"maxiter": 200}}
    result = minimize(loss, start, jac=True, method="L-BFGS-B", **options)
    return result.x[:num_inputs], result.x[num_inputs:]
