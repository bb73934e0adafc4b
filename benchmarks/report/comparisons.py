"""Comparisons of label graphs, and ablations: a short table of each, a page of all that was measured, and pictures."""

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
#: Rows of a short table, beside that of the papers. Those of other graphs than these give way.
MOST_ROWS, USUAL_GRAPHS = 12, (None, "edgeless", "complete", "prior")
COLUMNS = titles(
    "subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro", "roc_auc_macro"
)
MESSAGES = {None: "", False: "no", True: "yes"}
HEADS = ("model", "node messages", "label graph", *COLUMNS.values(), "seconds")
#: Ways to decide, beside one threshold for each metric, and what their rows are called.
OTHER_DECISIONS = {
    "by_frequency": "thresholds by frequency",
    "per_label": "a threshold per label",
    "by_label_set": "likeliest known label set",
    "preferred": "by frequency or label set",
}
#: Rows that know how samples were made.
ORACLES = ("best without neighbours", "best possible")
DRAWN = titles("subset_accuracy", "f1_samples", "f1_macro", "roc_auc_macro")


class Comparison(NamedTuple):
    """The runs of one data set and split, from one or several files; rows that several have are those of the first."""

    name: str
    results: list[Result]
    runs: pd.DataFrame

    @classmethod
    def load(cls, name: str) -> Comparison:
        """The tracked comparison of a name."""
        stems = [
            stem
            for stem in (name, PREFIX + name, f"{PREFIX}{name}-published")
            if stem in names(stem)
        ]
        return cls.of(name, [read(stem) for stem in stems or [name]])

    @classmethod
    def of(cls, name: str, results: list[Result]) -> Comparison:
        """The comparison that some results are."""
        runs = pd.concat(
            [frame(result["runs"]).assign(file=place) for place, result in enumerate(results)]
        )
        first = runs.groupby("row", sort=False)["file"].transform("min")
        return cls(name, results, runs[runs["file"] == first])

    @property
    def rows(self) -> dict[Row, pd.DataFrame]:
        """The runs of each row."""
        return dict(iter(self.runs.groupby("row", sort=False)))

    @property
    def papers(self) -> dict[str, dict[str, float]]:
        """The papers' figures on the data set."""
        return figures(self.results[0]["dataset"]["name"])

    @property
    def shown(self) -> list[Row]:
        """The rows of the short table."""
        rows = list(self.runs["row"].unique())
        if any(row.change for row in rows):
            return [row for row in rows if row.graph]
        usual = sorted(rows, key=lambda row: row.graph not in USUAL_GRAPHS)
        return [row for row in rows if row in usual[:MOST_ROWS]]


def compared() -> list[str]:
    """All comparisons of label graphs."""
    return sorted({name.removeprefix(PREFIX).removesuffix("-published") for name in names(PREFIX)})


def spreads(
    runs: pd.DataFrame, part: str = "metrics", columns: Sequence[str] = tuple(COLUMNS)
) -> dict[str, Spread]:
    """Mean and standard deviation over the seeds of a row by metric."""
    return {name: spread(runs.get(f"{part}.{name}")) for name in columns}


def recovered(runs: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """How well attention and statistics rank the edges of known graphs, in the mean of all seeds of a row."""
    found = list(runs["recovery"])
    return {
        score: {name: spread(each[score][name] for each in found)["mean"] for name in values}
        for score, values in found[0].items()
        # Those from before a comparison stopped early may have been compared with more graphs.
        if all(score in each for each in found)
    }


def short(comparison: Comparison) -> list[str]:
    """One row for each model with one threshold for all labels, the best in bold; then the gains and the source."""
    rows = {row: runs for row, runs in comparison.rows.items() if row in comparison.shown}
    papers = {name: values for name, values in comparison.papers.items() if name.startswith(BEST)}
    ranked = [
        {name: value["mean"] for name, value in spreads(runs).items()}
        for row, runs in rows.items()
        if row.model not in ORACLES
    ]
    best = _best([*ranked, *papers.values()])
    lines = [_line(row, runs, best) for row, runs in rows.items()]
    lines += [_line_of_paper(name, values, best) for name, values in papers.items()]
    gains: dict[Row, list[str]] = {}
    for t in paired_tests(comparison.runs):
        if t.against.model in BASELINES and t.metric == "roc_auc_macro":
            gain = f"{t.mean_difference:+.4f} against {t.against.model} (sd {t.sd:.4f}, {p_in_words(t.p)})"
            gains.setdefault(t.row, []).append(gain)
    notes = [
        f"{row.title}, macro ROC-AUC (corrected paired t-tests): {', '.join(g)}"
        for row, g in gains.items()
    ]
    notes += map(source, comparison.results)
    return [*table(HEADS, lines), "", *listed(dict.fromkeys(notes))]


def full(comparison: Comparison) -> list[str]:
    """All rows with all ways to decide, the papers' figures, tests, recovered graphs, thresholds, settings, sources."""
    rows, tests = comparison.rows, paired_tests(comparison.runs)
    lines = []
    for row, runs in rows.items():
        lines.append(_line(row, runs, {}))
        for part, name in OTHER_DECISIONS.items():
            lines.append([f"*{name}*", "", "", *map(cell, spreads(runs, part).values()), ""])
    lines += [_line_of_paper(name, values, {}) for name, values in comparison.papers.items()]
    out = table(HEADS, lines)
    if tests:
        heads = ("row", "against", "metric", "mean difference", "sd", "test", "p")
        lines = [
            [
                *(
                    t.row.title,
                    t.against.title,
                    METRICS[t.metric],
                    f"{t.mean_difference:+.4f}",
                    f"{t.sd:.4f}",
                    t.name,
                ),
                p_in_words(t.p).removeprefix("p ").removeprefix("= "),
            ]
            for t in tests
        ]
        out += ["", "## Paired tests over the seeds", "", *table(heads, lines)]
    ranked = [
        f"Pairs of '{score.partition(', ')[2]}' ranked by {score.partition(', ')[0]} ({row.title}): {in_words(found)}"
        for row, runs in rows.items()
        for score, found in recovered(runs).items()
    ]
    if ranked:
        out += [
            "",
            "## Label graphs, as attention and statistics rank their edges",
            "",
            *listed(ranked),
        ]
    out += ["", "## Thresholds by seed", ""]
    for row, runs in rows.items():
        of_row = runs.filter(like="thresholds.").dropna(axis=1)
        found = (
            f"{METRICS[name.partition('.')[2]]} {'/'.join(map('{:g}'.format, of_row[name]))}"
            for name in of_row
        )
        out.append(f"- {row.title}: {', '.join(found)}")
    undefined = sorted({*chain.from_iterable(comparison.runs["undefined"])})
    left_out = f"With one class only in the test set of some seed, left out of its ROC-AUC: {', '.join(undefined)}"
    notes = [*([left_out] if undefined else []), *chain(*map(changed_settings, comparison.results))]
    notes += map(source, comparison.results)
    return [*out, "", "## Settings and sources", "", *listed(dict.fromkeys(notes))]


def _line(row: Row, runs: pd.DataFrame, best: Mapping[str, str]) -> list[str]:
    cells = (cell(value, best.get(name)) for name, value in spreads(runs).items())
    graph = "" if row.graph is None else f"{row.graph} ({runs['density'].astype(float).mean():.2f})"
    name = ", ".join([row.model, *row.remarks])
    return [name, MESSAGES[row.node_messages], graph, *cells, f"{runs['seconds'].mean():.0f}"]


def _line_of_paper(name: str, values: Mapping[str, float], best: Mapping[str, str]) -> list[str]:
    return [
        name,
        "",
        "",
        *(cell({"mean": values.get(column)}, best.get(column)) for column in COLUMNS),
        "",
    ]


def _best(rows: Sequence[Mapping[str, float | None]]) -> dict[str, str]:
    """The highest value of each metric, as tables write it, unless most rows have it."""
    best: dict[str, str] = {}
    for name in COLUMNS:
        written = [f"{value:.3f}" for row in rows if (value := row.get(name)) is not None]
        if written and written.count(max(written)) <= len(rows) / 2:
            best[name] = max(written)
    return best


def in_words(values: Mapping[str, float | None]) -> str:
    """Numbers by name."""
    return ", ".join(
        f"{name} {'undefined' if value is None else f'{value:.3f}'}"
        for name, value in values.items()
    )


def changed_settings(result: Result) -> Iterator[str]:
    """Which settings the recipe of a data set has changed since, or did not record then."""
    recipe = RECIPES.get(result["dataset"]["name"])
    for whose in sorted({run["settings"] for run in result["runs"]} - {None}) if recipe else ():
        now = json.loads(
            json.dumps(recorded(recipe.as_published() if whose == "published" else recipe))
        )
        then, now = (dict(_flat(each)) for each in (result["recipes"][whose], now))
        changed = sorted(key for key in then.keys() | now.keys() if then.get(key) != now.get(key))
        if changed:
            yield f"Other {whose} settings than in today's recipe, or not recorded: {', '.join(changed)}"


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def source(result: Result) -> str:
    """Data, seeds and machine."""
    data, seeds, split = result["dataset"], result["seeds"], result["split"]
    whose = {run["settings"] for run in result["runs"]} - {None}
    which = "as published: " if whose == {"published"} else ""
    over = (
        f"seed {seeds[0]}"
        if len(seeds) == 1
        else f"seeds {seeds[0]} to {seeds[-1]}; mean ± standard deviation"
    )
    splits = (
        "the official split, the same for all seeds" if split == "official" else f"{split} splits"
    )
    splits = "samples drawn anew for every seed" if result.get("redrawn") else splits
    return (
        f"{which}{splits}, {over}; {data['num_samples']} samples, {data['counted_labels']} labels counted, "
        f"data sha256 {data['sha256'][:12]}; {machine(result, 'one thread each')}"
    )


def numbers(comparison: Comparison) -> dict[str, Any]:
    """Numbers of a comparison for :func:`draw`: rows of its short table, and the papers' best."""
    rows = {
        row: runs
        for row, runs in comparison.rows.items()
        if row in comparison.shown and row.model != FREQUENCY
    }
    papers = [values for name, values in comparison.papers.items() if name.startswith(BEST)]
    return {
        "rows": {row.title: spreads(runs, columns=list(DRAWN)) for row, runs in rows.items()},
        "papers": papers[0] if papers else {},
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Mean and standard deviation of some metrics by row, and the papers' best as a line."""
    rows = numbers["rows"]
    figure = Figure(figsize=(10, 1.2 + 0.28 * len(rows)), layout="constrained")
    for axes, (name, title) in zip(
        figure.subplots(1, len(DRAWN), sharey=True), DRAWN.items(), strict=True
    ):
        for place, values in enumerate(rows.values()):
            if values[name]["mean"] is not None:
                sd = values[name]["sd"] or 0
                axes.errorbar(
                    values[name]["mean"], place, xerr=sd, fmt="o", color="tab:blue", capsize=2
                )
        if name in numbers["papers"]:
            axes.axvline(
                numbers["papers"][name], color="black", linestyle="--", linewidth=1, label=BEST
            )
        axes.set(
            xlabel=title,
            yticks=range(len(rows)),
            yticklabels=list(rows),
            ylim=(len(rows) - 0.5, -0.5),
        )
        axes.grid(axis="y", alpha=0.3)
    if numbers["papers"]:
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower right", frameon=False
        )
    return figure


#: Planted label graphs: what messages gain by the share of information that neighbours carry.
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
#: Ways to rank the pairs of labels.
RANKED = {f"{LEARNED}, planted": "tab:blue", "correlation, planted": "tab:orange"}


def planted_numbers() -> dict[str, Any]:
    """Metrics of each row, and how well graphs are recovered, by the share of information that neighbours carry."""
    by_share: dict[str, Any] = {}
    for name in (name for name in compared() if name.startswith("planted-")):
        rows = Comparison.load(name).rows
        found = recovered(rows[COMPLETE])
        by_share[name.split("-")[1]] = {
            "metrics": {
                row.title: spreads(rows[row], columns=("subset_accuracy", "roc_auc_macro"))
                for row in PLANTED
            },
            "recovery": {score: found[score] for score in RANKED},
        }
    return by_share


def planted_table(numbers: dict[str, Any]) -> list[str]:
    """Subset accuracy and macro ROC-AUC of each row at each share, the best in bold."""
    columns = [
        (metric, share) for metric in ("subset_accuracy", "roc_auc_macro") for share in numbers
    ]
    found = {
        row: [numbers[share]["metrics"][row.title][metric] for metric, share in columns]
        for row in PLANTED
    }
    trained = [cells for row, cells in found.items() if row.model not in ORACLES]
    best = bold(zip(*trained, strict=True))
    unmarked = [None] * len(columns)
    lines = [
        [row.title, *map(cell, cells, unmarked if row.model in ORACLES else best)]
        for row, cells in found.items()
    ]
    return table(["model", *(f"{METRICS[metric]}, {share}%" for metric, share in columns)], lines)


def draw_planted(numbers: dict[str, Any]) -> Figure:
    """Macro ROC-AUC, and the recovery of the planted graph, by share."""
    shares = [int(share) / 100 for share in numbers]
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row, (color, style) in PLANTED.items():
        cells = [found["metrics"][row.title]["roc_auc_macro"] for found in numbers.values()]
        means, sds = [each["mean"] for each in cells], [each["sd"] or 0 for each in cells]
        left.errorbar(shares, means, sds, color=color, linestyle=style, label=row.title)
    left.set(xlabel="share of information that neighbours carry", ylabel="macro ROC-AUC")
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize="small"
    )
    for score, color in RANKED.items():
        values = [found["recovery"][score]["average precision"] for found in numbers.values()]
        right.plot(shares, values, color=color, marker="o", label=score.partition(",")[0])
    chance = [
        next(iter(found["recovery"].values()))["share of pairs joined"]
        for found in numbers.values()
    ]
    right.plot(shares, chance, color="black", linestyle=":", label="chance")
    right.set(
        xlabel="share of information that neighbours carry",
        ylabel="average precision of the planted graph",
    )
    right.legend(fontsize="small")
    return figure
