"""Whether LaMP gains by messages between labels, from the cells of the papers' tables."""

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

EDGELESS, GIVEN = Row("lamp", False, "edgeless"), Row("lamp-given", False, "complete")
BASELINES = (Row(FREQUENCY), Row("linear SVM"))
#: LaMP with each label graph. The rows differ in the label graph alone.
ALONG = tuple(replace(EDGELESS, graph=graph) for graph in GRAPHS)
ROWS = (*BASELINES, *ALONG, replace(EDGELESS, graph=WORDNET), GIVEN)
COLUMNS = titles("f1_samples", "f1_micro", "f1_macro", "roc_auc_macro", "average_precision_macro")
#: The metric of the headline, which is also the metric of the papers' first table.
PRIMARY = "f1_samples"
#: The number of seeds that the commands of the page request.
SEEDS = 5
#: Verdicts by (any difference is significantly positive, any is significantly negative).
VERDICTS = {
    (True, False): "helps where a difference is significant",
    (False, True): "hurts where a difference is significant",
    (True, True): "helps in some comparisons and hurts in others",
    (False, False): "makes no significant difference",
}
SPLITS = {
    "paired t-test": "All seeds share one split and differ in initial weights and the order of "
    "samples alone: p says whether further trainings would agree, not further samples.",
    "corrected paired t-test": "Every seed divides samples anew; tests are corrected for the "
    "overlap of splits.",
}


def section(cells: pd.DataFrame) -> list[str]:
    """The verdict over all data sets, then a section for each data set, then the sources."""
    groups = shown(cells)
    tests = comparisons(groups)
    datasets = dict.fromkeys(dataset for dataset, _ in groups)
    sections = [_dataset_section(name, groups, tests) for name in datasets]
    return [*_overall(tests), *_seeds(groups), "", *chain(*sections), *listed(sources(groups))]


def shown(cells: pd.DataFrame) -> Groups:
    """Groups of cells in table order, restricted to seeds that the edgeless row has, too."""

    def order(key: Key) -> tuple[str, int, str]:
        return key[0], ROWS.index(replace(key[1], change=None)), key[1].change or ""

    groups = grouped(cells[[replace(row, change=None) in ROWS for row in cells["row"]]])
    seeds = {key[0]: set(group["seed"]) for key, group in groups.items() if key[1] == EDGELESS}
    shared = {}
    for key in sorted(groups, key=order):
        shared[key] = groups[key][groups[key]["seed"].isin(seeds.get(key[0], ()))]
    return {key: group for key, group in shared.items() if len(group)}


def comparisons(groups: Groups) -> pd.DataFrame:
    """Tests each row with attention among labels against an opponent, in each metric.

    ``corrected`` is p after Holm's correction, NaN if the test is exploratory. ``sign`` is the sign
    of a significant difference, else 0.
    """
    tests = []
    for (dataset, row), group in groups.items():
        if row.graph not in (None, EDGELESS.graph):
            # The opponent differs in one thing: the label graph, or how the model is trained.
            graph = row.graph if row.model == GIVEN.model else EDGELESS.graph
            opponent = replace(EDGELESS, change=row.change, graph=graph)
            if (row.change or "").startswith(LABEL_DROPOUT):
                opponent = replace(row, change=None)
            against = opponent if (dataset, opponent) in groups else EDGELESS
            runs = pd.concat([group, groups[dataset, against]])
            tests += [(dataset, *test) for test in compare_rows(runs, row, against, tuple(COLUMNS))]
    results = pd.DataFrame(tests, columns=["dataset", *PairedTest._fields]).astype({"p": float})
    is_primary = np.array([row in ALONG for row in results["row"]], dtype=bool)
    is_primary &= (results["metric"] == PRIMARY) & (results["num_seeds"] >= NUM_SEEDS)
    results.loc[is_primary, "corrected"] = holm(results.loc[is_primary, "p"].fillna(1.0).tolist())
    difference = results["mean_difference"]
    sign = (np.sign(difference) * (results["corrected"] < ALPHA)).astype(int)
    return results.assign(above=difference > 0, below_alpha=results["p"] < ALPHA, sign=sign)


def _overall(all_tests: pd.DataFrame) -> list[str]:
    if not len(all_tests):
        return ["Not run with two seeds or more.", ""]
    well_tested = all_tests[all_tests["num_seeds"] >= NUM_SEEDS]
    verdicts, lines = [], []
    for (row, against), pair_tests in well_tested.groupby(["row", "against"], sort=False):
        primary = pair_tests.dropna(subset="corrected")
        verdicts += [f"- {title(row)} {_verdict(primary)}"] if len(primary) else []
        cells = []
        for metric in COLUMNS:
            rows = pair_tests[pair_tests["metric"] == metric]
            above = rows.loc[rows["below_alpha"], "above"]
            cells.append(f"{rows['above'].sum()} of {len(rows)} ({above.sum()}, {(~above).sum()})")
        lines.append([f"{title(row)}, from {title(against)}", *cells])
    heads = ("above (above with p < 0.05, below with p < 0.05, uncorrected)", *COLUMNS.values())
    headline = f"**{_conclusion(well_tested)}** {_explored(well_tested)}".strip()
    return [headline, "", *verdicts, "", *table(heads, lines), ""]


def _conclusion(tests: pd.DataFrame) -> str:
    """The verdict of the primary comparisons."""
    primary = tests.dropna(subset="corrected")
    if not len(primary):
        return f"No label graph was compared with `edgeless` over {NUM_SEEDS} seeds or more."
    return f"In {COLUMNS[PRIMARY]}, attention among labels {_verdict(primary)}."


def _verdict(tests: pd.DataFrame) -> str:
    num_wins, num_losses = ((tests["sign"] == sign).sum() for sign in (1, -1))
    above = f"above `edgeless` in {tests['above'].sum()} of {len(tests)} comparisons"
    significant = f"in {num_wins} significantly; significantly below in {num_losses}"
    return f"{VERDICTS[bool(num_wins), bool(num_losses)]}: {above}, {significant}"


def _explored(all_tests: pd.DataFrame) -> str:
    """Counts exploratory tests with p below ALPHA, beside the number expected by chance."""
    tests = all_tests[all_tests["corrected"].isna() & (all_tests["num_seeds"] >= NUM_SEEDS)]
    if not len(tests):
        return ""
    above = tests.loc[tests["below_alpha"], "above"]
    return (
        f"Exploratory comparisons with p < {ALPHA:g}, uncorrected: {len(above)} of {len(tests)} "
        f"({above.sum()} above, {(~above).sum()} below); by chance alone there would be about "
        f"{ALPHA * len(tests):.1f}."
    )


def _seeds(groups: Groups) -> Iterable[str]:
    """Notes on the number of seeds by data set, and on rows with fewer than NUM_SEEDS seeds."""
    seeds = {key: len(group) for key, group in groups.items()}
    counts = [f"{count} on {dataset}" for (dataset, row), count in seeds.items() if row == EDGELESS]
    few = [
        f"{dataset} {title(row)}: {count}"
        for (dataset, row), count in seeds.items()
        if row.graph is not None and count < NUM_SEEDS
    ]
    if counts:
        yield f"- Seeds of {title(EDGELESS)}, with which the others are paired: {', '.join(counts)}"
    if few:
        intro = f"- In no headline and no count above, with fewer than {NUM_SEEDS} seeds"
        yield f"{intro}: {', '.join(few)}"


def _dataset_section(name: str, groups: Groups, all_tests: pd.DataFrame) -> list[str]:
    rows = {row: group for (dataset, row), group in groups.items() if dataset == name}
    edgeless, tests = rows[EDGELESS], all_tests[all_tests["dataset"] == name]
    steps = edgeless["content"].iloc[0]["settings"]["model"]["num_steps"]
    lines = []
    for row, group in rows.items():
        values = spreads(group)
        cells = (cell(values[metric]) for metric in COLUMNS)
        lines.append([title(row) + _fewer(len(group), len(edgeless)), *cells])
    heads = (f"model, T={steps} and {_num_seeds(len(edgeless))} unless stated", *COLUMNS.values())
    out = [f"## `{name}`: {published(name).title}", "", *table(heads, lines), ""]
    if len(tests):
        lines = []
        for (row, against), pair_tests in tests.groupby(["row", "against"], sort=False):
            texts = dict.fromkeys(COLUMNS, "")
            for test in pair_tests.itertuples():
                p = p_in_words(None if np.isnan(test.p) else test.p)
                text = f"{test.mean_difference:+.4f}, {p}"
                texts[test.metric] = f"**{text}**" if test.sign else text
            versus = f"{title(row)}, from {title(against)}"
            lines.append([versus + _fewer(pair_tests["num_seeds"].iloc[0], SEEDS), *texts.values()])
        sentences = _conclusion(tests), _explored(tests), SPLITS[tests["name"].iloc[0]]
        out += table(("difference and p", *COLUMNS.values()), lines)
        out += ["", " ".join(filter(None, sentences)), ""]
    return out


def _fewer(count: int, expected: int) -> str:
    return f", {_num_seeds(count)}" if count < expected else ""


def _num_seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def title(row: Row) -> str:
    """The title of a row in words, where the papers' tables have letters."""
    return replace(row, model=NAMES.get(row.model, row.model)).title
