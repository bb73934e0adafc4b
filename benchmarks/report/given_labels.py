"""Given labels: a page with a table and a picture for each data set that has been measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy import given_labels as measured
from benchmarks.accuracy.runs import FREQUENCY, WITH_MESSAGES
from benchmarks.files import Result
from benchmarks.report.statistics import ALPHA, spread
from benchmarks.report.writing import METRICS, cell, draw_lines, machine, p_in_words, table, titles
from tg_mlc.datasets.registry import published
from tg_mlc.metrics.paired import corrected_difference
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY

METRIC, TITLE = "roc_auc_macro", METRICS["roc_auc_macro"]
TITLES = titles(METRIC, "average_precision_macro")
#: The fractions of given labels that the table shows.
SHOWN = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
HALF = 0.5
COLORS = {
    measured.WITH_MASKS: "tab:blue",
    measured.PLAIN: "tab:green",
    measured.LOGISTIC: "tab:purple",
    measured.DEFAULT: "tab:red",
    FREQUENCY: "tab:gray",
}
INTRO = """\
# Known labels

How well are the other labels of a sample predicted if some are known already? Given the inputs,
*predictions* of other labels hold nothing new for a label; their *values* do, as far as they differ
from what was expected of them. This is where messages between labels earn their place: the default
sends these residuals to the other labels (`tg_mlc.nn.ResidualMessages`, docs/joint.md), and without
given labels predicts as before. These runs are of an earlier default, whose messages took eight
steps to an approximate solution; they are solved exactly now.

A fraction of the labels of each test sample is given, the same labels to all rows; the scores are
those of the labels that are not given. Beside the default are logistic regressions of each label,
on the inputs and what is known of the other labels, trained with masks of the same kind and tuned
on validation samples, and LaMP as published, trained with random label masks
(`RECIPES[name].as_member(FAMILY["lamp-given"])`). Ways to use given labels that start from equal
scores of the inputs are compared on [another page](joint.md). Rows without masks are given nothing;
their scores are those of the same labels. p is that of a paired t-test over the seeds, not
corrected for the number of tests.{epochs}

To repeat a measurement, run `python -m benchmarks.accuracy.given_labels --dataset sider`."""


def divided(results: dict[str, Result]) -> tuple[dict[str, Result], dict[str, Result]]:
    """Returns results for the short page, and results with LaMP that also exist without LaMP."""
    repeated = {name for name in results if name + measured.WITHOUT_LAMP in results}
    short = {name: result for name, result in results.items() if name not in repeated}
    return short, {name: result for name, result in results.items() if name in repeated}


def page(results: dict[str, Result], pictures: str = "") -> str:
    """A page of results. ``pictures`` is the folder of the pictures, relative to the page."""
    sections = []
    for name, result in results.items():
        dataset = name.removesuffix(measured.WITHOUT_LAMP)
        remark = "" if name == dataset else ", without LaMP"
        heading = f"## `{dataset}`: {published(dataset).title}{remark}"
        picture = f"![{name}]({pictures}given-labels-{name}.svg)"
        sections.append("\n".join([heading, "", picture, "", *section(result)]))
    fewer = []
    for name, result in results.items():
        if measured.WITHOUT_LAMP not in name:
            recipe_epochs = RECIPES[name].as_member(FAMILY["lamp-given"]).fit["max_epochs"]
            if _epochs(result) < recipe_epochs:
                fewer.append(f"{name} {_epochs(result)} of {recipe_epochs}")
    intro = "To save time, LaMP was trained here for fewer epochs than its recipe says"
    epochs = f"\n\n{intro}: {', '.join(fewer)}." if fewer else ""
    return "\n\n".join([INTRO.format(epochs=epochs), *sections]) + "\n"


def _epochs(result: Result) -> int:
    return int(result["recipes"]["lamp-given"]["fit"]["max_epochs"])


class Scores:
    """Scores by row and fraction of labels given, with the given labels shown to the row or not."""

    def __init__(self, result: Result) -> None:
        runs = pd.DataFrame(result["runs"]).sort_values("seed", kind="stable")
        measured_rows = set(runs["model"])
        self.rows = [row for row in measured.ROWS if row in measured_rows]
        self.fractions = sorted(runs["share"].unique().tolist())
        self._groups = runs.groupby(["model", "share", "given"])
        # Samples are divided anew for every seed unless the split is official.
        self._test_options = {"test_share": 0.0} if result["split"] == "official" else {}

    def of(self, row: str, fraction: float, given: bool = True, metric: str = METRIC) -> np.ndarray:
        """Scores of all seeds. ``given`` is ignored for fraction 0 and rows that take no labels."""
        key = (row, fraction, given and row in measured.TAKE_GIVEN and fraction > 0)
        return self._groups.get_group(key)[metric].to_numpy(dtype=float)

    def tested(self, difference: np.ndarray) -> str:
        """Text of the mean difference, with p if there are several seeds."""
        if len(difference) < 2:
            return f"{difference.mean():+.3f}"
        p = corrected_difference(difference, **self._test_options).p
        chance = ", which may be chance" if p is not None and p >= ALPHA else ""
        return f"{difference.mean():+.3f}, {p_in_words(p)}{chance}"


def section(result: Result) -> list[str]:
    """A table of scores by fraction of given labels, then gains if half of the labels are given."""
    scores = Scores(result)
    lines = []
    for row in scores.rows:
        lines.append([row, *(cell(spread(scores.of(row, fraction))) for fraction in SHOWN)])
    halves = []
    for row in (row for row in scores.rows if row in measured.TAKE_GIVEN):
        gains = []
        for metric, title in TITLES.items():
            given, without = (scores.of(row, HALF, given, metric) for given in (True, False))
            test = scores.tested(given - without)
            gains.append(f"{title} from {cell(spread(without))} to {cell(spread(given))} ({test})")
        intro = f"- {row}: half of the labels given takes, of the other half"
        halves.append(f"{intro}, {', and '.join(gains)}")
    data, seeds = result["dataset"], result["seeds"]
    trained = ""
    for run in (run for run in result["runs"] if run["model"] == measured.WITH_MASKS):
        model = f"LaMP {WITH_MESSAGES}" if run["settings"]["node_messages"] else "LaMP"
        trained = f", {model} trained for {_epochs(result)} epochs"
    source = (
        f"- {result['split']} split, seeds {seeds[0]} to {seeds[-1]} (mean ± standard deviation)"
        f"{trained}; {data['num_samples']} samples, {data['counted_labels']} labels counted, data "
        f"sha256 {data['sha256'][:12]}; {machine(result, 'one thread each')}"
    )
    heads = (f"{fraction:.0%} given" for fraction in SHOWN)
    return [_conclusion(scores), "", *table([TITLE, *heads], lines), "", *halves, source]


def _conclusion(scores: Scores) -> str:
    """Sentences: gain of the default (or LaMP) by half of the labels, differences from rivals."""
    ours = measured.DEFAULT if measured.DEFAULT in scores.rows else measured.WITH_MASKS
    given = scores.of(ours, HALF)

    def compared(difference: np.ndarray) -> str:
        sign = int(np.sign(round(difference.mean(), 3)))  # Three decimals, as in the text.
        relation = {1: "above", 0: "level with", -1: "below"}[sign]
        return f"{relation} ({scores.tested(difference)})"

    gain = given - scores.of(ours, HALF, given=False)
    rivals = {*measured.TAKE_GIVEN, measured.PLAIN} - {ours}
    differences = {row: given - scores.of(row, HALF) for row in scores.rows if row in rivals}
    comparisons = "; ".join(f"{row}: {compared(values)}" for row, values in differences.items())
    name = "the default" if ours == measured.DEFAULT else ours
    return (
        f"With half of the labels given, {TITLE} of {name} changes by {scores.tested(gain)}. It is "
        f"then, beside its rivals: {comparisons}."
    )


def numbers(result: Result) -> dict[str, Any]:
    """Scores of all seeds by row and fraction, for :func:`draw`."""
    scores = Scores(result)

    def scores_of(row: str, given: bool) -> list[list[float]]:
        return [scores.of(row, fraction, given).tolist() for fraction in scores.fractions]

    rows_with_given = [row for row in scores.rows if row in measured.TAKE_GIVEN]
    return {
        "shares": scores.fractions,
        "given": {row: scores_of(row, True) for row in scores.rows},
        "alone": {row: scores_of(row, False) for row in rows_with_given},
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Draws mean and range over seeds by fraction of given labels; dotted if rows see no labels."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    percent = [100 * fraction for fraction in numbers["shares"]]
    for row, values in numbers["given"].items():
        draw_lines(axes, percent, values, row, COLORS[row])
    for row, values in numbers["alone"].items():
        means = [np.mean(seeds) for seeds in values]
        axes.plot(percent, means, color=COLORS[row], linestyle=":")
    xlabel = "labels given, % (dotted: none given, the same labels predicted)"
    axes.set(xlabel=xlabel, ylabel=f"{TITLE}, test set")
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, fontsize="small")
    return figure
