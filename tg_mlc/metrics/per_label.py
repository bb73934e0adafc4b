"""Metrics of every label by itself, as reports show them."""

from __future__ import annotations

import numpy as np

from tg_mlc.metrics._inputs import ArrayLike, FloatArray, read_decisions, read_scores, read_targets
from tg_mlc.metrics.calibration import Reliability
from tg_mlc.metrics.decisions import LABELS, count, f1_per_item
from tg_mlc.metrics.ranking import areas_per_label


def metrics_per_label(
    y: ArrayLike, probabilities: ArrayLike, decisions: ArrayLike
) -> tuple[dict[str, FloatArray], Reliability]:
    """Returns metrics of every label :math:`(L)` by name, and the reliability of all labels.

    A label is calibrated if its share, the fraction of samples to which it applies, equals its mean
    probability. Values are NaN for labels that are never known, areas also with only one class.

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        probabilities (Tensor or numpy.ndarray): Probabilities :math:`(N, L)`.
        decisions (Tensor or numpy.ndarray): Decisions :math:`(N, L)`: 0 or 1.

    Raises:
        ValueError: If shapes differ, a value is not allowed, or no label is observed.
    """
    targets = read_targets(y, "y")
    scores, decided = read_scores(probabilities, targets), read_decisions(decisions, targets)
    counts, reliability = count(targets, decided, LABELS), Reliability.of(targets, scores)
    number = np.where(counts.observed > 0, counts.observed, np.nan)
    roc_auc, average_precision = areas_per_label(targets, scores)
    metrics = {
        "share": counts.positive / number,
        "mean probability": np.where(targets.observed, scores, 0.0).sum(axis=0) / number,
        "ROC-AUC": roc_auc,
        "average precision": average_precision,
        "F1": f1_per_item(counts, 0),
        "ECE": np.array(reliability.ece),
        "Brier score": np.array(reliability.brier),
    }
    return metrics, reliability
