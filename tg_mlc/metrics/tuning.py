"""Tuning of thresholds for every metric of decisions, by one of five methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy.special import expit, logit

from tg_mlc._options import check_choice
from tg_mlc.metrics._counts import GridCounts
from tg_mlc.metrics._inputs import ArrayLike, FloatArray, Targets, read_scores, read_targets
from tg_mlc.metrics.decisions import DECISION_METRICS, DEFAULT_ZERO_DIVISION, ZeroDivisions, value_of
from tg_mlc.metrics.thresholds import PAPER_GRID, ThresholdTuner, check_grid, check_scale, decide

Method = Literal["shared", "per_label", "frequency", "rank", "cross_fitted"]

#: Steps of 0.01: on many samples, more than the papers' 28 thresholds can be told apart.
FINE_GRID: tuple[float, ...] = tuple(percent / 100 for percent in range(1, 100))

#: From one threshold for all labels to the thresholds that balanced classes would give.
STRENGTHS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

#: From four times as many predictions as there are positives to a quarter of them, in steps of about 9%.
RATES: tuple[float, ...] = tuple(2.0 ** (step / 8) for step in range(16, -17, -1))

#: With fewer positives, the macro-F1 thresholds of a label do not depend on the scores of these positives.
MIN_POSITIVES = 5


def tune_thresholds(
    y: ArrayLike,
    scores: ArrayLike,
    method: Method = "shared",
    *,
    y_train: ArrayLike | None = None,
    metrics: Sequence[str] = tuple(DECISION_METRICS),
    grid: Sequence[float] | None = None,
    strengths: Sequence[float] = STRENGTHS,
    zero_division: ZeroDivisions = None,
    seed: int = 0,
) -> dict[str, ThresholdTuner]:
    r"""Chooses thresholds for every metric, as :func:`evaluate` takes them.

    .. code-block:: python

        tuners = tune_thresholds(y_val, scores_val, "frequency", y_train=y_train)
        print(evaluate(y_test, scores_test, tuners))

    =================== ==============================================================================================
    method              thresholds
    =================== ==============================================================================================
    ``"shared"``        one for all labels, as in the papers
    ``"per_label"``     one for each label, which maximises its F1
    ``"frequency"``     lower for rare labels, by the logit adjustment of Menon et al. 2021 (arXiv 2007.07314):
                        :math:`\operatorname{logit} \theta_i = \operatorname{logit} \theta + \tau ( \log \pi_i -
                        \frac{1}{L} \sum_j \log \pi_j )` with :math:`\pi_i` the frequency of label :math:`i` among
                        training samples (one positive and one negative added); validation samples choose
                        :math:`\theta` and :math:`\tau`, two numbers, where a threshold for each label needs :math:`L`
                        and overfits rare labels
    ``"rank"``          those that predict each label as often as it occurs, times a rate that all labels share:
                        proportional thresholds (PCut) of the `"A Study of Thresholding Strategies for Text
                        Categorization" <https://doi.org/10.1145/383952.383975>`_ paper, which suit labels with few
                        positives best, because only the order of a label's scores counts
    ``"cross_fitted"``  those of the method above that is best on the half of the samples that it was not fitted to;
                        they are then fitted to all samples. For macro-F1, labels with fewer than 5 positives have
                        thresholds by rank in any case, because their few scores say too little
    =================== ==============================================================================================

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)` of validation samples: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Their probabilities :math:`(N, L)`, by models that have not seen them.
        method (str, optional): One of the table. (default: :obj:`"shared"`)
        y_train (Tensor or numpy.ndarray, optional): Targets :math:`(N_{train}, L)` whose frequencies ``"frequency"``
            follows. (default: :obj:`y`)
        metrics (Sequence[str], optional): Names of the metrics. (default: all)
        grid (Sequence[float], optional): The candidates, except those of ``"rank"``. (default: the grid of the papers,
            of 27 thresholds; 0.01 to 0.99 by 0.01 for ``"cross_fitted"``)
        strengths (Sequence[float], optional): The candidates for :math:`\tau`; the first of equally good ones is taken.
            (default: 0 to 1 by 0.1)
        zero_division (0, 1, "drop" or dict, optional): As in :func:`evaluate`. (default: :obj:`None`)
        seed (int, optional): Seed of the halves of ``"cross_fitted"``. (default: :obj:`0`)

    Raises:
        ValueError: If the method is unknown, shapes or numbers of labels differ, a value is not allowed, no label is
            known, or a metric is undefined at every threshold.
    """
    check_choice("method", method, get_args(Method))
    if method == "cross_fitted":
        return _cross_fitted(y, scores, metrics, check_grid(FINE_GRID if grid is None else grid), zero_division, seed)
    candidates = check_grid(PAPER_GRID if grid is None else grid)
    if method == "rank":
        return _by_rank(y, scores, metrics, zero_division)
    if method == "frequency":
        return _by_frequency(
            y, scores, y if y_train is None else y_train, strengths, metrics, candidates, zero_division
        )
    targets = read_targets(y, "y")
    counts = GridCounts(targets, check_scale(read_scores(scores, targets), candidates), candidates)
    options: dict[str, Any] = {"per_label": method == "per_label", "grid": candidates, "zero_division": zero_division}
    return {metric: ThresholdTuner(metric, **options).fit_counts(counts) for metric in metrics}


def _by_frequency(
    y: ArrayLike,
    scores: ArrayLike,
    y_train: ArrayLike,
    strengths: Sequence[float],
    metrics: Sequence[str],
    grid: Sequence[float],
    zero_division: ZeroDivisions,
) -> dict[str, ThresholdTuner]:
    if not strengths:
        raise ValueError("Expected 'strengths' to hold at least one number (got none)")
    targets = read_targets(y, "y")
    matrix = check_scale(read_scores(scores, targets), grid)
    positive, known = read_targets(y_train, "y_train")
    if known.shape[1] != targets.known.shape[1]:
        raise ValueError(f"Expected 'y_train' with {targets.known.shape[1]} labels, as 'y' has (got {known.shape[1]})")
    logs = np.log((positive.sum(axis=0) + 1) / (known.sum(axis=0) + 2))
    best: dict[str, ThresholdTuner] = {}
    for strength in strengths:
        odds = (strength * (logs - logs.mean()))[:, None]
        # Exactly the grid where the odds of a label are not shifted.
        thresholds = np.where(odds == 0, np.asarray(grid), expit(logit(np.asarray(grid)) + odds))
        counts = GridCounts(targets, matrix, thresholds)
        for metric in metrics:
            tuner = ThresholdTuner(metric, grid=grid, zero_division=zero_division).fit_counts(counts)
            if metric not in best or cast(float, tuner.best_value) > cast(float, best[metric].best_value):
                tuner.per_label = True
                best[metric] = tuner
    return best


def _by_rank(
    y: ArrayLike, scores: ArrayLike, metrics: Sequence[str], zero_division: ZeroDivisions
) -> dict[str, ThresholdTuner]:
    targets = read_targets(y, "y")
    matrix = check_scale(read_scores(scores, targets), PAPER_GRID)
    columns = zip(targets.positive.T, targets.known.T, matrix.T, strict=True)
    thresholds = np.stack([_at_rates(positive[known].sum(), column[known]) for positive, known, column in columns])
    counts = GridCounts(targets, matrix, thresholds)
    tuners = {metric: ThresholdTuner(metric, zero_division=zero_division).fit_counts(counts) for metric in metrics}
    for tuner in tuners.values():
        tuner.per_label = True
    return tuners


def _at_rates(num_positives: int, scores: FloatArray) -> FloatArray:
    """The threshold of a label at every rate, half-way between the scores of neighbouring ranks."""
    ordered = np.sort(scores) if len(scores) else np.ones(1)
    wanted = num_positives * np.array(RATES)
    last = len(ordered) - 1
    between = np.interp(last + 0.5 - wanted, np.arange(len(ordered)), ordered)
    # Equal scores share the lower rank: a label of constant scores is not predicted for all samples.
    beyond = ordered[np.maximum(last - np.ceil(wanted).astype(int), 0)]
    return np.maximum(between, np.where(wanted < len(ordered), np.nextafter(beyond, 2.0), between))


def _cross_fitted(
    y: ArrayLike,
    scores: ArrayLike,
    metrics: Sequence[str],
    grid: Sequence[float],
    zero_division: ZeroDivisions,
    seed: int,
) -> dict[str, ThresholdTuner]:
    targets = read_targets(y, "y")
    values, matrix = np.where(targets.known, targets.positive, np.nan), read_scores(scores, targets)
    order = np.random.default_rng(seed).permutation(len(values))
    halves = [order[::2], order[1::2]]
    tune = partial(tune_thresholds, metrics=metrics, zero_division=zero_division)
    # From few to many thresholds: the first of equally good methods is taken. All strengths would take twice the time.
    methods: list[Callable[[FloatArray, FloatArray], dict[str, ThresholdTuner]]] = [
        partial(tune, grid=grid),
        partial(tune, method="frequency", grid=grid, strengths=STRENGTHS[::2]),
        partial(tune, method="rank"),
        partial(tune, method="per_label", grid=grid),
    ]
    gains = [np.zeros(len(metrics)) for _ in methods]
    for (fit, check), (place, method) in (
        (pair, each) for each in enumerate(methods) for pair in (halves, halves[::-1])
    ):
        tuners, known = method(values[fit], matrix[fit]), ~np.isnan(values[check])
        held_out = Targets(values[check] == 1.0, known)
        for at, name in enumerate(metrics):
            decisions = decide(matrix[check], tuners[name].fitted())
            gains[place][at] += value_of(name, held_out, decisions, DEFAULT_ZERO_DIVISION) / 2
    fitted = [method(values, matrix) for method in methods]
    best = {name: fitted[int(np.argmax([gain[at] for gain in gains]))][name] for at, name in enumerate(metrics)}
    rare = targets.positive.sum(axis=0) < MIN_POSITIVES
    if "f1_macro" in best and rare.any():
        tuner, by_rank = best["f1_macro"], tune(values, matrix, "rank", metrics=["f1_macro"])["f1_macro"]
        tuner.thresholds, tuner.per_label = np.where(rare, by_rank.fitted(), tuner.fitted()), True
        tuner.best_value = value_of("f1_macro", targets, decide(matrix, tuner.thresholds), DEFAULT_ZERO_DIVISION)
    return best
