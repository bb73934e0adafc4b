"""The next label set: a page on every data set of histories that has been measured, and pictures of Figure 3."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import files
from benchmarks.report import lanet
from benchmarks.report.lanet import ALONE, FREQUENCY, MEMORY, PUBLISHED, SHORT_NO_ID, TIFU, Result, interval, number
from benchmarks.report.pictures import Picture
from benchmarks.report.writing import titles

PREFIX = "lanet-"
METRICS = {
    **titles("roc_auc_micro", "roc_auc_macro", "f1_micro", "f1_macro"),
    "R@10": "recall at 10",
    "NDCG@10": "NDCG at 10",
}
WINDOW = "logistic regression, last 3 events"
#: Rows that are told as much as others: the last three events, without the entity or with it.
EQUALS = {
    SHORT_NO_ID: ("short: LSTM, no ID", "short: TransformerBase, no ID", "short: CLASS2C2AE, no ID", WINDOW),
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
    "What was chosen with test scores in view: an earlier choice of the settings of LANET with memory had 2,597 of the "
    "test targets in view, so that its rows are not entirely free of them. The ridges of the regressions of labels on "
    "each other and the number of epochs were chosen on validation targets, as were the weight of the autoencoder's "
    "labels and the weight decay of the logistic regression on the last three events.",
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
across these borders, and nothing is fitted beyond training. See [sequences](../sequences.md) for the models and the
data, and [how results are made](../results.md).

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


def results() -> dict[str, Result]:
    """The tracked results by the name of their data set."""
    paths = sorted(files.RESULTS.glob(f"{PREFIX}*.json"))
    return {path.stem.removeprefix(PREFIX): json.loads(path.read_text()) for path in paths}


def page(found: dict[str, Result]) -> str:
    """The page of all of them."""
    return "\n".join([INTRO, *(line for name, result in found.items() for line in _section(name, result))]) + "\n"


def drawings(folder: Path) -> list[Picture]:
    """Figure 3 of the data sets that have its points."""
    numbers = {name: lanet.figure_3_numbers(result) for name, result in results().items()}
    return [Picture(folder / _picture(name), found, lanet.draw_figure_3) for name, found in numbers.items() if found]


def _section(name: str, result: Result) -> list[str]:
    remarks = [line for remark in REMARKS.get(name, ()) for line in ("", remark)]
    lines = ["", f"## {TITLES.get(name, name)}", *remarks, "", *_findings(result), "", *lanet.everything(result), ""]
    lines += [*_sources(result), *lanet.grouped(result, "###")]
    if lanet.figure_3_numbers(result):
        lines += ["", "### Figure 3: events and sizes", "", f"![Micro ROC-AUC of LANET]({_picture(name)})"]
    return [*lines, *_differences(result)]


def _picture(name: str) -> str:
    return f"next-set-{name}.svg"


def _findings(result: Result) -> list[str]:
    """What beats what, in words."""
    return [
        f"- {finding}"
        for finding in (
            *_against_frequency(result),
            *_lead(result, MEMORY, "all other rows"),
            *(
                line
                for title, equals in EQUALS.items()
                for line in _lead(result, title, "equals in information", equals)
            ),
            *_attention(result),
        )
    ]


def _against_frequency(result: Result) -> list[str]:
    """Whether anything is better than the same scores for everyone."""
    found = result["differences"].get(FREQUENCY, {})
    lines = []
    for metric in ("roc_auc_micro", "NDCG@10"):
        known = {title: of[metric] for title, of in found.items() if of.get(metric)}
        better = [title for title, (_, low, _) in known.items() if low > 0]
        if known and not better:
            lines.append(f"**No row is surely above label frequency in {METRICS[metric]}.**")
        elif known and len(better) < len(known):
            lines.append(f"Surely above label frequency in {METRICS[metric]}: {'; '.join(better)}; no other row is.")
        elif known:
            lines.append(f"All {len(known)} other rows are surely above label frequency in {METRICS[metric]}.")
    return lines


def _lead(result: Result, title: str, among: str, others: Collection[str] | None = None) -> list[str]:
    """Which rows one is surely above in each metric, which surely below, and from which it is not told apart."""
    found = result["differences"].get(title, {})
    rows = {other: of for other, of in found.items() if others is None or other in others}
    return [
        f"**{title}** beside {among} ({len(rows)}), in {METRICS[metric]}: {_verdicts(rows, metric)}."
        for metric in METRICS
        if any(of.get(metric) for of in rows.values())
    ]


def _verdicts(rows: dict[str, dict[str, Any]], metric: str) -> str:
    known = {other: of[metric] for other, of in rows.items() if of.get(metric)}
    beaten = [other for other, (_, _, high) in known.items() if high < 0]
    above = [other for other, (_, low, _) in known.items() if low > 0]
    unclear = [other for other in known if other not in (*beaten, *above)]
    words = ["surely above all of them" if len(beaten) == len(rows) else f"surely above {len(beaten)}"]
    words += [f"**surely below** {_turned(known, above)}"] if above else []
    words += [f"not told apart from {_turned(known, unclear)}"] if unclear else []
    return "; ".join(words)


def _turned(known: dict[str, list[float]], titles: list[str]) -> str:
    """The rows with the lead over each."""
    return "; ".join(f"{title} ({interval([-known[title][place] for place in (0, 2, 1)])})" for title in titles)


def _attention(result: Result) -> list[str]:
    """How much of the score of LANET with memory its memory has without attention."""
    gain = result["differences"].get(ALONE, {}).get(MEMORY, {})
    means = {row["title"]: row["runs"] for row in result["rows"]}
    lines = []
    for metric, title in METRICS.items():
        if gain.get(metric):
            lowest, alone, both = (_mean(means[row], metric) for row in (FREQUENCY, ALONE, MEMORY))
            share = f", {(alone - lowest) / (both - lowest):.0%} of that lead" if both > lowest else ""
            lines.append(
                f"What attention adds to the memory, in {title}: {interval(gain[metric])}. Label frequency has "
                f"{number(lowest)}, LANET with memory {number(both)}, memory alone {number(alone)}{share}."
            )
    return lines


def _mean(runs: list[Result], metric: str) -> float:
    return float(np.mean([run["metrics"][metric] for run in runs]))


def _sources(result: Result) -> list[str]:
    """Targets, split, seeds, and the machine."""
    runs = [run for row in result["rows"] for run in row["runs"]]
    counts, versions = result["counts"], result["environment"]["versions"]
    seeds, splits = sorted({run["seed"] for run in runs}), sorted({run["split"][:12] for run in runs})
    machines = sorted({f"{run['environment']['processor']}, {run['environment']['threads']} thread(s)" for run in runs})
    limits = "; ".join(f"{name}={value}" for name, value in result["settings"]["limits"].items())
    return [
        f"- {counts['entities']:,} entities with at least {result['settings']['min_events']} events, "
        f"{counts['events']:,} events, {counts['labels']} labels; {counts['train']:,} training, {counts['val']:,} "
        f"validation and {counts['test']:,} test targets, split {' '.join(splits)}",
        f"- seeds {', '.join(map(str, seeds))}; predictors without a network once; {'; '.join(machines)}; "
        f"torch {versions['torch']}, PyG {versions['torch-geometric']}, scikit-learn {versions['scikit-learn']}",
        *([f"- **a reduced run**: {limits}"] if limits else []),
    ]


def _differences(result: Result) -> list[str]:
    found = {title: of for title, of in result["differences"].items() if title in (TIFU, MEMORY, *EQUALS)}
    if not found:
        return []
    return ["", "### Differences", *lanet.differences({**result, "differences": found})]
