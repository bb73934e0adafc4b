"""The next label set: a page on every data set of histories that has been measured, tables of LANET, its rivals and
predictors without a network, and pictures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.lanet_models import CELLS, SHORT, SHORT_TABLE, TABLE_3, TABLE_4, TABLE_5
from benchmarks.accuracy.papers import reported
from benchmarks.accuracy.runs import frame
from benchmarks.files import Result
from benchmarks.report.statistics import spread
from benchmarks.report.writing import METRICS, bold, cell, listed, table, titles

#: Figures of the LANET paper.
FIGURES = Path(__file__).parents[1] / "accuracy" / "lanet_papers.csv"
COLUMNS = (
    *(
        "roc_auc_micro",
        "roc_auc_macro",
        "roc_auc_macro10",
        "f1_micro",
        "f1_macro",
        "f1_micro per label",
    ),
    *(
        "f1_macro per label",
        "f1_micro by frequency",
        "f1_macro by frequency",
        "R@10",
        "NDCG@10",
        "HR@10",
    ),
)
#: Those of the paper, whose F1 has a threshold for each label.
PAPER_COLUMNS = {
    "roc_auc_micro": "roc_auc_micro",
    "roc_auc_macro": "roc_auc_macro",
    "f1_micro per label": "f1_micro",
    "f1_macro per label": "f1_macro",
}
FREQUENCY, TIFU, ALONE = "label frequency", "TIFU-KNN", "short: memory alone"
PUBLISHED, SHORT_NO_ID, MEMORY = (
    "table 3: LANET",
    "short: LANET, no ID",
    "table 3: LANET with memory",
)
NO_ID = "table 3: LANET, no ID"
#: The size of a view in LANET after few epochs.
NARROW = next(cell.channels for cell in SHORT_TABLE if cell.title == SHORT_NO_ID)
#: The rows that all others are compared with by default.
AGAINST = (FREQUENCY, TIFU, ALONE, SHORT_NO_ID, PUBLISHED, MEMORY)


class Group(NamedTuple):
    """A table in the paper's layout."""

    title: str
    rows: dict[str, str]  #: titles of cells by what the rows are called
    number: str = ""  #: of the table in the paper


GROUPS = (
    Group("Table 3: LANET and its rivals", {cell.name: cell.title for cell in TABLE_3}, "3"),
    Group(
        "Table 4: attention between labels, between events, or both",
        {"Label-attention": PUBLISHED, **{cell.name: cell.title for cell in TABLE_4}},
        "4",
    ),
    Group(
        "Table 5: what LANET is told",
        {"All inputs": PUBLISHED, **{cell.name: cell.title for cell in TABLE_5}, "No ID": NO_ID},
        "5",
    ),
    Group(
        f"Not of the paper: rivals and ablations after {SHORT['fit']['max_epochs']} epochs with our settings, "
        f"LANET with views of {NARROW}",
        {cell.name: cell.title for cell in SHORT_TABLE} | {"LANET with memory": MEMORY},
    ),
)


NAMED = {
    **titles("roc_auc_micro", "roc_auc_macro", "f1_micro", "f1_macro"),
    "R@10": "recall at 10",
    "NDCG@10": "NDCG at 10",
}
WINDOW = "logistic regression, last 3 events"
#: Rows that are told as much as others: the last three events, without the entity or with it.
EQUALS = {
    SHORT_NO_ID: (
        "short: LSTM, no ID",
        "short: TransformerBase, no ID",
        "short: CLASS2C2AE, no ID",
        WINDOW,
    ),
    PUBLISHED: ("table 3: LSTM", "table 3: TransformerBase", "table 3: CLASS2C2AE"),
}
TITLES = {
    "complete_journey": "Complete Journey, categories of products",
    "complete_journey-department": "Complete Journey, departments",
    "demand": "Demand",
    "groceries": "Groceries, a negative control",
    "liquor": "Liquor",
    "sales": "Sales",
    "transactions": "Transactions",
}
SIMULATED = (
    "The purchases are **simulated**, as the authors of Complete Journey say: they are good to compare methods on, and "
    "say nothing about real households. An event is what a household buys in a week.",
    "An earlier choice of the settings of LANET with memory was made with 2,597 of the test targets in view, so that "
    "its rows are not entirely free of them. The ridges of the regressions of labels on each other and the number of "
    "epochs were chosen on validation targets, as were the weight of the autoencoder's labels and the weight decay of "
    "the logistic regression on the last three events.",
)
#: Why the paper's model may rank a label's entities worse than a regression on the same events.
LIKELY = (
    "Where LANET, no ID ranks below the logistic regression on the same three events, a likely reason is that one "
    "linear map reads all of its labels, where the regression has a weight for every pair of labels; labels that are "
    "rare, on which macro ROC-AUC depends, gain from these."
)
REMARKS = {
    "complete_journey": (*SIMULATED, LIKELY),
    "complete_journey-department": SIMULATED,
    "groceries": (
        "Customers of this shop come rarely, and what one bought says next to nothing about what they buy next. "
        "No model should be better than the frequency of labels here; one that is would have to be doubted.",
    ),
}
INTRO = """\
# The next label set

Given the history of an entity, a list of dated label sets, which labels does the next set have? How much does a network
add to counting, and how much of that is attention among labels? Rows are predictors without a network, the models of
the [LANET](https://arxiv.org/abs/2303.00280) paper, and LANET with a memory of the whole history, which is ours. Each
entity's first 70% of events are for training, the next 17% for validation, the last 13% for testing; windows look back
across these borders, and nothing is fitted beyond training. See [sequences](../../sequences.md) for the models and the
data, and [how results are made](../../results.md).

- **table 3**, **4**, **5** and **figure 3** are rows of the paper, with its settings, but for LANET with memory.
- **short** rows are trained for few epochs with our settings; they are not the paper's, and say what these models do
  within minutes. "memory alone" is the memory of LANET with memory without any attention.
- **no ID**: the model is not told which entity it is; it then knows the last three events and nothing else.
- Macro ROC-AUC, frequent labels, is the mean over labels with at least ten test positives. F1 has one threshold for all
  labels, one for each, or thresholds that follow label frequencies, all tuned on validation targets. R@10, NDCG@10 and
  HR@10 (hit rate) are those of the ten highest scores.
- Values are means over seeds ± standard deviation, the best of a column in bold. Intervals are those of 95% of a paired
  bootstrap over entities, of the mean over seeds; they do not hold what other seeds might give, and are not corrected
  for their number. "Surely" below means that such an interval leaves out 0.

To repeat a measurement, run `python -m benchmarks.accuracy.lanet_tables --data complete_journey`, with
`--tables short` for the short rows."""


def page(found: dict[str, Result]) -> str:
    """The page of all of them."""
    lines = [INTRO]
    for name, result in found.items():
        lines += [
            "",
            f"## {TITLES.get(name, name)}",
            *(line for each in REMARKS.get(name, ()) for line in ("", each)),
        ]
        lines += [
            "",
            *listed(_findings(result)),
            "",
            *everything(result),
            "",
            *_sources(result),
            *grouped(result),
        ]
        if figure_3_numbers(result):
            lines += [
                "",
                "### Figure 3: events and sizes",
                "",
                f"![Micro ROC-AUC of LANET]({picture(name)})",
            ]
        told = {
            title: of
            for title, of in result["differences"].items()
            if title in (TIFU, MEMORY, *EQUALS)
        }
        lines += ["", "### Differences", *differences(told)] if told else []
    return "\n".join(lines) + "\n"


def picture(name: str) -> str:
    """The file of Figure 3 of a data set."""
    return f"../next-set-{name}.svg"


def cells(result: Result) -> list[str]:
    """All rows, the tables of the paper and the differences, in Markdown."""
    return [*everything(result), *grouped(result), *differences(result["differences"])]


def _runs(result: Result) -> dict[str, pd.DataFrame]:
    """The runs of every row."""
    return dict(iter(frame(result["runs"]).groupby("model", sort=False)))


def everything(result: Result) -> list[str]:
    """Mean and standard deviation over seeds of every cell in every column, the best in bold."""
    rows = {}
    # with what fitted a row where that is not always the same
    for title, runs in _runs(result).items():
        fitted_by = runs.iloc[0].get("fitted_by")
        rows[f"{title} ({fitted_by})" if isinstance(fitted_by, str) else title] = runs
    return _table(list(map(column_title, COLUMNS)), rows, COLUMNS)


def grouped(result: Result) -> list[str]:
    """The tables in the layout of the paper that have two rows or more, with its figures."""
    runs, lines = _runs(result), []
    heads = ["Micro-AUC", "Macro-AUC", "Micro-F1", "Macro-F1"]
    for group in GROUPS:
        rows = {name: runs[title] for name, title in group.rows.items() if title in runs}
        if len(rows) > 1:
            paper = group.number, result["settings"]["data"]
            lines += [
                "",
                f"### {group.title}",
                "",
                *_table(heads, rows, tuple(PAPER_COLUMNS), paper),
            ]
    return lines


def _table(
    heads: list[str],
    rows: dict[str, pd.DataFrame],
    columns: Sequence[str],
    paper: tuple[str, str] | None = None,
) -> list[str]:
    """A row for each name: the number of seeds, then means, the best of a column in bold, with the paper's figure."""
    values = {
        name: [spread(runs.get(f"metrics.{column}")) for column in columns]
        for name, runs in rows.items()
    }
    best = bold(zip(*values.values(), strict=True), digits=4)
    lines = []
    for name, row in values.items():
        cells = [
            cell(value, first, digits=4) or "-" for value, first in zip(row, best, strict=True)
        ]
        if paper:
            theirs = [
                reported(FIGURES).get((*paper, name, PAPER_COLUMNS[column])) for column in columns
            ]
            cells = [
                c if f is None else f"{c} (paper {f:g})" for c, f in zip(cells, theirs, strict=True)
            ]
        lines.append([name, str(len(rows[name])), *cells])
    return table(["", "seeds", *heads], lines)


def differences(found: dict[str, Any]) -> list[str]:
    """Differences to some rows with 95 % intervals, in Markdown."""
    lines = []
    for against, rows in found.items():
        metrics = list(next(iter(rows.values()), {}))
        texts = (
            [title, *(interval(of.get(metric)) for metric in metrics)] for title, of in rows.items()
        )
        lines += [
            "",
            f"Differences to {against}, with 95 % intervals of a bootstrap over entities:",
            "",
        ]
        lines += table(["", *map(column_title, metrics)], texts)
    return lines


def figure_3_numbers(result: Result) -> dict[str, dict[str, list[float]]]:
    """Mean and standard deviation of micro ROC-AUC by the size of windows and of views, each if it varies."""
    runs, panels = _runs(result), {}
    for panel, key, figure in (
        ("window_size", "window_size", "figure 3a"),
        ("dimension", "channels", "figure 3b"),
    ):
        cells = [each for each in CELLS.values() if each.table == figure or each.title == PUBLISHED]
        points = {getattr(each, key): runs[each.title] for each in cells if each.title in runs}
        if len(points) > 1:
            found = {
                str(place): spread(points[place]["metrics.roc_auc_micro"])
                for place in sorted(points)
            }
            panels[panel] = {
                place: [each["mean"], each["sd"] or 0.0] for place, each in found.items()
            }
    return panels


def draw_figure_3(numbers: dict[str, dict[str, list[float]]]) -> Figure:
    """Micro ROC-AUC of LANET by the number of events that it sees, and by the size of a view."""
    figure = Figure(figsize=(4 * len(numbers), 3), layout="constrained")
    axes = figure.subplots(1, len(numbers), squeeze=False)[0]
    for panel, (name, points) in zip(axes, numbers.items(), strict=True):
        means, spreads = zip(*points.values(), strict=True)
        panel.errorbar(range(len(points)), means, spreads, marker="o", capsize=2)
        panel.set(
            xticks=range(len(points)), xticklabels=list(points), xlabel=name, ylabel="micro ROC-AUC"
        )
    return figure


def draw_attention(weights: np.ndarray, names: list[str]) -> Figure:
    """The attention of each label, a row, to each."""
    figure = Figure(figsize=(9, 8), layout="constrained")
    axes = figure.subplots()
    figure.colorbar(axes.imshow(weights, cmap="viridis"))
    places = range(len(names))
    axes.set(
        xlabel="label attended to",
        ylabel="label",
        title="mean attention over heads, layers and targets",
    )
    axes.set_xticks(places, names, rotation=90, fontsize=6)
    axes.set_yticks(places, names, fontsize=6)
    return figure


def column_title(column: str) -> str:
    """How tables write a column."""
    if column == "roc_auc_macro10":
        return f"{METRICS['roc_auc_macro']}, frequent labels"
    metric, _, decided = column.partition(" ")
    return ", ".join(filter(None, (METRICS.get(metric, metric), decided)))


def number(value: float | None) -> str:
    """A value of a table."""
    return "-" if value is None else f"{value:.4f}"


def interval(values: list[float] | None) -> str:
    """A difference with the ends of its interval."""
    if values is None:
        return "-"
    difference, low, high = values
    return f"{difference:+.4f} ({low:+.4f} to {high:+.4f})"


def _findings(result: Result) -> Iterator[str]:
    """Which rows are above which, in words."""
    yield from _against_frequency(result)
    yield from _lead(result, MEMORY, "all other rows")
    for title, equals in EQUALS.items():
        yield from _lead(result, title, "equals in information", equals)
    yield from _attention(result)


def _against_frequency(result: Result) -> Iterator[str]:
    """Whether anything is better than the same scores for everyone."""
    found = result["differences"].get(FREQUENCY, {})
    for metric in ("roc_auc_micro", "NDCG@10"):
        known = {title: of[metric] for title, of in found.items() if of.get(metric)}
        better = [title for title, (_, low, _) in known.items() if low > 0]
        if known and not better:
            yield f"**No row is surely above label frequency in {NAMED[metric]}.**"
        elif known and len(better) < len(known):
            yield f"Surely above label frequency in {NAMED[metric]}: {'; '.join(better)}; no other row is."
        elif known:
            yield f"All {len(known)} other rows are surely above label frequency in {NAMED[metric]}."


def _lead(
    result: Result, title: str, among: str, others: Collection[str] | None = None
) -> Iterator[str]:
    """Which rows one is surely above in each metric, which surely below, and from which it is not told apart."""
    rows = {
        other: of
        for other, of in result["differences"].get(title, {}).items()
        if others is None or other in others
    }
    for metric, name in NAMED.items():
        known = {other: of[metric] for other, of in rows.items() if of.get(metric)}
        # The lead over each, by whether the row is surely below, surely above, or neither.
        told: dict[str, list[str]] = {"below": [], "above": [], "unclear": []}
        for other, (difference, low, high) in known.items():
            where = "below" if high < 0 else "above" if low > 0 else "unclear"
            told[where].append(f"{other} ({interval([-difference, -high, -low])})")
        beaten = len(told["below"])
        words = ["surely above all of them" if beaten == len(rows) else f"surely above {beaten}"]
        words += [f"**surely below** {'; '.join(told['above'])}"] if told["above"] else []
        words += [f"not told apart from {'; '.join(told['unclear'])}"] if told["unclear"] else []
        if known:
            yield f"**{title}** beside {among} ({len(rows)}), in {name}: {'; '.join(words)}."


def _attention(result: Result) -> Iterator[str]:
    """How much of the score of LANET with memory its memory has without attention."""
    gain, runs = result["differences"].get(ALONE, {}).get(MEMORY, {}), _runs(result)
    for metric, title in NAMED.items():
        if gain.get(metric):
            lowest, alone, both = (
                runs[row][f"metrics.{metric}"].mean() for row in (FREQUENCY, ALONE, MEMORY)
            )
            share = (
                f", {(alone - lowest) / (both - lowest):.0%} of LANET's lead"
                if both > lowest
                else ""
            )
            yield (
                f"Attention adds {interval(gain[metric])} to the memory in {title}. Label frequency has "
                f"{number(lowest)}, LANET with memory {number(both)}, memory alone {number(alone)}{share}."
            )


def _sources(result: Result) -> list[str]:
    """Targets, split, seeds, and the machine."""
    runs = result["runs"]
    counts, versions = result["counts"], result["environment"]["versions"]
    seeds, splits = (
        sorted({run["seed"] for run in runs}),
        sorted({run["split"][:12] for run in runs}),
    )
    machines = sorted(
        {
            f"{run['environment']['processor']}, {run['environment']['threads']} thread(s)"
            for run in runs
        }
    )
    limits = "; ".join(f"{name}={value}" for name, value in result["settings"]["limits"].items())
    return [
        f"- {counts['entities']:,} entities with at least {result['settings']['min_events']} events, "
        f"{counts['events']:,} events, {counts['labels']} labels; {counts['train']:,} training, {counts['val']:,} "
        f"validation and {counts['test']:,} test targets, split {' '.join(splits)}",
        f"- seeds {', '.join(map(str, seeds))}; predictors without a network once; {'; '.join(machines)}; "
        f"torch {versions['torch']}, PyG {versions['torch-geometric']}, scikit-learn {versions['scikit-learn']}",
        *([f"- **a reduced run**: {limits}"] if limits else []),
    ]
