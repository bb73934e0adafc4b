"""The default: a page with a table for each data set that it has been measured on."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from benchmarks.accuracy.auto import COMBINED, OURS, SHARES
from benchmarks.accuracy.runs import FREQUENCY, frame
from benchmarks.files import Result
from benchmarks.report.statistics import ALPHA, corrected_p_value, spread
from benchmarks.report.writing import cell, machine, p_in_words, table, titles
from tg_mlc.datasets.registry import published

COLUMNS = titles("subset_accuracy", "f1_samples", "f1_micro", "f1_macro", "roc_auc_macro", "average_precision_macro")
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
    sections = [
        "\n".join([f"## {published(name).title}", "", *section(here)])
        for name, here in runs.groupby("dataset", sort=False)
    ]
    source = machine(found, f"one thread, at most about {found['seconds']:g} seconds for each model")
    return "\n\n".join([INTRO, summary(runs), *sections, f"{source}."]) + "\n"


def summary(runs: pd.DataFrame) -> str:
    """How often the default is above the best classifier of a metric, and how sure that is."""
    datasets = [here for _, here in runs.groupby("dataset", sort=False)]
    pairs = [_difference(here, metric) for here in datasets for metric in COLUMNS]
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
        [model, *(cell(spread(found[f"metrics.{metric}"])) for metric in COLUMNS), f"{found['seconds'].mean():.0f}"]
        for model, found in rows.items()
    ]
    found = {title: _difference(runs, metric) for metric, title in COLUMNS.items()}
    notes = [
        f"- {title}: {each.mean:+.4f} beside the best classifier, {each.other}"
        + ("" if each.p is None else f", {p_in_words(each.p)}")
        for title, each in found.items()
    ]
    if COMBINED in rows:
        found = {title: _difference(runs, metric, COMBINED) for metric, title in COLUMNS.items()}
        gains = (
            f"{title} {each.mean:+.4f}{'' if each.p is None else f' ({p_in_words(each.p)})'}"
            for title, each in found.items()
        )
        notes.append(f"- what label message passing adds to the same classifiers combined: {', '.join(gains)}")
    return [*table(("model", *COLUMNS.values(), "seconds"), lines), "", *notes]


class Difference(NamedTuple):
    """The default less another row."""

    mean: float
    other: str
    p: float | None  #: None with a single seed, or where all seeds differ by the same


def _difference(runs: pd.DataFrame, metric: str, other: str | None = None) -> Difference:
    """The lead over a row, or over the best classifier."""
    values = runs.pivot(index="seed", columns="model", values=f"metrics.{metric}").astype(float)
    if other is None:
        models = [model for model in runs["model"].unique() if model not in (OURS, COMBINED, FREQUENCY)]
        other = str(values[models].mean().idxmax())
    difference = (values[OURS] - values[other]).to_numpy()
    return Difference(float(difference.mean()), other, corrected_p_value(difference, SHARES[2], SHARES[0]))
