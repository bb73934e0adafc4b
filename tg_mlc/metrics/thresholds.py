"""Thresholds and label sets, chosen on validation data, that turn scores into decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor
from typing_extensions import Self

from tg_mlc._options import check_choice
from tg_mlc.metrics._inputs import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    Targets,
    check_scale,
    read_matrix,
    read_scores,
    read_targets,
)
from tg_mlc.metrics.decisions import (
    DECISION_METRICS,
    DEFAULT_ZERO_DIVISION,
    LABELS,
    SAMPLES,
    GridCounts,
    ZeroDivision,
    ZeroDivisions,
    f1_per_item,
    resolve_zero_division,
    value_of,
    values_of,
)
from tg_mlc.metrics.label_sets import PRIORS, LabelSets

Method = Literal["shared", "per_label", "frequency", "rank", "cross_fitted"]

#: The grid of the LaMP, MPED and Graph2Graph papers: 0.01, ..., 0.10 and 0.15, 0.20, ..., 0.95.
PAPER_GRID = tuple(percent / 100 for percent in (*range(1, 11), *range(15, 100, 5)))
#: Steps of 0.01, finer than the papers' 27 thresholds, for many samples.
FINE_GRID: tuple[float, ...] = tuple(percent / 100 for percent in range(1, 100))
#: Strengths from one threshold for all labels to the thresholds of balanced classes.
STRENGTHS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Predicted positives per true positive, from 4 to 1/4 in steps of about 9%.
RATES: tuple[float, ...] = tuple(2.0 ** (step / 8) for step in range(16, -17, -1))
#: Labels with fewer positives have thresholds by rank for macro-F1.
MIN_POSITIVES = 5
#: Label sets are tried if at least this fraction of samples share their set with others. Sets that
#: rarely repeat are seldom right, and take minutes for hundreds of labels.
MIN_REPEATED = 0.25

# Values that differ by less are ties: means of the same numbers may differ by rounding.
_TIE = 1e-12


class ThresholdTuner:
    r"""Chooses, on validation data, the lowest score that counts as positive.

    A shared threshold maximises the metric. Per-label thresholds maximise the F1 of each label; a
    label whose F1 is zero at every threshold gets the best shared threshold. Among equally good
    thresholds, the middle of the longest run is chosen, because it is least sensitive to changes of
    scores (the lower of two middles, the lowest of equally long runs).

    .. code-block:: python

        tuner = ThresholdTuner("f1_micro").fit(y_val, scores_val)
        y_pred = tuner.predict(scores_test)

    Args:
        metric (str, optional): One of :obj:`DECISION_METRICS`. (default: :obj:`"f1_micro"`)
        per_label (bool, optional): Whether labels have separate thresholds. (default: :obj:`False`)
        grid (Sequence[float], optional): Increasing candidates. (default: :obj:`PAPER_GRID`)
        zero_division (0, 1, "drop" or dict, optional): As in :func:`evaluate`.
            (default: :obj:`None`)

    Attributes:
        thresholds (numpy.ndarray): The thresholds after :meth:`fit`, :math:`(1)` or :math:`(L)`.
        best_value (float): The metric at the best shared threshold.

    Raises:
        ValueError: If the metric is unknown or the grid is empty or not strictly increasing.
    """

    def __init__(
        self,
        metric: str = "f1_micro",
        *,
        per_label: bool = False,
        grid: Sequence[float] = PAPER_GRID,
        zero_division: ZeroDivisions = None,
    ) -> None:
        check_choice("metric", metric, DECISION_METRICS)
        self.metric = metric
        self.per_label = per_label
        self.grid = check_grid(grid)
        self.zero_division: ZeroDivision = resolve_zero_division(zero_division).get(metric, 0)
        self.thresholds: FloatArray | None = None
        self.best_value: float | None = None

    @property
    def threshold(self) -> float:
        """The shared threshold. Raises a RuntimeError if there is none."""
        thresholds = self.fitted()
        if self.per_label:
            expected = "one threshold for all labels"
            raise RuntimeError(f"Expected {expected} (got per_label=True); read 'thresholds'")
        return float(thresholds[0])

    def fit(self, y: ArrayLike, scores: ArrayLike) -> Self:
        """Chooses the thresholds.

        Args:
            y, scores (Tensor or numpy.ndarray): Validation targets and scores :math:`(N, L)`.

        Raises:
            ValueError: If an argument is not allowed, or the metric is undefined everywhere.
        """
        targets = read_targets(y, "y")
        matrix = check_scale(read_scores(scores, targets), self.grid)
        return self.fit_counts(GridCounts(targets, matrix, self.grid))

    def predict(self, scores: ArrayLike) -> Any:
        """Returns decisions 0 and 1 for scores :math:`(N, L)`, as a tensor or an array.

        Raises:
            RuntimeError: If called before :meth:`fit`.
            ValueError: If the number of labels differs, or scores are not probabilities.
        """
        decisions = decide(check_scale(read_matrix(scores, "scores"), self.grid), self.fitted())
        if isinstance(scores, Tensor):
            return torch.from_numpy(decisions).to(device=scores.device, dtype=torch.long)
        return decisions.astype(np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Returns settings and thresholds as plain, readable data."""
        thresholds = None if self.thresholds is None else self.thresholds.tolist()
        return {**vars(self), "grid": list(self.grid), "thresholds": thresholds}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Self:
        """Loads settings and thresholds from the result of :meth:`state_dict`.

        Raises:
            KeyError: If an entry is missing.
        """
        names = ("metric", "per_label", "zero_division", "grid")
        restored = type(self)(**{name: state_dict[name] for name in names})
        thresholds = state_dict["thresholds"]
        restored.thresholds = None if thresholds is None else np.array(thresholds, dtype=float)
        restored.best_value = state_dict["best_value"]
        vars(self).update(vars(restored))
        return self

    def __repr__(self) -> str:
        options = f"{self.metric!r}, per_label={self.per_label}"
        return f"{type(self).__name__}({options}, thresholds={self.thresholds})"

    def fit_counts(self, counts: GridCounts) -> Self:
        """Chooses the thresholds from counts at every threshold of the grid."""
        per = DECISION_METRICS[self.metric]
        values = values_of(self.metric, counts.per(per), self.zero_division)
        if np.isnan(values).all():
            got = "neither positives nor predictions, and zero_division='drop'"
            raise ValueError(f"Expected {self.metric} to be defined at some threshold (got {got})")
        best = _middle_of_best(values)
        self.best_value = float(values[best])
        if self.per_label:
            columns = f1_per_item(counts.per(LABELS), 0).T
            index = [_middle_of_best(column) if column.max() > 0.0 else best for column in columns]
            self.thresholds = cast("FloatArray", counts.grid[index])
        else:
            self.thresholds = np.atleast_1d(counts.grid[..., best])
        return self

    def fitted(self) -> FloatArray:
        """Thresholds :math:`(1)` or :math:`(L)`. Raises a RuntimeError before :meth:`fit`."""
        if self.thresholds is None:
            raise RuntimeError("Expected 'fit' to be called first (got a tuner without thresholds)")
        return self.thresholds


#: Thresholds or label sets that decide for a metric.
Decider = ThresholdTuner | LabelSets


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
) -> dict[str, Decider]:
    r"""Chooses thresholds for every metric, for :func:`evaluate`.

    .. code-block:: python

        tuners = tune_thresholds(y_val, scores_val, "frequency", y_train=y_train)
        print(evaluate(y_test, scores_test, tuners))

    - ``"shared"``: one threshold for all labels, as in the papers.
    - ``"per_label"``: one threshold per label, which maximises the label's F1.
    - ``"frequency"``: lower for rare labels, by the logit adjustment of Menon et al. 2021 (arXiv
      2007.07314), :math:`\operatorname{logit} \theta_i = \operatorname{logit} \theta + \tau ( \log
      \pi_i - \frac{1}{L} \sum_j \log \pi_j )` with :math:`\pi_i` the frequency of label :math:`i`
      in training (one positive and one negative added). Validation chooses only :math:`\theta`
      and :math:`\tau`; separate thresholds per label would overfit rare labels.
    - ``"rank"``: thresholds that predict each label as often as it occurs, times a rate shared by
      all labels: proportional thresholds (PCut) of the `"A Study of Thresholding Strategies for
      Text Categorization" <https://doi.org/10.1145/383952.383975>`_ paper. Only the order of a
      label's scores counts, which suits labels with few positives.
    - ``"cross_fitted"``: the best of the methods above in two-fold cross-validation, fitted to all
      samples. For macro-F1, labels with fewer than 5 positives have thresholds by rank. Subset
      accuracy and the F1 of samples use :class:`LabelSets` if these do better and at least a
      quarter of the samples share their set; the samples then have to be training samples with
      held-out scores.

    Args:
        y, scores (Tensor or numpy.ndarray): Targets :math:`(N, L)` (0, 1, or NaN for unknown) and
            held-out probabilities :math:`(N, L)`.
        method (str, optional): A method of this list. (default: :obj:`"shared"`)
        y_train (Tensor or numpy.ndarray, optional): Targets for ``"frequency"``.
            (default: :obj:`y`)
        metrics (Sequence[str], optional): Names of the metrics. (default: all)
        grid (Sequence[float], optional): The candidates, except for ``"rank"``. (default: the
            grid of the papers, or a finer grid for ``"cross_fitted"``)
        strengths (Sequence[float], optional): The candidates for :math:`\tau`.
            (default: 0 to 1 by 0.1)
        zero_division (0, 1, "drop" or dict, optional): As in :func:`evaluate`.
            (default: :obj:`None`)
        seed (int, optional): Seed of the halves of ``"cross_fitted"``. (default: :obj:`0`)

    Raises:
        ValueError: If an argument is not allowed, or a metric is undefined at every threshold.
    """
    check_choice("method", method, get_args(Method))
    default = FINE_GRID if method == "cross_fitted" else PAPER_GRID
    candidates = check_grid(default if grid is None or method == "rank" else grid)
    targets = read_targets(y, "y")
    matrix = check_scale(read_scores(scores, targets), candidates)
    if method == "cross_fitted":
        return _cross_fitted(targets, matrix, metrics, candidates, zero_division, seed)
    if method == "frequency":
        train_targets = targets if y_train is None else read_targets(y_train, "y_train")
        grids = _shifted_grids(candidates, train_targets, targets.observed.shape[1], strengths)
    elif method == "rank":
        columns = zip(targets.positive.T, targets.observed.T, matrix.T, strict=True)
        grids = [np.stack([_at_rates(y[rows].sum(), column[rows]) for y, rows, column in columns])]
    else:
        grids = [np.asarray(candidates)]
    tuners: dict[str, Any] = {}
    options: Any = {"grid": candidates, "zero_division": zero_division}
    options["per_label"] = method == "per_label"
    for thresholds in grids:
        counts = GridCounts(targets, matrix, thresholds)
        for metric in metrics:
            tuner = ThresholdTuner(metric, **options).fit_counts(counts)
            if metric not in tuners or cast(float, tuner.best_value) > tuners[metric].best_value:
                tuner.per_label = method != "shared"
                tuners[metric] = tuner
    return tuners


def _shifted_grids(
    grid: Sequence[float], train_targets: Targets, num_labels: int, strengths: Sequence[float]
) -> list[FloatArray]:
    """Returns thresholds [num_labels, num_thresholds] per strength, lower for rare labels."""
    positive, observed = train_targets
    if not strengths:
        raise ValueError("Expected 'strengths' to hold at least one number (got none)")
    if observed.shape[1] != num_labels:
        got = observed.shape[1]
        raise ValueError(f"Expected 'y_train' with {num_labels} labels, as 'y' has (got {got})")
    log_pi = np.log((positive.sum(axis=0) + 1) / (observed.sum(axis=0) + 2))
    shifts = [(strength * (log_pi - log_pi.mean()))[:, None] for strength in strengths]
    # Labels without a shift have exactly the grid's thresholds, without rounding errors.
    logits = logit(np.asarray(grid))
    return [np.where(shift == 0, np.asarray(grid), expit(logits + shift)) for shift in shifts]


def _at_rates(num_positives: int, scores: FloatArray) -> FloatArray:
    """Returns a label's threshold at every rate, midway between scores of neighbouring ranks."""
    ordered = np.sort(scores) if len(scores) else np.ones(1)
    num_predicted = num_positives * np.array(RATES)
    last = len(ordered) - 1
    midway = np.interp(last + 0.5 - num_predicted, np.arange(len(ordered)), ordered)
    # Ties with the first unpredicted score are not predicted either, so that labels with constant
    # scores are not predicted for all samples.
    first_unpredicted = ordered[np.maximum(last - np.ceil(num_predicted).astype(int), 0)]
    lowest = np.where(num_predicted < len(ordered), np.nextafter(first_unpredicted, 2.0), midway)
    return np.maximum(midway, lowest)


def _cross_fitted(
    targets: Targets,
    matrix: FloatArray,
    metrics: Sequence[str],
    grid: Sequence[float],
    zero_division: ZeroDivisions,
    seed: int,
) -> dict[str, Decider]:
    """Returns thresholds of the best method in two-fold cross-validation, or label sets."""
    y = np.where(targets.observed, targets.positive, np.nan)
    order = np.random.default_rng(seed).permutation(len(y))
    halves = (order[::2], order[1::2])
    tune = partial(tune_thresholds, metrics=metrics, zero_division=zero_division)
    # The first of equally good methods wins, so methods with few thresholds come first. Trying all
    # strengths would take twice as long.
    methods: list[dict[str, Any]] = [
        {"grid": grid},
        {"method": "frequency", "grid": grid, "strengths": STRENGTHS[::2]},
        {"method": "rank"},
        {"method": "per_label", "grid": grid},
    ]
    values = np.zeros((len(methods), len(metrics)))

    def value_on(half: IntArray, name: str, decisions: BoolArray) -> float:
        half_targets = Targets(targets.positive[half], targets.observed[half])
        return value_of(name, half_targets, decisions, DEFAULT_ZERO_DIVISION)

    for (fit, check), (i, options) in product((halves, halves[::-1]), enumerate(methods)):
        tuners = tune(y[fit], matrix[fit], **options)
        for j, name in enumerate(metrics):
            values[i, j] += value_on(check, name, tuners[name].predict(matrix[check]) == 1) / 2
    fitted = [tune(y, matrix, **options) for options in methods]
    best_methods = zip(metrics, values.argmax(axis=0), strict=True)
    best: dict[str, Any] = {name: fitted[i][name] for name, i in best_methods}
    if targets.observed.all(axis=1).any():
        for j, name in enumerate(metrics):
            sets = LabelSets(y, metric=name)
            num_repeated = sets.counts[sets.counts > 1].sum()
            is_frequent = num_repeated >= MIN_REPEATED * sets.counts.sum()
            if DECISION_METRICS[name] == SAMPLES and is_frequent:
                decisions = sets.decide(matrix, PRIORS, of_training=True)
                table = [[value_on(half, name, d[half]) for d in decisions] for half in halves]
                first, second = on_halves = np.array(table)
                if (first[second.argmax()] + second[first.argmax()]) / 2 > values[:, j].max():
                    best[name] = sets.choose(on_halves.mean(axis=0))
    rare = targets.positive.sum(axis=0) < MIN_POSITIVES
    if "f1_macro" in best and rare.any():
        tuner = best["f1_macro"]
        by_rank: Any = tune(y, matrix, "rank", metrics=["f1_macro"])["f1_macro"]
        tuner.thresholds, tuner.per_label = np.where(rare, by_rank.fitted(), tuner.fitted()), True
        mixed = decide(matrix, tuner.thresholds)
        tuner.best_value = value_of("f1_macro", targets, mixed, DEFAULT_ZERO_DIVISION)
    return best


def decide(scores: FloatArray, thresholds: FloatArray) -> BoolArray:
    """Returns where scores [num_samples, num_labels] reach a shared or per-label threshold."""
    if thresholds.shape not in {(), (1,), scores.shape[1:]}:
        got = f"shape {thresholds.shape}"
        raise ValueError(f"Expected one threshold or {scores.shape[1]}, one per label (got {got})")
    if np.isnan(thresholds).any():
        raise ValueError("Expected 'thresholds' to be numbers (got NaN)")
    return np.asarray(scores >= thresholds)


def check_grid(grid: Sequence[float]) -> tuple[float, ...]:
    """Returns the candidates. Raises ValueError if they do not strictly increase."""
    values = tuple(map(float, grid))
    if not values or not all(low < high for low, high in pairwise(values)):
        raise ValueError(f"Expected 'grid' to be strictly increasing and not empty (got {values})")
    return values


def _middle_of_best(values: FloatArray) -> int:
    """Returns the middle index of the longest run of maxima; NaN is never a maximum."""
    tied = values >= np.nanmax(values) - _TIE
    steps = np.diff(tied.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    longest = int(np.argmax(ends - starts))
    return int(starts[longest] + ends[longest] - 1) // 2
