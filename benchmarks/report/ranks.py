"""Comparison of models over data sets: Friedman's test as Iman and Davenport improved it, and Nemenyi's with its
critical difference, as in the `"Statistical Comparisons of Classifiers over Multiple Data Sets"
<https://jmlr.org/papers/v7/demsar06a.html>`_ paper.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import f as f_distribution
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from benchmarks.accuracy.cells import Stored
from benchmarks.accuracy.paper_rows import title
from benchmarks.accuracy.papers import METRICS
from benchmarks.accuracy.summary import ROUNDING
from benchmarks.report.papers import NUM_SEEDS, Values, comparable, grouped, spread
from benchmarks.report.writing import LETTERS

ALPHA = 0.05
#: Fewer are not compared.
FEWEST_DATASETS, FEWEST_MODELS = 3, 3
#: Tests are rough for no more data sets (Demsar 2006, section 3.2.2).
FEW_DATASETS = 10


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of models over data sets, 1 for the best."""

    mean: dict[str, float]
    num_datasets: int
    statistic: float  #: Iman and Davenport's F, from Friedman's corrected for ties
    p: float

    def critical_difference(self, alpha: float = ALPHA) -> float:
        """The least difference of mean ranks that Nemenyi's test calls significant."""
        k, n = len(self.mean), self.num_datasets
        q = studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2)
        return float(q * np.sqrt(k * (k + 1) / (6 * n)))

    def cliques(self, alpha: float = ALPHA) -> list[list[str]]:
        """The largest groups of two or more models that do not differ significantly, by rank."""
        names, limit = sorted(self.mean, key=lambda name: self.mean[name]), self.critical_difference(alpha)
        found: list[list[str]] = []
        for start, first in enumerate(names):
            group = [name for name in names[start:] if self.mean[name] - self.mean[first] <= limit]
            if len(group) > 1 and not (found and set(group) <= set(found[-1])):
                found.append(group)
        return found


def compare(scores: Mapping[str, Sequence[float]]) -> Ranks:
    """Ranks models by their scores, one for each data set; equal ones share the mean of their ranks."""
    values = np.array(list(scores.values()))
    ranks = rankdata(-values, axis=0).mean(axis=1)
    statistic, p = iman_davenport(friedmanchisquare(*values).statistic, *values.shape)
    return Ranks(dict(zip(scores, ranks.tolist(), strict=True)), values.shape[1], statistic, p)


def iman_davenport(chi_square: float, num_models: int, num_datasets: int) -> tuple[float, float]:
    """The F statistic of Friedman's chi-square, which alone is too cautious, and its p (`Iman and Davenport 1980
    <https://doi.org/10.1080/03610928008827904>`_).
    """
    k, n = num_models, num_datasets
    left = n * (k - 1) - chi_square
    # Nothing is left where all data sets rank the models in the same way.
    statistic = np.inf if left < ROUNDING else (n - 1) * chi_square / left
    return float(statistic), float(f_distribution.sf(statistic, k - 1, (k - 1) * (n - 1)))


def numbers(cells: Sequence[Stored]) -> list[dict[str, Any]]:
    """The data sets and models of each comparison, and the ranks by metric; nothing while there are too few."""
    groups = comparable({key: group for key, group in grouped(cells).items() if not key[1].change})
    values = {
        (dataset, title(row)): means
        for (dataset, row), group in groups.items()
        if len(group) >= NUM_SEEDS and (means := _defined(spread(group)))
    }
    return [_ranked(values, datasets, models) for datasets, models in rectangles(values)]


def _ranked(
    values: Mapping[tuple[str, str], dict[str, float]], datasets: list[str], models: list[str]
) -> dict[str, Any]:
    by_metric = {
        metric: compare({model: [values[dataset, model][metric] for dataset in datasets] for model in models})
        for metric in METRICS
    }
    return {
        "datasets": datasets,
        "metrics": {
            metric: {
                "ranks": found.mean,
                "F": found.statistic,
                "p": found.p,
                "critical difference": found.critical_difference(),
                "cliques": found.cliques(),
            }
            for metric, found in by_metric.items()
        },
    }


def _defined(group: Values) -> dict[str, float]:
    """The means of all metrics; nothing if one is undefined."""
    means = {metric: mean for metric in METRICS if (mean := group[metric]["mean"]) is not None}
    return means if len(means) == len(METRICS) else {}


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
            shared = [model for model in of_dataset[datasets[0]] if all(model in of_dataset[each] for each in datasets)]
            if len(shared) >= FEWEST_MODELS:
                choices.append((list(datasets), shared))
    if not choices:
        return []
    most_cells = max(choices, key=lambda choice: len(choice[0]) * len(choice[1]))
    most_datasets = max(choices, key=lambda choice: (len(choice[0]), len(choice[1])))
    return [most_cells] if most_datasets == most_cells else [most_cells, most_datasets]


def table(numbers: list[dict[str, Any]], picture: str) -> list[str]:
    """Of each comparison the mean ranks of the models, the best in bold, and what Nemenyi's test tells apart."""
    if not numbers:
        return ["Too few data sets have cells of the same models."]
    return [*chain.from_iterable(_section(each) for each in numbers), f"![Critical differences]({picture})"]


def _section(numbers: dict[str, Any]) -> list[str]:
    metrics = numbers["metrics"]
    n, k = len(numbers["datasets"]), len(next(iter(metrics.values()))["ranks"])
    lines = [
        f"| model | {' | '.join(f'rank in {LETTERS[name]}' for name in metrics)} |",
        "|---|" + "---|" * len(metrics),
    ]
    best = {name: min(found["ranks"].values()) for name, found in metrics.items()}
    for model in next(iter(metrics.values()))["ranks"]:
        ranks = {name: found["ranks"][model] for name, found in metrics.items()}
        cells = (f"**{rank:.2f}**" if rank == best[name] else f"{rank:.2f}" for name, rank in ranks.items())
        lines.append(f"| {model} | {' | '.join(cells)} |")
    caution = f"Caution: with N = {n} data sets, no more than {FEW_DATASETS}, the tests are rough, and miss much"
    return [
        f"## {k} models on {n} data sets",
        "",
        *lines,
        "",
        f"- k = {k} models by means over the seeds, ranked on N = {n} data sets: {', '.join(numbers['datasets'])}",
        f"- A rank of 1 is the best, and two mean ranks differ by {k - 1} at most",
        *([f"- {caution}"] if n <= FEW_DATASETS else []),
        *(f"- {LETTERS[name]}: {_tested(found)}" for name, found in metrics.items()),
        "",
    ]


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
        axes.text(end, depth, f"{model} " if left else f" {model}", ha="right" if left else "left", va="center", size=8)
    for height, clique in enumerate(found["cliques"]):
        ends = [found["ranks"][model] for model in (clique[0], clique[-1])]
        axes.plot([ends[0] - 0.05, ends[1] + 0.05], [0.25 + 0.2 * height] * 2, color="tab:blue", linewidth=3)
    top = 0.6 + 0.2 * len(found["cliques"])
    axes.plot([1, 1 + found["critical difference"]], [top, top], color="black", linewidth=2)
    axes.text(1, top + 0.1, f"critical difference {found['critical difference']:.2f}", size=8, va="bottom")
    axes.plot([1, len(ranked)], [0, 0], color="black")
    axes.set(title=name, xlim=(-1.5, len(ranked) + 2.5), xticks=range(1, len(ranked) + 1), yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
