"""Messages between labels: whether LaMP gains by them, from the cells of the papers' tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd

from benchmarks.accuracy.cells import LABEL_DROPOUT
from benchmarks.accuracy.papers import GRAPHS, NAMES, WORDNET
from benchmarks.accuracy.runs import FREQUENCY, Row
from benchmarks.report.papers import NUM_SEEDS, Groups, Key, grouped, sources, spreads
from benchmarks.report.statistics import ALPHA, PairedTest, compare_rows
from benchmarks.report.writing import cell, listed, p_in_words, table, titles
from tg_mlc.datasets.registry import published
from tg_mlc.metrics.paired import holm

EDGELESS, GIVEN, BASELINES = (
    Row("lamp", False, "edgeless"),
    Row("lamp-given", False, "complete"),
    (Row(FREQUENCY), Row("linear SVM")),
)
ROWS = (*BASELINES, *(replace(EDGELESS, graph=graph) for graph in (*GRAPHS, WORDNET)), GIVEN)
COLUMNS = titles("f1_samples", "f1_micro", "f1_macro", "roc_auc_macro", "average_precision_macro")
#: The metric of the papers' first table, of which the headline is.
PRIMARY = "f1_samples"
#: The seeds that the commands of the page ask for.
SEEDS = 5
#: Verdicts on comparisons, by whether some are significantly above and some below.
VERDICTS = {
    (True, False): "helps where a difference is significant",
    (False, True): "hurts where a difference is significant",
    (True, True): "helps in some comparisons and hurts in others",
    (False, False): "makes no significant difference",
}
SPLITS = {
    "paired t-test": "All seeds share one split, and differ in initial weights and the order of samples alone: p says "
    "how sure it is that other trainings would differ in the same way, not that other samples would.",
    "corrected paired t-test": "Every seed divides samples anew; tests are corrected for the overlap of splits.",
}


def section(cells: pd.DataFrame) -> list[str]:
    """The verdict over all data sets, the metrics and differences on each, and where these are from."""
    groups = shown(cells)
    compared = comparisons(groups)
    sections = [
        _of_dataset(name, groups, compared)
        for name in dict.fromkeys(dataset for dataset, _ in groups)
    ]
    return [*_overall(compared), *_seeds(groups), "", *chain(*sections), *listed(sources(groups))]


def shown(cells: pd.DataFrame) -> Groups:
    """The seeds of each row that it shares with the edgeless one, in the order of the tables."""

    def place(key: Key) -> tuple[str, int, str]:
        return key[0], ROWS.index(replace(key[1], change=None)), key[1].change or ""

    groups = grouped(cells[[replace(row, change=None) in ROWS for row in cells["row"]]])
    seeds = {
        dataset: set(group["seed"]) for (dataset, row), group in groups.items() if row == EDGELESS
    }
    shared = {
        key: groups[key][groups[key]["seed"].isin(seeds.get(key[0], ()))]
        for key in sorted(groups, key=place)
    }
    return {key: group for key, group in shared.items() if len(group)}


def comparisons(groups: Groups) -> pd.DataFrame:
    """A line for each metric and row with attention among labels, tested against the row that it should beat;
    ``corrected`` is p after Holm's correction, NaN if exploratory, and ``sign`` that of a significant difference.
    """
    tests = []
    for (dataset, row), group in groups.items():
        if row.graph not in (None, EDGELESS.graph):
            # The other row differs in one thing: the label graph, or how a model is trained along the same graph.
            opponent = replace(
                EDGELESS,
                change=row.change,
                graph=row.graph if row.model == GIVEN.model else EDGELESS.graph,
            )
            if (row.change or "").startswith(LABEL_DROPOUT):
                opponent = replace(row, change=None)
            against = opponent if (dataset, opponent) in groups else EDGELESS
            runs = pd.concat([group, groups[dataset, against]])
            tests += [(dataset, *test) for test in compare_rows(runs, row, against, tuple(COLUMNS))]
    found = pd.DataFrame(tests, columns=["dataset", *PairedTest._fields]).astype({"p": float})
    # The headline is of rows that differ from the edgeless one in their label graph alone.
    alone = [
        replace(row, graph=EDGELESS.graph) == EDGELESS and row.graph in GRAPHS
        for row in found["row"]
    ]
    primary = (
        (found["metric"] == PRIMARY)
        & (found["num_seeds"] >= NUM_SEEDS)
        & np.array(alone, dtype=bool)
    )
    found.loc[primary, "corrected"] = holm(found.loc[primary, "p"].fillna(1.0).tolist())
    sign = np.sign(found["mean_difference"]) * (found["corrected"] < ALPHA)
    return found.assign(
        above=found["mean_difference"] > 0, below_alpha=found["p"] < ALPHA, sign=sign.astype(int)
    )


def _overall(compared: pd.DataFrame) -> list[str]:
    if not len(compared):
        return ["Not run with two seeds or more.", ""]
    counted = compared[compared["num_seeds"] >= NUM_SEEDS]
    verdicts, lines = [], []
    for (row, against), found in counted.groupby(["row", "against"], sort=False):
        primary = found.dropna(subset="corrected")
        verdicts += [f"- {title(row)} {_verdict(primary)}"] if len(primary) else []
        cells = []
        for metric in COLUMNS:
            here = found[found["metric"] == metric]
            low = here.loc[here["below_alpha"], "above"]
            cells.append(f"{here['above'].sum()} of {len(here)} ({low.sum()}, {(~low).sum()})")
        lines.append([f"{title(row)}, from {title(against)}", *cells])
    heads = ("above (above with p < 0.05, below with p < 0.05, uncorrected)", *COLUMNS.values())
    return [
        f"**{_conclusion(counted)}** {_explored(counted)}".strip(),
        "",
        *verdicts,
        "",
        *table(heads, lines),
        "",
    ]


def _conclusion(compared: pd.DataFrame) -> str:
    """The verdict of the primary comparisons."""
    primary = compared.dropna(subset="corrected")
    if not len(primary):
        return f"No label graph was compared with `edgeless` over {NUM_SEEDS} seeds or more."
    return f"In {COLUMNS[PRIMARY]}, attention among labels {_verdict(primary)}."


def _verdict(compared: pd.DataFrame) -> str:
    up, down = ((compared["sign"] == sign).sum() for sign in (1, -1))
    return (
        f"{VERDICTS[bool(up), bool(down)]}: above `edgeless` in {compared['above'].sum()} of {len(compared)} "
        f"comparisons, in {up} significantly; significantly below in {down}"
    )


def _explored(compared: pd.DataFrame) -> str:
    """How many of the exploratory comparisons have a low p, and how many would by chance."""
    others = compared[compared["corrected"].isna() & (compared["num_seeds"] >= NUM_SEEDS)]
    low = others.loc[others["below_alpha"], "above"]
    return (
        f"Exploratory comparisons with p < {ALPHA:g}, uncorrected: {len(low)} of {len(others)} ({low.sum()} above, "
        f"{(~low).sum()} below); by chance alone there would be about {ALPHA * len(others):.1f}."
        if len(others)
        else ""
    )


def _seeds(groups: Groups) -> Iterable[str]:
    """How many seeds each data set has, and which rows have fewer than the page asks for."""
    whole = [
        f"{len(group)} on {dataset}" for (dataset, row), group in groups.items() if row == EDGELESS
    ]
    few = [
        f"{dataset} {title(row)}: {len(group)}"
        for (dataset, row), group in groups.items()
        if row.graph is not None and len(group) < NUM_SEEDS
    ]
    if whole:
        yield f"- Seeds of {title(EDGELESS)}, with which the others are paired: {', '.join(whole)}"
    if few:
        yield f"- In no headline and no count above, with fewer than {NUM_SEEDS} seeds: {', '.join(few)}"


def _of_dataset(name: str, groups: Groups, compared: pd.DataFrame) -> list[str]:
    rows = {row: group for (dataset, row), group in groups.items() if dataset == name}
    whole, found = rows[EDGELESS], compared[compared["dataset"] == name]
    steps = whole["content"].iloc[0]["settings"]["model"]["num_steps"]
    lines = []
    for row, group in rows.items():
        values = spreads(group)
        lines.append(
            [
                title(row) + _fewer(len(group), len(whole)),
                *(cell(values[metric]) for metric in COLUMNS),
            ]
        )
    heads = (f"model, T={steps} and {_num_seeds(len(whole))} if not said", *COLUMNS.values())
    out = [f"## `{name}`: {published(name).title}", "", *table(heads, lines), ""]
    if len(found):
        lines = []
        for (row, against), tests in found.groupby(["row", "against"], sort=False):
            cells = dict.fromkeys(COLUMNS, "")
            for test in tests.itertuples():
                text = f"{test.mean_difference:+.4f}, {p_in_words(None if np.isnan(test.p) else test.p)}"
                cells[test.metric] = f"**{text}**" if test.sign else text
            versus = f"{title(row)}, from {title(against)}"
            lines.append([versus + _fewer(tests["num_seeds"].iloc[0], SEEDS), *cells.values()])
        said = _conclusion(found), _explored(found), SPLITS[found["name"].iloc[0]]
        out += [
            *table(("difference and p", *COLUMNS.values()), lines),
            "",
            " ".join(filter(None, said)),
            "",
        ]
    return out


def _fewer(count: int, than: int) -> str:
    return f", {_num_seeds(count)}" if count < than else ""


def _num_seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def title(row: Row) -> str:
    """A row in words, not in the letters that the papers' tables keep."""
    return replace(row, model=NAMES.get(row.model, row.model)).title
