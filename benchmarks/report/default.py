"""The default: a page with a table for each data set that it has been measured on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.auto import COMBINED, OURS, POSITIVES, SHARES
from benchmarks.accuracy.runs import FREQUENCY, frame
from benchmarks.files import Result
from benchmarks.report.statistics import ALPHA, Spread, spread
from benchmarks.report.writing import METRICS, cell, machine, p_in_words, ranked, table, titles
from tg_mlc.datasets.registry import published
from tg_mlc.metrics.paired import Difference, corrected_difference

COLUMNS = titles(
    *("subset_accuracy", "f1_samples", "f1_micro", "f1_macro"),
    *("roc_auc_macro", "average_precision_macro"),
)
#: The metrics in the chart.
DRAWN = ("f1_samples", "average_precision_macro")
TITLE = "# A default for your own data"
INTRO = """\
`tg_mlc.stacking.auto` chooses by scores of training samples from models that had not seen them; no
setting was chosen for a data set. It combines the classifiers in the rows above it with LaMP. Each
of these classifiers was tuned for its own row, with thresholds or label sets chosen in the same
way. A row of the same classifiers combined is the default without label message passing. All
samples are divided anew for every seed, 70% for training and 30% for testing.

To repeat a measurement, run `python -m benchmarks.accuracy.auto --datasets emotions --seeds 5`."""


def page(result: Result) -> str:
    """The page of all data sets."""
    runs = frame(result["runs"])
    sections = [
        "\n".join([f"## {published(name).title}", "", *section(group)])
        for name, group in runs.groupby("dataset", sort=False)
    ]
    limit = f"one thread, at most about {result['seconds']:g} seconds for each model"
    return (
        "\n\n".join([TITLE, summary(runs), INTRO, *sections, f"{machine(result, limit)}."]) + "\n"
    )


def summary(runs: pd.DataFrame) -> str:
    """Says how often the default is above the best classifier, and how often significantly."""
    datasets = [group for _, group in runs.groupby("dataset", sort=False)]
    gains = [_difference(group, metric)[0] for group in datasets for metric in COLUMNS]
    is_win = [gain.mean > 0 for gain in gains if gain.p is not None and gain.p < ALPHA]
    wins = sum(is_win)
    return (
        f"In {sum(gain.mean > 0 for gain in gains)} of {len(gains)} comparisons ({len(datasets)} "
        f"data sets, {len(COLUMNS)} metrics) the default is above the classifier that is best in "
        f"this metric on these test samples: significantly above in {wins}, significantly below in "
        f"{len(is_win) - wins} (paired t-tests over seeds, corrected for the overlap of their "
        f"splits, at a level of {ALPHA:.0%} that is not corrected for the number of comparisons)."
    )


def section(runs: pd.DataFrame) -> list[str]:
    """A table of metrics and seconds of every row, then notes on differences of the default."""
    rows = dict(iter(runs.groupby("model", sort=False)))
    lines = []
    for model, group in rows.items():
        cells = (cell(spread(group[f"metrics.{metric}"])) for metric in COLUMNS)
        lines.append([model, *cells, f"{group['seconds'].mean():.0f}"])
    notes = []
    for metric, title in COLUMNS.items():
        difference, best = _difference(runs, metric)
        p = "" if difference.p is None else f", {p_in_words(difference.p)}"
        notes.append(f"- {title}: {difference.mean:+.4f} from the best classifier, {best}{p}")
    if COMBINED in rows:
        gains = []
        for metric, title in COLUMNS.items():
            gain, _ = _difference(runs, metric, COMBINED)
            p = "" if gain.p is None else f" ({p_in_words(gain.p)})"
            gains.append(f"{title} {gain.mean:+.4f}{p}")
        notes.append(f"- gain by label messages over the classifiers combined: {', '.join(gains)}")
    heads = ("model", *COLUMNS.values(), "seconds")
    return [*table(heads, lines), "", *notes, *_by_positives(rows)]


def _by_positives(rows: dict[str, pd.DataFrame]) -> list[str]:
    """A table of each row's ranking metrics on labels with few and with many positive samples."""
    groups = {
        model: runs.get("by_positives", pd.Series(dtype=object)).dropna()
        for model, runs in rows.items()
    }
    counts = {
        name: [run[name]["labels"] for run in groups[OURS] if name in run] for name in POSITIVES
    }
    metrics = {
        name: "average_precision" if largest else "roc_auc"
        for name, largest in POSITIVES.items()
        if counts[name]
    }
    if len(metrics) < 2:
        return []
    values: dict[str, list[Spread]] = {model: [] for model in groups}
    for model, runs in groups.items():
        for name, metric in metrics.items():
            scores = (run[name][metric] for run in runs if name in run)
            values[model].append(spread(score for score in scores if score is not None))
    intro = (
        "Labels by the number of training samples that have them, and the median number of such "
        "labels: macro average precision, or macro ROC-AUC where no training sample has them."
    )
    heads = [f"{name}: {np.median(counts[name]):.0f}" for name in metrics]
    return ["", intro, "", *ranked(("model", *heads), values)]


def short(result: Result) -> list[str]:
    """A table by metric over all data sets: differences of the default, gains by label messages."""
    runs = frame(result["runs"])
    datasets = [group for _, group in runs.groupby("dataset", sort=False)]
    combined = [group for group in datasets if COMBINED in set(group["model"])]
    rows = []
    for metric, title in COLUMNS.items():
        differences = [_difference(group, metric)[0] for group in datasets]
        gains = [_difference(group, metric, COMBINED)[0] for group in combined]
        rows.append([title, *_median_and_counts(differences), *_median_and_counts(gains)])
    counts = "significant wins / losses"
    heads = ("metric", "median difference from the best classifier", counts)
    seeds = runs.groupby("dataset")["seed"].nunique()
    return [
        *table((*heads, "median gain by messages", counts), rows),
        "",
        f"- {len(datasets)} data sets, {seeds.min()} random splits or more of each; the best "
        f"classifier is chosen by these test samples; gains by messages are differences from the "
        f"same classifiers combined, on {len(combined)} of the data sets; a difference is "
        f"significant if its 95 % interval excludes 0; {machine(result, 'one thread')}",
    ]


def _median_and_counts(differences: list[Difference]) -> list[str]:
    median = pd.Series([difference.mean for difference in differences]).median()
    wins = sum(difference.low > 0 for difference in differences)
    losses = sum(difference.high < 0 for difference in differences)
    return [f"{median:+.3f}", f"{wins}/{losses}"]


def numbers(result: Result) -> dict[str, Any]:
    """Differences from the best classifier with their intervals, for :func:`draw`."""
    groups = dict(iter(frame(result["runs"]).groupby("dataset", sort=False)))
    return {
        metric: {name: _difference(group, metric)[0]._asdict() for name, group in groups.items()}
        for metric in DRAWN
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Draws differences of the default from the best classifier, by data set."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    panels = figure.subplots(1, len(numbers), sharey=True)
    for axes, (metric, differences) in zip(panels, numbers.items(), strict=True):
        rows = range(len(differences))
        means = [difference["mean"] for difference in differences.values()]
        bars = [difference["high"] - difference["mean"] for difference in differences.values()]
        axes.axvline(0, color="black", linewidth=0.8)
        axes.errorbar(means, rows, xerr=bars, fmt="o", color="#0072b2", capsize=2)
        axes.set(title=METRICS[metric], xlabel="default less best classifier")
        axes.set(yticks=rows, yticklabels=list(differences), ylim=(len(rows) - 0.5, -0.5))
        axes.grid(axis="y", alpha=0.2)
    return figure


def _difference(
    runs: pd.DataFrame, metric: str, opponent: str | None = None
) -> tuple[Difference, str]:
    """The default minus an opponent (if None, the best classifier), and the opponent's name."""
    values = runs.pivot(index="seed", columns="model", values=f"metrics.{metric}").astype(float)
    if opponent is None:
        excluded = (OURS, COMBINED, FREQUENCY)
        models = [model for model in runs["model"].unique() if model not in excluded]
        opponent = str(values[models].mean().idxmax())
    difference = (values[OURS] - values[opponent]).to_numpy()
    return corrected_difference(difference, SHARES[2], SHARES[0]), opponent
