"""The default: a page with a table for each data set that it has been measured on."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from benchmarks import files
from benchmarks.accuracy.auto import COMBINED, NAME, OURS, SHARES
from benchmarks.accuracy.rows import FREQUENCY
from benchmarks.accuracy.summary import corrected_p_value, p_in_words
from benchmarks.report.writing import titles
from tg_mlc.datasets.registry import published

LEVEL = 0.05
COLUMNS = titles("f1_samples", "f1_micro", "f1_macro", "roc_auc_macro", "average_precision_macro")
INTRO = """\
# A default for your own data

`tg_mlc.stacking.auto` makes all of its choices by scores of training samples from models that had not seen them, and no
setting here was chosen for a data set. It is made of the classifiers in the rows above it and LaMP; each of them stands
here as it was tuned for it, with thresholds that were fitted in the same way. All samples are divided anew for every
seed, 70% for training and 30% for testing. Where there is a row of them combined, it is the default without label
message passing.

To repeat a measurement, run `python -m benchmarks.accuracy.auto --datasets emotions --seeds 5`."""


def result() -> dict[str, Any] | None:
    """The tracked results, if there are any."""
    path = files.RESULTS / f"{NAME}.json"
    return json.loads(path.read_text()) if path.exists() else None


def page(found: dict[str, Any]) -> str:
    """The page of all data sets."""
    names = dict.fromkeys(point["dataset"] for point in found["points"])
    sections = ["\n".join([f"## {published(name).title}", "", *table(_of(found, name))]) for name in names]
    machine = found["environment"]
    source = (
        f"{machine['processor']}, one thread, at most about {found['seconds']:g} seconds for each model; "
        f"torch {machine['versions']['torch']}, PyG {machine['versions']['torch-geometric']}."
    )
    return "\n\n".join([INTRO, summary(found), *sections, source]) + "\n"


def summary(found: dict[str, Any]) -> str:
    """How often the default is above the best classifier of a metric, and how sure that is."""
    names = dict.fromkeys(point["dataset"] for point in found["points"])
    pairs = [_difference(_of(found, name), metric) for name in names for metric in COLUMNS]
    sure = [each for each in pairs if each.p is not None and each.p < LEVEL]
    above = sum(each.mean > 0 for each in pairs)
    return (
        f"In {above} of {len(pairs)} comparisons ({len(names)} data sets, {len(COLUMNS)} "
        f"metrics) the default is above the classifier that is best in this metric on these test samples; it is "
        f"significantly above in {sum(each.mean > 0 for each in sure)}, and significantly below in "
        f"{sum(each.mean < 0 for each in sure)}. p is that of a paired t-test over seeds, corrected for the overlap of "
        f"their splits, at a level of {LEVEL:.0%} without regard to the number of comparisons."
    )


def table(points: list[dict[str, Any]]) -> list[str]:
    """Metrics and time of every row of a data set, and how the default compares with the best of the others in each."""
    rows = list(dict.fromkeys(point["row"] for point in points))
    lines = [f"| model | {' | '.join(COLUMNS.values())} | seconds |", "|---|" + "---|" * (len(COLUMNS) + 1)]
    for row in rows:
        cells = [_cell(_values(points, row, metric)) for metric in COLUMNS]
        seconds = np.mean([point["seconds"] for point in points if point["row"] == row])
        lines.append(f"| {row} | {' | '.join(cells)} | {seconds:.0f} |")
    combined = [_against_combined(points)] if COMBINED in rows else []
    return [*lines, "", *(_against_best(points, metric) for metric in COLUMNS), *combined]


class Difference(NamedTuple):
    """The default less another row."""

    mean: float
    best: str
    p: float | None  #: None with a single seed, or where all seeds differ by the same


def _difference(points: list[dict[str, Any]], metric: str) -> Difference:
    others = dict.fromkeys(point["row"] for point in points if point["row"] not in (OURS, COMBINED, FREQUENCY))
    return _difference_from(points, max(others, key=lambda row: _values(points, row, metric).mean()), metric)


def _difference_from(points: list[dict[str, Any]], best: str, metric: str) -> Difference:
    difference = _values(points, OURS, metric) - _values(points, best, metric)
    p = corrected_p_value(difference, SHARES[2], SHARES[0]) if len(difference) > 1 else None
    return Difference(float(difference.mean()), best, p)


def _against_best(points: list[dict[str, Any]], metric: str) -> str:
    found = _difference(points, metric)
    test = "" if found.p is None else f", {p_in_words(found.p)}"
    return f"- {COLUMNS[metric]}: {found.mean:+.4f} beside the best classifier, {found.best}{test}"


def _against_combined(points: list[dict[str, Any]]) -> str:
    """What label message passing adds."""
    found = {title: _difference_from(points, COMBINED, metric) for metric, title in COLUMNS.items()}
    cells = (
        f"{title} {each.mean:+.4f}{'' if each.p is None else f' ({p_in_words(each.p)})'}"
        for title, each in found.items()
    )
    return f"- what label message passing adds to the same classifiers combined: {', '.join(cells)}"


def _of(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [point for point in found["points"] if point["dataset"] == name]


def _values(points: list[dict[str, Any]], row: str, metric: str) -> np.ndarray:
    """Those of all seeds, in their order."""
    chosen = sorted((point for point in points if point["row"] == row), key=lambda point: point["seed"])
    return np.array([point["metrics"][metric] for point in chosen], dtype=float)


def _cell(values: np.ndarray) -> str:
    return f"{values.mean():.3f}" + (f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else "")
