"""Tables and pictures of histories: LANET, its rivals and predictors without a network; and the time of an epoch."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks.accuracy.lanet_models import FIGURE_3, SHORT, SHORT_TABLE, TABLE_3, TABLE_4, TABLE_5
from benchmarks.report.writing import METRICS

Result = dict[str, Any]
Values = dict[str, list[float]]
COLUMNS = (
    *(
        "roc_auc_micro",
        "roc_auc_macro",
        "roc_auc_macro10",
        "f1_micro",
        "f1_macro",
        "f1_micro per label",
        "f1_macro per label",
    ),
    *("f1_micro by frequency", "f1_macro by frequency", "R@10", "NDCG@10", "HR@10"),
)
#: Those of the paper, whose F1 has a threshold for each label.
PAPER_COLUMNS = {
    "roc_auc_micro": "roc_auc_micro",
    "roc_auc_macro": "roc_auc_macro",
    "f1_micro per label": "f1_micro",
    "f1_macro per label": "f1_macro",
}
RATIOS = ("ours_is_faster", "ours_is_faster_cpu")
FREQUENCY, TIFU, ALONE = "label frequency", "TIFU-KNN", "short: memory alone"
PUBLISHED, SHORT_NO_ID, MEMORY = "table 3: LANET", "short: LANET, no ID", "table 3: LANET with memory"
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


def cells(result: Result) -> list[str]:
    """All rows, the tables of the paper and the differences, in Markdown."""
    return [*everything(result), *grouped(result, "###"), *differences(result)]


def everything(result: Result) -> list[str]:
    """Mean and standard deviation over seeds of every cell in every column, the best in bold."""
    rows = {_named(row): row["runs"] for row in result["rows"]}
    found = {name: [_values(runs, column) for column in COLUMNS] for name, runs in rows.items()}
    return _table(["", "seeds", *map(column_title, COLUMNS)], {name: [str(len(rows[name]))] for name in rows}, found)


def grouped(result: Result, level: str) -> list[str]:
    """The tables in the layout of the paper that have two rows or more, with its figures."""
    runs, lines = {row["title"]: row["runs"] for row in result["rows"]}, []
    for group in GROUPS:
        rows = {name: runs[title] for name, title in group.rows.items() if title in runs}
        if len(rows) > 1:
            lines += ["", f"{level} {group.title}", "", *_paper_table(group, rows, result["settings"]["data"])]
    return lines


def _paper_table(group: Group, rows: dict[str, list[Result]], data: str) -> list[str]:
    found = {name: [_values(runs, column) for column in PAPER_COLUMNS] for name, runs in rows.items()}
    paper = {
        name: [reported().get((group.number, data, name, metric)) for metric in PAPER_COLUMNS.values()] for name in rows
    }
    heads = ["", "seeds", "Micro-AUC", "Macro-AUC", "Micro-F1", "Macro-F1"]
    return _table(heads, {name: [str(len(runs))] for name, runs in rows.items()}, found, paper)


@cache
def reported() -> dict[tuple[str, str, str, str], float]:
    """The figures of the paper by table, data set, row and metric."""
    with (Path(__file__).parents[1] / "accuracy" / "lanet_papers.csv").open(newline="") as file:
        rows = csv.DictReader(file)
        return {(row["table"], row["dataset"], row["model"], row["metric"]): float(row["value"]) for row in rows}


def differences(result: Result) -> list[str]:
    """Differences to some rows with 95 % intervals, in Markdown."""
    lines = []
    for against, found in result["differences"].items():
        metrics = list(next(iter(found.values()), {}))
        lines += ["", f"Differences to {against}, with 95 % intervals of a bootstrap over entities:", ""]
        lines += _head(["", *map(column_title, metrics)])
        lines += [_row([title, *(interval(of.get(metric)) for metric in metrics)]) for title, of in found.items()]
    return lines


def figure_3_numbers(result: Result) -> dict[str, dict[str, list[float]]]:
    """Mean and standard deviation of micro ROC-AUC by the size of windows and of views, each if it varies."""
    runs = {row["title"]: row["runs"] for row in result["rows"]}
    panels: dict[str, dict[str, list[float]]] = {}
    published = next(cell for cell in TABLE_3 if cell.title == PUBLISHED)
    for panel, of in {"window_size": "figure 3a", "dimension": "figure 3b"}.items():
        points = [cell for cell in (*FIGURE_3, published) if cell.table in (of, published.table) and cell.title in runs]
        place = {cell.title: cell.window_size if panel == "window_size" else cell.channels for cell in points}
        points.sort(key=lambda cell: place[cell.title])
        if len(points) > 1:
            found = {str(place[cell.title]): _values(runs[cell.title], "roc_auc_micro") for cell in points}
            panels[panel] = {x: [float(np.mean(values)), spread(values)] for x, values in found.items()}
    return panels


def draw_figure_3(numbers: dict[str, dict[str, list[float]]]) -> Figure:
    """Micro ROC-AUC of LANET by the number of events that it sees, and by the size of a view."""
    figure = Figure(figsize=(4 * len(numbers), 3), layout="constrained")
    axes = figure.subplots(1, len(numbers), squeeze=False)[0]
    for panel, (name, points) in zip(axes, numbers.items(), strict=True):
        means, spreads = zip(*points.values(), strict=True)
        panel.errorbar(range(len(points)), means, spreads, marker="o", capsize=2)
        panel.set(xticks=range(len(points)), xticklabels=list(points), xlabel=name, ylabel="micro ROC-AUC")
    return figure


def draw_attention(weights: np.ndarray, names: list[str]) -> Figure:
    """The attention of each label, a row, to each."""
    figure = Figure(figsize=(9, 8), layout="constrained")
    axes = figure.subplots()
    figure.colorbar(axes.imshow(weights, cmap="viridis"))
    places = range(len(names))
    axes.set(xlabel="label attended to", ylabel="label", title="mean attention over heads, layers and targets")
    axes.set_xticks(places, names, rotation=90, fontsize=6)
    axes.set_yticks(places, names, fontsize=6)
    return figure


def epochs(result: Result) -> list[str]:
    """Time of an epoch in both layouts, in Markdown."""
    titles = ["labels", "size of a view", "layout", "ms", "quartiles", "s per epoch", "times as fast", "in CPU time"]
    lines = _head(titles)
    for row in [*result["lanet"], result["many_labels"]]:
        sizes = [str(row["sizes"]["num_labels"]), str(row["sizes"]["channels"])]
        if row["state"] == "disagrees":
            lines.append(_row([*sizes, "both", "they disagree", *[""] * 4]))
        for name in ("ours", "released layout"):
            if name in row:
                wall, ours = row[name]["wall_ms"], name == "ours"
                ratios = [f"{row[key]:.2f}" if ours and key in row else "" for key in RATIOS]
                times = [f"{wall['median']:.4g}", f"{wall['q1']:.4g} to {wall['q3']:.4g}"]
                lines.append(_row([*sizes, name, *times, f"{row[name]['seconds_per_epoch']:.3g}", *ratios]))
    return lines


def column_title(column: str) -> str:
    """How tables write a column."""
    if column == "roc_auc_macro10":
        return f"{METRICS['roc_auc_macro']}, frequent labels"
    metric, _, decided = column.partition(" ")
    return ", ".join(filter(None, (METRICS.get(metric, metric), decided)))


def number(value: float | None) -> str:
    """A value of a table."""
    return "-" if value is None else f"{value:.4f}"


def spread(values: list[float]) -> float:
    """The standard deviation over seeds."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def interval(values: list[float] | None) -> str:
    """A difference with the ends of its interval."""
    if values is None:
        return "-"
    difference, low, high = values
    return f"{difference:+.4f} ({low:+.4f} to {high:+.4f})"


def _named(row: Result) -> str:
    """The row's title, with what fitted it where that is not always the same."""
    by = row["runs"][0].get("fitted_by")
    return f"{row['title']} ({by})" if by else str(row["title"])


def _values(runs: list[Result], column: str) -> list[float]:
    values = [run["metrics"].get(column) for run in runs]
    return [] if None in values else values


def _table(
    heads: list[str],
    firsts: dict[str, list[str]],
    found: dict[str, list[list[float]]],
    paper: dict[str, list[float | None]] | None = None,
) -> list[str]:
    """A row for each name: some texts, then means, the best of each column in bold, with the paper's figure."""
    columns = zip(*found.values(), strict=True)
    best = [max((number(float(np.mean(values))) for values in column if values), default="") for column in columns]
    lines = _head(heads)
    for name, row in found.items():
        figures = paper[name] if paper else [None] * len(row)
        texts = [_text(values, top, figure) for values, top, figure in zip(row, best, figures, strict=True)]
        lines.append(_row([name, *firsts[name], *texts]))
    return lines


def _text(values: list[float], best: str, paper: float | None) -> str:
    mean = number(float(np.mean(values)) if values else None)
    text = f"**{mean}**" if mean == best else mean
    text += f" ± {spread(values):.4f}" if len(values) > 1 else ""
    return text if paper is None else f"{text} (paper {paper:g})"


def _head(titles: list[str]) -> list[str]:
    return [_row(titles), "|---" * len(titles) + "|"]


def _row(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
