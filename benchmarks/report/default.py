"""The default: a page with a table for each data set that it has been measured on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.auto import COMBINED, OURS, POSITIVES, SHARES
from benchmarks.accuracy.runs import FREQUENCY, frame
from benchmarks.files import Result
from benchmarks.report.statistics import ALPHA, spread
from benchmarks.report.writing import METRICS, cell, machine, p_in_words, ranked, table, titles
from tg_mlc.datasets.registry import published
from tg_mlc.metrics.paired import Difference, corrected_difference

COLUMNS = titles(
    "subset_accuracy",
    "f1_samples",
    "f1_micro",
    "f1_macro",
    "roc_auc_macro",
    "average_precision_macro",
)
#: The metrics in the chart.
DRAWN = ("f1_samples", "average_precision_macro")
INTRO = """\
# A default for your own data

`tg_mlc.stacking.auto` makes all of its choices by scores of training samples from models that had not seen them, and no
setting here was chosen for a data set. It is made of the classifiers in the rows above it and LaMP; each of them stands
here as it was tuned for it, with thresholds or label sets that were chosen in the same way. All samples are divided
anew for every seed, 70% for training and 30% for testing. Where there is a row of them combined, it is the default
without label message passing.

To repeat a measurement, run `python -m benchmarks.accuracy.auto --datasets emotions --seeds 5`."""


def page(found: Result) -> str:
    """The page of all data sets."""
    runs = frame(found["runs"])
    parts = runs.groupby("dataset", sort=False)
    sections = [
        "\n".join([f"## {published(name).title}", "", *section(here)]) for name, here in parts
    ]
    source = machine(
        found, f"one thread, at most about {found['seconds']:g} seconds for each model"
    )
    return "\n\n".join([INTRO, summary(runs), *sections, f"{source}."]) + "\n"


def summary(runs: pd.DataFrame) -> str:
    """How often the default is above the best classifier of a metric, and how sure that is."""
    datasets = [here for _, here in runs.groupby("dataset", sort=False)]
    pairs = [_difference(here, metric)[0] for here in datasets for metric in COLUMNS]
    sure = [each.mean > 0 for each in pairs if each.p is not None and each.p < ALPHA]
    return (
        f"In {sum(each.mean > 0 for each in pairs)} of {len(pairs)} comparisons ({len(datasets)} data sets, "
        f"{len(COLUMNS)} metrics) the default is above the classifier that is best in this metric on these test "
        f"samples; it is significantly above in {sum(sure)}, and significantly below in {len(sure) - sum(sure)}. p is "
        f"that of a paired t-test over seeds, corrected for the overlap of their splits, at a level of {ALPHA:.0%} "
        f"without regard to the number of comparisons."
    )


def section(runs: pd.DataFrame) -> list[str]:
    """Metrics and time of every row of a data set, and how the default compares with the best of the others in each."""
    rows = dict(iter(runs.groupby("model", sort=False)))
    lines = [
        [
            model,
            *(cell(spread(found[f"metrics.{metric}"])) for metric in COLUMNS),
            f"{found['seconds'].mean():.0f}",
        ]
        for model, found in rows.items()
    ]
    found = {title: _difference(runs, metric) for metric, title in COLUMNS.items()}
    notes = [
        f"- {title}: {each.mean:+.4f} beside the best classifier, {other}"
        + ("" if each.p is None else f", {p_in_words(each.p)}")
        for title, (each, other) in found.items()
    ]
    if COMBINED in rows:
        found = {title: _difference(runs, metric, COMBINED) for metric, title in COLUMNS.items()}
        gains = (
            f"{title} {each.mean:+.4f}{'' if each.p is None else f' ({p_in_words(each.p)})'}"
            for title, (each, _) in found.items()
        )
        notes.append(
            f"- what label message passing adds to the same classifiers combined: {', '.join(gains)}"
        )
    return [
        *table(("model", *COLUMNS.values(), "seconds"), lines),
        "",
        *notes,
        *_by_positives(rows),
    ]


def _by_positives(rows: dict[str, pd.DataFrame]) -> list[str]:
    """How each row ranks labels that few training samples have, and many."""
    told = {
        model: found.get("by_positives", pd.Series(dtype=object)).dropna()
        for model, found in rows.items()
    }
    numbers = {
        name: [each[name]["labels"] for each in told[OURS] if name in each] for name in POSITIVES
    }
    shown = {
        name: "average_precision" if most else "roc_auc"
        for name, most in POSITIVES.items()
        if numbers[name]
    }
    if len(shown) < 2:
        return []
    values = {
        model: [
            spread(
                each[name][metric]
                for each in found
                if name in each and each[name][metric] is not None
            )
            for name, metric in shown.items()
        ]
        for model, found in told.items()
    }
    intro = (
        "Labels by the number of training samples that have them, and the median number of such labels: macro average "
        "precision, or macro ROC-AUC where no training sample has them."
    )
    heads = [f"{name}: {np.median(numbers[name]):.0f}" for name in shown]
    return ["", intro, "", *ranked(("model", *heads), values)]


def short(found: Result) -> list[str]:
    """The default by metric over all data sets: against the best classifier, and what messages add to it."""
    runs = frame(found["runs"])
    datasets = [here for _, here in runs.groupby("dataset", sort=False)]
    combined = [here for here in datasets if COMBINED in set(here["model"])]
    rows = []
    for metric, title in COLUMNS.items():
        leads = [_difference(here, metric)[0] for here in datasets]
        gains = [_difference(here, metric, COMBINED)[0] for here in combined]
        rows.append([title, *_counted(leads), *_counted(gains)])
    heads = "metric | median lead over the best classifier | surely above, below | median gain by messages | surely"
    seeds = runs.groupby("dataset")["seed"].nunique()
    return [
        *table(heads.split(" | "), rows),
        "",
        f"- {len(datasets)} data sets, {seeds.min()} random splits or more of each; the best classifier: by these "
        f"test samples; gain by messages: over the same classifiers combined, on {len(combined)} of the data sets; "
        f"surely: in how many the 95 % interval leaves out 0; {machine(found, 'one thread')}",
    ]


def _counted(differences: list[Difference]) -> list[str]:
    median = pd.Series([each.mean for each in differences]).median()
    above, below = (
        sum(each.low > 0 for each in differences),
        sum(each.high < 0 for each in differences),
    )
    return [f"{median:+.3f}", f"{above}, {below}"]


def numbers(found: Result) -> dict[str, Any]:
    """Leads over the best classifier with their intervals, for :func:`draw`."""
    runs = frame(found["runs"])
    return {
        metric: {
            name: _difference(here, metric)[0]._asdict()
            for name, here in runs.groupby("dataset", sort=False)
        }
        for metric in DRAWN
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Leads of the default over the best classifier, by data set."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, (metric, found) in zip(
        figure.subplots(1, len(numbers), sharey=True), numbers.items(), strict=True
    ):
        places = range(len(found))
        means = [each["mean"] for each in found.values()]
        reach = [each["high"] - each["mean"] for each in found.values()]
        axes.axvline(0, color="black", linewidth=0.8)
        axes.errorbar(means, places, xerr=reach, fmt="o", color="#0072b2", capsize=2)
        axes.set(
            title=METRICS[metric],
            xlabel="default less best classifier",
            yticks=places,
            yticklabels=list(found),
        )
        axes.grid(axis="y", alpha=0.2)
        axes.set_ylim(len(found) - 0.5, -0.5)
    return figure


def _difference(
    runs: pd.DataFrame, metric: str, other: str | None = None
) -> tuple[Difference, str]:
    """The lead over a row, or over the best classifier, and which that is."""
    values = runs.pivot(index="seed", columns="model", values=f"metrics.{metric}").astype(float)
    if other is None:
        models = [
            model for model in runs["model"].unique() if model not in (OURS, COMBINED, FREQUENCY)
        ]
        other = str(values[models].mean().idxmax())
    return corrected_difference(
        (values[OURS] - values[other]).to_numpy(), SHARES[2], SHARES[0]
    ), other
