"""Times of an epoch of models of the family on the same data, as in Table 4 of LaMP and Table 2 of MPED.

    python -m benchmarks.speed.family --datasets bibtex,sider --models lamp,mped-ar,seq2seq

Models take turns: in each round every model trains on the same few batches, and later predicts the same few, so that a
change of the machine's load meets all of them. Times are those of a part of an epoch, scaled to the whole. Batches are
made before. The predictions of sequence models, and so their time, depend on their training: all models are trained
before the rounds. Timed and untimed predictions have to be equal; otherwise no ratio is given.

Results go to benchmarks/runs/, which is yours; --replace writes the tracked file of benchmarks/results/ instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.loader import DataLoader

from benchmarks.accuracy.cells import Cell, recipe_of, settings_of
from benchmarks.accuracy.paper_tables import DATASETS
from benchmarks.accuracy.papers import TABLES
from benchmarks.accuracy.runs import Row, Samples
from benchmarks.command_line import chosen, run
from benchmarks.files import check_replacement, name_of, read_file, write_results
from benchmarks.report import speed as tables
from benchmarks.speed.measure import interleave, quartiles
from tg_mlc.training import Objective, seed_everything

TRAINING, TESTING = "training", "testing"
#: The model that speed-ups are over in the papers.
OVER = "seq2seq"
Part = list[Any]  #: some batches


def main(
    datasets: str = "bibtex,sider",
    models: str = "lamp,mped-ar,seq2seq",
    rounds: int = 9,
    batches: int = 5,
    epochs: int = 1,
    channels: int | None = None,
    batch_size: int = 32,
    seed: int = 10,
    threads: int = 1,
    device: Literal["cpu", "cuda"] = "cpu",
    root: Path = Path("data"),
    replace: bool = False,
) -> int:
    """Compares the models on each data set, prints a table and returns 1 if timed predictions differ from untimed ones.

    Args:
        datasets: The data sets, joined by commas.
        models: The models, joined by commas.
        rounds: How often each model has its turn.
        batches: How many batches make a turn.
        epochs: Epochs of training before the rounds.
        channels: Size of all states, if not that of the recipe.
        batch_size: The same for all models.
        seed: Seed of the weights and the batches.
        threads: Number of threads.
        device: Where to compute.
        root: Folder that keeps the data.
        replace: Whether to write the tracked file.
    """
    check_replacement(replace, fewer_epochs=epochs < 1, fewer_rounds=rounds < 5)
    torch.set_num_threads(threads)
    wanted = chosen("--models", models, list(dict.fromkeys(row.model for row in _rows())))
    samples, found = Samples(root), {}
    for name in chosen("--datasets", datasets, DATASETS):
        contestants = [
            _contestant(samples, name, model, channels, batch_size, seed, device)
            for model in wanted
        ]
        compared = compare(contestants, rounds, batches, epochs, device)
        found[name] = {"dataset": samples.describe(name), "models": compared}
    settings = {
        "rounds": rounds,
        "batches": batches,
        "epochs_before": epochs,
        "batch_size": batch_size,
    }
    settings |= {"seed": seed, "threads": threads, "device": device}
    content = {"settings": settings, "datasets": found}
    path = write_results(name_of("family", device), content, replace=replace)
    print("\n".join([*tables.family([read_file(path)]), "", f"Wrote {path}"]))
    every = ((name, *item) for name, each in found.items() for item in each["models"].items())
    wrong = [f"{model} on {name}" for name, model, row in every if not row["agrees"]]
    if wrong:
        print(f"Timed predictions differ from untimed ones: {', '.join(wrong)}")
    return int(bool(wrong))


@dataclass
class Contestant:
    """A model with its batches."""

    row: Row
    model: nn.Module
    objective: Objective
    settings: dict[str, Any]
    train: Part  #: all batches of an epoch
    test: Part

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=self.settings["module"]["lr"]
        )

    @property
    def name(self) -> str:
        """The model, as options and results call it."""
        return self.row.model

    def fit(self, batches: Part) -> None:
        """Trains on some batches."""
        self.model.train()
        for batch in batches:
            self.optimizer.zero_grad()
            self.objective.loss(self.model, batch).backward()
            self.optimizer.step()

    @torch.no_grad()
    def predict(self, batches: Part) -> list[Tensor]:
        """The scores of some batches."""
        self.model.eval()
        return [self.objective.scores(self.model, batch) for batch in batches]


def compare(
    contestants: Sequence[Contestant], rounds: int, batches: int, epochs: int, device: str
) -> dict[str, dict[str, Any]]:
    """Minutes per epoch of each model, in training and testing, and how much faster each is than RNN Seq2Seq."""
    for each in contestants:
        for _ in range(epochs):
            each.fit(each.train)
    parts = {each.name: cycle(_parts(each.train, batches)) for each in contestants}
    training = {
        each.name: lambda each=each: each.fit(next(parts[each.name])) for each in contestants
    }
    walls = {TRAINING: _walls(training, rounds, device)}
    untimed = {
        each.name: [each.predict(part) for part in _parts(each.test, batches)]
        for each in contestants
    }
    turns = {each.name: cycle(enumerate(_parts(each.test, batches))) for each in contestants}
    timed: dict[str, list[tuple[int, list[Tensor]]]] = {each.name: [] for each in contestants}

    def predict(each: Contestant) -> None:
        place, part = next(turns[each.name])
        timed[each.name].append((place, each.predict(part)))

    walls[TESTING] = _walls(
        {each.name: partial(predict, each) for each in contestants}, rounds, device
    )
    found = {}
    for each in contestants:
        pairs = (
            pair
            for place, values in timed[each.name]
            for pair in zip(values, untimed[each.name][place], strict=True)
        )
        agrees = all(torch.equal(*pair) for pair in pairs)
        found[each.name] = {"row": asdict(each.row), "agrees": agrees, "settings": each.settings}
        for mode, part in {TRAINING: each.train, TESTING: each.test}.items():
            found[each.name][mode] = _summary(
                each.name, walls[mode], len(part) / min(batches, len(part))
            )
    return found


def _walls(jobs: dict[str, Callable[[], Any]], rounds: int, device: str) -> dict[str, list[float]]:
    return {name: samples.wall for name, samples in interleave(jobs, rounds, device).items()}


def _parts(batches: Part, size: int) -> list[Part]:
    """Parts of an epoch of the same size; a rest is left out."""
    size = min(size, len(batches))
    return [batches[start : start + size] for start in range(0, len(batches) - size + 1, size)]


def _summary(name: str, walls: dict[str, list[float]], parts_per_epoch: float) -> dict[str, Any]:
    """Minutes per epoch, and the ratio to the times of the same rounds of what the papers compare with."""
    minutes = {key: parts_per_epoch * value / 6e4 for key, value in quartiles(walls[name]).items()}
    found: dict[str, Any] = {"rounds": len(walls[name]), "minutes_per_epoch": minutes}
    if OVER in walls:
        ratios = [other / own for own, other in zip(walls[name], walls[OVER], strict=False)]
        quarters = np.quantile(ratios, (0.25, 0.5, 0.75)).tolist()
        found["speedup"] = dict(zip(("q1", "median", "q3"), quarters, strict=True))
    return found


def _contestant(
    samples: Samples,
    dataset: str,
    name: str,
    channels: int | None,
    batch_size: int,
    seed: int,
    device: str,
) -> Contestant:
    row = [row for row in _rows() if row.model == name and row.graph in (None, "complete")][-1]
    recipe = recipe_of(dataset, row, channels)
    task, split = samples.trial(dataset, recipe, seed)
    label_graph = recipe.label_graph(row.graph or "edgeless", task.dataset, split)
    seed_everything(seed, verbose=False)
    options = {"node_messages": row.node_messages, **recipe.model}
    model = recipe.build(task.dataset[split.train], label_graph, **options).to(device)
    order = torch.Generator().manual_seed(seed)
    train, test = (
        [
            batch.to(device)
            for batch in DataLoader(
                task.dataset[part], batch_size, shuffle=shuffle, generator=order
            )
        ]
        for part, shuffle in ((split.train, True), (split.test, False))
    )
    settings = settings_of(Cell(dataset, row, seed), task, split, samples.describe(dataset))
    return Contestant(row, model, recipe.objective_class(**recipe.objective), settings, train, test)


def _rows() -> list[Row]:
    return [row for table in TABLES.values() for row in table.rows if row.node_messages is not None]


if __name__ == "__main__":
    sys.exit(run(main))
