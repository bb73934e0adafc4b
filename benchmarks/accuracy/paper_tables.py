"""Makes the papers' tables cell by cell. A cell is a data set, a row and a seed, in its own file.

    python -m benchmarks.accuracy.paper_tables --datasets bibtex,sider --models lamp --seeds 1
    python -m benchmarks.accuracy.paper_tables --table lamp-1 --datasets bibtex --budget 120
    python -m benchmarks.accuracy.paper_tables --models mped --graphs complete --steps 1,2,3
    python -m benchmarks.accuracy.paper_tables --models lamp --label_dropout 0.5

Existing cells are kept, so that an interrupted run can continue. An existing cell with other
settings is an error, unless --again replaces it; no row of a table mixes settings. Models have
the papers' settings if they learn with these on a CPU, otherwise ours (docs/results.md). Every cell
records its settings, and tables list what is smaller than in the papers.

Cells are made seed by seed, then data set by data set in the specified order. The rows that are
expected to be fastest come first, so that an interrupted run leaves whole columns.

Results go to benchmarks/runs/cells/. --replace writes the tracked files in
benchmarks/results/cells/ instead; it refuses --channels and --epochs, because tracked files come
from models of full size and full training.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace as changed
from itertools import product
from pathlib import Path
from typing import Any, Literal

from benchmarks.accuracy.cells import (
    LABEL_DROPOUT,
    STEPS,
    Cell,
    Learned,
    recipe_of,
    run_cell,
    settings_of,
    stored,
    without_own_steps,
)
from benchmarks.accuracy.papers import GRAPHS, TABLES, WORDNET, title
from benchmarks.accuracy.runs import Row, Samples, in_short
from benchmarks.command_line import chosen, run
from benchmarks.files import check_replacement, read_file, write_results
from benchmarks.report.papers import lines
from tg_mlc._optional import require
from tg_mlc.datasets import DatasetUnavailableError
from tg_mlc.graphs.wordnet import find_folder
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY
from tg_mlc.papers.recipes.graphs import MOLECULES

#: Data sets whose samples are the same for all seeds.
DATASETS = [name for name, recipe in RECIPES.items() if recipe.redraw is None]
Accelerator = Literal["cpu", "gpu"]


def main(
    table: str = ",".join(TABLES),
    datasets: str = "bibtex,sider,reuters,delicious",
    models: str = "",
    node_messages: str = "false,true",
    graphs: str = ",".join((*GRAPHS, WORDNET)),
    steps: str = "",
    label_dropout: str = "",
    seeds: int = 3,
    first_seed: int = 10,
    budget: float | None = None,
    channels: int | None = None,
    epochs: int | None = None,
    root: Path = Path("data"),
    accelerator: Accelerator = "cpu",
    replace: bool = False,
    again: bool = False,
) -> int:
    """Makes missing cells, and returns 1 if any could not be made.

    Args:
        table: Tables whose rows to make, joined by commas: lamp-1, lamp-2, lamp-3, lamp-7, lamp-8
            (the lamp tables share their rows), mped-2.
        datasets: The data sets, joined by commas.
        models: The models, joined by commas. Default: all models of the tables.
        node_messages: Whether components send messages to each other, for models with rows for
            both: false, true, or both, joined by a comma.
        graphs: The label graphs edgeless, complete, prior, learned, wordnet, joined by commas.
            Models without label graphs are always run.
        steps: Numbers of message passing steps, joined by commas. The recipe's own number gives
            the same cell as without this option.
        label_dropout: Fractions of the attention among labels to drop in training, joined by
            commas, instead of the dropout of all attention; not for edgeless graphs.
        seeds: Number of seeds.
        first_seed: The first seed; the recipes of molecules were found with seeds 0 to 3.
        budget: Time limit in minutes. A cell is skipped if it would probably end too late, by the
            time of its other seeds, or of other cells of its data set and model.
        channels: Size of all states. Default: that of the recipe.
        epochs: Number of epochs. Default: that of the recipe.
        root: Folder that keeps the data.
        accelerator: The device for training: cpu or gpu.
        replace: Whether to write the tracked files.
        again: Whether to replace existing cells that have other settings.
    """
    check_replacement(replace, channels=channels, epochs=epochs)
    end = None if budget is None else time.perf_counter() + 60 * budget
    label_graphs = chosen("--graphs", graphs, (*GRAPHS, WORDNET))
    names = chosen("--datasets", datasets, DATASETS)
    changes = [f"{STEPS}{int(number)}" for number in steps.split(",") if number]
    changes += [f"{LABEL_DROPOUT}{float(text):g}" for text in label_dropout.split(",") if text]
    tables = chosen("--table", table, list(TABLES))
    rows = _rows(tables, models, node_messages, label_graphs, changes)
    rows = [row for row in rows if any(_suits(name, row) for name in names) and _can_be_made(row)]
    smaller = {"channels": channels, "epochs": epochs}
    grid = Grid(Samples(root), accelerator, tracked=replace, again=again, **smaller)
    states = []
    for seed, name in product(range(first_seed, first_seed + seeds), names):
        suitable = [without_own_steps(name, row) for row in rows if _suits(name, row)]
        cells = [Cell(name, row, seed) for row in suitable]
        states += [grid.make(cell, end) for cell in sorted(cells, key=grid.cost)]
    if not states:
        raise SystemExit(
            "Expected --table, --datasets, --models, --node_messages, --graphs, --steps, "
            "--label_dropout and --seeds to choose a cell (got none)"
        )
    cells = stored(tracked=replace)
    cells = cells[cells["dataset"].isin(names)]
    try:
        for name in tables:
            print("\n".join(["", TABLES[name].title, "", *lines(name, cells, names)]))
    except ValueError as error:  # The tables cannot be printed, but cells were made.
        states.append(OTHER)
        print(error)
    print(", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)))
    return int("failed" in states or OTHER in states)


#: The state of an existing cell with other settings.
OTHER = "kept, but has other settings (--again replaces it)"


class Grid:
    """Makes cells one by one."""

    def __init__(
        self,
        samples: Samples,
        accelerator: str = "cpu",
        *,
        tracked: bool = False,
        again: bool = False,
        **smaller: int | None,
    ) -> None:
        self.samples, self.smaller, self.tracked, self.again = samples, smaller, tracked, again
        self.options: dict[str, Any] = {"accelerator": accelerator}
        existing = stored(tracked=tracked)
        cells = map(Cell, existing["dataset"], existing["row"], existing["seed"])
        self.seconds = dict(zip(cells, existing["seconds"], strict=True))
        self.learned: dict[Cell, Learned] = {}

    def make(self, cell: Cell, end: float | None) -> str:
        """Makes a cell unless it exists or time is up, and returns its state."""
        try:
            state = self._make(cell, end)
        except Exception as error:  # Other cells may still succeed.
            if isinstance(error, DatasetUnavailableError):
                print(error, file=sys.stderr)
            else:
                traceback.print_exc()
            state = "failed"
        if state not in ("there", "made"):
            print(f"{cell.name}: {state}", flush=True)
        return state

    def cost(self, cell: Cell) -> float:
        """The estimated seconds of a cell, else the longest time of its row on any data set."""
        same_row = (value for other, value in self.seconds.items() if other.row == cell.row)
        return estimate(cell, self.seconds) or max(same_row, default=0.0)

    def _make(self, cell: Cell, end: float | None) -> str:
        recipe = recipe_of(cell.dataset, cell.row, **self.smaller)
        data = self.samples.describe(cell.dataset)
        task, split = self.samples.trial(cell.dataset, recipe, cell.seed)
        settings = settings_of(cell, task, split, data)
        path = cell.path(tracked=self.tracked)
        existing = read_file(path)["settings"] if path.exists() else None
        if existing == settings:
            return "there"
        if existing is not None and not self.again:
            return OTHER
        if end is not None and time.perf_counter() + estimate(cell, self.seconds) > end:
            return "left out because time is up"
        results = run_cell(cell, task, split, self.options, self.learned)
        content = {"dataset": data, "settings": settings, **results}
        write_results(cell.name, content, replace=self.tracked)
        print(f"{cell.name}: {in_short(results['run'])}", flush=True)
        self.seconds[cell] = results["run"]["seconds"]
        return "made"


def estimate(cell: Cell, seconds: dict[Cell, float]) -> float:
    """The longest time of the cell's other seeds, else of its model on its data set, else zero."""
    times = {other: value for other, value in seconds.items() if other.dataset == cell.dataset}
    same_row = [value for other, value in times.items() if other.row == cell.row]
    same_model = [value for other, value in times.items() if other.row.model == cell.row.model]
    return max(same_row or same_model, default=0.0)


def _rows(
    tables: Sequence[str],
    models: str,
    node_messages: str,
    graphs: Sequence[str],
    changes: Sequence[str],
) -> list[Row]:
    """Trainable rows of tables with the specified models, node messages, graphs and changes."""
    all_rows = [row for name in tables for row in TABLES[name].rows]
    trainable = (row for row in all_rows if row.node_messages is None or row.model in FAMILY)
    all_rows = list(dict.fromkeys(trainable))
    names = list(dict.fromkeys(row.model for row in all_rows))
    selected = chosen("--models", models or ",".join(names), names)
    texts = chosen("--node_messages", node_messages, ("false", "true"))
    choices = [None, *(text == "true" for text in texts)]
    rows = [row for row in all_rows if row.model in selected and row.graph in (None, *graphs)]
    # The option node_messages does not filter models whose rows all have the same value.
    flags = {name: {row.node_messages for row in all_rows if row.model == name} for name in names}
    rows = [row for row in rows if row.node_messages in choices or len(flags[row.model]) == 1]
    if not changes:
        return rows
    pairs = product((row for row in rows if row.graph), changes)
    # Edgeless graphs have no attention among labels to drop.
    return [
        changed(row, change=change)
        for row, change in pairs
        if row.graph != "edgeless" or not change.startswith(LABEL_DROPOUT)
    ]


def _suits(dataset: str, row: Row) -> bool:
    """Whether a data set has what the row needs: a WordNet graph, or molecules."""
    if row.graph == WORDNET:
        return WORDNET in RECIPES[dataset].graphs
    return row.model != "random forest" or dataset in MOLECULES


def _can_be_made(row: Row) -> bool:
    """Whether the packages and files for the row are installed; prints what is missing."""
    try:
        if row.model == "label trees":
            require("napkinxc", extra="extreme")
        if row.graph == WORDNET:
            find_folder()
    except (ImportError, FileNotFoundError) as error:
        print(f"{title(row)}: left out. {error}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(run(main))
