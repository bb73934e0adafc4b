"""Evaluation of scores: all metrics over all labels, and metrics per label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from tg_mlc._names import check_names
from tg_mlc._optional import require
from tg_mlc.metrics._inputs import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    Targets,
    check_scale,
    read_array,
    read_decisions,
    read_scores,
    read_targets,
)
from tg_mlc.metrics.calibration import Reliability
from tg_mlc.metrics.decisions import (
    DECISION_METRICS,
    LABELS,
    ZeroDivision,
    ZeroDivisions,
    count,
    f1_per_item,
    resolve_zero_division,
    value_of,
)
from tg_mlc.metrics.hierarchical import fmax_of, smin_of
from tg_mlc.metrics.label_counts import LabelCounts
from tg_mlc.metrics.label_sets import LabelSets
from tg_mlc.metrics.ranking import (
    areas_per_label,
    gain_of,
    mean_of_defined,
    pooled_areas,
    precision_of,
    propensity_precision_of,
    roc_auc_interval,
    top_labels,
)
from tg_mlc.metrics.thresholds import Decider, ThresholdTuner, decide

Threshold = float | Decider | ArrayLike

#: What words in a column of thresholds mean.
THRESHOLD_WORDS = {
    "per label": "each label has its own threshold",
    "label sets": "whole sets of labels are chosen, by no threshold of single labels",
}
_SHOWN = 20  # Maximum number of label names in a note of a report.
RANKS = (1, 3, 5)  #: Numbers of top labels in metrics at k, which need more labels than k.
#: The metric whose thresholds decide in results by label: the default of predictions.
DECIDES = "f1_micro"


@dataclass
class Scored:
    """Targets and scores of a model, with cached results that several metrics share."""

    targets: Targets
    scores: FloatArray
    counts: LabelCounts | None = None  #: of training samples

    @cached_property
    def top(self) -> IntArray:
        """The indices of the labels with the highest scores, in descending order."""
        return top_labels(self.targets, self.scores, max(RANKS))

    @cached_property
    def pooled(self) -> tuple[float, float]:
        """The ROC-AUC and the average precision of the entries of all labels."""
        return pooled_areas(self.targets, self.scores)

    @cached_property
    def areas(self) -> FloatArray:
        """The ROC-AUC and the average precision of each label :math:`(2, L)`."""
        return areas_per_label(self.targets, self.scores)

    @cached_property
    def reliability(self) -> Reliability | None:
        """The calibration errors of probabilities; :obj:`None` for other scores."""
        are_probabilities = self.scores.min() >= 0 and self.scores.max() <= 1
        return Reliability.of(self.targets, self.scores) if are_probabilities else None

    def mean_reliability(self, name: str) -> float:
        """Returns the mean over labels of one field of :attr:`reliability`."""
        values = None if self.reliability is None else vars(self.reliability)[name]
        return np.nan if values is None else mean_of_defined(np.array(values))


#: The metrics of scores by name. Every evaluation computes all of them.
SCORE_METRICS: dict[str, Callable[[Scored], float]] = {
    "roc_auc_micro": lambda scored: scored.pooled[0],
    "roc_auc_macro": lambda scored: mean_of_defined(scored.areas[0]),
    "average_precision_micro": lambda scored: scored.pooled[1],
    "average_precision_macro": lambda scored: mean_of_defined(scored.areas[1]),
    "ece_macro": lambda scored: scored.mean_reliability("ece"),
    "brier_macro": lambda scored: scored.mean_reliability("brier"),
}


def _at_k(scored: Scored) -> dict[str, float]:
    """Returns the metrics of top labels, for each number of top labels less than all."""
    targets, values = scored.targets, dict[str, float]()
    for k in RANKS:
        if k < targets.observed.shape[1]:
            top = scored.top[:, :k]
            values[f"precision_at_{k}"] = precision_of(targets, top)
            values[f"ndcg_at_{k}"] = gain_of(targets, top)
            if scored.counts is not None:
                propensities = scored.counts.propensities()
                value = propensity_precision_of(targets, top, propensities)
                values[f"propensity_precision_at_{k}"] = value
    return values


def _of_hierarchy(scored: Scored) -> dict[str, float]:
    """Returns the metrics of hierarchies; Smin needs the information of labels."""
    values = {"fmax": fmax_of(scored.targets, scored.scores)}
    if scored.counts is not None and scored.counts.information is not None:
        information = scored.counts.information
        values["smin"] = smin_of(scored.targets, scored.scores, information)
    return {**values, "auprc": scored.pooled[1]}


@dataclass(frozen=True)
class Evaluation:
    """The result of :func:`evaluate`. ``print(evaluation)`` shows it as a table."""

    #: the values of DECISION_METRICS, SCORE_METRICS, metrics at k and metrics of hierarchies by
    #: name; NaN if undefined
    values: dict[str, float]
    #: by metric, one threshold or a list with one per label; no entry where label sets decide
    thresholds: dict[str, float | list[float]]
    #: names of the labels with one observed class, which macro averages of areas skip
    undefined: list[str]
    #: names of the labels without positives and predictions; their F1 is zero_division
    undefined_f1: list[str]
    #: the value of each F1 without positives and predictions
    zero_division: dict[str, ZeroDivision]
    num_samples: int
    num_labels: int
    num_unknown: int  #: the number of unknown entries, which all metrics ignore
    reliability: Reliability | None = None  #: None if scores are not probabilities
    #: results of each label: columns of lists, as :meth:`frame` shows them
    by_label: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    roots: list[str] = field(default_factory=list)  #: labels that all averages skip

    def __getitem__(self, metric: str) -> float:
        return self.values[metric]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain values for JSON, with None for NaN."""
        values = {k: None if np.isnan(v) else float(v) for k, v in self.values.items()}
        reliability = None if self.reliability is None else self.reliability.to_dict()
        plain = {"values": values, "reliability": reliability, "by_label": self.records()}
        return {**vars(self), **plain}

    def records(self) -> list[dict[str, Any]]:
        """Returns the results of each label as plain values for JSON, with None for NaN."""
        columns = [list(map(_plain, column)) for column in self.by_label.values()]
        return [dict(zip(self.by_label, row, strict=True)) for row in zip(*columns, strict=True)]

    def frame(self) -> Any:
        """Returns the results of each label as a data frame.

        Its columns are the numbers of known entries (``"known"``) and of positives, the ROC-AUC
        with the bounds of its 95 % interval, the average precision, and the F1 and threshold of
        decisions that maximise the micro F1, as predictions do by default.

        Raises:
            ImportError: If pandas is not installed (extra ``train``).
        """
        return require("pandas", extra="train").DataFrame(self.by_label).set_index("label")

    def __str__(self) -> str:
        rows = [("metric", "value", "threshold", "zero_division")]
        for name, value in self.values.items():
            threshold = self.thresholds.get(name, "label sets" if name in DECISION_METRICS else "")
            threshold = "per label" if isinstance(threshold, list) else threshold
            text = threshold if isinstance(threshold, str) else f"{threshold:g}"
            rows.append((name, f"{value:.4f}", text, str(self.zero_division.get(name, ""))))
        shown = {row[2] for row in rows}
        words = [f"{word}: {meaning}" for word, meaning in THRESHOLD_WORDS.items() if word in shown]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        sizes = f"{self.num_samples} samples, {self.num_labels} labels"
        sizes = f"{sizes}, {self.num_unknown} unknown entries"
        return "\n".join([*lines, *words, sizes, *self.notes])

    @property
    def notes(self) -> list[str]:
        """Returns sentences on labels that macro averages skip or count by convention."""
        notes, of_labels = list[str](), f"of {self.num_labels} labels"
        if self.roots:
            notes.append(f"all averages leave out the roots: {_first_names(self.roots)}")
        if self.undefined:
            metrics = "roc_auc_macro and average_precision_macro"
            skipped = f"{len(self.undefined)} {of_labels} (only one class observed)"
            notes.append(f"{metrics} leave out {skipped}: {_first_names(self.undefined)}")
        if self.undefined_f1:
            counted = f"{len(self.undefined_f1)} {of_labels} (neither positives nor predictions)"
            value = f"zero_division={self.zero_division['f1_macro']}"
            notes.append(f"f1_macro counts {counted} by {value}: {_first_names(self.undefined_f1)}")
        return notes


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def _first_names(names: list[str]) -> str:
    num_more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {num_more} more" if num_more > 0 else "")


def evaluate(
    y: ArrayLike,
    scores: ArrayLike,
    thresholds: Threshold | Mapping[str, Threshold] | None = None,
    label_names: Sequence[str] | None = None,
    *,
    zero_division: ZeroDivisions = None,
    counts: LabelCounts | None = None,
    roots: Sequence[str] | None = None,
) -> Evaluation:
    """Computes the papers' five decision metrics, ROC-AUC, average precision, the expected
    calibration error and Brier score of probabilities, and metrics of the top labels, over the
    observed labels; and results of each label.

    .. code-block:: python

        tuners = tune_thresholds(y_val, scores_val)
        print(evaluate(y_test, scores_test, tuners, dataset.label_names))

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Scores :math:`(N, L)` on the scale of thresholds.
        thresholds (float, Tensor, ThresholdTuner, LabelSets or dict, optional): A number, a number
            per label, a fitted tuner, or label sets; or a dictionary of these by metric.
            (default: :obj:`None`, 0.5 for all)
        label_names (Sequence[str], optional): Names for the report.
            (default: the indices of the labels)
        zero_division (0, 1, "drop" or dict, optional): The F1 without positives and predictions, or
            a dictionary by metric. (default: 1 for f1_samples, 0 for f1_micro and f1_macro)
        counts (LabelCounts, optional): The counts of training labels, for the propensity-scored
            precision and Smin. (default: :obj:`None`, without these)
        roots (Sequence[str], optional): The roots of a hierarchy, which no average counts; also
            computes Fmax, Smin and AUPRC, for probabilities. (default: :obj:`None`, no hierarchy)

    Raises:
        ValueError: If shapes disagree, a value is not allowed, no label besides roots is observed,
            a threshold is missing, or thresholds are probabilities but scores are not.
        RuntimeError: If a tuner is not fitted.
    """
    targets = read_targets(y, "y")
    matrix = read_scores(scores, targets)
    if thresholds is None:
        check_scale(matrix, (0.5,))
        thresholds = 0.5
    num_samples, num_labels = targets.observed.shape
    names = list(map(str, range(num_labels)) if label_names is None else label_names)
    check_names(names, num_labels, "label_names", of="labels")
    divisions, scored = resolve_zero_division(zero_division), Scored(targets, matrix, counts)
    every = scored
    if roots:
        targets = _without(targets, np.isin(names, list(roots)))
        scored = Scored(targets, matrix, counts)
    by_metric: Any = thresholds
    if not isinstance(thresholds, Mapping):
        by_metric = dict.fromkeys(DECISION_METRICS, thresholds)
    if missing := DECISION_METRICS.keys() - by_metric.keys():
        expected = f"'thresholds' for each of {list(DECISION_METRICS)}"
        raise ValueError(f"Expected {expected} (got none for {sorted(missing)})")
    values, reported = {}, {}
    for name in DECISION_METRICS:
        threshold = by_metric[name]
        if isinstance(threshold, Decider):
            decisions = threshold.predict(matrix) == 1
        else:
            decisions = decide(matrix, read_array(threshold))
        values[name] = value_of(name, targets, decisions, divisions)
        if name == "f1_macro":
            label_counts = count(targets, decisions, LABELS)
        if name == DECIDES:
            by_label = _by_label(every, decisions, divisions)
        if not isinstance(threshold, LabelSets):
            is_tuner = isinstance(threshold, ThresholdTuner)
            array = threshold.fitted() if is_tuner else read_array(threshold)
            reported[name] = array.item() if array.size == 1 else array.tolist()
    values |= {name: metric(scored) for name, metric in SCORE_METRICS.items()}
    values |= _at_k(scored) if roots is None else {**_at_k(scored), **_of_hierarchy(scored)}
    by_label["threshold"] = np.broadcast_to(reported.get(DECIDES, np.nan), num_labels)
    is_averaged = ~np.isin(names, list(roots or ()))
    is_undefined = np.isnan(scored.areas[0]) & is_averaged
    is_undefined_f1 = (label_counts.predicted + label_counts.positive == 0) & is_averaged
    return Evaluation(
        values=values,
        thresholds=reported,
        undefined=list(compress(names, is_undefined)),
        undefined_f1=list(compress(names, is_undefined_f1)),
        zero_division=divisions,
        num_samples=num_samples,
        num_labels=num_labels,
        num_unknown=int((~every.targets.observed).sum()),
        reliability=scored.reliability,
        by_label={"label": names, **{name: values.tolist() for name, values in by_label.items()}},
        roots=list(compress(names, ~is_averaged)),
    )


def _without(targets: Targets, roots: BoolArray) -> Targets:
    """Returns the targets with roots unknown."""
    others = Targets(targets.positive & ~roots, targets.observed & ~roots)
    if not others.observed.any():
        raise ValueError("Expected a known label besides the roots of the hierarchy (got none)")
    return others


def _by_label(
    scored: Scored, decisions: BoolArray, divisions: Mapping[str, ZeroDivision]
) -> dict[str, Any]:
    """Returns the results of each label :math:`(L)` by name, without thresholds."""
    counts, (roc_auc, average_precision) = count(scored.targets, decisions, LABELS), scored.areas
    negative = counts.observed - counts.positive
    low, high = roc_auc_interval(roc_auc, counts.positive, negative)
    f1 = f1_per_item(counts, divisions["f1_macro"])
    return {
        "known": counts.observed,
        "positives": counts.positive,
        "roc_auc": roc_auc,
        "roc_auc_low": low,
        "roc_auc_high": high,
        "average_precision": average_precision,
        "f1": np.where(counts.observed > 0, f1, np.nan),
    }


def metrics_per_label(
    y: ArrayLike, probabilities: ArrayLike, decisions: ArrayLike
) -> tuple[dict[str, FloatArray], Reliability]:
    """Returns metrics of every label :math:`(L)` by name, and the reliability of all labels.

    The share is the fraction of samples to which a label applies, which the mean of calibrated
    probabilities equals. Values are NaN for a label without known targets; ROC-AUC and average
    precision also for a label with one observed class.

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        probabilities (Tensor or numpy.ndarray): Probabilities :math:`(N, L)`.
        decisions (Tensor or numpy.ndarray): Decisions :math:`(N, L)`: 0 or 1.

    Raises:
        ValueError: If shapes differ, a value is not allowed, or no label is observed.
    """
    targets = read_targets(y, "y")
    scores, y_pred = read_scores(probabilities, targets), read_decisions(decisions, targets)
    results = _by_label(Scored(targets, scores), y_pred, resolve_zero_division())
    reliability = Reliability.of(targets, scores)
    num_observed = np.where(results["known"] > 0, results["known"], np.nan)
    metrics = {
        "share": results["positives"] / num_observed,
        "mean probability": np.where(targets.observed, scores, 0.0).sum(axis=0) / num_observed,
        "ROC-AUC": results["roc_auc"],
        "average precision": results["average_precision"],
        "F1": results["f1"],
        "ECE": np.array(reliability.ece),
        "Brier score": np.array(reliability.brier),
    }
    return metrics, reliability
