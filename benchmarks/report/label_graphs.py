"""What label graphs gain over none, on all data sets, with intervals: in one picture and one table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.runs import LAMP
from benchmarks.report import messages
from benchmarks.report.comparisons import Comparison, compared
from benchmarks.report.statistics import PairedTest, compare_rows
from benchmarks.report.writing import table, titles

#: The graphs with their colours; a prior that is not of co-occurrence is a prior, too.
GRAPHS = {"complete": "#0072b2", "prior": "#d55e00", "learned": "#009e73"}
PRIORS = ("prior", "tree", "string", "wordnet")
ALONE, BEST = "LaMP alone, as published", "LaMP with the best settings"
COLUMNS = titles("f1_samples", "roc_auc_macro")
DRAWN = "f1_samples"
LEAST_SEEDS = 3


def gains(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """The difference of each label graph from the edgeless one, with its 95 % interval, by setting and data set."""
    found = [_gain(ALONE, each.dataset, each.test) for each in messages.comparisons(messages.shown(cells))]
    for name in (name for name in compared() if not name.startswith("planted")):
        comparison = Comparison.load(name)
        for row in comparison.rows:
            against = replace(row, graph="edgeless")
            if row.model == LAMP and row.settings == "best" and row.graph != "edgeless" and not row.change:
                tests = compare_rows(comparison.runs, row, against, tuple(COLUMNS))
                found += [_gain(BEST, name.removesuffix("-official").removesuffix("-random"), test) for test in tests]
    return [gain for gain in found if gain]


def _gain(setting: str, dataset: str, test: PairedTest) -> dict[str, Any]:
    """One difference, or nothing if it is of another kind."""
    graph = "prior" if test.row.graph in PRIORS else test.row.graph
    comparable = replace(test.row, graph=test.against.graph) == test.against and test.against.graph == "edgeless"
    if not comparable or test.metric not in COLUMNS or test.num_seeds < LEAST_SEEDS or test.row.change:
        return {}
    messages_too = ", with node messages" if test.row.node_messages else ""
    return {
        "setting": setting,
        "data": dataset
        + messages_too
        + (f", {test.row.graph}" if graph == "prior" and test.row.graph != graph else ""),
        "graph": graph,
        "metric": test.metric,
        "seeds": test.num_seeds,
        "mean": test.mean_difference,
        "low": test.low,
        "high": test.high,
    }


def section(found: list[dict[str, Any]], picture: str) -> list[str]:
    """The picture, and how often a graph is surely above or below the edgeless one."""
    rows = []
    for setting in (ALONE, BEST):
        for graph in GRAPHS:
            counts = []
            for metric in COLUMNS:
                here = [
                    each
                    for each in found
                    if (each["setting"], each["graph"], each["metric"]) == (setting, graph, metric)
                ]
                above, below = sum(each["low"] > 0 for each in here), sum(each["high"] < 0 for each in here)
                middle = pd.Series([each["mean"] for each in here], dtype=float).median()
                counts.append(f"{above} above, {below} below, of {len(here)}; median {middle:+.3f}" if here else "")
            rows.append([setting, graph, *counts])
    return [
        f"![Gains of label graphs over the edgeless one]({picture})",
        "",
        *table(["model", "label graph", *(f"{title}, surely" for title in COLUMNS.values())], rows),
        "",
        f"- Differences from `edgeless` with 95 % intervals over {LEAST_SEEDS} seeds or more; surely: in intervals "
        "without 0, of which chance gives one in twenty, half of them above",
    ]


def draw(found: list[dict[str, Any]]) -> Figure:
    """Differences in samples F1 by data set, one panel for each setting."""
    shown = [each for each in found if each["metric"] == DRAWN]
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    for axes, setting in zip(figure.subplots(1, 2), (ALONE, BEST), strict=True):
        here = [each for each in shown if each["setting"] == setting]
        places = {name: place for place, name in enumerate(dict.fromkeys(each["data"] for each in here))}
        axes.axvline(0, color="black", linewidth=0.8)
        for shift, (graph, colour) in enumerate(GRAPHS.items()):
            of_graph = [each for each in here if each["graph"] == graph]
            y = [places[each["data"]] + 0.22 * (shift - 1) for each in of_graph]
            means = [each["mean"] for each in of_graph]
            reach = [each["high"] - each["mean"] for each in of_graph]
            axes.errorbar(means, y, xerr=reach, fmt="o", markersize=4, color=colour, capsize=2, label=graph)
        axes.set(
            title=setting,
            xlabel="samples F1 above edgeless",
            xlim=(-0.045, 0.045),
            xticks=(-0.04, -0.02, 0, 0.02, 0.04),
        )
        axes.set(yticks=range(len(places)), yticklabels=list(places), ylim=(len(places) - 0.5, -0.5))
        axes.grid(axis="y", alpha=0.2)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
