"""Labels on nodes: a table of F1 with the number of labels known, one with thresholds, and what each part adds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.accuracy.blogcatalog import (
    ALONE,
    BASE,
    METRICS,
    NETMF,
    ON_BASE,
    ON_GIVEN,
    ROWS,
    WITH_GIVEN,
    WITH_KNOWN,
)
from benchmarks.files import Result
from benchmarks.report.statistics import corrected_p_value, spread
from benchmarks.report.writing import bold, cell, listed, machine, p_in_words, table, titles

TITLES = titles(*METRICS)
PARTS = {
    "known": "The number of labels of every node is known:",
    "thresholds": "Decisions by thresholds that other nodes chose:",
}
#: What is compared: each row less the other.
ADDED = {
    "known labels of neighbours add to label messages": (WITH_KNOWN, ALONE),
    "label propagation adds to both regressions": (WITH_GIVEN, BASE),
    "label messages add to both regressions": (ON_BASE, BASE),
    "label messages add to both regressions and label propagation": (ON_GIVEN, WITH_GIVEN),
    "all together adds to the regression on 128 dimensions": (ON_GIVEN, NETMF),
}


def section(result: Result) -> list[str]:
    """Both tables, and what each part adds."""
    runs = pd.DataFrame(result["runs"])
    seeds, shares = sorted(runs["seed"].unique()), sorted(runs["share"].unique())
    lines = [line for part, intro in PARTS.items() for line in (intro, "", *_table(runs, part, shares), "")]
    count = f"{len(seeds)} random splits" if len(seeds) > 1 else "One random split"
    notes = [
        f"{count} for each share (mean ± standard deviation); settings are constants, found on held-out nodes of a few "
        f"other random splits of the same graph; the networks' batch size and number of steps were last changed, for "
        f"time, when the first two shares of seed 0 had been seen",
        *(f"{name}: {_added(runs, *rows, shares)}" for name, rows in ADDED.items()),
        f"data sha256 {result['dataset']['sha256'][:12]}; {machine(result, 'one thread')}",
    ]
    return [*lines, *listed(notes)]


def _table(runs: pd.DataFrame, part: str, shares: list[float]) -> list[str]:
    rows = [row for row in ROWS if row in set(runs["model"])]
    columns = [(share, metric) for share in shares for metric in METRICS]
    values = {row: [spread(_values(runs, row, part, *column)) for column in columns] for row in rows}
    best = bold(zip(*values.values(), strict=True))
    heads = ("model", *(f"{TITLES[metric]}, {share:.0%}" for share, metric in columns))
    return table(heads, ([row, *map(cell, found, best)] for row, found in values.items()))


def _values(runs: pd.DataFrame, row: str, part: str, share: float, metric: str) -> pd.Series:
    chosen = runs[(runs["model"] == row) & (runs["share"] == share)].sort_values("seed")
    return chosen[part].map(lambda found: found[metric])


def _added(runs: pd.DataFrame, row: str, other: str, shares: list[float]) -> str:
    """The difference of macro F1 and its paired test, for each share."""
    texts = []
    for share in shares:
        ours, theirs = (np.array(_values(runs, each, "known", share, "f1_macro")) for each in (row, other))
        p = corrected_p_value(ours - theirs, test_share=1 - share, train_share=share)
        micro = np.mean(_values(runs, row, "known", share, "f1_micro"))
        micro -= np.mean(_values(runs, other, "known", share, "f1_micro"))
        test = "" if len(ours) < 2 else f" ({p_in_words(p)})"
        texts.append(f"at {share:.0%} micro F1 {micro:+.3f}, macro F1 {(ours - theirs).mean():+.3f}{test}")
    return "; ".join(texts)
