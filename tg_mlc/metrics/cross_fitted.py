"""Thresholds of the kind that does best on samples which did not choose them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tg_mlc.metrics._inputs import ArrayLike, FloatArray, Targets, read_scores, read_targets
from tg_mlc.metrics.decisions import DECISION_METRICS, DEFAULT_ZERO_DIVISION, value_of
from tg_mlc.metrics.frequency_thresholds import tune_by_frequency
from tg_mlc.metrics.rank_thresholds import tune_by_rank
from tg_mlc.metrics.thresholds import ThresholdTuner, decide, tune_per_metric

#: Steps of 0.01: of many samples, more than the papers' 28 thresholds can be told apart.
FINE_GRID: tuple[float, ...] = tuple(percent / 100 for percent in range(1, 100))

#: Labels with fewer have thresholds for macro-F1 that do not depend on the scores of their positives.
MIN_POSITIVES = 5

#: Shifts by frequency; the finer steps of :obj:`STRENGTHS` take twice the time.
_STRENGTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

_Rule = Callable[[FloatArray, FloatArray], dict[str, ThresholdTuner]]


def tune_cross_fitted(
    y: ArrayLike, scores: ArrayLike, *, metrics: Sequence[str] = tuple(DECISION_METRICS), seed: int = 0
) -> dict[str, ThresholdTuner]:
    """Chooses thresholds for every metric: one for all labels, some that follow how frequent labels are
    (:func:`tune_by_frequency`) or how often they are predicted (:func:`tune_by_rank`), or one per label, whichever kind
    was best on the half of the samples that it was not fitted to. The thresholds themselves are then fitted to all
    samples.

    For macro-F1, where each label counts alike, labels with fewer than :obj:`MIN_POSITIVES` have thresholds by rank in
    any case: of so few, scores without them say too little.

    .. code-block:: python

        tuners = tune_cross_fitted(y_train, out_of_fold_scores)
        print(evaluate(y_test, scores_test, tuners))

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Probabilities :math:`(N, L)` by classifiers that have not seen these samples.
        metrics (Sequence[str], optional): Names of the metrics. (default: all)
        seed (int, optional): Seed of the halves. (default: :obj:`0`)

    Raises:
        ValueError: If the shapes differ, a value is not allowed, or half of the samples have no known label.
    """
    targets = read_targets(y, "y")
    values, matrix = np.where(targets.known, targets.positive, np.nan), read_scores(scores, targets)
    order = np.random.default_rng(seed).permutation(len(values))
    halves = [order[::2], order[1::2]]
    gains = [_on_the_other_half(rule, values, matrix, halves, metrics) for rule in _rules(metrics)]
    fitted = [rule(values, matrix) for rule in _rules(metrics)]
    best = {metric: fitted[int(np.argmax([gain[metric] for gain in gains]))][metric] for metric in metrics}
    rare = targets.positive.sum(axis=0) < MIN_POSITIVES
    if "f1_macro" in best and rare.any():
        tuner, by_rank = best["f1_macro"], tune_by_rank(values, matrix, metrics=["f1_macro"])["f1_macro"]
        tuner.thresholds, tuner.per_label = np.where(rare, by_rank.fitted(), tuner.fitted()), True
        tuner.best_value = value_of("f1_macro", targets, decide(matrix, tuner.thresholds), DEFAULT_ZERO_DIVISION)
    return best


def _rules(metrics: Sequence[str]) -> list[_Rule]:
    """From few to many thresholds: of equally good ones the first is taken."""
    shared: dict[str, Any] = {"metrics": metrics, "grid": FINE_GRID}
    return [
        partial(tune_per_metric, **shared),
        lambda y, scores: tune_by_frequency(y, scores, y, strengths=_STRENGTHS, **shared),
        partial(tune_by_rank, metrics=metrics),
        partial(tune_per_metric, per_label=True, **shared),
    ]


def _on_the_other_half(
    rule: _Rule, y: FloatArray, scores: FloatArray, halves: Sequence[np.ndarray], metrics: Sequence[str]
) -> dict[str, float]:
    values = []
    for fit, check in (halves, halves[::-1]):
        tuners = rule(y[fit], scores[fit])
        known = ~np.isnan(y[check])
        targets = Targets(y[check] == 1.0, known)
        decisions = {name: decide(scores[check], tuners[name].fitted()) for name in metrics}
        values.append([value_of(name, targets, decisions[name], DEFAULT_ZERO_DIVISION) for name in metrics])
    return dict(zip(metrics, np.mean(values, axis=0), strict=True))
