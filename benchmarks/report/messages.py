"""Messages between labels: whether LaMP gains by them, from the cells of the papers' tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from benchmarks.accuracy.cells import STEPS, Stored
from benchmarks.accuracy.paper_rows import GRAPHS, title
from benchmarks.accuracy.rows import FREQUENCY, Row
from benchmarks.accuracy.summary import PairedTest, compare_rows, p_in_words
from benchmarks.report.default import COLUMNS
from benchmarks.report.papers import Key, grouped, sources, spread
from benchmarks.report.tables import cell
from tg_mlc.datasets.registry import published

EL, KNOWN, BASELINES = Row("lamp", "emb", "el"), Row("lamp-known", "emb", "fc"), (Row(FREQUENCY), Row("linear SVM"))
ROWS = (*BASELINES, *(replace(EL, graph=graph) for graph in GRAPHS), KNOWN)
ALPHA = 0.05
#: What is said of comparisons, by whether some are significantly above and some below.
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
    p: float  #: after Holm's correction

    @property
    def sign(self) -> int:
        """1 if significantly above, -1 if significantly below, else 0."""
        return int(np.sign(self.test.mean_difference)) if self.p < ALPHA else 0


def table(cells: Iterable[Stored]) -> list[str]:
    """What holds over all data sets, the metrics and differences on each, and where these are from."""
    groups = shown(cells)
    compared = comparisons(groups)
    sections = [_section(name, groups, compared) for name in dict.fromkeys(dataset for dataset, _ in groups)]
    return [*_overall(compared), "", *chain(*sections), *(f"- {line}" for line in sources(groups))]


def shown(cells: Iterable[Stored]) -> dict[Key, list[Stored]]:
    """The seeds of each row that it shares with the edgeless one, in the order of the tables."""
    groups = grouped(each for each in cells if replace(each.cell.row, change=None) in ROWS)
    seeds = {dataset: {each.cell.seed for each in group} for (dataset, row), group in groups.items() if row == EL}
    shared = {key: [each for each in group if each.cell.seed in seeds.get(key[0], ())] for key, group in groups.items()}
    return {key: shared[key] for key in sorted(shared, key=_place) if shared[key]}


def _place(key: Key) -> tuple[str, int, str]:
    return key[0], ROWS.index(replace(key[1], change=None)), key[1].change or ""


def comparisons(groups: Mapping[Key, Sequence[Stored]]) -> list[Compared]:
    """All rows with attention among labels against the edgeless one, in all metrics."""
    tests: list[tuple[str, PairedTest]] = []
    for dataset, row in groups:
        if row.graph not in (None, EL.graph):
            same = replace(EL, change=row.change if (row.change or "").startswith(STEPS) else None)
            against = same if (dataset, same) in groups else EL
            runs = [each.run for which in (row, against) for each in groups[dataset, which]]
            tests += [(dataset, test) for test in compare_rows(runs, row, against, tuple(COLUMNS))]
    corrected = holm([1.0 if test.p is None else test.p for _, test in tests])
    return [Compared(*each, p) for each, p in zip(tests, corrected, strict=True)]


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for their number (`Holm 1979 <https://www.jstor.org/stable/4615733>`_)."""
    order = np.argsort(p)
    stepwise = np.maximum.accumulate(np.array(p)[order] * np.arange(len(p), 0, -1)).clip(max=1.0)
    return [float(value) for value in stepwise[np.argsort(order)]]


def _overall(compared: Sequence[Compared]) -> list[str]:
    if not compared:
        return ["Not run with two seeds or more."]
    rows: dict[Row, list[Compared]] = {}
    for each in compared:
        rows.setdefault(each.test.row, []).append(each)
    before = sum(each.test.p is not None and each.test.p < ALPHA for each in compared)
    return [
        f"**{_conclusion(compared)}** Before Holm's correction, {before} of all {len(compared)} had p < {ALPHA:g}.",
        "",
        *_head("above `el` (significantly, significantly below)"),
        *(_line(title(row), (_count(found, metric) for metric in COLUMNS)) for row, found in rows.items()),
        "",
        *(f"- {title(row)} {_verdict(found)}" for row, found in rows.items()),
    ]


def _conclusion(compared: Sequence[Compared]) -> str:
    """What the rows say that differ in their label graph alone from what they are compared with."""
    alone = [each for each in compared if replace(each.test.row, graph=EL.graph) == each.test.against]
    return f"Attention among labels {_verdict(alone)}." if alone else ""


def _verdict(compared: Sequence[Compared]) -> str:
    signs = [each.sign for each in compared]
    above = sum(each.test.mean_difference > 0 for each in compared)
    return (
        f"{VERDICTS[1 in signs, -1 in signs]}: above `el` in {above} of {len(compared)} comparisons, in "
        f"{signs.count(1)} significantly; significantly below in {signs.count(-1)}"
    )


def _count(compared: Sequence[Compared], metric: str) -> str:
    here = [each for each in compared if each.test.metric == metric]
    above, below = (sum(each.sign == sign for each in here) for sign in (1, -1))
    return f"{sum(each.test.mean_difference > 0 for each in here)} of {len(here)} ({above}, {below})"


def _section(name: str, groups: Mapping[Key, Sequence[Stored]], compared: Sequence[Compared]) -> list[str]:
    rows = {row: group for (dataset, row), group in groups.items() if dataset == name}
    here = {(each.test.row, each.test.metric): each for each in compared if each.dataset == name}
    said = f"T={rows[EL][0].settings['model']['num_steps']} and {len(rows[EL])} seeds if not said"
    lines = [f"## {published(name).title}", "", *_head(f"model, {said}")]
    for row, group in rows.items():
        fewer = f", {len(group)} seeds" if len(group) < len(rows[EL]) else ""
        lines.append(_line(f"{title(row)}{fewer}", (cell(spread(group)[metric]) for metric in COLUMNS)))
    if here:
        lines += ["", *_head("difference and p")]
        for row, against in {each.test.row: each.test.against for each in here.values()}.items():
            cells = (_difference(here.get((row, metric))) for metric in COLUMNS)
            lines.append(_line(f"{title(row)}, from {title(against)}", cells))
        kind = next(iter(here.values())).test.name
        lines += ["", f"{_conclusion(list(here.values()))} {SPLITS[kind]}"]
    return [*lines, ""]


def _difference(compared: Compared | None) -> str:
    if compared is None:
        return ""
    found = f"{compared.test.mean_difference:+.4f}, {p_in_words(compared.test.p)}"
    return f"**{found}**" if compared.sign else found


def _head(name: str) -> list[str]:
    return [_line(name, COLUMNS.values()), "|---|" + "---|" * len(COLUMNS)]


def _line(name: str, cells: Iterable[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"
