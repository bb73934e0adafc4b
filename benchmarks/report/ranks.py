"""Comparison of models over data sets by their mean ranks in the papers' metrics."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.papers import METRICS, title
from benchmarks.report.papers import NUM_SEEDS, comparable, grouped, spreads
from benchmarks.report.statistics import Ranks
from benchmarks.report.writing import LETTERS, listed, table

#: Fewer are not compared.
FEWEST_DATASETS, FEWEST_MODELS = 3, 3
#: Tests are rough for no more data sets (Demsar 2006, section 3.2.2).
FEW_DATASETS = 10


def numbers(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """The data sets and models of each comparison, and the ranks by metric; nothing while there are too few."""
    values = {}
    unchanged = {key: group for key, group in grouped(cells).items() if not key[1].change}
    for (dataset, row), group in comparable(unchanged).items():
        found = spreads(group)
        means = {metric: mean for metric in METRICS if (mean := found[metric]["mean"]) is not None}
        if len(group) >= NUM_SEEDS and len(means) == len(METRICS):
            values[dataset, title(row)] = means
    out = []
    for datasets, models in rectangles(values):
        metrics = {}
        for metric in METRICS:
            ranks = Ranks.of(
                {
                    model: [values[dataset, model][metric] for dataset in datasets]
                    for model in models
                }
            )
            limits = {
                "critical difference": ranks.critical_difference(),
                "cliques": ranks.cliques(),
            }
            metrics[metric] = {"ranks": ranks.mean, "F": ranks.statistic, "p": ranks.p, **limits}
        out.append({"datasets": datasets, "metrics": metrics})
    return out


def rectangles(present: Collection[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """Data sets and models of which all cells are there, whatever their scores: once as many cells as possible, and
    once as many data sets, where these are others; none while there are too few for the tests.
    """
    of_dataset: dict[str, list[str]] = {}
    for dataset, model in present:
        of_dataset.setdefault(dataset, []).append(model)
    choices = []
    for count in range(FEWEST_DATASETS, len(of_dataset) + 1):
        for datasets in combinations(sorted(of_dataset), count):
            shared = [
                model
                for model in of_dataset[datasets[0]]
                if all(model in of_dataset[each] for each in datasets)
            ]
            if len(shared) >= FEWEST_MODELS:
                choices.append((list(datasets), shared))
    if not choices:
        return []
    most_cells = max(choices, key=lambda choice: len(choice[0]) * len(choice[1]))
    most_datasets = max(choices, key=lambda choice: (len(choice[0]), len(choice[1])))
    return [most_cells] if most_datasets == most_cells else [most_cells, most_datasets]


def section(numbers: list[dict[str, Any]], picture: str) -> list[str]:
    """The mean ranks of the models in each comparison, the best in bold, and the differences by Nemenyi's test."""
    if not numbers:
        return ["Too few data sets have cells of the same models."]
    out = []
    for each in numbers:
        metrics, n = each["metrics"], len(each["datasets"])
        ranks = pd.DataFrame({LETTERS[name]: found["ranks"] for name, found in metrics.items()})
        best, k = ranks.min(), len(ranks)
        lines = [
            [
                model,
                *(
                    f"**{rank:.2f}**" if rank == best[name] else f"{rank:.2f}"
                    for name, rank in row.items()
                ),
            ]
            for model, row in ranks.iterrows()
        ]
        caution = f"Caution: with N = {n} data sets, no more than {FEW_DATASETS}, the tests are rough, and miss much"
        notes = [
            f"k = {k} models by means over the seeds, ranked on N = {n} data sets: {', '.join(each['datasets'])}",
            f"A rank of 1 is the best, and two mean ranks differ by {k - 1} at most",
            *([caution] if n <= FEW_DATASETS else []),
            *(f"{LETTERS[name]}: {_tested(found)}" for name, found in metrics.items()),
        ]
        heads = ["model", *(f"rank in {name}" for name in ranks)]
        out += [f"## {k} models on {n} data sets", "", *table(heads, lines), "", *listed(notes), ""]
    return [*out, f"![Critical differences]({picture})"]


def _tested(found: dict[str, Any]) -> str:
    limit, ranks = found["critical difference"], found["ranks"].values()
    pairs = sum(abs(one - other) > limit for one, other in combinations(ranks, 2))
    return (
        f"F = {found['F']:.2f}, p = {found['p']:.3g}, critical difference {limit:.2f}, exceeded by {pairs} of "
        f"{len(ranks) * (len(ranks) - 1) // 2} pairs"
    )


def draw(numbers: list[dict[str, Any]]) -> Figure:
    """A critical difference diagram for each metric and comparison: models on the line of mean ranks, bars over those
    that do not differ significantly.
    """
    count = max(len(next(iter(each["metrics"].values()))["ranks"]) for each in numbers)
    size = 9 * len(numbers), len(METRICS) * (0.6 + 0.16 * count)
    figure = Figure(figsize=size, layout="constrained")
    columns = figure.subplots(len(METRICS), len(numbers), squeeze=False).T
    for each, column in zip(numbers, columns, strict=True):
        for axes, (name, found) in zip(column, each["metrics"].items(), strict=True):
            _diagram(axes, f"{LETTERS[name]}, {len(each['datasets'])} data sets", found)
    return figure


def _diagram(axes: Any, name: str, found: dict[str, Any]) -> None:
    ranked = sorted(found["ranks"].items(), key=lambda item: item[1])
    half = (len(ranked) + 1) // 2
    for place, (model, rank) in enumerate(ranked):
        left = place < half
        depth = -1 - (place if left else len(ranked) - 1 - place)
        end = 0.6 if left else len(ranked) + 0.4
        axes.plot([rank, rank, end], [0, depth, depth], color="black", linewidth=0.8)
        axes.text(
            end,
            depth,
            f"{model} " if left else f" {model}",
            ha="right" if left else "left",
            va="center",
            size=8,
        )
    for height, clique in enumerate(found["cliques"]):
        ends = [found["ranks"][model] for model in (clique[0], clique[-1])]
        axes.plot(
            [ends[0] - 0.05, ends[1] + 0.05],
            [0.25 + 0.2 * height] * 2,
            color="tab:blue",
            linewidth=3,
        )
    top = 0.6 + 0.2 * len(found["cliques"])
    axes.plot([1, 1 + found["critical difference"]], [top, top], color="black", linewidth=2)
    axes.text(
        1, top + 0.1, f"critical difference {found['critical difference']:.2f}", size=8, va="bottom"
    )
    axes.plot([1, len(ranked)], [0, 0], color="black")
    axes.set(
        title=name, xlim=(-1.5, len(ranked) + 2.5), xticks=range(1, len(ranked) + 1), yticks=[]
    )
    for spine in axes.spines.values():
        spine.set_visible(False)
