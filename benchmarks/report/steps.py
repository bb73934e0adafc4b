"""MPED's Figure 2: the average of all metrics by the number of label message passing steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from benchmarks.accuracy.cells import STEPS, Stored
from benchmarks.accuracy.rows import Row
from benchmarks.report.papers import AVERAGE, grouped, spread
from benchmarks.report.tables import NOTHING, cell

MPED = Row("mped", "fmp", "fc")


def numbers(cells: Sequence[Stored]) -> dict[str, dict[int, Any]]:
    """Mean and standard deviation by data set and number of steps, where there are two numbers or more."""
    found: dict[str, dict[int, Any]] = {}
    for (dataset, row), group in grouped(cells).items():
        if replace(row, change=None) == MPED and (row.change or STEPS).startswith(STEPS):
            found.setdefault(dataset, {})[group[0].settings["model"]["decoder_steps"]] = spread(group)[AVERAGE]
    return {name: dict(sorted(by_steps.items())) for name, by_steps in found.items() if len(by_steps) > 1}


def table(numbers: dict[str, dict[int, Any]], picture: str) -> list[str]:
    """One line for each data set."""
    if not numbers:
        return ["Not run with several numbers of steps."]
    steps = sorted({step for by_steps in numbers.values() for step in by_steps})
    lines = [f"| data | {' | '.join(f'T={step}' for step in steps)} |", "|---|" + "---|" * len(steps)]
    for name, by_steps in numbers.items():
        lines.append(f"| {name} | {' | '.join(cell(by_steps.get(step, NOTHING)) for step in steps)} |")
    return [*lines, "", f"![The average of all metrics by the number of steps]({picture})"]


def draw(numbers: dict[str, dict[int, Any]]) -> Figure:
    """A line for each data set."""
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, by_steps in numbers.items():
        means, spreads = [v["mean"] for v in by_steps.values()], [v["sd"] or 0 for v in by_steps.values()]
        axes.errorbar(list(by_steps), means, spreads, marker="o", capsize=2, label=name)
    axes.set(xlabel="steps T", ylabel="average of all metrics", xticks=sorted({s for v in numbers.values() for s in v}))
    axes.legend(fontsize="small")
    return figure
