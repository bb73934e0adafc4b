"""Metrics and thresholds. A NaN target is unknown: it is left out everywhere."""

from tg_mlc.metrics.cross_fitted import FINE_GRID, tune_cross_fitted
from tg_mlc.metrics.decisions import (
    DECISION_METRICS,
    DEFAULT_ZERO_DIVISION,
    example_f1,
    hamming_accuracy,
    macro_f1,
    micro_f1,
    subset_accuracy,
)
from tg_mlc.metrics.frequency_thresholds import STRENGTHS, tune_by_frequency
from tg_mlc.metrics.label_sets import PRIORS, LabelSets
from tg_mlc.metrics.rank_thresholds import RATES, tune_by_rank
from tg_mlc.metrics.ranking import (
    average_precision_per_label,
    macro_average_precision,
    macro_roc_auc,
    micro_average_precision,
    micro_roc_auc,
    roc_auc_per_label,
)
from tg_mlc.metrics.report import Evaluation, evaluate
from tg_mlc.metrics.thresholds import PAPER_GRID, ThresholdTuner, tune_per_metric
from tg_mlc.metrics.top_k import hit_rate_at_k, ndcg_at_k, recall_at_k

__all__ = [
    "DECISION_METRICS",
    "DEFAULT_ZERO_DIVISION",
    "FINE_GRID",
    "PAPER_GRID",
    "PRIORS",
    "RATES",
    "STRENGTHS",
    "Evaluation",
    "LabelSets",
    "ThresholdTuner",
    "average_precision_per_label",
    "evaluate",
    "example_f1",
    "hamming_accuracy",
    "hit_rate_at_k",
    "macro_average_precision",
    "macro_f1",
    "macro_roc_auc",
    "micro_average_precision",
    "micro_f1",
    "micro_roc_auc",
    "ndcg_at_k",
    "recall_at_k",
    "roc_auc_per_label",
    "subset_accuracy",
    "tune_by_frequency",
    "tune_by_rank",
    "tune_cross_fitted",
    "tune_per_metric",
]
