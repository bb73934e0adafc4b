"""Gains of label graphs over the edgeless graph on all data sets: a picture and a table."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.runs import LAMP
from benchmarks.report import messages
from benchmarks.report.comparisons import Comparison, compared
from benchmarks.report.statistics import compare_rows
from benchmarks.report.writing import table, titles

#: Colours by label graph. All graphs in PRIORS count as prior.
GRAPHS = {"complete": "#0072b2", "prior": "#d55e00", "learned": "#009e73"}
PRIORS = ("prior", "tree", "string", "wordnet")
ALONE, BEST = "LaMP alone, as published", "LaMP with the best settings"
COLUMNS = titles("f1_samples", "roc_auc_macro")
DRAWN = "f1_samples"
LEAST_SEEDS = 3
FIELDS = ["setting", "data", "graph", "metric", "seeds", "mean", "low", "high"]
TICKS = (-0.04, -0.02, 0, 0.02, 0.04)


def gains(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Records of FIELDS: differences from the edgeless graph by data set, with 95 % intervals."""
    paper_tests = messages.comparisons(messages.shown(cells)).itertuples()
    tests: list[tuple[str, str, Any]] = [(ALONE, test.dataset, test) for test in paper_tests]
    for name in (name for name in compared() if not name.startswith("planted")):
        comparison = Comparison.load(name)
        dataset = name.removesuffix("-official").removesuffix("-random")
        for row in comparison.rows:
            if row.model == LAMP and row.settings == "best" and row.graph != "edgeless":
                against = replace(row, graph="edgeless")
                row_tests = compare_rows(comparison.runs, row, against, tuple(COLUMNS))
                tests += [(BEST, dataset, test) for test in row_tests]
    rows = []
    for setting, dataset, test in tests:
        row = test.row
        comparable = replace(row, graph="edgeless") == test.against and not row.change
        if comparable and test.metric in COLUMNS and test.num_seeds >= LEAST_SEEDS:
            graph, data_title = "prior" if row.graph in PRIORS else row.graph, dataset
            data_title += ", with node messages" if row.node_messages else ""
            data_title += f", {row.graph}" if row.graph != graph else ""
            interval = (test.mean_difference, test.low, test.high)
            values = (setting, data_title, graph, test.metric, test.num_seeds, *interval)
            rows.append(dict(zip(FIELDS, values, strict=True)))
    return rows


def section(gains: list[dict[str, Any]], picture: str) -> list[str]:
    """The picture, and a table of significant wins and losses against the edgeless graph."""
    groups = dict(iter(pd.DataFrame(gains, columns=FIELDS).groupby(["setting", "graph", "metric"])))
    rows = []
    for setting, graph in product((ALONE, BEST), GRAPHS):
        cells = []
        for group in (groups.get((setting, graph, metric)) for metric in COLUMNS):
            if group is None:
                cells.append("")
                continue
            counts = f"{(group['low'] > 0).sum()}/{(group['high'] < 0).sum()} of {len(group)}"
            cells.append(f"{counts}; median {group['mean'].median():+.3f}")
        rows.append([setting, graph, *cells])
    heads = [f"{title}: significant wins / losses" for title in COLUMNS.values()]
    return [
        f"![Gains of label graphs over the edgeless one]({picture})",
        "",
        *table(["model", "label graph", *heads], rows),
        "",
        f"- Differences from `edgeless` over {LEAST_SEEDS} seeds or more; a difference is "
        "significant if its 95 % interval excludes 0, which chance alone does for one in twenty, "
        "half of them wins",
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    """Draws differences in samples F1 by data set, with one panel for each setting."""
    gains = pd.DataFrame(rows)
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    for axes, setting in zip(figure.subplots(1, 2), (ALONE, BEST), strict=True):
        panel_gains = gains[(gains["metric"] == DRAWN) & (gains["setting"] == setting)]
        row_of_data = {name: number for number, name in enumerate(panel_gains["data"].unique())}
        axes.axvline(0, color="black", linewidth=0.8)
        for graph_index, (graph, color) in enumerate(GRAPHS.items()):
            points = panel_gains[panel_gains["graph"] == graph]
            y = points["data"].map(row_of_data) + 0.22 * (graph_index - 1)
            half_widths = points["high"] - points["mean"]
            style = {"fmt": "o", "markersize": 4, "color": color, "capsize": 2, "label": graph}
            axes.errorbar(points["mean"], y, xerr=half_widths, **style)
        axes.set(title=setting, xlabel="samples F1 above edgeless", xticks=TICKS)
        axes.set(yticks=range(len(row_of_data)), yticklabels=list(row_of_data))
        axes.set(xlim=(-0.045, 0.045), ylim=(len(row_of_data) - 0.5, -0.5))
        axes.grid(axis="y", alpha=0.2)
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False)
    return figure
