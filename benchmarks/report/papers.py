"""The papers' tables: ours with the paper's figure beside it, and what was run smaller than there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.accuracy.cells import Stored
from benchmarks.accuracy.paper_rows import TABLES, Table, title
from benchmarks.accuracy.papers import DIFFERENT, METRICS, reported
from benchmarks.accuracy.rows import Row
from benchmarks.accuracy.runs import Run
from benchmarks.accuracy.summary import summarise
from benchmarks.report.writing import LETTERS

#: The mean of all metrics.
AVERAGE = "average"
#: Settings of the papers, and how they are written.
PAPERS: dict[str, dict[str, Any]] = {
    "lamp2019": {"channels": 512, "heads": 4, "num_steps": 2, "dropout": 0.1, "lr": 2e-4, "batch_size": 32},
    "mped2019": {
        "channels": 512,
        "heads": 4,
        "encoder_steps": 3,
        "decoder_steps": 3,
        "dropout": 0.2,
        "lr": 2e-4,
        "batch_size": 32,
    },
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
#: What cells record of blocks, whose options models hand down.
BLOCK = re.compile(r"heads=(?P<heads>\d+), dropout=(?P<dropout>[\d.]+)")
#: The seeds of a row that is complete.
NUM_SEEDS = 3
#: How far from 0.5 a mean macro ROC-AUC is that of chance.
CHANCE = 0.02
#: The data sets of the papers in their order; others follow.
ORDER = ("reuters", "bibtex", "bookmarks", "delicious", "rcv1", "tfbs", "nuswide", "sider")
Key = tuple[str, Row]  #: a data set and a row
Values = Mapping[str, Mapping[str, float | None]]


def lines(name: str, cells: Sequence[Stored], datasets: Sequence[str] = ()) -> list[str]:
    """A table of the papers, of some data sets or of all that there are."""
    table = TABLES[name]
    found = {key: each for key, each in grouped(cells).items() if key[1] in table.rows}
    by_key = comparable(found)
    values = {key: _with_seeds(each) for key, each in by_key.items()}
    known = {*(dataset for dataset, _ in found), *(key[1] for key in reported() if key[0] == table.paper)}
    shown = [each for each in _in_order(known) if not datasets or each in datasets]
    if len(table.metrics) == 1:
        body = _across(table, shown, values)
    else:
        body = [line for each in shown for line in _of_one(table, each, values)]
    used = {key: each for key, each in by_key.items() if key[0] in shown}
    left_out = [key for key in found if key[0] in shown and key not in used]
    notes = [*([table.note] if table.note else []), *_left_out(left_out), *_notes(table.paper, used)]
    return [*body, "", *(f"- {note}" for note in notes)]


def grouped(cells: Iterable[Stored]) -> dict[Key, list[Stored]]:
    """The seeds of each row.

    Raises:
        ValueError: If they differ in their settings.
    """
    groups: dict[Key, list[Stored]] = {}
    for each in cells:
        groups.setdefault((each.cell.dataset, each.cell.row), []).append(each)
    for group in groups.values():
        other = next((each for each in group if each.settings != group[0].settings), None)
        if other is not None:
            raise ValueError(
                f"Expected the seeds of a row to share their settings (got other ones in '{group[0].cell.name}' and "
                f"'{other.cell.name}'); make them with --again, or remove those that are outdated"
            )
    return groups


def comparable(groups: Mapping[Key, Sequence[Stored]]) -> dict[Key, list[Stored]]:
    """Rows over the seeds that they share with the other complete ones, where every seed has test samples of its own.

    Rows that share none are left out; those that are incomplete keep the seeds that they have.
    """
    shared = {dataset: _shared(groups, dataset) for dataset in {dataset for dataset, _ in groups}}
    kept: dict[Key, list[Stored]] = {}
    for (dataset, row), cells in groups.items():
        seeds = shared[dataset] if len(cells) >= NUM_SEEDS else None
        kept[dataset, row] = [each for each in cells if seeds is None or each.cell.seed in seeds]
    return {key: cells for key, cells in kept.items() if cells}


def _shared(groups: Mapping[Key, Sequence[Stored]], dataset: str) -> set[int] | None:
    """The seeds that complete rows of a data set share, but for rows that would leave too few; :obj:`None` for all."""
    here = [cells for key, cells in groups.items() if key[0] == dataset]
    if len({each.run.test for cells in here for each in cells}) < 2:
        return None
    rows = [{each.cell.seed for each in cells} for cells in here if len(cells) >= NUM_SEEDS]
    counts = Counter(seed for seeds in rows for seed in seeds)
    found: set[int] | None = None
    # Seeds that most rows have come first, so that it is the odd row out that gives way.
    for seeds in sorted(rows, key=lambda seeds: -max(counts[seed] for seed in seeds)):
        both = seeds if found is None else found & seeds
        found = both if len(both) >= NUM_SEEDS else found
    return found


def _with_seeds(cells: Sequence[Stored]) -> Values:
    """The spread of every metric, and of how many seeds it is."""
    return {metric: {**value, "seeds": len(cells)} for metric, value in spread(cells).items()}


def spread(cells: Sequence[Stored]) -> Values:
    """Mean and standard deviation of every metric over the seeds."""
    found: Values = summarise([_with_average(each.run) for each in cells])["metrics"]
    return found


def _with_average(run: Run) -> Run:
    values = [run.metrics[name] for name in METRICS]
    mean = None if None in values else float(np.mean(np.array(values, dtype=float)))
    return replace(run, metrics={**run.metrics, AVERAGE: mean})


def _in_order(datasets: set[str]) -> list[str]:
    return sorted(datasets, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def _across(table: Table, datasets: Sequence[str], values: Mapping[Key, Values]) -> list[str]:
    """One metric of all data sets."""
    columns = [(dataset, table.metrics[0]) for dataset in datasets]
    return [_head(datasets), _rule(datasets), *_body(table, columns, values)]


def _of_one(table: Table, dataset: str, values: Mapping[Key, Values]) -> list[str]:
    """All metrics of one data set."""
    metrics = [*table.metrics, AVERAGE]
    body = _body(table, [(dataset, metric) for metric in metrics], values)
    letters = [LETTERS.get(metric, metric) for metric in metrics]
    return ["", f"**{dataset}**", "", _head(letters), _rule(letters), *body]


def _head(names: Sequence[str]) -> str:
    return f"| model | {' | '.join(names)} |"


def _rule(names: Sequence[str]) -> str:
    return "|---|" + "---|" * len(names)


def _body(table: Table, columns: Sequence[tuple[str, str]], values: Mapping[Key, Values]) -> Iterator[str]:
    """The rows of a table; of each column the best mean of a complete row and the papers' best are bold."""
    rows = {title(row): (row, names) for row, names in _with_quoted(table, columns).items()}
    ours = {
        name: [values.get((dataset, row), {}).get(metric, {}) for dataset, metric in columns]
        for name, (row, _) in rows.items()
    }
    theirs = {
        name: [_of_paper(table.paper, names, dataset, metric) for dataset, metric in columns]
        for name, (_, names) in rows.items()
    }
    complete = [filter(_is_complete, column) for column in zip(*ours.values(), strict=True)]
    best_ours = [_best(each["mean"] for each in column) for column in complete]
    best_theirs = [_best(column) for column in zip(*theirs.values(), strict=True)]
    for name in rows:
        cells = map(_cell, ours[name], theirs[name], best_ours, best_theirs)
        yield f"| {name} | {' | '.join(cells)} |"


def _with_quoted(table: Table, columns: Sequence[tuple[str, str]]) -> dict[Row, tuple[str, ...]]:
    """The rows of a table, and those that a paper quotes and nobody here runs."""
    named = {name for names in table.rows.values() for name in names}
    quoted = {
        model
        for (paper, dataset, model, metric) in reported()
        if paper == table.paper and (dataset, metric) in columns and model not in named
    }
    return {**table.rows, **{Row(f"*{model}*"): (model,) for model in sorted(quoted)}}


def _of_paper(paper: str, names: Sequence[str], dataset: str, metric: str) -> float | None:
    found = (reported().get((paper, dataset, name, metric)) for name in names)
    return next((value for value in found if value is not None), None)


def _best(values: Iterable[float | None]) -> str:
    return max((f"{value:.3f}" for value in values if value is not None), default="")


def _cell(ours: Mapping[str, float | None], paper: float | None, best: str, best_of_paper: str) -> str:
    """Mean ± standard deviation (the paper's figure), each left out where there is none."""
    mean, sd = ours.get("mean"), ours.get("sd")
    best = best if _is_complete(ours) else ""
    parts = [] if mean is None else [_bold(mean, best) + ("" if sd is None else f" ± {sd:.3f}")]
    return " ".join([*parts, *([] if paper is None else [f"({_bold(paper, best_of_paper)})"])])


def _is_complete(value: Mapping[str, float | None]) -> bool:
    return (value.get("seeds") or 0) >= NUM_SEEDS


def _bold(value: float, best: str) -> str:
    return f"**{value:.3f}**" if f"{value:.3f}" == best else f"{value:.3f}"


def _notes(paper: str, groups: Mapping[Key, Sequence[Stored]]) -> list[str]:
    """What differs from the paper, in one line for all rows that share it; then the data, the seeds and machines."""
    differing: dict[str, dict[str, list[str]]] = {}
    for (dataset, row), cells in groups.items():
        if row.encoder is not None:
            where = differing.setdefault(differences(paper, cells[0]), {}).setdefault(dataset, [])
            where.append(title(row))
    found = []
    for note, by_dataset in differing.items():
        places = (f"{dataset} ({', '.join(rows)})" for dataset, rows in by_dataset.items())
        found.append(f"{note}: {'; '.join(places)}")
    found += [*_by_chance(groups), *_incomplete(groups)]
    data = sorted({dataset for dataset, _ in groups} & DIFFERENT.keys())
    found += [f"{dataset}: {DIFFERENT[dataset]} than in the papers" for dataset in data]
    return [*found, *sources(groups)]


def _left_out(keys: Iterable[Key]) -> Iterator[str]:
    """Rows whose seeds are all others than those of the other rows."""
    rows: dict[str, list[str]] = {}
    for dataset, row in keys:
        rows.setdefault(dataset, []).append(title(row))
    for dataset, names in rows.items():
        yield f"left out, as they share no seed with other rows: {dataset} ({', '.join(names)})"


def _by_chance(groups: Mapping[Key, Sequence[Stored]]) -> Iterator[str]:
    """Networks that do not rank the samples of a data set, whatever their other metrics."""
    rows: dict[str, list[str]] = {}
    for (dataset, row), cells in groups.items():
        mean = spread(cells)["roc_auc_macro"]["mean"] if row.encoder is not None else None
        if mean is not None and abs(mean - 0.5) < CHANCE:
            rows.setdefault(dataset, []).append(title(row))
    for dataset, names in rows.items():
        yield f"macro ROC-AUC within {CHANCE} of chance, 0.5: {dataset} ({', '.join(names)})"


def _incomplete(groups: Mapping[Key, Sequence[Stored]]) -> Iterator[str]:
    """Rows of so few seeds that none of their means is bold."""
    rows: dict[str, list[str]] = {}
    for (dataset, row), cells in groups.items():
        if len(cells) < NUM_SEEDS:
            rows.setdefault(dataset, []).append(f"{title(row)}: {len(cells)}")
    for dataset, names in rows.items():
        yield f"fewer seeds: {dataset} ({', '.join(names)})"


def differences(paper: str, cell: Stored) -> str:
    """Where the settings of a cell are not those of the paper, and the number of epochs, which papers do not give."""
    settings = {**cell.settings, **cell.settings["module"], **cell.settings["model"], **_of_blocks(cell)}
    theirs = {**PAPERS[paper], **SPECIAL.get((paper, cell.cell.dataset), {})}
    if settings["channels"] is None:
        del theirs["dropout"]  # linear classifiers have no layer for it
    found = [
        f"{WRITTEN[key].format(settings[key])} instead of {value:g}"
        for key, value in theirs.items()
        if settings.get(key) not in (None, value)
    ]
    epochs = cell.content["epochs"]
    return ", ".join([*found, "1 epoch" if epochs == 1 else f"{epochs} epochs"])


def _of_blocks(cell: Stored) -> dict[str, float]:
    found = BLOCK.search("; ".join(cell.settings["parts"].values()))
    return {name: float(value) for name, value in found.groupdict().items()} if found else {}


def sources(groups: Mapping[Key, Sequence[Stored]]) -> Iterator[str]:
    """Data, seeds and machine."""
    cells = [cell for group in groups.values() for cell in group]
    for dataset in dict.fromkeys(key[0] for key in groups):
        here = [each for each in cells if each.cell.dataset == dataset]
        seeds = sorted({each.cell.seed for each in here})
        split, data = here[0].settings["split"], here[0].content["dataset"]
        yield (
            f"{dataset}: {split} split, {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}; "
            f"{data['num_samples']} samples, data sha256 {data['sha256'][:12]}"
        )
    machines = (each.content["environment"] for each in cells)
    yield from dict.fromkeys(
        f"{each['cuda'] or each['processor']}; torch {each['versions']['torch']}, "
        f"PyG {each['versions']['torch-geometric']}"
        for each in machines
    )
