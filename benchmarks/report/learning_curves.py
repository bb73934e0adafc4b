"""Learning curves: a table of some epochs, and a picture by epochs and by seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.accuracy.learning_curve import DEFAULT, POOLED, RELEASED, TIED
from benchmarks.report.writing import METRICS

COLORS = {DEFAULT: "tab:blue", TIED: "tab:red", RELEASED: "tab:gray", POOLED: "black"}
#: The epochs that the table shows.
SHOWN = (1, 2, 4, 6, 8, 12, 20, 30)
#: What table and picture show.
DRAWN = {"bag": "f1_samples", "molecule": "average_precision_macro"}


def table(result: dict[str, Any]) -> list[str]:
    """A table of some epochs."""
    metric = DRAWN[result["dataset"]["kind"]]
    epochs = [epoch for epoch in SHOWN if epoch <= result["settings"]["epochs"]]
    lines = [
        f"| model | {METRICS[metric]} | {' | '.join(f'epoch {epoch}' for epoch in epochs)} | seconds an epoch |",
        "|---|---|" + "---|" * (len(epochs) + 1),
    ]
    for model in dict.fromkeys(point["model"] for point in result["curves"]):
        points = [point for point in result["curves"] if point["model"] == model]
        seconds = np.mean([point["seconds"] / point["epoch"] for point in points])
        for part in ("validation", "test"):
            cells = [_cell([p[part][metric] for p in points if p["epoch"] == epoch]) for epoch in epochs]
            lines.append(f"| {model} | {part} | {' | '.join(cells)} | {seconds:.2g} |")
    return [*lines, "", *_trained_on(result)]


def _cell(values: list[float]) -> str:
    return f"{np.mean(values):.3f}" + (f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else "")


def draw(result: dict[str, Any]) -> Figure:
    """Draws the mean and the range over the seeds, by epochs and by seconds."""
    metric = DRAWN[result["dataset"]["kind"]]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for model in dict.fromkeys(point["model"] for point in result["curves"]):
        points = [point for point in result["curves"] if point["model"] == model]
        epochs = sorted({point["epoch"] for point in points})
        values = np.array([[p["test"][metric] for p in points if p["epoch"] == epoch] for epoch in epochs])
        seconds = [np.mean([p["seconds"] for p in points if p["epoch"] == epoch]) for epoch in epochs]
        for axes, x in ((left, epochs), (right, seconds)):
            axes.plot(x, values.mean(axis=1), color=COLORS[model], label=model)
            axes.fill_between(x, values.min(axis=1), values.max(axis=1), color=COLORS[model], alpha=0.15, linewidth=0)
    left.set(xlabel="epochs", ylabel=f"{METRICS[metric]}, test set")
    right.set(xlabel="seconds of training, one thread")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return figure


def _trained_on(result: dict[str, Any]) -> list[str]:
    """Data, seeds and machine."""
    data, settings, machine = result["dataset"], result["settings"], result["environment"]
    return [
        f"- {_seeds(settings['seeds'])} on one split; Adam with "
        f"learning rate {settings['lr']:g} and batches of {settings['batch_size']}; {data['num_samples']} samples, "
        f"data sha256 {data['sha256'][:12]}",
        f"- {machine['processor']}, one thread each; torch {machine['versions']['torch']}, "
        f"PyG {machine['versions']['torch-geometric']}",
    ]


def _seeds(seeds: list[int]) -> str:
    return (
        f"one seed, {seeds[0]}," if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]} (mean ± standard deviation)"
    )
