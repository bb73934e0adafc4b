"""The papers' tables: ours with the paper's figure beside it, and what was run smaller than there."""

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

#: The mean of all metrics.
AVERAGE = "average"
#: Settings of the papers, and how they are written.
PAPERS: dict[str, dict[str, Any]] = {
    "lamp2019": {
        "channels": 512,
        "heads": 4,
        "num_steps": 2,
        "dropout": 0.1,
        "lr": 2e-4,
        "batch_size": 32,
    },
    "mped2019": {"channels": 512, "heads": 4, "encoder_steps": 3, "decoder_steps": 3}
    | {"dropout": 0.2, "lr": 2e-4, "batch_size": 32},
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
#: Options of blocks, which models hand down, as cells record them.
BLOCK = re.compile(r"heads=(?P<heads>\d+), dropout=(?P<dropout>[\d.]+)")
#: The seeds of a row that is complete.
NUM_SEEDS = 3
#: How far from 0.5 a mean macro ROC-AUC is that of chance.
CHANCE = 0.02
#: The data sets of the papers in their order; others follow.
ORDER = ("reuters", "bibtex", "bookmarks", "delicious", "rcv1", "tfbs", "nuswide", "sider")
MPED = Row("mped", True, "complete")
Key = tuple[str, Row]  #: a data set and a row
Groups = dict[Key, pd.DataFrame]


def lines(name: str, cells: pd.DataFrame, datasets: Sequence[str] = ()) -> list[str]:
    """A table of the papers, of some data sets or of all that there are."""
    of = TABLES[name]
    found = {key: each for key, each in grouped(cells).items() if key[1] in of.rows}
    used = comparable(found)
    known = {
        *(dataset for dataset, _ in found),
        *(key[1] for key in reported() if key[0] == of.paper),
    }
    order = sorted(
        known, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name)
    )
    shown = [each for each in order if not datasets or each in datasets]
    if len(of.metrics) == 1:
        body = _body(of, shown, [(dataset, of.metrics[0]) for dataset in shown], used)
    else:
        metrics, body = [*of.metrics, AVERAGE], []
        letters = [LETTERS.get(metric, metric) for metric in metrics]
        for dataset in shown:
            columns = [(dataset, metric) for metric in metrics]
            body += ["", f"**{dataset}**", "", *_body(of, letters, columns, used)]
    used = {key: each for key, each in used.items() if key[0] in shown}
    alone = (key for key in found if key not in used and key[0] in shown)
    left_out = (
        f"left out because they share no seed with other rows: {each}"
        for each in _by_dataset(alone)
    )
    notes = [*([of.note] if of.note else []), *left_out, *_notes(of.paper, used)]
    return [*body, "", *listed(notes)]


def grouped(cells: pd.DataFrame) -> Groups:
    """The seeds of each row.

    Raises:
        ValueError: If they differ in their settings.
    """
    groups: Groups = dict(iter(cells.groupby(["dataset", "row"], sort=False)))
    for (dataset, row), group in groups.items():
        first, *others = (content["settings"] for content in group["content"])
        for seed in (
            seed for seed, other in zip(group["seed"][1:], others, strict=True) if other != first
        ):
            names = [Cell(dataset, row, each).name for each in (group["seed"].iloc[0], seed)]
            raise ValueError(
                f"Expected the seeds of a row to share their settings (got other ones in '{names[0]}' and "
                f"'{names[1]}'); make them with --again, or remove those that are outdated"
            )
    return groups


def comparable(groups: Mapping[Key, pd.DataFrame]) -> Groups:
    """Rows over the seeds that they share with the other complete ones, where every seed has test samples of its own.

    Rows that share none are left out; those that are incomplete keep the seeds that they have.
    """
    shared = {dataset: _shared(groups, dataset) for dataset in {dataset for dataset, _ in groups}}
    kept = {}
    for (dataset, row), group in groups.items():
        seeds = shared[dataset] if len(group) >= NUM_SEEDS else None
        kept[dataset, row] = group if seeds is None else group[group["seed"].isin(seeds)]
    return {key: group for key, group in kept.items() if len(group)}


def _shared(groups: Mapping[Key, pd.DataFrame], dataset: str) -> set[int] | None:
    """The seeds that complete rows of a data set share, but for rows that would leave too few; :obj:`None` for all."""
    here = [group for key, group in groups.items() if key[0] == dataset]
    if pd.concat(here)["test"].nunique() < 2:
        return None
    rows = [set(group["seed"]) for group in here if len(group) >= NUM_SEEDS]
    counts = Counter(seed for seeds in rows for seed in seeds)
    found: set[int] | None = None
    # Seeds that most rows have come first, so that it is the odd row out that gives way.
    for seeds in sorted(rows, key=lambda seeds: -max(counts[seed] for seed in seeds)):
        both = seeds if found is None else found & seeds
        found = both if len(both) >= NUM_SEEDS else found
    return found


def spreads(group: pd.DataFrame) -> dict[str, Spread]:
    """Mean and standard deviation of every metric over the seeds, and of the average of the papers' metrics."""
    values = group[[name for name in group if str(name).startswith("metrics.")]].astype(float)
    values = values.rename(columns=lambda name: name.partition(".")[2])
    values[AVERAGE] = values[list(METRICS)].mean(axis=1, skipna=False)
    return {str(name): spread(column) for name, column in values.items()}


def _body(
    of: Table, heads: Sequence[str], columns: Sequence[tuple[str, str]], groups: Groups
) -> list[str]:
    """Rows of a table; of each column the best mean of a complete row and the papers' best are bold."""
    # Beside its own rows, a table has those that a paper quotes and that are not run here.
    named = {name for names in of.rows.values() for name in names}
    quoted = {
        model
        for (paper, dataset, model, metric) in reported()
        if paper == of.paper and (dataset, metric) in columns and model not in named
    }
    rows = {**of.rows, **{Row(f"*{model}*"): (model,) for model in sorted(quoted)}}
    values = {key: spreads(group) for key, group in groups.items()}
    ours: dict[Row, list[Spread]] = {
        row: [values.get((dataset, row), {}).get(metric, {}) for dataset, metric in columns]
        for row in rows
    }
    theirs: dict[Row, list[Spread]] = {}
    for row, names in rows.items():
        figures = (
            [reported().get((of.paper, dataset, name, metric)) for name in names]
            for dataset, metric in columns
        )
        theirs[row] = [
            {"mean": next((figure for figure in each if figure is not None), None)}
            for each in figures
        ]
    complete = {
        row: [len(groups.get((dataset, row), ())) >= NUM_SEEDS for dataset, _ in columns]
        for row in rows
    }
    ranked = (
        [each if whole else {} for each, whole in zip(ours[row], complete[row], strict=True)]
        for row in rows
    )
    best, best_of_papers = bold(zip(*ranked, strict=True)), bold(zip(*theirs.values(), strict=True))
    out = []
    for row in rows:
        cells = []
        # Mean ± standard deviation (the paper's figure), each left out where there is none.
        for place, (value, paper) in enumerate(zip(ours[row], theirs[row], strict=True)):
            text = cell(value, best[place] if complete[row][place] else None)
            figure = cell(paper, best_of_papers[place])
            cells.append(" ".join(filter(None, (text, f"({figure})" if figure else ""))))
        out.append([title(row), *cells])
    return table(("model", *heads), out)


def _notes(paper: str, groups: Groups) -> list[str]:
    """Differences from the paper, in one line for all rows that share one; then the data, the seeds and machines."""
    networks = {key: group for key, group in groups.items() if key[1].node_messages is not None}
    differing: dict[str, list[Key]] = {}
    for key, group in networks.items():
        differing.setdefault(differences(paper, group["content"].iloc[0]), []).append(key)
    found = [f"{note}: {'; '.join(_by_dataset(keys))}" for note, keys in differing.items()]
    means = {key: spreads(group)["roc_auc_macro"]["mean"] for key, group in networks.items()}
    by_chance = (
        key for key, mean in means.items() if mean is not None and abs(mean - 0.5) < CHANCE
    )
    found += [
        f"macro ROC-AUC within {CHANCE} of chance, 0.5: {each}" for each in _by_dataset(by_chance)
    ]
    # Rows of so few seeds that none of their means is bold.
    few = {key: f": {len(group)}" for key, group in groups.items() if len(group) < NUM_SEEDS}
    found += [f"fewer seeds: {each}" for each in _by_dataset(few, few)]
    data = sorted({dataset for dataset, _ in groups} & DIFFERENT.keys())
    found += [f"{dataset}: {DIFFERENT[dataset]} than in the papers" for dataset in data]
    return [*found, *sources(groups)]


def _by_dataset(keys: Iterable[Key], remarks: Mapping[Key, str] | None = None) -> Iterator[str]:
    """Each data set with its rows."""
    rows: dict[str, list[str]] = {}
    for key in keys:
        rows.setdefault(key[0], []).append(title(key[1]) + (remarks or {}).get(key, ""))
    for dataset, names in rows.items():
        yield f"{dataset} ({', '.join(names)})"


def differences(paper: str, content: Mapping[str, Any]) -> str:
    """Where the settings of a cell are not those of the paper, and the number of epochs, which papers do not give."""
    settings = {
        **content["settings"],
        **content["settings"]["module"],
        **content["settings"]["model"],
    }
    if blocks := BLOCK.search("; ".join(settings["parts"].values())):
        settings |= {name: float(value) for name, value in blocks.groupdict().items()}
    theirs = {**PAPERS[paper], **SPECIAL.get((paper, content["dataset"]["name"]), {})}
    if settings["channels"] is None:
        del theirs["dropout"]  # linear classifiers have no layer for it
    found = [
        f"{WRITTEN[key].format(settings[key])} instead of {value:g}"
        for key, value in theirs.items()
        if settings.get(key) not in (None, value)
    ]
    epochs = content["epochs"]
    return ", ".join([*found, "1 epoch" if epochs == 1 else f"{epochs} epochs"])


def sources(groups: Groups) -> Iterator[str]:
    """Data, seeds and machine."""
    if not groups:
        return
    cells = pd.concat(groups.values())
    for dataset, here in cells.groupby("dataset", sort=False):
        seeds, content = sorted(here["seed"].unique()), here["content"].iloc[0]
        yield (
            f"{dataset}: {content['settings']['split']} split, {'seed' if len(seeds) == 1 else 'seeds'} "
            f"{', '.join(map(str, seeds))}; {content['dataset']['num_samples']} samples, "
            f"data sha256 {content['dataset']['sha256'][:12]}"
        )
    yield from dict.fromkeys(map(machine, cells["content"]))


def steps(cells: pd.DataFrame) -> dict[str, dict[int, Spread]]:
    """MPED's Figure 2: the average of all metrics by data set and number of steps, where there are two or more."""
    found: dict[str, dict[int, Spread]] = {}
    for (dataset, row), group in grouped(cells).items():
        if replace(row, change=None) == MPED and (row.change or STEPS).startswith(STEPS):
            number = group["content"].iloc[0]["settings"]["model"]["decoder_steps"]
            found.setdefault(dataset, {})[number] = spreads(group)[AVERAGE]
    return {
        name: dict(sorted(by_steps.items()))
        for name, by_steps in found.items()
        if len(by_steps) > 1
    }


def steps_table(numbers: dict[str, dict[int, Spread]], picture: str) -> list[str]:
    """One line for each data set."""
    if not numbers:
        return ["Not run with several numbers of steps."]
    every = sorted({step for by_steps in numbers.values() for step in by_steps})
    rows = (
        [name, *(cell(by_steps.get(step, {})) for step in every)]
        for name, by_steps in numbers.items()
    )
    out = table(("data", *(f"T={step}" for step in every)), rows)
    return [*out, "", f"![The average of all metrics by the number of steps]({picture})"]


def draw_steps(numbers: dict[str, dict[int, Spread]]) -> Figure:
    """A line for each data set."""
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, by_steps in numbers.items():
        means, sds = ([value[key] or 0 for value in by_steps.values()] for key in ("mean", "sd"))
        axes.errorbar(list(by_steps), means, sds, marker="o", capsize=2, label=name)
    axes.set(
        xlabel="steps T",
        ylabel="average of all metrics",
        xticks=sorted({s for v in numbers.values() for s in v}),
    )
    axes.legend(fontsize="small")
    return figure
