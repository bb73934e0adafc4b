"""Figures that the papers report.

Left out is ACC on Delicious in Table 7 of the LaMP paper, whose entries are those of macro-F1 in its Table 3.
"""

from __future__ import annotations

import csv
from pathlib import Path

FIGURES = Path(__file__).parent / "papers.csv"
PAPERS = {"lamp2019": "arXiv:1904.08049", "mped2019": "MPED 2019"}
#: The row of what is best in each metric.
BEST = "best of the papers' message passing"
#: Data sets whose samples or labels are not those of the papers, and how they differ.
DIFFERENT = {
    "bookmarks": "other split",
    "nuswide": "four more labels",
    "rcv1": "34 times the training samples",
}


def figures(dataset: str) -> dict[str, dict[str, float]]:
    """The figures of a data set by paper and model, then by metric; and the best of all for each metric."""
    with FIGURES.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == dataset]
    remark = f" ({DIFFERENT[dataset]})" if dataset in DIFFERENT else ""
    reported: dict[str, dict[str, float]] = {}
    for row in rows:
        name = f"{PAPERS[row['paper']]}, {row['model']}{remark}"
        reported.setdefault(name, {})[row["metric"]] = float(row["value"])
    ours = {name: values for name, values in reported.items() if "LaMP" in name or "MPED" in name}
    metrics = {metric for values in ours.values() for metric in values}
    best = {metric: max(values[metric] for values in ours.values() if metric in values) for metric in sorted(metrics)}
    return {**ours, **({f"{BEST}{remark}": best} if best else {})}
