"""Labels on nodes: a table of F1 with the number of labels known, one with thresholds, and what each part adds."""

from __future__ import annotations

import pandas as pd

from benchmarks.accuracy import blogcatalog as nodes
from benchmarks.files import Result
from benchmarks.report.statistics import spread
from benchmarks.report.writing import listed, machine, p_in_words, ranked, titles
from tg_mlc.metrics.paired import corrected_difference

TITLES = titles(*nodes.METRICS)
PARTS = {
    "known": "The number of labels of every node is known:",
    "thresholds": "Decisions by thresholds that other nodes chose:",
}
#: Comparisons: each row less the other.
ADDED = {
    "known labels of neighbours add to label messages": (nodes.WITH_KNOWN, nodes.ALONE),
    "label propagation adds to both regressions": (nodes.WITH_GIVEN, nodes.BASE),
    "label messages add to both regressions": (nodes.ON_BASE, nodes.BASE),
    "label messages add to both regressions and label propagation": (
        nodes.ON_GIVEN,
        nodes.WITH_GIVEN,
    ),
    "all together adds to the regression on 128 dimensions": (nodes.ON_GIVEN, nodes.NETMF),
}


def section(result: Result) -> list[str]:
    """Both tables, and what each part adds."""
    runs = pd.json_normalize(result["runs"])
    seeds, shares = runs["seed"].nunique(), sorted(runs["share"].unique())
    groups = dict(iter(runs.set_index("seed").sort_index().groupby(["model", "share"])))
    heads = ("model", *(f"{title}, {share:.0%}" for share in shares for title in TITLES.values()))
    lines = []
    for part, intro in PARTS.items():
        values = {
            row: [
                spread(groups[row, share][f"{part}.{metric}"])
                for share in shares
                for metric in nodes.METRICS
            ]
            for row in nodes.ROWS
            if row in set(runs["model"])
        }
        lines += [intro, "", *ranked(heads, values), ""]
    added = []
    for name, (row, other) in ADDED.items():
        texts = []
        for share in shares:
            ours, theirs = groups[row, share], groups[other, share]
            micro, macro = (ours[key] - theirs[key] for key in ("known.f1_micro", "known.f1_macro"))
            p = corrected_difference(macro.to_numpy(), test_share=1 - share, train_share=share).p
            test = "" if len(macro) < 2 else f" ({p_in_words(p)})"
            texts.append(
                f"at {share:.0%} micro F1 {micro.mean():+.3f}, macro F1 {macro.mean():+.3f}{test}"
            )
        added.append(f"{name}: {'; '.join(texts)}")
    count = f"{seeds} random splits" if seeds > 1 else "One random split"
    notes = [
        f"{count} for each share (mean ± standard deviation); settings are constants, found on held-out nodes of a few "
        f"other random splits of the same graph; the networks' batch size and number of steps were last changed, for "
        f"time, when the first two shares of seed 0 had been seen",
        *added,
        f"data sha256 {result['dataset']['sha256'][:12]}; {machine(result, 'one thread')}",
    ]
    return [*lines, *listed(notes)]
