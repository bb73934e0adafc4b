"""Gains of label graphs over none on all data sets, with intervals: in one picture and one table."""

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

#: The graphs with their colours; a prior that is not of co-occurrence is a prior, too.
GRAPHS = {"complete": "#0072b2", "prior": "#d55e00", "learned": "#009e73"}
PRIORS = ("prior", "tree", "string", "wordnet")
ALONE, BEST = "LaMP alone, as published", "LaMP with the best settings"
COLUMNS = titles("f1_samples", "roc_auc_macro")
DRAWN = "f1_samples"
LEAST_SEEDS = 3
FIELDS = ["setting", "data", "graph", "metric", "seeds", "mean", "low", "high"]
TICKS = (-0.04, -0.02, 0, 0.02, 0.04)


def gains(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """The difference of each label graph from the edgeless one, with its 95 % interval, by setting and data set."""
    of_papers = messages.comparisons(messages.shown(cells)).itertuples()
    tests: list[tuple[str, str, Any]] = [(ALONE, test.dataset, test) for test in of_papers]
    for name in (name for name in compared() if not name.startswith("planted")):
        comparison, dataset = (
            Comparison.load(name),
            name.removesuffix("-official").removesuffix("-random"),
        )
        for row in comparison.rows:
            if row.model == LAMP and row.settings == "best" and row.graph != "edgeless":
                against = replace(row, graph="edgeless")
                tests += [
                    (BEST, dataset, test)
                    for test in compare_rows(comparison.runs, row, against, tuple(COLUMNS))
                ]
    found = []
    for setting, dataset, test in tests:
        row = test.row
        comparable = replace(row, graph="edgeless") == test.against and not row.change
        if comparable and test.metric in COLUMNS and test.num_seeds >= LEAST_SEEDS:
            graph, data = "prior" if row.graph in PRIORS else row.graph, dataset
            data += ", with node messages" if row.node_messages else ""
            data += f", {row.graph}" if row.graph != graph else ""
            gain = {
                "setting": setting,
                "data": data,
                "graph": graph,
                "metric": test.metric,
                "seeds": test.num_seeds,
            }
            found.append({**gain, "mean": test.mean_difference, "low": test.low, "high": test.high})
    return found


def section(found: list[dict[str, Any]], picture: str) -> list[str]:
    """The picture, and how often a graph is surely above or below the edgeless one."""
    groups = dict(iter(pd.DataFrame(found, columns=FIELDS).groupby(["setting", "graph", "metric"])))
    rows = []
    for setting, graph in product((ALONE, BEST), GRAPHS):
        counts = []
        for here in (groups.get((setting, graph, metric)) for metric in COLUMNS):
            counts.append(
                ""
                if here is None
                else f"{(here['low'] > 0).sum()} above, {(here['high'] < 0).sum()} below, of {len(here)}; "
                f"median {here['mean'].median():+.3f}"
            )
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
    gains = pd.DataFrame(found)
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    for axes, setting in zip(figure.subplots(1, 2), (ALONE, BEST), strict=True):
        here = gains[(gains["metric"] == DRAWN) & (gains["setting"] == setting)]
        places = {name: place for place, name in enumerate(here["data"].unique())}
        axes.axvline(0, color="black", linewidth=0.8)
        for shift, (graph, colour) in enumerate(GRAPHS.items()):
            points = here[here["graph"] == graph]
            y, reach = (
                points["data"].map(places) + 0.22 * (shift - 1),
                points["high"] - points["mean"],
            )
            style = {"fmt": "o", "markersize": 4, "color": colour, "capsize": 2, "label": graph}
            axes.errorbar(points["mean"], y, xerr=reach, **style)
        axes.set(
            title=setting, xlabel="samples F1 above edgeless", xlim=(-0.045, 0.045), xticks=TICKS
        )
        axes.set(
            yticks=range(len(places)), yticklabels=list(places), ylim=(len(places) - 0.5, -0.5)
        )
        axes.grid(axis="y", alpha=0.2)
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return figure
