"""Metrics and thresholds. NaN targets are unknown labels, which all metrics ignore."""

from tg_mlc.metrics.decisions import (
    DECISION_METRICS,
    example_f1,
    hamming_accuracy,
    macro_f1,
    micro_f1,
    subset_accuracy,
)
from tg_mlc.metrics.hierarchical import fmax, smin
from tg_mlc.metrics.label_counts import LabelCounts
from tg_mlc.metrics.label_sets import LabelSets
from tg_mlc.metrics.ranking import (
    hit_rate_at_k,
    macro_average_precision,
    macro_roc_auc,
    micro_average_precision,
    micro_roc_auc,
    ndcg_at_k,
    precision_at_k,
    propensity_precision_at_k,
    recall_at_k,
)
from tg_mlc.metrics.report import Evaluation, evaluate
from tg_mlc.metrics.thresholds import ThresholdTuner, tune_thresholds

__all__ = [
    "DECISION_METRICS",
    "Evaluation",
    "LabelCounts",
    "LabelSets",
    "ThresholdTuner",
    "evaluate",
    "example_f1",
    "fmax",
    "hamming_accuracy",
    "hit_rate_at_k",
    "macro_average_precision",
    "macro_f1",
    "macro_roc_auc",
    "micro_average_precision",
    "micro_f1",
    "micro_roc_auc",
    "ndcg_at_k",
    "precision_at_k",
    "propensity_precision_at_k",
    "recall_at_k",
    "smin",
    "subset_accuracy",
    "tune_thresholds",
]
