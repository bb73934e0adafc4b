"""The papers' tables: our scores beside the papers' figures, and where our settings differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.cells import STEPS, Cell
from benchmarks.accuracy.papers import DIFFERENT, METRICS, TABLES, Table, reported, title
from benchmarks.accuracy.runs import Row
from benchmarks.report.statistics import Spread, spread
from benchmarks.report.writing import LETTERS, bold, cell, listed, machine, table

AVERAGE = "average"  #: The mean of all metrics.
#: Settings of the papers, and how they are written.
_SIZES, _TRAINING = {"channels": 512, "heads": 4}, {"lr": 2e-4, "batch_size": 32}
PAPERS: dict[str, dict[str, Any]] = {
    "lamp2019": {**_SIZES, "num_steps": 2, "dropout": 0.1, **_TRAINING},
    "mped2019": {**_SIZES, "encoder_steps": 3, "decoder_steps": 3, "dropout": 0.2, **_TRAINING},
}
WRITTEN = {
    "channels": "d={}",
    "heads": "{:g} heads",
    "dropout": "dropout {:g}",
    "num_steps": "T={}",
    "encoder_steps": "T={} in the encoder",
    "decoder_steps": "T={}",
    "lr": "learning rate {:g}",
    "batch_size": "batches of {}",
}
#: Data sets on which a paper has other settings.
SPECIAL: dict[tuple[str, str], dict[str, Any]] = {
    ("mped2019", "sider"): {"channels": 64, "encoder_steps": 1, "decoder_steps": 1},
    **{("lamp2019", name): {"dropout": 0.2} for name in ("reuters", "bibtex", "sider")},
}
#: Matches the options of attention blocks in the descriptions of modules that cells record.
BLOCK = re.compile(r"heads=(?P<heads>\d+), dropout=(?P<dropout>[\d.]+)")
#: A row with this number of seeds is complete.
NUM_SEEDS = 3
#: A mean macro ROC-AUC that is closer to 0.5 is reported as chance.
CHANCE = 0.02
#: The data sets of the papers in their order; others follow.
ORDER = ("reuters", "bibtex", "bookmarks", "delicious", "rcv1", "tfbs", "nuswide", "sider")
MPED = Row("mped", True, "complete")
Key = tuple[str, Row]  #: a data set and a row
Groups = dict[Key, pd.DataFrame]


def lines(name: str, cells: pd.DataFrame, datasets: Sequence[str] = ()) -> list[str]:
    """The lines of a paper's table, for the specified data sets or for all that have a score."""
    spec = TABLES[name]
    groups = {key: group for key, group in grouped(cells).items() if key[1] in spec.rows}
    table_groups = comparable(groups)
    reported_datasets = {key[1] for key in reported() if key[0] == spec.paper}
    known = sorted({dataset for dataset, _ in groups} | reported_datasets)
    ordered = [*(name for name in ORDER if name in known), *(n for n in known if n not in ORDER)]
    shown = [dataset for dataset in ordered if not datasets or dataset in datasets]
    if len(spec.metrics) == 1:
        body = _body(spec, shown, [(dataset, spec.metrics[0]) for dataset in shown], table_groups)
    else:
        metrics, body = [*spec.metrics, AVERAGE], []
        letters = [LETTERS.get(metric, metric) for metric in metrics]
        for dataset in shown:
            columns = [(dataset, metric) for metric in metrics]
            body += ["", f"**{dataset}**", "", *_body(spec, letters, columns, table_groups)]
    table_groups = {key: group for key, group in table_groups.items() if key[0] in shown}
    dropped = _by_dataset(key for key in groups if key not in table_groups and key[0] in shown)
    left_out = (f"left out because they share no seed with other rows: {rows}" for rows in dropped)
    notes = [*([spec.note] if spec.note else []), *left_out, *_notes(spec.paper, table_groups)]
    return [*body, "", *listed(notes)]


def grouped(cells: pd.DataFrame) -> Groups:
    """The cells of each row on each data set, one for each seed.

    Raises:
        ValueError: If the seeds of a row differ in their settings.
    """
    groups: Groups = dict(iter(cells.groupby(["dataset", "row"], sort=False)))
    for (dataset, row), group in groups.items():
        for seed, content in zip(group["seed"], group["content"], strict=True):
            if content["settings"] == group["content"].iloc[0]["settings"]:
                continue
            names = [Cell(dataset, row, other).name for other in (group["seed"].iloc[0], seed)]
            raise ValueError(
                f"Expected the seeds of a row to share their settings (got other ones in "
                f"'{names[0]}' and '{names[1]}'); make them with --again, or remove outdated ones"
            )
    return groups


def comparable(groups: Mapping[Key, pd.DataFrame]) -> Groups:
    """Restricts complete rows to the seeds they share, if each seed has its own test samples.

    Complete rows without a shared seed are dropped; incomplete rows keep the seeds that they have.
    """
    shared = {dataset: _shared(groups, dataset) for dataset in {dataset for dataset, _ in groups}}
    rows = {}
    for (dataset, row), group in groups.items():
        seeds = shared[dataset] if len(group) >= NUM_SEEDS else None
        rows[dataset, row] = group if seeds is None else group[group["seed"].isin(seeds)]
    return {key: group for key, group in rows.items() if len(group)}


def _shared(groups: Mapping[Key, pd.DataFrame], dataset: str) -> set[int] | None:
    """Seeds shared by complete rows, except rows that share too few; :obj:`None` for all seeds."""
    on_dataset = [group for key, group in groups.items() if key[0] == dataset]
    if pd.concat(on_dataset)["test"].nunique() < 2:
        return None
    rows = [set(group["seed"]) for group in on_dataset if len(group) >= NUM_SEEDS]
    counts = Counter(seed for seeds in rows for seed in seeds)
    shared: set[int] | None = None
    # Rows with common seeds come first, so that only the odd row out loses its seeds.
    for seeds in sorted(rows, key=lambda seeds: -max(counts[seed] for seed in seeds)):
        common = seeds if shared is None else shared & seeds
        shared = common if len(common) >= NUM_SEEDS else shared
    return shared


def spreads(group: pd.DataFrame) -> dict[str, Spread]:
    """Mean and standard deviation over the seeds, of every metric and of their average."""
    values = group[[name for name in group if str(name).startswith("metrics.")]].astype(float)
    values = values.rename(columns=lambda name: name.partition(".")[2])
    values[AVERAGE] = values[list(METRICS)].mean(axis=1, skipna=False)
    return {str(name): spread(column) for name, column in values.items()}


def _body(
    spec: Table, heads: Sequence[str], columns: Sequence[tuple[str, str]], groups: Groups
) -> list[str]:
    """The rows of a table. Bold by column: best mean of complete rows, best figure of the paper."""
    # A table also has the rows that a paper quotes and that are not run here.
    models_run_here = {name for names in spec.rows.values() for name in names}
    quoted_models = {
        model
        for (paper, dataset, model, metric) in reported()
        if paper == spec.paper and (dataset, metric) in columns and model not in models_run_here
    }
    rows = {**spec.rows, **{Row(f"*{model}*"): (model,) for model in sorted(quoted_models)}}
    values = {key: spreads(group) for key, group in groups.items()}
    ours: dict[Row, list[Spread]] = {}
    theirs: dict[Row, list[Spread]] = {}
    ranked: dict[Row, list[Spread]] = {}
    for row, names in rows.items():
        ours[row], theirs[row], ranked[row] = [], [], []
        for dataset, metric in columns:
            value = values.get((dataset, row), {}).get(metric, {})
            ours[row].append(value)
            complete = len(groups.get((dataset, row), ())) >= NUM_SEEDS
            ranked[row].append(value if complete else {})
            figures = (reported().get((spec.paper, dataset, name, metric)) for name in names)
            theirs[row].append({"mean": next((f for f in figures if f is not None), None)})
    best, best_figures = (bold(zip(*by_row.values(), strict=True)) for by_row in (ranked, theirs))
    out = []
    for row in rows:
        cells = []
        # Mean ± standard deviation (the paper's figure), each empty where there is none.
        for index, (value, paper) in enumerate(zip(ours[row], theirs[row], strict=True)):
            text = cell(value, best[index] if ranked[row][index] else None)
            figure = cell(paper, best_figures[index])
            cells.append(" ".join(filter(None, (text, f"({figure})" if figure else ""))))
        out.append([title(row), *cells])
    return table(("model", *heads), out)


def _notes(paper: str, groups: Groups) -> list[str]:
    """Notes: each difference from the paper with the rows that have it; data, seeds, machines."""
    networks = {key: group for key, group in groups.items() if key[1].node_messages is not None}
    differing: dict[str, list[Key]] = {}
    for key, group in networks.items():
        differing.setdefault(differences(paper, group["content"].iloc[0]), []).append(key)
    notes = [f"{note}: {'; '.join(_by_dataset(keys))}" for note, keys in differing.items()]
    means = {key: spreads(group)["roc_auc_macro"]["mean"] for key, group in networks.items()}
    chance = (key for key, mean in means.items() if mean is not None and abs(mean - 0.5) < CHANCE)
    notes += [f"macro ROC-AUC within {CHANCE} of chance, 0.5: {row}" for row in _by_dataset(chance)]
    # Rows with few seeds have no bold mean.
    few = {key: f": {len(group)}" for key, group in groups.items() if len(group) < NUM_SEEDS}
    notes += [f"fewer seeds: {row}" for row in _by_dataset(few, few)]
    data = sorted({dataset for dataset, _ in groups} & DIFFERENT.keys())
    notes += [f"{dataset}: {DIFFERENT[dataset]} than in the papers" for dataset in data]
    return [*notes, *sources(groups)]


def _by_dataset(keys: Iterable[Key], remarks: Mapping[Key, str] | None = None) -> Iterator[str]:
    """Each data set with its rows."""
    rows: dict[str, list[str]] = {}
    for key in keys:
        rows.setdefault(key[0], []).append(title(key[1]) + (remarks or {}).get(key, ""))
    for dataset, names in rows.items():
        yield f"{dataset} ({', '.join(names)})"


def differences(paper: str, content: Mapping[str, Any]) -> str:
    """Settings of a cell that are not the paper's, and its epochs, which papers do not report."""
    settings = content["settings"]
    settings = {**settings, **settings["module"], **settings["model"]}
    if blocks := BLOCK.search("; ".join(settings["parts"].values())):
        settings |= {name: float(value) for name, value in blocks.groupdict().items()}
    theirs = {**PAPERS[paper], **SPECIAL.get((paper, content["dataset"]["name"]), {})}
    if settings["channels"] is None:
        del theirs["dropout"]  # Linear classifiers have no layer with dropout.
    changes = [
        f"{WRITTEN[key].format(settings[key])} instead of {value:g}"
        for key, value in theirs.items()
        if settings.get(key) not in (None, value)
    ]
    epochs = content["epochs"]
    return ", ".join([*changes, "1 epoch" if epochs == 1 else f"{epochs} epochs"])


def sources(groups: Groups) -> Iterator[str]:
    """Notes on data, seeds and machines."""
    if not groups:
        return
    cells = pd.concat(groups.values())
    for dataset, group in cells.groupby("dataset", sort=False):
        seeds, content = sorted(group["seed"].unique()), group["content"].iloc[0]
        numbers, data = ", ".join(map(str, seeds)), content["dataset"]
        yield (
            f"{dataset}: {content['settings']['split']} split, "
            f"{'seed' if len(seeds) == 1 else 'seeds'} {numbers}; {data['num_samples']} samples, "
            f"data sha256 {data['sha256'][:12]}"
        )
    yield from dict.fromkeys(map(machine, cells["content"]))


def steps(cells: pd.DataFrame) -> dict[str, dict[int, Spread]]:
    """MPED's Figure 2: averages of all metrics by step count, for each data set with several."""
    averages: dict[str, dict[int, Spread]] = {}
    for (dataset, row), group in grouped(cells).items():
        if replace(row, change=None) == MPED and (row.change or STEPS).startswith(STEPS):
            number = group["content"].iloc[0]["settings"]["model"]["decoder_steps"]
            averages.setdefault(dataset, {})[number] = spreads(group)[AVERAGE]
    return {name: dict(sorted(curve.items())) for name, curve in averages.items() if len(curve) > 1}


def steps_table(numbers: dict[str, dict[int, Spread]], picture: str) -> list[str]:
    """One line for each data set."""
    if not numbers:
        return ["Not run with several numbers of steps."]
    ticks = sorted({step for by_steps in numbers.values() for step in by_steps})
    rows = ([name, *(cell(row.get(step, {})) for step in ticks)] for name, row in numbers.items())
    out = table(("data", *(f"T={step}" for step in ticks)), rows)
    return [*out, "", f"![The average of all metrics by the number of steps]({picture})"]


def draw_steps(numbers: dict[str, dict[int, Spread]]) -> Figure:
    """A line for each data set."""
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, by_steps in numbers.items():
        means, sds = ([value[key] or 0 for value in by_steps.values()] for key in ("mean", "sd"))
        axes.errorbar(list(by_steps), means, sds, marker="o", capsize=2, label=name)
    ticks = sorted({step for by_steps in numbers.values() for step in by_steps})
    axes.set(xlabel="steps T", ylabel="average of all metrics", xticks=ticks)
    axes.legend(fontsize="small")
    return figure
