"""The next label set: a page with LANET, its rivals and predictors without a network."""

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
    *("roc_auc_micro", "roc_auc_macro", "roc_auc_macro10"),
    *("f1_micro", "f1_macro", "f1_micro per label", "f1_macro per label"),
    *("f1_micro by frequency", "f1_macro by frequency", "R@10", "NDCG@10", "HR@10"),
)
#: The paper's column for each of our columns. The paper's F1 has a threshold for each label.
PAPER_COLUMNS = {
    "roc_auc_micro": "roc_auc_micro",
    "roc_auc_macro": "roc_auc_macro",
    "f1_micro per label": "f1_micro",
    "f1_macro per label": "f1_macro",
}
FREQUENCY, TIFU, ALONE = "label frequency", "TIFU-KNN", "short: memory alone"
PUBLISHED, MEMORY = "table 3: LANET", "table 3: LANET with memory"
SHORT_NO_ID, NO_ID = "short: LANET, no ID", "table 3: LANET, no ID"
#: The channels of LANET in the short table.
NARROW = next(cell.channels for cell in SHORT_TABLE if cell.title == SHORT_NO_ID)
#: The rows that all other rows are compared with by default.
AGAINST = (FREQUENCY, TIFU, ALONE, SHORT_NO_ID, PUBLISHED, MEMORY)


class Group(NamedTuple):
    """A table in the paper's layout."""

    title: str
    rows: dict[str, str]  #: Titles of cells by the names of rows.
    number: str = ""  #: The number of the table in the paper.


GROUPS = (
    Group("Table 3: LANET and its rivals", {cell.name: cell.title for cell in TABLE_3}, "3"),
    Group(
        "Table 4: attention between labels, between events, or both",
        {"Label-attention": PUBLISHED, **{cell.name: cell.title for cell in TABLE_4}},
        "4",
    ),
    Group(
        "Table 5: inputs of LANET",
        {"All inputs": PUBLISHED, **{cell.name: cell.title for cell in TABLE_5}, "No ID": NO_ID},
        "5",
    ),
    Group(
        f"Not of the paper: rivals and ablations after {SHORT['fit']['max_epochs']} epochs with "
        f"our settings, LANET with views of {NARROW}",
        {cell.name: cell.title for cell in SHORT_TABLE} | {"LANET with memory": MEMORY},
    ),
)


NAMED = {
    **titles("roc_auc_micro", "roc_auc_macro", "f1_micro", "f1_macro"),
    "R@10": "recall at 10",
    "NDCG@10": "NDCG at 10",
}
WINDOW = "logistic regression, last 3 events"
#: Rows with the same inputs as a row of LANET: the last three events, without or with the entity.
EQUALS = {
    SHORT_NO_ID: (
        *("short: LSTM, no ID", "short: TransformerBase, no ID", "short: CLASS2C2AE, no ID"),
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
    "The purchases are **simulated**, as the authors of Complete Journey say: they are good to "
    "compare methods on, and say nothing about real households. An event is a household's week.",
    "Earlier settings of LANET with memory were chosen with 2,597 of the test targets "
    "in view, so that its rows are not entirely free of them. The ridges of the regressions of "
    "labels on each other and the number of epochs were chosen on validation targets, as were the "
    "weight of the autoencoder's labels and the weight decay of the logistic regression on the "
    "last three events.",
)
#: Why the paper's model may rank a label's entities worse than a regression on the same events.
LIKELY = (
    "Where LANET, no ID ranks below the logistic regression on the same three events, a likely "
    "reason is that one linear map reads all of its labels, where the regression has a weight for "
    "every pair of labels; rare labels, on which macro ROC-AUC depends, gain from these weights."
)
REMARKS = {
    "complete_journey": (*SIMULATED, LIKELY),
    "complete_journey-department": SIMULATED,
    "groceries": (
        "Customers of this shop come rarely, and what one bought says next to nothing about what "
        "they buy next. No model should be better than the frequency of labels here; one that is "
        "would have to be doubted.",
    ),
}
INTRO = """\
# The next label set

Given the history of an entity, a list of dated label sets, which labels does the next set have? How
much does a network add to counting, and how much of that is attention among labels? Rows are
predictors without a network, the models of the [LANET](https://arxiv.org/abs/2303.00280) paper, and
LANET with a memory of the whole history, which is ours. Each entity's first 70% of events are for
training, the next 17% for validation, the last 13% for testing; windows look back across these
borders, and nothing is fitted beyond training. See [sequences](../../sequences.md) for the models
and the data, and [how results are made](../../results.md).

- **table 3**, **4**, **5** and **figure 3** are rows of the paper, with its settings, but for LANET
  with memory.
- **short** rows are trained for few epochs with our settings; they are not the paper's, and show
  what these models reach within minutes. "memory alone" is the memory of LANET with memory without
  any attention.
- **no ID**: the entity is not an input; the model knows the last three events and nothing else.
- Macro ROC-AUC, frequent labels, is the mean over labels with at least ten test positives. F1 has
  one threshold for all labels, one for each, or thresholds that follow label frequencies, all tuned
  on validation targets. R@10, NDCG@10 and HR@10 (hit rate) are those of the ten highest scores.
- Values are means over seeds ± standard deviation, the best of a column in bold. A difference is
  significant if its 95% interval excludes 0. Intervals are those of a paired bootstrap over
  entities, of the mean over seeds; they do not cover other seeds, and are not corrected for their
  number.

To repeat a measurement, run `python -m benchmarks.accuracy.lanet_tables --data complete_journey`,
with `--tables short` for the short rows."""


def page(results: dict[str, Result]) -> str:
    """The page of all data sets."""
    lines = [INTRO]
    for name, result in results.items():
        lines += ["", f"## {TITLES.get(name, name)}"]
        for remark in REMARKS.get(name, ()):
            lines += ["", remark]
        lines += ["", *listed(_findings(result)), "", *everything(result)]
        lines += ["", *_sources(result), *grouped(result)]
        if figure_3_numbers(result):
            heading, image = "### Figure 3: events and sizes", "![Micro ROC-AUC of LANET]"
            lines += ["", heading, "", f"{image}({picture(name)})"]
        against = (TIFU, MEMORY, *EQUALS)
        tables = {title: rows for title, rows in result["differences"].items() if title in against}
        lines += ["", "### Differences", *differences(tables)] if tables else []
    return "\n".join(lines) + "\n"


def picture(name: str) -> str:
    """The path of a data set's Figure 3, relative to the page."""
    return f"../next-set-{name}.svg"


def cells(result: Result) -> list[str]:
    """All rows, the tables of the paper and the differences, in Markdown."""
    return [*everything(result), *grouped(result), *differences(result["differences"])]


def _runs(result: Result) -> dict[str, pd.DataFrame]:
    """The runs of each row, by title."""
    return dict(iter(frame(result["runs"]).groupby("model", sort=False)))


def everything(result: Result) -> list[str]:
    """A table of all rows and columns: mean and standard deviation over seeds, the best in bold."""
    rows = {}
    # If several libraries can fit a row, its title names the library that fitted it.
    for title, runs in _runs(result).items():
        fitted_by = runs.iloc[0].get("fitted_by")
        rows[f"{title} ({fitted_by})" if isinstance(fitted_by, str) else title] = runs
    return _table(list(map(column_title, COLUMNS)), rows, COLUMNS)


def grouped(result: Result) -> list[str]:
    """Tables in the paper's layout, with the paper's figures. A table needs two rows or more."""
    runs, lines = _runs(result), []
    heads = ["Micro-AUC", "Macro-AUC", "Micro-F1", "Macro-F1"]
    for group in GROUPS:
        rows = {name: runs[title] for name, title in group.rows.items() if title in runs}
        if len(rows) > 1:
            paper = group.number, result["settings"]["data"]
            lines += ["", f"### {group.title}", ""]
            lines += _table(heads, rows, tuple(PAPER_COLUMNS), paper)
    return lines


def _table(
    heads: list[str],
    rows: dict[str, pd.DataFrame],
    columns: Sequence[str],
    paper: tuple[str, str] | None = None,
) -> list[str]:
    """A table of numbers of seeds and means, the best in bold, beside the paper's figures."""
    values = {
        name: [spread(runs.get(f"metrics.{column}")) for column in columns]
        for name, runs in rows.items()
    }
    best = bold(zip(*values.values(), strict=True), digits=4)
    lines = []
    for name, row in values.items():
        cells = [cell(value, top, digits=4) or "-" for value, top in zip(row, best, strict=True)]
        for index, column in enumerate(columns if paper else ()):
            figure = reported(FIGURES).get((*paper, name, PAPER_COLUMNS[column]))
            cells[index] += "" if figure is None else f" (paper {figure:g})"
        lines.append([name, str(len(rows[name])), *cells])
    return table(["", "seeds", *heads], lines)


def differences(by_row: dict[str, Any]) -> list[str]:
    """A table of differences with 95 % intervals for each row in ``by_row``, in Markdown."""
    lines = []
    for against, rows in by_row.items():
        metrics = list(next(iter(rows.values()), {}))
        texts = []
        for title, values in rows.items():
            texts.append([title, *(interval(values.get(metric)) for metric in metrics)])
        intro = f"Differences to {against}, with 95 % intervals of a bootstrap over entities:"
        lines += ["", intro, "", *table(["", *map(column_title, metrics)], texts)]
    return lines


def figure_3_numbers(result: Result) -> dict[str, dict[str, list[float]]]:
    """[mean, sd] of micro ROC-AUC by window size and by channels. A constant size has no panel."""
    runs, panels = _runs(result), {}
    panel_specs = (
        ("window_size", "window_size", "figure 3a"),
        ("dimension", "channels", "figure 3b"),
    )
    for panel, key, figure in panel_specs:
        cells = [cell for cell in CELLS.values() if cell.table == figure or cell.title == PUBLISHED]
        points = {getattr(cell, key): runs[cell.title] for cell in cells if cell.title in runs}
        if len(points) > 1:
            panels[panel] = {}
            for size in sorted(points):
                value = spread(points[size]["metrics.roc_auc_micro"])
                panels[panel][str(size)] = [value["mean"], value["sd"] or 0.0]
    return panels


def draw_figure_3(numbers: dict[str, dict[str, list[float]]]) -> Figure:
    """Draws micro ROC-AUC of LANET by the number of events in a window, and by channels."""
    figure = Figure(figsize=(4 * len(numbers), 3), layout="constrained")
    axes = figure.subplots(1, len(numbers), squeeze=False)[0]
    for panel, (name, points) in zip(axes, numbers.items(), strict=True):
        means, spreads = zip(*points.values(), strict=True)
        panel.errorbar(range(len(points)), means, spreads, marker="o", capsize=2)
        panel.set(xticks=range(len(points)), xticklabels=list(points))
        panel.set(xlabel=name, ylabel="micro ROC-AUC")
    return figure


def draw_attention(weights: np.ndarray, names: list[str]) -> Figure:
    """A heat map of the attention of each label (row) to each label (column)."""
    figure = Figure(figsize=(9, 8), layout="constrained")
    axes = figure.subplots()
    figure.colorbar(axes.imshow(weights, cmap="viridis"))
    axes.set(xlabel="label attended to", ylabel="label")
    axes.set_title("mean attention over heads, layers and targets")
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axes.set_yticks(range(len(names)), names, fontsize=6)
    return figure


def column_title(column: str) -> str:
    """The title of a column in tables."""
    if column == "roc_auc_macro10":
        return f"{METRICS['roc_auc_macro']}, frequent labels"
    metric, _, decision = column.partition(" ")
    return ", ".join(filter(None, (METRICS.get(metric, metric), decision)))


def number(value: float | None) -> str:
    """A value with four decimals, or a dash."""
    return "-" if value is None else f"{value:.4f}"


def interval(values: list[float] | None) -> str:
    """A difference with the ends of its interval, or a dash."""
    if values is None:
        return "-"
    difference, low, high = values
    return f"{difference:+.4f} ({low:+.4f} to {high:+.4f})"


def _findings(result: Result) -> Iterator[str]:
    """Sentences on the rows that are significantly better than other rows."""
    yield from _against_frequency(result)
    yield from _compared(result, MEMORY, "all other rows")
    for title, equals in EQUALS.items():
        yield from _compared(result, title, "rows with the same inputs", equals)
    yield from _attention(result)


def _against_frequency(result: Result) -> Iterator[str]:
    """Sentences on rows that are better than label frequency, which ignores the entity."""
    rows = result["differences"].get(FREQUENCY, {})
    for metric in ("roc_auc_micro", "NDCG@10"):
        defined = {title: values[metric] for title, values in rows.items() if values.get(metric)}
        better = [title for title, (_, low, _) in defined.items() if low > 0]
        comparison = f"better than label frequency in {NAMED[metric]}"
        if defined and not better:
            yield f"**No row is significantly {comparison}.**"
        elif defined and len(better) < len(defined):
            yield f"Significantly {comparison}: {'; '.join(better)}; no other row is."
        elif defined:
            yield f"All {len(defined)} other rows are significantly {comparison}."


def _compared(
    result: Result, title: str, opponents_title: str, opponents: Collection[str] | None = None
) -> Iterator[str]:
    """Sentences on how a row compares with opponents: significantly better, worse, or neither."""
    rows = result["differences"].get(title, {})
    if opponents is not None:
        rows = {row: values for row, values in rows.items() if row in opponents}
    for metric, metric_name in NAMED.items():
        better, worse, unclear = [], [], []
        for row, values in rows.items():
            if values.get(metric):
                difference, low, high = values[metric]
                text = f"{row} ({interval([-difference, -high, -low])})"
                (better if high < 0 else worse if low > 0 else unclear).append(text)
        if better or worse or unclear:
            count = "all of them" if len(better) == len(rows) else str(len(better))
            clauses = [f"significantly better than {count}"]
            clauses += [f"**significantly worse than** {'; '.join(worse)}"] if worse else []
            clauses += [f"not significantly different from {'; '.join(unclear)}"] if unclear else []
            intro = f"**{title}** beside {opponents_title} ({len(rows)}), in {metric_name}"
            yield f"{intro}: {'; '.join(clauses)}."


def _attention(result: Result) -> Iterator[str]:
    """Sentences on the gain by attention, and on memory's fraction of LANET's whole gain."""
    gain, runs = result["differences"].get(ALONE, {}).get(MEMORY, {}), _runs(result)
    for metric, title in NAMED.items():
        if gain.get(metric):
            rows = (FREQUENCY, ALONE, MEMORY)
            lowest, alone, full = (runs[row][f"metrics.{metric}"].mean() for row in rows)
            text = (
                f"Attention adds {interval(gain[metric])} to the memory in {title}. Label "
                f"frequency has {number(lowest)}, LANET with memory {number(full)}, memory alone "
                f"{number(alone)}"
            )
            if full > lowest:
                text += f", {(alone - lowest) / (full - lowest):.0%} of LANET's gain"
            yield f"{text}."


def _sources(result: Result) -> list[str]:
    """Notes on the targets, the split, the seeds and the machine."""
    runs, counts, settings = result["runs"], result["counts"], result["settings"]
    versions = result["environment"]["versions"]
    seeds, splits = ({run[key] for run in runs} for key in ("seed", "split"))
    machines = set()
    for run in runs:
        environment = run["environment"]
        machines.add(f"{environment['processor']}, {environment['threads']} thread(s)")
    limits = "; ".join(f"{name}={value}" for name, value in settings["limits"].items())
    return [
        f"- {counts['entities']:,} entities with at least {settings['min_events']} events, "
        f"{counts['events']:,} events, {counts['labels']} labels; {counts['train']:,} training, "
        f"{counts['val']:,} validation and {counts['test']:,} test targets, split "
        f"{' '.join(sorted(split[:12] for split in splits))}",
        f"- seeds {', '.join(map(str, sorted(seeds)))}; predictors without a network once; "
        f"{'; '.join(sorted(machines))}; torch {versions['torch']}, PyG "
        f"{versions['torch-geometric']}, scikit-learn {versions['scikit-learn']}",
        *([f"- **a reduced run**: {limits}"] if limits else []),
    ]
