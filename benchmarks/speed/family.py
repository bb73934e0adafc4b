"""Times of an epoch of the family's models, as in Table 4 of LaMP and Table 2 of MPED.

    python -m benchmarks.speed.family --datasets bibtex,sider --models lamp,mped-ar,seq2seq

Models take turns: in each round every model trains on the same few batches, and later predicts the
same few, so that a change of the machine's load affects all of them. Times are those of a part of
an epoch, scaled to the whole, and exclude the preparation of batches. The predictions of sequence
models, and so their time, depend on their training: all models are trained before the rounds. Timed
and untimed predictions have to be equal; otherwise no ratio is reported.

Results go to benchmarks/runs/; --replace writes the tracked file of benchmarks/results/ instead.
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
#: The model over which the papers report speed-ups.
OVER = "seq2seq"
Part = list[Any]  #: Some batches.


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
    """Compares the models on each data set, and returns 1 if timed predictions are wrong.

    Args:
        datasets: The data sets, joined by commas.
        models: The models, joined by commas.
        rounds: Number of turns of each model.
        batches: Number of batches in a turn.
        epochs: Epochs of training before the rounds.
        channels: Size of all states, if not that of the recipe.
        batch_size: Batch size of all models.
        seed: Seed of the weights and the batches.
        threads: Number of threads.
        device: Where to compute.
        root: Folder that keeps the data.
        replace: Whether to write the tracked file.
    """
    check_replacement(replace, fewer_epochs=epochs < 1, fewer_rounds=rounds < 5)
    torch.set_num_threads(threads)
    selected = chosen("--models", models, list(dict.fromkeys(row.model for row in _rows())))
    samples, results = Samples(root), {}
    options = (channels, batch_size, seed, device)
    for name in chosen("--datasets", datasets, DATASETS):
        contestants = [_contestant(samples, name, model, *options) for model in selected]
        compared = compare(contestants, rounds, batches, epochs, device)
        results[name] = {"dataset": samples.describe(name), "models": compared}
    settings = {"rounds": rounds, "batches": batches, "epochs_before": epochs}
    settings |= {"batch_size": batch_size, "seed": seed, "threads": threads, "device": device}
    content = {"settings": settings, "datasets": results}
    path = write_results(name_of("family", device), content, replace=replace)
    print("\n".join([*tables.family([read_file(path)]), "", f"Wrote {path}"]))
    wrong = []
    for name, result in results.items():
        model_rows = result["models"].items()
        wrong += [f"{model} on {name}" for model, row in model_rows if not row["agrees"]]
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
    train: Part  #: All batches of an epoch.
    test: Part

    def __post_init__(self) -> None:
        lr = self.settings["module"]["lr"]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)

    @property
    def name(self) -> str:
        """The name of the model in options and results."""
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
    """Minutes per epoch and speed-up of each model, in training and in testing."""
    by_name = {model.name: model for model in contestants}
    for model in contestants:
        for _ in range(epochs):
            model.fit(model.train)
    train_parts = {name: cycle(_parts(model.train, batches)) for name, model in by_name.items()}
    test_parts = {name: _parts(model.test, batches) for name, model in by_name.items()}
    training = {
        name: lambda name=name, model=model: model.fit(next(train_parts[name]))
        for name, model in by_name.items()
    }
    wall_times = {TRAINING: _walls(training, rounds, device)}
    untimed = {
        name: [model.predict(part) for part in test_parts[name]] for name, model in by_name.items()
    }
    turns = {name: cycle(enumerate(parts)) for name, parts in test_parts.items()}
    timed: dict[str, list[tuple[int, list[Tensor]]]] = {name: [] for name in by_name}

    def predict(model: Contestant) -> None:
        index, part = next(turns[model.name])
        timed[model.name].append((index, model.predict(part)))

    testing = {name: partial(predict, model) for name, model in by_name.items()}
    wall_times[TESTING] = _walls(testing, rounds, device)
    results = {}
    for name, model in by_name.items():
        agrees = all(
            torch.equal(*pair)
            for index, values in timed[name]
            for pair in zip(values, untimed[name][index], strict=True)
        )
        results[name] = {"row": asdict(model.row), "agrees": agrees, "settings": model.settings}
        for mode, part in {TRAINING: model.train, TESTING: model.test}.items():
            parts_per_epoch = len(part) / min(batches, len(part))
            results[name][mode] = _summary(name, wall_times[mode], parts_per_epoch)
    return results


def _walls(jobs: dict[str, Callable[[], Any]], rounds: int, device: str) -> dict[str, list[float]]:
    return {name: samples.wall for name, samples in interleave(jobs, rounds, device).items()}


def _parts(batches: Part, size: int) -> list[Part]:
    """Divides an epoch into parts of the same size. A smaller rest is dropped."""
    size = min(size, len(batches))
    return [batches[start : start + size] for start in range(0, len(batches) - size + 1, size)]


def _summary(name: str, walls: dict[str, list[float]], parts_per_epoch: float) -> dict[str, Any]:
    """Minutes per epoch, and the ratio to the papers' reference model in the same rounds."""
    minutes = {key: parts_per_epoch * value / 6e4 for key, value in quartiles(walls[name]).items()}
    summary: dict[str, Any] = {"rounds": len(walls[name]), "minutes_per_epoch": minutes}
    if OVER in walls:
        ratios = [other / own for own, other in zip(walls[name], walls[OVER], strict=False)]
        quarters = np.quantile(ratios, (0.25, 0.5, 0.75)).tolist()
        summary["speedup"] = dict(zip(("q1", "median", "q3"), quarters, strict=True))
    return summary


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
    parts = []
    for rows, shuffle in ((split.train, True), (split.test, False)):
        loader = DataLoader(task.dataset[rows], batch_size, shuffle=shuffle, generator=order)
        parts.append([batch.to(device) for batch in loader])
    settings = settings_of(Cell(dataset, row, seed), task, split, samples.describe(dataset))
    objective = recipe.objective_class(**recipe.objective)
    return Contestant(row, model, objective, settings, *parts)


def _rows() -> list[Row]:
    return [row for table in TABLES.values() for row in table.rows if row.node_messages is not None]


if __name__ == "__main__":
    sys.exit(run(main))
