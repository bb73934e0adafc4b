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

#: The minimum numbers of data sets and of models in a comparison.
FEWEST_DATASETS, FEWEST_MODELS = 3, 3
#: Up to this number of data sets, tests are rough (Demsar 2006, section 3.2.2).
FEW_DATASETS = 10


def numbers(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """The data sets, and by metric the ranks and tests, of each comparison with enough cells."""
    values = {}
    unchanged = {key: group for key, group in grouped(cells).items() if not key[1].change}
    for (dataset, row), group in comparable(unchanged).items():
        by_metric = spreads(group)
        means = {name: mean for name in METRICS if (mean := by_metric[name]["mean"]) is not None}
        if len(group) >= NUM_SEEDS and len(means) == len(METRICS):
            values[dataset, title(row)] = means
    out = []
    for datasets, models in rectangles(values):
        metrics = {}
        for metric in METRICS:
            scores = {model: [values[name, model][metric] for name in datasets] for model in models}
            ranks = Ranks.of(scores)
            limit, cliques = ranks.critical_difference(), ranks.cliques()
            test = {"ranks": ranks.mean, "F": ranks.statistic, "p": ranks.p}
            metrics[metric] = {**test, "critical difference": limit, "cliques": cliques}
        out.append({"datasets": datasets, "metrics": metrics})
    return out


def rectangles(present: Collection[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """Up to two selections (data sets, models) in which every data set has a cell of every model.

    The first selection has the most cells. The second, if different, has the most data sets.
    Scores play no role. The list is empty if data sets or models are too few for the tests.
    """
    by_dataset: dict[str, list[str]] = {}
    for dataset, model in present:
        by_dataset.setdefault(dataset, []).append(model)
    choices = []
    for count in range(FEWEST_DATASETS, len(by_dataset) + 1):
        for datasets in combinations(sorted(by_dataset), count):
            models = [set(by_dataset[name]) for name in datasets]
            shared = [name for name in by_dataset[datasets[0]] if all(name in m for m in models)]
            if len(shared) >= FEWEST_MODELS:
                choices.append((list(datasets), shared))
    if not choices:
        return []
    most_cells = max(choices, key=lambda choice: len(choice[0]) * len(choice[1]))
    most_datasets = max(choices, key=lambda choice: (len(choice[0]), len(choice[1])))
    return [most_cells] if most_datasets == most_cells else [most_cells, most_datasets]


def section(numbers: list[dict[str, Any]], picture: str) -> list[str]:
    """Tables of mean ranks, the best in bold, and counts of pairs that Nemenyi's test separates."""
    if not numbers:
        return ["Too few data sets have cells of the same models."]
    out = []
    for comparison in numbers:
        metrics, n = comparison["metrics"], len(comparison["datasets"])
        ranks = pd.DataFrame({LETTERS[name]: tested["ranks"] for name, tested in metrics.items()})
        best, k = ranks.min(), len(ranks)
        lines = []
        for model, row in ranks.iterrows():
            texts = {name: f"{rank:.2f}" for name, rank in row.items()}
            bold = (
                f"**{texts[name]}**" if row[name] == best[name] else texts[name]
                for name in row.index
            )
            lines.append([model, *bold])
        rough = f"Caution: with N = {n} data sets, no more than {FEW_DATASETS}, the tests are rough"
        data = ", ".join(comparison["datasets"])
        notes = [
            f"k = {k} models by means over the seeds, ranked on N = {n} data sets: {data}",
            f"A rank of 1 is the best, and two mean ranks differ by {k - 1} at most",
            *([f"{rough}, and miss much"] if n <= FEW_DATASETS else []),
            *(f"{LETTERS[name]}: {_tested(tested)}" for name, tested in metrics.items()),
        ]
        heads = ["model", *(f"rank in {name}" for name in ranks)]
        out += [f"## {k} models on {n} data sets", "", *table(heads, lines), "", *listed(notes), ""]
    return [*out, f"![Critical differences]({picture})"]


def _tested(test: dict[str, Any]) -> str:
    limit, ranks = test["critical difference"], test["ranks"].values()
    differences = [abs(first - second) for first, second in combinations(ranks, 2)]
    exceeding = sum(difference > limit for difference in differences)
    return (
        f"F = {test['F']:.2f}, p = {test['p']:.3g}, critical difference {limit:.2f}, exceeded by "
        f"{exceeding} of {len(differences)} pairs"
    )


def draw(numbers: list[dict[str, Any]]) -> Figure:
    """A critical difference diagram for each metric and comparison.

    Models are marked on an axis of mean ranks. Bars join models that do not differ significantly.
    """
    count = max(len(next(iter(item["metrics"].values()))["ranks"]) for item in numbers)
    size = 9 * len(numbers), len(METRICS) * (0.6 + 0.16 * count)
    figure = Figure(figsize=size, layout="constrained")
    columns = figure.subplots(len(METRICS), len(numbers), squeeze=False).T
    for comparison, column in zip(numbers, columns, strict=True):
        num_datasets = len(comparison["datasets"])
        for axes, (name, test) in zip(column, comparison["metrics"].items(), strict=True):
            _diagram(axes, f"{LETTERS[name]}, {num_datasets} data sets", test)
    return figure


def _diagram(axes: Any, name: str, test: dict[str, Any]) -> None:
    ranked = sorted(test["ranks"].items(), key=lambda item: item[1])
    limit, count = test["critical difference"], len(ranked)
    half = (count + 1) // 2
    for index, (model, rank) in enumerate(ranked):
        on_left = index < half
        depth = -1 - (index if on_left else count - 1 - index)
        end, text, align = (
            (0.6, f"{model} ", "right") if on_left else (count + 0.4, f" {model}", "left")
        )
        axes.plot([rank, rank, end], [0, depth, depth], color="black", linewidth=0.8)
        axes.text(end, depth, text, ha=align, va="center", size=8)
    for height, clique in enumerate(test["cliques"]):
        ends = [test["ranks"][clique[0]] - 0.05, test["ranks"][clique[-1]] + 0.05]
        axes.plot(ends, [0.25 + 0.2 * height] * 2, color="tab:blue", linewidth=3)
    top = 0.6 + 0.2 * len(test["cliques"])
    axes.plot([1, 1 + limit], [top, top], color="black", linewidth=2)
    axes.text(1, top + 0.1, f"critical difference {limit:.2f}", size=8, va="bottom")
    axes.plot([1, count], [0, 0], color="black")
    axes.set(title=name, xlim=(-1.5, count + 2.5), xticks=range(1, count + 1), yticks=[])
    axes.spines[:].set_visible(False)
