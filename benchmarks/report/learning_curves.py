"""Learning curves by epochs and by seconds; and settings tried one at a time."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.learning_curve import DEFAULT, POOLED, RELEASED, TIED
from benchmarks.accuracy.settings import SETTINGS
from benchmarks.files import Result
from benchmarks.report.statistics import spread
from benchmarks.report.writing import METRICS, cell, draw_lines, listed, machine, table

COLORS = {DEFAULT: "tab:blue", TIED: "tab:red", RELEASED: "tab:gray", POOLED: "black"}
#: The epochs that the table shows.
SHOWN = (1, 2, 4, 6, 8, 12, 20, 30)
#: The metric of table and picture, by kind of input.
DRAWN = {"bag": "f1_samples", "molecule": "average_precision_macro"}


def _by_model(result: Result) -> dict[str, pd.DataFrame]:
    metric = DRAWN[result["dataset"]["kind"]]
    runs = pd.DataFrame(result["runs"])
    values = {part: [scores[metric] for scores in runs[part]] for part in ("validation", "test")}
    return dict(iter(runs.assign(**values).groupby("model", sort=False)))


def section(result: Result) -> list[str]:
    """A table of some epochs, and notes on seeds, data and machine."""
    data, settings = result["dataset"], result["settings"]
    epochs = [epoch for epoch in SHOWN if epoch <= settings["epochs"]]
    lines = []
    for model, runs in _by_model(result).items():
        seconds = f"{(runs['seconds'] / runs['epoch']).mean():.2g}"
        for split in ("validation", "test"):
            cells = (cell(spread(runs.loc[runs["epoch"] == epoch, split])) for epoch in epochs)
            lines.append([model, split, *cells, seconds])
    seeds = settings["seeds"]
    seeds_text = f"one seed, {seeds[0]},"
    if len(seeds) > 1:
        seeds_text = f"seeds {seeds[0]} to {seeds[-1]} (mean ± standard deviation)"
    heads = ["model", METRICS[DRAWN[data["kind"]]], *(f"epoch {epoch}" for epoch in epochs)]
    return [
        *table([*heads, "seconds an epoch"], lines),
        "",
        f"- {seeds_text} on one split; Adam with learning rate {settings['lr']:g} and batches of "
        f"{settings['batch_size']}; {data['num_samples']} samples, data sha256 "
        f"{data['sha256'][:12]}",
        f"- {machine(result, 'one thread each')}",
    ]


def draw(result: Result) -> Figure:
    """Draws the mean and the range over the seeds, by epochs and by seconds."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for model, runs in _by_model(result).items():
        by_epoch = runs.groupby("epoch")
        values = by_epoch["test"].apply(list)
        draw_lines(left, values.index, values, model, COLORS[model])
        draw_lines(right, by_epoch["seconds"].mean(), values, model, COLORS[model])
    left.set(xlabel="epochs", ylabel=f"{METRICS[DRAWN[result['dataset']['kind']]]}, test set")
    right.set(xlabel="seconds of training, one thread")
    handles = left.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3, fontsize="small")
    return figure


def tried(result: Result) -> list[str]:
    """A table with a row for each setting: scores of the recipe's value and of other values."""
    runs = pd.DataFrame(result["runs"])
    recipe_score = float(runs.loc[runs["setting"].isna(), "validation"].mean())
    lines = []
    for setting, (group, key, _) in SETTINGS.items():
        recipe_value = result["recipe"][group][key]
        means = runs[runs["setting"] == setting].groupby("value", sort=False)["validation"].mean()
        scores = {recipe_value: recipe_score, **means}
        best = max(scores, key=lambda value: scores[value])
        texts = {value: f"{score:.4f}" for value, score in scores.items()}
        texts[best] = f"**{texts[best]}**"
        first, *others = (f"{value:g}: {text}" for value, text in texts.items())
        lines.append([setting, first, ", ".join(others)])
    seeds, data, host = sorted(runs["seed"].unique()), result["dataset"], result["environment"]
    metric = result["monitor"].removeprefix("val/").replace("_", " ")
    seeds_text = f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
    notes = (
        f"The score is {metric} of validation samples in the best epoch; {seeds_text}",
        f"{data['name']}, data sha256 {data['sha256'][:12]}; "
        f"{host['cuda'] or host['processor']}; torch {host['versions']['torch']}",
    )
    heads = ("setting", "value and score before", "other values and their scores")
    return [*table(heads, lines), "", *listed(notes)]
