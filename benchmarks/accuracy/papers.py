"""Figures that the papers report.

Left out is the subset accuracy on Delicious in Table 7 of the LaMP paper, whose entries are those of macro-F1 in its
Table 3.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

FIGURES = Path(__file__).parent / "papers.csv"
PAPERS = {"lamp2019": "arXiv:1904.08049", "mped2019": "MPED 2019"}
#: Those of the figures that are metrics of comparisons.
METRICS = ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro")
#: The row of what is best in each metric.
BEST = "best of the papers' message passing"
#: Data sets whose samples or labels are not those of the papers, and how they differ.
DIFFERENT = {
    "bookmarks": "other split",
    "nuswide": "four more labels",
    "rcv1": "34 times the training samples",
}


@cache
def reported() -> dict[tuple[str, str, str, str], float]:
    """All figures by paper, data set, model and metric."""
    with FIGURES.open(newline="") as file:
        rows = csv.DictReader(file)
        return {(row["paper"], row["dataset"], row["model"], row["metric"]): float(row["value"]) for row in rows}


def figures(dataset: str) -> dict[str, dict[str, float]]:
    """The figures of message passing on a data set by paper and model, then by metric; and the best of all for each
    metric.
    """
    remark = f" ({DIFFERENT[dataset]})" if dataset in DIFFERENT else ""
    ours: dict[str, dict[str, float]] = {}
    for (paper, of, model, metric), value in reported().items():
        if of == dataset and metric in METRICS and ("LaMP_" in model or "MPED" in model):
            ours.setdefault(f"{PAPERS[paper]}, {model}{remark}", {})[metric] = value
    metrics = {metric for values in ours.values() for metric in values}
    best = {metric: max(values[metric] for values in ours.values() if metric in values) for metric in sorted(metrics)}
    return {**ours, **({f"{BEST}{remark}": best} if best else {})}
