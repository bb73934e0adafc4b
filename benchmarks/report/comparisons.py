"""Comparisons of label graphs, and ablations: short and full tables, and pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.papers import BEST, figures
from benchmarks.accuracy.runs import BASELINES, FREQUENCY, LAMP, LEARNED, Row, frame, recorded
from benchmarks.files import Result, names, read
from benchmarks.report.statistics import Spread, paired_tests, spread
from benchmarks.report.writing import (
    METRICS,
    bold,
    cell,
    listed,
    machine,
    p_in_words,
    table,
    titles,
)
from tg_mlc.papers.recipes import RECIPES

PREFIX = "prior_vs_learned-"
#: Maximum number of our rows in a short table. Rows with unusual graphs are dropped first.
MOST_ROWS, USUAL_GRAPHS = 12, (None, "edgeless", "complete", "prior")
COLUMNS = titles(
    "subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro", "roc_auc_macro"
)
MESSAGES = {None: "", False: "no", True: "yes"}
HEADS = ("model", "node messages", "label graph", *COLUMNS.values(), "seconds")
#: Decision rules other than one threshold for each metric, with the titles of their rows.
OTHER_DECISIONS = {
    "by_frequency": "thresholds by frequency",
    "per_label": "a threshold per label",
    "by_label_set": "likeliest known label set",
    "preferred": "by frequency or label set",
}
#: Predictors that know how samples were generated.
ORACLES = ("best without neighbours", "best possible")
DRAWN = titles("subset_accuracy", "f1_samples", "f1_macro", "roc_auc_macro")


class Comparison(NamedTuple):
    """The runs of one data set and split. If several files have a row, the first file is used."""

    name: str
    results: list[Result]
    runs: pd.DataFrame

    @classmethod
    def load(cls, name: str) -> Comparison:
        """Loads the tracked comparison with this name."""
        stems = (name, PREFIX + name, f"{PREFIX}{name}-published")
        tracked = [stem for stem in stems if stem in names(stem)]
        return cls.of(name, [read(stem) for stem in tracked or [name]])

    @classmethod
    def of(cls, name: str, results: list[Result]) -> Comparison:
        """Joins one or several results to one comparison."""
        frames = [frame(result["runs"]).assign(file=index) for index, result in enumerate(results)]
        runs = pd.concat(frames)
        first_file = runs.groupby("row", sort=False)["file"].transform("min")
        return cls(name, results, runs[runs["file"] == first_file])

    @property
    def rows(self) -> dict[Row, pd.DataFrame]:
        """The runs of each row."""
        return dict(iter(self.runs.groupby("row", sort=False)))

    @property
    def papers(self) -> dict[str, dict[str, float]]:
        """The papers' figures on the data set, by row and metric."""
        return figures(self.results[0]["dataset"]["name"])

    @property
    def shown(self) -> list[Row]:
        """The rows of the short table."""
        rows = list(self.runs["row"].unique())
        if any(row.change for row in rows):
            return [row for row in rows if row.graph]
        ordered = sorted(rows, key=lambda row: row.graph not in USUAL_GRAPHS)
        return [row for row in rows if row in ordered[:MOST_ROWS]]


def compared() -> list[str]:
    """The names of all comparisons of label graphs."""
    return sorted({name.removeprefix(PREFIX).removesuffix("-published") for name in names(PREFIX)})


def spreads(
    runs: pd.DataFrame, part: str = "metrics", columns: Sequence[str] = tuple(COLUMNS)
) -> dict[str, Spread]:
    """Mean and standard deviation over the seeds of a row by metric."""
    return {name: spread(runs.get(f"{part}.{name}")) for name in columns}


def recovered(runs: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """Mean scores over seeds of how attention and statistics rank the edges of known graphs."""
    recoveries = list(runs["recovery"])
    return {
        score: {name: spread(run[score][name] for run in recoveries)["mean"] for name in values}
        for score, values in recoveries[0].items()
        # After an interruption, some seeds may have scores for graphs that other seeds lack.
        if all(score in recovery for recovery in recoveries)
    }


def short(comparison: Comparison) -> list[str]:
    """A table with one threshold for all labels, then gains over baselines, then the sources."""
    rows = {row: runs for row, runs in comparison.rows.items() if row in comparison.shown}
    papers = {name: values for name, values in comparison.papers.items() if name.startswith(BEST)}
    rows_for_bold = [
        {name: value["mean"] for name, value in spreads(runs).items()}
        for row, runs in rows.items()
        if row.model not in ORACLES
    ]
    best = _best([*rows_for_bold, *papers.values()])
    lines = [_line(row, runs, best) for row, runs in rows.items()]
    lines += [_line_of_paper(name, values, best) for name, values in papers.items()]
    gains: dict[Row, list[str]] = {}
    for pair in paired_tests(comparison.runs):
        if pair.against.model in BASELINES and pair.metric == "roc_auc_macro":
            test = f"(sd {pair.sd:.4f}, {p_in_words(pair.p)})"
            gain = f"{pair.mean_difference:+.4f} against {pair.against.model} {test}"
            gains.setdefault(pair.row, []).append(gain)
    intro = "macro ROC-AUC (corrected paired t-tests)"
    notes = [f"{row.title}, {intro}: {', '.join(texts)}" for row, texts in gains.items()]
    notes += map(source, comparison.results)
    return [*table(HEADS, lines), "", *listed(dict.fromkeys(notes))]


def full(comparison: Comparison) -> list[str]:
    """All rows with all decision rules, tests, recovered graphs, thresholds, settings, sources."""
    rows, tests = comparison.rows, paired_tests(comparison.runs)
    lines = []
    for row, runs in rows.items():
        lines.append(_line(row, runs, {}))
        for rule, name in OTHER_DECISIONS.items():
            lines.append([f"*{name}*", "", "", *map(cell, spreads(runs, rule).values()), ""])
    lines += [_line_of_paper(name, values, {}) for name, values in comparison.papers.items()]
    out = table(HEADS, lines)
    if tests:
        heads = ("row", "against", "metric", "mean difference", "sd", "test", "p")
        lines = []
        for test in tests:
            cells = [f"{test.mean_difference:+.4f}", f"{test.sd:.4f}", test.name]
            p = p_in_words(test.p).removeprefix("p ").removeprefix("= ")
            lines.append([test.row.title, test.against.title, METRICS[test.metric], *cells, p])
        out += ["", "## Paired tests over the seeds", "", *table(heads, lines)]
    recovery_notes = []
    for row, runs in rows.items():
        for score, values in recovered(runs).items():
            ranking, _, graph = score.partition(", ")
            recovery_notes.append(
                f"Pairs of '{graph}' ranked by {ranking} ({row.title}): {in_words(values)}"
            )
    if recovery_notes:
        heading = "## Label graphs, as attention and statistics rank their edges"
        out += ["", heading, "", *listed(recovery_notes)]
    out += ["", "## Thresholds by seed", ""]
    for row, runs in rows.items():
        texts = []
        for name, values in runs.filter(like="thresholds.").dropna(axis=1).items():
            metric = METRICS[name.removeprefix("thresholds.")]
            texts.append(f"{metric} {'/'.join(map('{:g}'.format, values))}")
        out.append(f"- {row.title}: {', '.join(texts)}")
    undefined = sorted({*chain.from_iterable(comparison.runs["undefined"])})
    intro = "With one class only in the test set of some seed, left out of its ROC-AUC"
    notes = [f"{intro}: {', '.join(undefined)}"] if undefined else []
    notes += chain(*map(changed_settings, comparison.results))
    notes += map(source, comparison.results)
    return [*out, "", "## Settings and sources", "", *listed(dict.fromkeys(notes))]


def _line(row: Row, runs: pd.DataFrame, best: Mapping[str, str]) -> list[str]:
    cells = (cell(value, best.get(name)) for name, value in spreads(runs).items())
    graph = "" if row.graph is None else f"{row.graph} ({runs['density'].astype(float).mean():.2f})"
    name = ", ".join([row.model, *row.remarks])
    return [name, MESSAGES[row.node_messages], graph, *cells, f"{runs['seconds'].mean():.0f}"]


def _line_of_paper(name: str, values: Mapping[str, float], best: Mapping[str, str]) -> list[str]:
    cells = (cell({"mean": values.get(column)}, best.get(column)) for column in COLUMNS)
    return [name, "", "", *cells, ""]


def _best(rows: Sequence[Mapping[str, float | None]]) -> dict[str, str]:
    """The highest value of each metric, as written in tables, unless most rows have this value."""
    best: dict[str, str] = {}
    for name in COLUMNS:
        written = [f"{value:.3f}" for row in rows if (value := row.get(name)) is not None]
        if written and written.count(max(written)) <= len(rows) / 2:
            best[name] = max(written)
    return best


def in_words(values: Mapping[str, float | None]) -> str:
    """Text of named values, such as "recall 0.500, precision undefined"."""
    texts = {name: "undefined" if v is None else f"{v:.3f}" for name, v in values.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


def changed_settings(result: Result) -> Iterator[str]:
    """Notes on settings that differ from today's recipe, or that the results did not record."""
    recipe = RECIPES.get(result["dataset"]["name"])
    for name in sorted({run["settings"] for run in result["runs"]} - {None}) if recipe else ():
        settings = recorded(recipe.as_published() if name == "published" else recipe)
        new = dict(_flat(json.loads(json.dumps(settings))))
        old = dict(_flat(result["recipes"][name]))
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        if changed:
            intro = f"Other {name} settings than in today's recipe, or not recorded"
            yield f"{intro}: {', '.join(changed)}"


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def source(result: Result) -> str:
    """A note on the data, the seeds and the machine of results."""
    data, seeds, split = result["dataset"], result["seeds"], result["split"]
    published = {run["settings"] for run in result["runs"]} - {None} == {"published"}
    over = f"seed {seeds[0]}"
    if len(seeds) > 1:
        over = f"seeds {seeds[0]} to {seeds[-1]}; mean ± standard deviation"
    splits = f"{split} splits"
    if result.get("redrawn"):
        splits = "samples drawn anew for every seed"
    elif split == "official":
        splits = "the official split, the same for all seeds"
    return (
        f"{'as published: ' if published else ''}{splits}, {over}; {data['num_samples']} samples, "
        f"{data['counted_labels']} labels counted, data sha256 {data['sha256'][:12]}; "
        f"{machine(result, 'one thread each')}"
    )


def numbers(comparison: Comparison) -> dict[str, Any]:
    """Numbers for :func:`draw`: the rows of the short table, and the papers' best figures."""
    rows = [row for row in comparison.shown if row.model != FREQUENCY]
    papers = [values for name, values in comparison.papers.items() if name.startswith(BEST)]
    return {
        "rows": {row.title: spreads(comparison.rows[row], columns=list(DRAWN)) for row in rows},
        "papers": papers[0] if papers else {},
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Draws mean and standard deviation of metrics by row, and the papers' best as a line."""
    rows, papers = numbers["rows"], numbers["papers"]
    figure = Figure(figsize=(10, 1.2 + 0.28 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(DRAWN), sharey=True)
    for axes, (name, title) in zip(panels, DRAWN.items(), strict=True):
        for index, values in enumerate(rows.values()):
            mean, sd = values[name]["mean"], values[name]["sd"] or 0
            if mean is not None:
                axes.errorbar(mean, index, xerr=sd, fmt="o", color="tab:blue", capsize=2)
        if name in papers:
            axes.axvline(papers[name], color="black", linestyle="--", linewidth=1, label=BEST)
        axes.set(xlabel=title, yticks=range(len(rows)), yticklabels=list(rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="y", alpha=0.3)
    if papers:
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower right", frameon=False)
    return figure


#: Rows on planted label graphs, with their colours and line styles.
COMPLETE = Row(LAMP, False, "complete", "best")
PLANTED = {
    Row("best possible"): ("black", "--"),
    Row(LAMP, False, "planted", "best"): ("tab:green", "-"),
    COMPLETE: ("tab:blue", "-"),
    Row(LAMP, False, "prior", "best"): ("tab:orange", "-"),
    Row(LAMP, False, "learned", "best"): ("tab:brown", "-"),
    Row(LAMP, False, "edgeless", "best"): ("tab:red", "-"),
    Row("logistic regression on all components, tuned"): ("tab:purple", "-."),
    Row("linear SVM on all components, tuned"): ("tab:pink", "-."),
    Row("best without neighbours"): ("black", ":"),
    Row(FREQUENCY): ("tab:gray", ":"),
}
#: Scores that rank the pairs of labels, with their colours.
RANKED = {f"{LEARNED}, planted": "tab:blue", "correlation, planted": "tab:orange"}


def planted_numbers() -> dict[str, Any]:
    """Metrics, and scores of the recovered graph, by percentage of information from neighbours."""
    columns = ("subset_accuracy", "roc_auc_macro")
    by_percentage: dict[str, Any] = {}
    for name in (name for name in compared() if name.startswith("planted-")):
        rows = Comparison.load(name).rows
        recovery = recovered(rows[COMPLETE])
        by_percentage[name.split("-")[1]] = {
            "metrics": {row.title: spreads(rows[row], columns=columns) for row in PLANTED},
            "recovery": {score: recovery[score] for score in RANKED},
        }
    return by_percentage


def planted_table(numbers: dict[str, Any]) -> list[str]:
    """Subset accuracy and macro ROC-AUC of each row at each percentage, the best in bold."""
    columns = [(name, level) for name in ("subset_accuracy", "roc_auc_macro") for level in numbers]
    values = {
        row: [numbers[level]["metrics"][row.title][metric] for metric, level in columns]
        for row in PLANTED
    }
    trained = [spreads for row, spreads in values.items() if row.model not in ORACLES]
    best = bold(zip(*trained, strict=True))
    unmarked = [None] * len(columns)
    lines = [
        [row.title, *map(cell, spreads, unmarked if row.model in ORACLES else best)]
        for row, spreads in values.items()
    ]
    return table(["model", *(f"{METRICS[metric]}, {level}%" for metric, level in columns)], lines)


def draw_planted(numbers: dict[str, Any]) -> Figure:
    """Draws macro ROC-AUC and recovery of the graph by the neighbours' fraction of information."""
    fractions, levels = [int(level) / 100 for level in numbers], numbers.values()
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row, (color, style) in PLANTED.items():
        cells = [level["metrics"][row.title]["roc_auc_macro"] for level in levels]
        means, sds = [value["mean"] for value in cells], [value["sd"] or 0 for value in cells]
        left.errorbar(fractions, means, sds, color=color, linestyle=style, label=row.title)
    handles = left.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower left", ncols=3, fontsize="small")
    for score, color in RANKED.items():
        values = [level["recovery"][score]["average precision"] for level in levels]
        right.plot(fractions, values, color=color, marker="o", label=score.partition(",")[0])
    # At each percentage, all scores have the same chance level.
    chance = [next(iter(level["recovery"].values()))["share of pairs joined"] for level in levels]
    right.plot(fractions, chance, color="black", linestyle=":", label="chance")
    xlabel = "fraction of information that neighbours carry"
    left.set(xlabel=xlabel, ylabel="macro ROC-AUC")
    right.set(xlabel=xlabel, ylabel="average precision of the planted graph")
    right.legend(fontsize="small")
    return figure
