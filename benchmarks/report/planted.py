"""Draws how much messages gain on planted label graphs, from the results of prior_vs_learned.py.

python -m benchmarks.report.planted --target docs/planted.svg
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.command_line import run
from benchmarks.environment import RESULTS

PICTURE = Path(__file__).parents[2] / "docs" / "planted.svg"
ROWS = {
    "best possible": ("black", "--"),
    "emb LaMP planted": ("tab:green", "-"),
    "emb LaMP fc": ("tab:blue", "-"),
    "emb LaMP pr": ("tab:orange", "-"),
    "emb LaMP el": ("tab:red", "-"),
    "logistic regression on all components, tuned": ("tab:purple", "-."),
    "best without neighbours": ("black", ":"),
}


def load() -> dict[float, dict[str, Any]]:
    """The results by the share of information that neighbours carry."""
    files = sorted(RESULTS.glob("prior_vs_learned-planted-*-official.json"))
    if not files:
        raise FileNotFoundError(f"Expected results of planted data sets in {RESULTS}; run prior_vs_learned.py for them")
    return {int(file.name.split("-")[2]) / 100: json.loads(file.read_text()) for file in files}


def draw(results: dict[float, dict[str, Any]]) -> Figure:
    """Macro ROC-AUC, and the recovery of the planted graph, by share."""
    shares = sorted(results)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row, (color, style) in ROWS.items():
        cells = [results[share]["summary"][row]["metrics"]["maAUC"] for share in shares]
        left.errorbar(
            shares, [c["mean"] for c in cells], [c["sd"] or 0 for c in cells], color=color, linestyle=style, label=row
        )
    left.set(xlabel="share of information that neighbours carry", ylabel="macro ROC-AUC")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize="small")
    for score, color in (("learned attention, planted", "tab:blue"), ("correlation, planted", "tab:orange")):
        values = [results[s]["summary"]["emb LaMP fc"]["recovery"][score]["average precision"] for s in shares]
        right.plot(shares, values, color=color, marker="o", label=score.partition(",")[0])
    chance = [
        results[s]["summary"]["emb LaMP fc"]["recovery"]["learned attention, planted"]["share of pairs joined"]
        for s in shares
    ]
    right.plot(shares, chance, color="black", linestyle=":", label="chance")
    right.set(xlabel="share of information that neighbours carry", ylabel="average precision of the planted graph")
    right.legend(fontsize="small")
    return figure


def main(target: Path = PICTURE) -> None:
    """Draws the picture.

    Args:
        target: The file to write, whose name says in which format.
    """
    mpl.rcParams["svg.hashsalt"] = "planted"  # the same picture from the same numbers
    draw(load()).savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    print(f"Wrote {target}")


if __name__ == "__main__":
    run(main)
