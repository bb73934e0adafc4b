"""Draws how much messages gain on planted label graphs, from the results of prior_vs_learned.py.

python benchmarks/plot_planted.py docs/planted.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from environment import RESULTS

ROWS = {
    "best possible": ("black", "--"),
    "emb LaMP planted": ("tab:green", "-"),
    "emb LaMP fc": ("tab:blue", "-"),
    "emb LaMP pr": ("tab:orange", "-"),
    "emb LaMP el": ("tab:red", "-"),
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
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row, (color, style) in ROWS.items():
        cells = [results[share]["summary"][row]["metrics"]["maAUC"] for share in shares]
        left.errorbar(
            shares, [c["mean"] for c in cells], [c["sd"] or 0 for c in cells], color=color, linestyle=style, label=row
        )
    left.set(xlabel="share of information that neighbours carry", ylabel="macro ROC-AUC")
    left.legend(fontsize="small")
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


if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "planted"  # the same picture from the same numbers
    target = Path(sys.argv[1])
    draw(load()).savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    print(f"Wrote {target}")
