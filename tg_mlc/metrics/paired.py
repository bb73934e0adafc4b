"""Paired tests of two models over random splits of one data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: Differences of metrics up to this size are rounding errors.
ROUNDING = 1e-12


class Difference(NamedTuple):
    """A mean difference over splits, its confidence interval, and a two-sided p-value."""

    mean: float
    low: float
    high: float
    p: float | None  #: None for one split, or if all splits have the same difference, not 0


def corrected_difference(
    difference: Sequence[float] | np.ndarray,
    test_share: float = 0.1,
    train_share: float = 0.8,
    level: float = 0.95,
) -> Difference:
    r"""The corrected resampled t-test of the `"Inference for the Generalization Error"
    <https://doi.org/10.1023/A:1024068626366>`_ paper. Its variance takes into account that splits
    share samples,

    .. math::
        \sigma^2 = \left( \frac{1}{n} + \frac{n_\textrm{test}}{n_\textrm{train}} \right) s^2

    Args:
        difference (numpy.ndarray): The difference of a metric for each split :math:`(n)`.
        test_share, train_share (float, optional): Fractions or numbers of samples. A
            :obj:`test_share` of 0 gives the usual t-test. (default: :obj:`0.1` and :obj:`0.8`)
        level (float, optional): The confidence level of the interval. (default: :obj:`0.95`)
    """
    from scipy.stats import t as student_t  # This import is slow.

    values = np.asarray(difference, dtype=float)
    n, mean = len(values), float(values.mean())
    if n < 2 or not np.isfinite(mean):
        return Difference(mean, -np.inf, np.inf, None)
    standard_error = float(np.sqrt((1 / n + test_share / train_share) * values.var(ddof=1)))
    if standard_error < ROUNDING:
        return Difference(mean, mean, mean, 1.0 if abs(mean) < ROUNDING else None)
    margin = standard_error * float(student_t.ppf((1 + level) / 2, df=n - 1))
    p = float(2 * student_t.sf(abs(mean) / standard_error, df=n - 1))
    return Difference(mean, mean - margin, mean + margin, p)


def holm(p: Sequence[float]) -> list[float]:
    """Corrects p-values of several tests by `Holm 1979 <https://www.jstor.org/stable/4615733>`_."""
    order = np.argsort(p)
    stepwise = np.maximum.accumulate(np.array(p)[order] * np.arange(len(p), 0, -1)).clip(max=1.0)
    return [float(value) for value in stepwise[np.argsort(order)]]
