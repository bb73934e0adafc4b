"""Planted label graphs: what messages gain by the share of information that neighbours carry."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from benchmarks.accuracy.rows import LAMP, LEARNED, Row
from benchmarks.accuracy.summary import by_row
from benchmarks.report.comparisons import load, names
from benchmarks.report.tables import ORACLES
from benchmarks.report.writing import METRICS

FC = Row(LAMP, "emb", "fc", "best")
ROWS = {
    Row("best possible"): ("black", "--"),
    Row(LAMP, "emb", "planted", "best"): ("tab:green", "-"),
    FC: ("tab:blue", "-"),
    Row(LAMP, "emb", "pr", "best"): ("tab:orange", "-"),
    Row(LAMP, "emb", "learned", "best"): ("tab:brown", "-"),
    Row(LAMP, "emb", "el", "best"): ("tab:red", "-"),
    Row("logistic regression on all components, tuned"): ("tab:purple", "-."),
    Row("linear SVM on all components, tuned"): ("tab:pink", "-."),
    Row("best without neighbours"): ("black", ":"),
    Row("label frequency"): ("tab:gray", ":"),
}
#: Ways to rank the pairs of labels.
RANKED = {f"{LEARNED}, planted": "tab:blue", "correlation, planted": "tab:orange"}


def numbers() -> dict[str, Any]:
    """Metrics of each row, and how well graphs are recovered, by the share of information that neighbours carry."""
    by_share: dict[str, Any] = {}
    for name in names():
        if name.startswith("planted-"):
            summary = by_row(load(name).runs)
            by_share[name.split("-")[1]] = {
                "metrics": {row.title: summary[row]["metrics"] for row in ROWS},
                "recovery": {score: summary[FC]["recovery"][score] for score in RANKED},
            }
    return by_share


def table(numbers: dict[str, Any]) -> list[str]:
    """Subset accuracy and macro ROC-AUC of each row at each share, the best in bold."""
    columns = [(metric, share) for metric in ("subset_accuracy", "roc_auc_macro") for share in numbers]
    heads = (f"{METRICS[metric]}, {share}%" for metric, share in columns)
    lines = [f"| model | {' | '.join(heads)} |", "|---|" + "---|" * len(columns)]
    found = {row.title: [numbers[share]["metrics"][row.title][metric] for metric, share in columns] for row in ROWS}
    trained = [found[row.title] for row in ROWS if row.model not in ORACLES]
    best = [max(f"{cell['mean']:.3f}" for cell in column) for column in zip(*trained, strict=True)]
    for row, cells in zip(ROWS, found.values(), strict=True):
        means = [f"{cell['mean']:.3f}" for cell in cells]
        if row.model not in ORACLES:
            means = [f"**{mean}**" if mean == top else mean for mean, top in zip(means, best, strict=True)]
        spreads = [f"{cell['sd']:.3f}" for cell in cells]
        lines.append(f"| {row.title} | {' | '.join(map(' ± '.join, zip(means, spreads, strict=True)))} |")
    return lines


def draw(numbers: dict[str, Any]) -> Figure:
    """Macro ROC-AUC, and the recovery of the planted graph, by share."""
    shares = [int(share) / 100 for share in numbers]
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row, (color, style) in ROWS.items():
        cells = [found["metrics"][row.title]["roc_auc_macro"] for found in numbers.values()]
        means, spreads = [cell["mean"] for cell in cells], [cell["sd"] or 0 for cell in cells]
        left.errorbar(shares, means, spreads, color=color, linestyle=style, label=row.title)
    left.set(xlabel="share of information that neighbours carry", ylabel="macro ROC-AUC")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize="small")
    for score, color in RANKED.items():
        values = [found["recovery"][score]["average precision"] for found in numbers.values()]
        right.plot(shares, values, color=color, marker="o", label=score.partition(",")[0])
    chance = [next(iter(found["recovery"].values()))["share of pairs joined"] for found in numbers.values()]
    right.plot(shares, chance, color="black", linestyle=":", label="chance")
    right.set(xlabel="share of information that neighbours carry", ylabel="average precision of the planted graph")
    right.legend(fontsize="small")
    return figure
