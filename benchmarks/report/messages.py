"""Messages between labels: whether LaMP gains by them, from the cells of the papers' tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

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


class Compared(NamedTuple):
    """A test of a data set."""

    dataset: str
    test: PairedTest
    p: float | None  #: after Holm's correction; none if it is exploratory

    @property
    def sign(self) -> int:
        """1 if significantly above, -1 if significantly below, else 0."""
        return int(np.sign(self.test.mean_difference)) if self.p is not None and self.p < ALPHA else 0

    @property
    def below_alpha(self) -> bool:
        """Whether p is low before any correction."""
        return self.test.p is not None and self.test.p < ALPHA


def section(cells: pd.DataFrame) -> list[str]:
    """The verdict over all data sets, the metrics and differences on each, and where these are from."""
    groups = shown(cells)
    compared = comparisons(groups)
    sections = [_of_dataset(name, groups, compared) for name in dict.fromkeys(dataset for dataset, _ in groups)]
    return [*_overall(compared), *_seeds(groups), "", *chain(*sections), *listed(sources(groups))]


def shown(cells: pd.DataFrame) -> Groups:
    """The seeds of each row that it shares with the edgeless one, in the order of the tables."""

    def place(key: Key) -> tuple[str, int, str]:
        return key[0], ROWS.index(replace(key[1], change=None)), key[1].change or ""

    groups = grouped(cells[[replace(row, change=None) in ROWS for row in cells["row"]]])
    seeds = {dataset: set(group["seed"]) for (dataset, row), group in groups.items() if row == EDGELESS}
    shared = {key: groups[key][groups[key]["seed"].isin(seeds.get(key[0], ()))] for key in sorted(groups, key=place)}
    return {key: group for key, group in shared.items() if len(group)}


def comparisons(groups: Groups) -> list[Compared]:
    """All rows with attention among labels against the row that each should beat, in all metrics."""
    tests: list[tuple[str, PairedTest]] = []
    for (dataset, row), group in groups.items():
        if row.graph not in (None, EDGELESS.graph):
            opponent = _opponent(row)
            against = opponent if (dataset, opponent) in groups else EDGELESS
            runs = pd.concat([group, groups[dataset, against]])
            tests += [(dataset, test) for test in compare_rows(runs, row, against, tuple(COLUMNS))]
    primary = [each for each in tests if _is_primary(each[1])]
    corrected = holm([1.0 if test.p is None else test.p for _, test in primary])
    of_primary = dict(zip(primary, corrected, strict=True))
    return [Compared(*each, of_primary.get(each)) for each in tests]


def _opponent(row: Row) -> Row:
    """The row that differs in one thing: in the label graph, or in how a model is trained along the same graph."""
    if (row.change or "").startswith(LABEL_DROPOUT):
        return replace(row, change=None)
    return replace(EDGELESS, change=row.change, graph=row.graph if row.model == GIVEN.model else EDGELESS.graph)


def _is_primary(test: PairedTest) -> bool:
    """Whether a row differs from the edgeless one in its label graph alone, and the metric is that of the headline."""
    graph_alone = replace(test.row, graph=EDGELESS.graph) == EDGELESS and test.row.graph in GRAPHS
    return test.metric == PRIMARY and graph_alone and test.num_seeds >= NUM_SEEDS


def _overall(compared: Sequence[Compared]) -> list[str]:
    if not compared:
        return ["Not run with two seeds or more.", ""]
    counted = [each for each in compared if each.test.num_seeds >= NUM_SEEDS]
    by_row: dict[tuple[Row, Row], list[Compared]] = {}
    for each in counted:
        by_row.setdefault((each.test.row, each.test.against), []).append(each)
    primary = {pair: [each for each in found if each.p is not None] for pair, found in by_row.items()}
    heads = ("above (above with p < 0.05, below with p < 0.05, uncorrected)", *COLUMNS.values())
    rows = ([_versus(found[0].test), *(_count(found, metric) for metric in COLUMNS)] for found in by_row.values())
    return [
        f"**{_conclusion(counted)}** {_explored(counted)}".strip(),
        "",
        *(f"- {title(row)} {_verdict(found)}" for (row, _), found in primary.items() if found),
        "",
        *table(heads, rows),
        "",
    ]


def _versus(test: PairedTest) -> str:
    return f"{title(test.row)}, from {title(test.against)}"


def _conclusion(compared: Sequence[Compared]) -> str:
    """The verdict of the primary comparisons."""
    primary = [each for each in compared if each.p is not None]
    if not primary:
        return f"No label graph was compared with `edgeless` over {NUM_SEEDS} seeds or more."
    return f"In {COLUMNS[PRIMARY]}, attention among labels {_verdict(primary)}."


def _verdict(compared: Sequence[Compared]) -> str:
    signs = [each.sign for each in compared]
    above = sum(each.test.mean_difference > 0 for each in compared)
    return (
        f"{VERDICTS[1 in signs, -1 in signs]}: above `edgeless` in {above} of {len(compared)} comparisons, in "
        f"{signs.count(1)} significantly; significantly below in {signs.count(-1)}"
    )


def _explored(compared: Sequence[Compared]) -> str:
    """How many of the exploratory comparisons have a low p, and how many would by chance."""
    others = [each for each in compared if each.p is None and each.test.num_seeds >= NUM_SEEDS]
    low = [each.test.mean_difference > 0 for each in others if each.below_alpha]
    return (
        f"Exploratory comparisons with p < {ALPHA:g}, uncorrected: {len(low)} of {len(others)} ({sum(low)} above, "
        f"{len(low) - sum(low)} below); by chance alone there would be about {ALPHA * len(others):.1f}."
        if others
        else ""
    )


def _count(compared: Sequence[Compared], metric: str) -> str:
    here = [each for each in compared if each.test.metric == metric]
    above = [each.test.mean_difference > 0 for each in here]
    low = [each.test.mean_difference > 0 for each in here if each.below_alpha]
    return f"{sum(above)} of {len(here)} ({sum(low)}, {len(low) - sum(low)})"


def _seeds(groups: Groups) -> Iterable[str]:
    """How many seeds each data set has, and which rows have fewer than the page asks for."""
    whole = [f"{len(group)} on {dataset}" for (dataset, row), group in groups.items() if row == EDGELESS]
    few = [
        f"{dataset} {title(row)}: {len(group)}"
        for (dataset, row), group in groups.items()
        if row.graph is not None and len(group) < NUM_SEEDS
    ]
    if whole:
        yield f"- Seeds of {title(EDGELESS)}, with which the others are paired: {', '.join(whole)}"
    if few:
        yield f"- In no headline and no count above, with fewer than {NUM_SEEDS} seeds: {', '.join(few)}"


def _of_dataset(name: str, groups: Groups, compared: Sequence[Compared]) -> list[str]:
    rows = {row: group for (dataset, row), group in groups.items() if dataset == name}
    found = [each for each in compared if each.dataset == name]
    steps = rows[EDGELESS]["content"].iloc[0]["settings"]["model"]["num_steps"]
    heads = (f"model, T={steps} and {_num_seeds(len(rows[EDGELESS]))} if not said", *COLUMNS.values())
    lines = []
    for row, group in rows.items():
        values = spreads(group)
        lines.append(
            [title(row) + _fewer(len(group), len(rows[EDGELESS])), *(cell(values[metric]) for metric in COLUMNS)]
        )
    out = [f"## `{name}`: {published(name).title}", "", *table(heads, lines)]
    if found:
        lines = []
        for row, test in {each.test.row: each.test for each in found}.items():
            by_metric = {each.test.metric: each for each in found if each.test.row == row}
            cells = (_difference(by_metric.get(metric)) for metric in COLUMNS)
            lines.append([_versus(test) + _fewer(test.num_seeds, SEEDS), *cells])
        out += ["", *table(("difference and p", *COLUMNS.values()), lines)]
        out += ["", " ".join(filter(None, (_conclusion(found), _explored(found), SPLITS[found[0].test.name])))]
    return [*out, ""]


def _fewer(count: int, than: int) -> str:
    return f", {_num_seeds(count)}" if count < than else ""


def _num_seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _difference(compared: Compared | None) -> str:
    if compared is None:
        return ""
    found = f"{compared.test.mean_difference:+.4f}, {p_in_words(compared.test.p)}"
    return f"**{found}**" if compared.sign else found


def title(row: Row) -> str:
    """A row in words, not in the letters that the papers' tables keep."""
    return replace(row, model=NAMES.get(row.model, row.model)).title
