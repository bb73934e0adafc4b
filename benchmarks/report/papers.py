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
#: Settings of the papers. WRITTEN has the format of each setting in notes.
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
#: Settings of a paper that hold on some data sets only, by paper and data set.
SPECIAL: dict[tuple[str, str], dict[str, Any]] = {
    ("mped2019", "sider"): {"channels": 64, "encoder_steps": 1, "decoder_steps": 1},
    **{("lamp2019", name): {"dropout": 0.2} for name in ("reuters", "bibtex", "sider")},
}
#: Matches the options of attention blocks in the descriptions of modules that cells record.
BLOCK = re.compile(r"heads=(?P<heads>\d+), dropout=(?P<dropout>[\d.]+)")
#: A row is complete if it has at least this number of seeds.
NUM_SEEDS = 3
#: A mean macro ROC-AUC is reported as chance if it is closer to 0.5 than this.
CHANCE = 0.02
#: The papers' data sets in the order of our tables. Other data sets follow.
ORDER = ("reuters", "bibtex", "bookmarks", "delicious", "rcv1", "tfbs", "nuswide", "sider")
MPED = Row("mped", True, "complete")
Key = tuple[str, Row]  #: a data set and a row
Groups = dict[Key, pd.DataFrame]


def lines(name: str, cells: pd.DataFrame, datasets: Sequence[str] = ()) -> list[str]:
    """Markdown lines of a paper's table. Default data sets: all with cells or reported figures."""
    spec = TABLES[name]
    groups = {key: group for key, group in grouped(cells).items() if key[1] in spec.rows}
    table_groups = comparable(groups)
    reported_datasets = {key[1] for key in reported() if key[0] == spec.paper}
    known = sorted({dataset for dataset, _ in groups} | reported_datasets)
    ordered = [*(name for name in ORDER if name in known), *(n for n in known if n not in ORDER)]
    chosen = [dataset for dataset in ordered if not datasets or dataset in datasets]
    if len(spec.metrics) == 1:
        body = _body(spec, chosen, [(dataset, spec.metrics[0]) for dataset in chosen], table_groups)
    else:
        metrics, body = [*spec.metrics, AVERAGE], []
        letters = [LETTERS.get(metric, metric) for metric in metrics]
        for dataset in chosen:
            columns = [(dataset, metric) for metric in metrics]
            body += ["", f"**{dataset}**", "", *_body(spec, letters, columns, table_groups)]
    table_groups = {key: group for key, group in table_groups.items() if key[0] in chosen}
    dropped = _by_dataset(key for key in groups if key not in table_groups and key[0] in chosen)
    reasons = (f"left out because they share no seed with other rows: {rows}" for rows in dropped)
    notes = [*([spec.note] if spec.note else []), *reasons, *_notes(spec.paper, table_groups)]
    return [*body, "", *listed(notes)]


def grouped(cells: pd.DataFrame) -> Groups:
    """Groups cells by data set and row. A group has one cell for each seed.

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

    Complete rows without a shared seed are dropped. Incomplete rows keep all of their seeds.
    """
    shared = {dataset: _shared(groups, dataset) for dataset in {dataset for dataset, _ in groups}}
    rows = {}
    for (dataset, row), group in groups.items():
        seeds = shared[dataset] if len(group) >= NUM_SEEDS else None
        rows[dataset, row] = group if seeds is None else group[group["seed"].isin(seeds)]
    return {key: group for key, group in rows.items() if len(group)}


def _shared(groups: Mapping[Key, pd.DataFrame], dataset: str) -> set[int] | None:
    """Seeds that complete rows share, without rows that share too few. None allows all seeds."""
    on_dataset = [group for key, group in groups.items() if key[0] == dataset]
    if pd.concat(on_dataset)["test"].nunique() < 2:
        return None
    seed_sets = [set(group["seed"]) for group in on_dataset if len(group) >= NUM_SEEDS]
    counts = Counter(seed for seeds in seed_sets for seed in seeds)
    shared: set[int] | None = None
    # Rows with common seeds come first, so that the row with unusual seeds is the one ignored.
    for seeds in sorted(seed_sets, key=lambda seeds: -max(counts[seed] for seed in seeds)):
        common = seeds if shared is None else shared & seeds
        shared = common if len(common) >= NUM_SEEDS else shared
    return shared


def spreads(group: pd.DataFrame) -> dict[str, Spread]:
    """Mean and standard deviation over the seeds, of every metric and of the average of METRICS."""
    values = group[[name for name in group if str(name).startswith("metrics.")]].astype(float)
    values = values.rename(columns=lambda name: name.partition(".")[2])
    values[AVERAGE] = values[list(METRICS)].mean(axis=1, skipna=False)
    return {str(name): spread(column) for name, column in values.items()}


def _body(
    spec: Table, heads: Sequence[str], columns: Sequence[tuple[str, str]], groups: Groups
) -> list[str]:
    """A table. Bold by column: the best mean of complete rows, the best figure of the paper."""
    # The table has a row for each model that the paper reports and that is not run here.
    models_run_here = {name for names in spec.rows.values() for name in names}
    other_models = {
        model
        for (paper, dataset, model, metric) in reported()
        if paper == spec.paper and (dataset, metric) in columns and model not in models_run_here
    }
    rows = {**spec.rows, **{Row(f"*{model}*"): (model,) for model in sorted(other_models)}}
    datasets = {dataset for dataset, _ in columns}
    values = {key: spreads(group) for key, group in groups.items() if key[0] in datasets}
    ours: dict[Row, list[Spread]] = {}
    theirs: dict[Row, list[Spread]] = {}
    complete: dict[Row, list[Spread]] = {}
    for row, names in rows.items():
        ours[row], theirs[row], complete[row] = [], [], []
        for dataset, metric in columns:
            value = values.get((dataset, row), {}).get(metric, {})
            ours[row].append(value)
            has_all_seeds = len(groups.get((dataset, row), ())) >= NUM_SEEDS
            complete[row].append(value if has_all_seeds else {})
            figures = (reported().get((spec.paper, dataset, name, metric)) for name in names)
            theirs[row].append({"mean": next((f for f in figures if f is not None), None)})
    best, best_figures = (bold(zip(*by_row.values(), strict=True)) for by_row in (complete, theirs))
    out = []
    for row in rows:
        cells = []
        # A cell reads "mean ± standard deviation (the paper's figure)"; either may be missing.
        for index, (value, paper) in enumerate(zip(ours[row], theirs[row], strict=True)):
            text = cell(value, best[index] if complete[row][index] else None)
            figure = cell(paper, best_figures[index])
            cells.append(" ".join(filter(None, (text, f"({figure})" if figure else ""))))
        out.append([title(row), *cells])
    return table(("model", *heads), out)


def _notes(paper: str, groups: Groups) -> list[str]:
    """Notes on differences from the paper and the rows that differ, data, seeds and machines."""
    networks = {key: group for key, group in groups.items() if key[1].node_messages is not None}
    differing: dict[str, list[Key]] = {}
    for key, group in networks.items():
        differing.setdefault(differences(paper, group["content"].iloc[0]), []).append(key)
    notes = [f"{note}: {'; '.join(_by_dataset(keys))}" for note, keys in differing.items()]
    means = {key: spreads(group)["roc_auc_macro"]["mean"] for key, group in networks.items()}
    chance = (key for key, mean in means.items() if mean is not None and abs(mean - 0.5) < CHANCE)
    notes += [f"macro ROC-AUC within {CHANCE} of chance, 0.5: {row}" for row in _by_dataset(chance)]
    # The table never sets the means of these rows in bold, and this note gives the reason.
    few = {key: f": {len(group)}" for key, group in groups.items() if len(group) < NUM_SEEDS}
    notes += [f"fewer seeds: {row}" for row in _by_dataset(few, few)]
    data = sorted({dataset for dataset, _ in groups} & DIFFERENT.keys())
    notes += [f"{dataset}: {DIFFERENT[dataset]} than in the papers" for dataset in data]
    return [*notes, *sources(groups)]


def _by_dataset(keys: Iterable[Key], remarks: Mapping[Key, str] | None = None) -> Iterator[str]:
    """A text for each data set: its name, and in parentheses its rows with their remarks."""
    rows: dict[str, list[str]] = {}
    for key in keys:
        rows.setdefault(key[0], []).append(title(key[1]) + (remarks or {}).get(key, ""))
    for dataset, names in rows.items():
        yield f"{dataset} ({', '.join(names)})"


def differences(paper: str, content: Mapping[str, Any]) -> str:
    """Text of settings that differ from the paper's, and of epochs, which no paper reports."""
    settings = content["settings"]
    settings = {**settings, **settings["module"], **settings["model"]}
    if block := BLOCK.search("; ".join(settings["parts"].values())):
        settings |= {name: float(value) for name, value in block.groupdict().items()}
    paper_settings = {**PAPERS[paper], **SPECIAL.get((paper, content["dataset"]["name"]), {})}
    if settings["channels"] is None:
        del paper_settings["dropout"]  # Linear classifiers have no layer with dropout.
    changes = [
        f"{WRITTEN[key].format(settings[key])} instead of {value:g}"
        for key, value in paper_settings.items()
        if settings.get(key) not in (None, value)
    ]
    epochs = content["epochs"]
    return ", ".join([*changes, "1 epoch" if epochs == 1 else f"{epochs} epochs"])


def sources(groups: Groups) -> Iterator[str]:
    """Notes on the data, the seeds and the machines of cells."""
    if not groups:
        return
    cells = pd.concat(groups.values())
    for dataset, group in cells.groupby("dataset", sort=False):
        seeds, content = sorted(group["seed"].unique()), group["content"].iloc[0]
        seed_list, data = ", ".join(map(str, seeds)), content["dataset"]
        yield (
            f"{dataset}: {content['settings']['split']} split, "
            f"{'seed' if len(seeds) == 1 else 'seeds'} {seed_list}; {data['num_samples']} samples, "
            f"data sha256 {data['sha256'][:12]}"
        )
    yield from dict.fromkeys(map(machine, cells["content"]))


def steps(cells: pd.DataFrame) -> dict[str, dict[int, Spread]]:
    """MPED's Figure 2: averages of METRICS by step count, if a data set has several step counts."""
    averages: dict[str, dict[int, Spread]] = {}
    for (dataset, row), group in grouped(cells).items():
        if replace(row, change=None) == MPED and (row.change or STEPS).startswith(STEPS):
            num_steps = group["content"].iloc[0]["settings"]["model"]["decoder_steps"]
            averages.setdefault(dataset, {})[num_steps] = spreads(group)[AVERAGE]
    return {name: dict(sorted(curve.items())) for name, curve in averages.items() if len(curve) > 1}


def steps_table(numbers: dict[str, dict[int, Spread]], picture: str) -> list[str]:
    """A table with a row for each data set and a column for each step count, and the picture."""
    if not numbers:
        return ["Not run with several numbers of steps."]
    ticks = sorted({step for by_steps in numbers.values() for step in by_steps})
    rows = ([name, *(cell(row.get(step, {})) for step in ticks)] for name, row in numbers.items())
    out = table(("data", *(f"T={step}" for step in ticks)), rows)
    return [*out, "", f"![The average of all metrics by the number of steps]({picture})"]


def draw_steps(numbers: dict[str, dict[int, Spread]]) -> Figure:
    """Draws the average of METRICS by step count, with a line for each data set."""
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, by_steps in numbers.items():
        means, sds = ([value[key] or 0 for value in by_steps.values()] for key in ("mean", "sd"))
        axes.errorbar(list(by_steps), means, sds, marker="o", capsize=2, label=name)
    ticks = sorted({step for by_steps in numbers.values() for step in by_steps})
    axes.set(xlabel="steps T", ylabel="average of all metrics", xticks=ticks)
    axes.legend(fontsize="small")
    return figure
