"""Pictures of results, as SVG files that hold a hash of the numbers they show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.accuracy.papers import BEST, figures
from benchmarks.accuracy.rows import FREQUENCY
from benchmarks.accuracy.summary import by_row
from benchmarks.report.comparisons import Comparison, shown
from benchmarks.report.writing import titles

DRAWN = titles("subset_accuracy", "f1_samples", "f1_macro", "roc_auc_macro")


class Picture(NamedTuple):
    """What is drawn, and how."""

    path: Path
    numbers: Any  #: plain data; the picture is out of date when they change
    draw: Callable[[Any], Figure]

    @property
    def digest(self) -> str:
        """What the file says of its numbers."""
        return f"numbers sha256 {hashlib.sha256(json.dumps(self.numbers).encode()).hexdigest()}"

    def is_current(self) -> bool:
        """Whether the file shows these numbers."""
        return self.path.is_file() and self.digest in self.path.read_text()

    def write(self) -> None:
        """Draws the picture."""
        self.path.parent.mkdir(exist_ok=True)
        # The same file from the same numbers; letters stay letters.
        with mpl.rc_context({"svg.hashsalt": self.path.stem, "svg.fonttype": "none"}):
            self.draw(self.numbers).savefig(self.path, metadata={"Date": None, "Description": self.digest})


def numbers(comparison: Comparison) -> dict[str, Any]:
    """The numbers that :func:`draw` shows of a comparison: rows of its short table, and the papers' best."""
    rows, summary = [row for row in shown(comparison) if row.model != FREQUENCY], by_row(comparison.runs)
    papers = [values for name, values in figures(comparison.data).items() if name.startswith(BEST)]
    return {
        "rows": {row.title: {name: summary[row]["metrics"].get(name) for name in DRAWN} for row in rows},
        "papers": papers[0] if papers else {},
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Mean and standard deviation of some metrics by row, and the papers' best as a line."""
    rows = numbers["rows"]
    figure = Figure(figsize=(10, 1.2 + 0.28 * len(rows)), layout="constrained")
    for axes, (name, title) in zip(figure.subplots(1, len(DRAWN), sharey=True), DRAWN.items(), strict=True):
        for place, values in enumerate(rows.values()):
            found = values[name]
            if found and found["mean"] is not None:
                axes.errorbar(found["mean"], place, xerr=found["sd"] or 0, fmt="o", color="tab:blue", capsize=2)
        if name in numbers["papers"]:
            axes.axvline(numbers["papers"][name], color="black", linestyle="--", linewidth=1, label=BEST)
        axes.set(xlabel=title, yticks=range(len(rows)), yticklabels=list(rows), ylim=(len(rows) - 0.5, -0.5))
        axes.grid(axis="y", alpha=0.3)
    if numbers["papers"]:
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower right", frameon=False)
    return figure
