"""Labels on nodes: F1 if the number of labels is known, F1 with thresholds, and gains."""

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
#: Each gain is the difference of the first row from the second.
GAINS = {
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
    """A table for each of PARTS, then notes on gains and sources."""
    runs = pd.json_normalize(result["runs"])
    seeds, fractions = runs["seed"].nunique(), sorted(runs["share"].unique())
    groups = dict(iter(runs.set_index("seed").sort_index().groupby(["model", "share"])))
    heads = [f"{title}, {fraction:.0%}" for fraction in fractions for title in TITLES.values()]
    lines = []
    for part, intro in PARTS.items():
        values = {}
        for row in (row for row in nodes.ROWS if row in set(runs["model"])):
            frames = [groups[row, fraction] for fraction in fractions]
            values[row] = [spread(df[f"{part}.{name}"]) for df in frames for name in nodes.METRICS]
        lines += [intro, "", *ranked(("model", *heads), values), ""]
    gains = []
    for name, (row, opponent) in GAINS.items():
        texts = []
        for share in fractions:
            ours, theirs = groups[row, share], groups[opponent, share]
            micro, macro = (ours[key] - theirs[key] for key in ("known.f1_micro", "known.f1_macro"))
            p = corrected_difference(macro.to_numpy(), test_share=1 - share, train_share=share).p
            test = "" if len(macro) < 2 else f" ({p_in_words(p)})"
            means = f"micro F1 {micro.mean():+.3f}, macro F1 {macro.mean():+.3f}"
            texts.append(f"at {share:.0%} {means}{test}")
        gains.append(f"{name}: {'; '.join(texts)}")
    count = f"{seeds} random splits" if seeds > 1 else "One random split"
    notes = [
        f"{count} for each fraction (mean ± standard deviation); settings are constants, chosen by "
        f"held-out nodes of a few other random splits of the same graph; the networks' batch size "
        f"and number of steps were last changed, for time, after results of the first two "
        f"fractions of seed 0 were known",
        *gains,
        f"data sha256 {result['dataset']['sha256'][:12]}; {machine(result, 'one thread')}",
    ]
    return [*lines, *listed(notes)]
