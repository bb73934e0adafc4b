"""Other settings of LaMP as published, compared by validation samples alone.

    python -m benchmarks.accuracy.settings --dataset bibtex

One setting is changed at a time, and every change is trained with the same seeds, along all pairs
of labels and without messages among components. No test sample is predicted. An interrupted search
continues.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace as changed
from itertools import product
from operator import itemgetter
from pathlib import Path

import torch
from joblib import delayed

from benchmarks.accuracy.runs import Samples, Task, recorded
from benchmarks.command_line import run
from benchmarks.files import Run, check_replacement, collect
from tg_mlc.data import Split
from tg_mlc.papers.recipes import Recipe
from tg_mlc.papers.recipes.tables import TABLES

#: Each setting's attribute and key in recipes, and the values to compare with the recipe's own.
SETTINGS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "learning rate": ("module", "lr", (5e-4, 1e-3, 2e-3, 4e-3)),
    "dropout": ("model", "dropout", (0.0, 0.1, 0.2)),
    "dropout of inputs": ("model", "input_dropout", (0.2, 0.4, 0.6)),
    "epochs": ("fit", "max_epochs", (7, 10, 14, 20)),
}


def main(
    dataset: str = "bibtex",
    seeds: int = 1,
    first_seed: int = 0,
    root: Path = Path("data"),
    channels: int | None = None,
    replace: bool = False,
) -> None:
    """Trains every change with every seed and writes benchmarks/runs/.

    Args:
        dataset: The data set, one of words or vectors with an official split.
        seeds: Number of seeds.
        first_seed: The first seed; those of other tables begin at 10.
        root: Folder that keeps the data.
        channels: Size of all states, if not that of the recipe.
        replace: Whether to write the tracked file in benchmarks/results/ instead.
    """
    check_replacement(replace, channels=channels)
    if dataset not in TABLES:
        raise SystemExit(f"Expected --dataset to be one of {', '.join(TABLES)} (got {dataset})")
    recipe = TABLES[dataset].as_published()
    if channels is not None:
        recipe = changed(recipe, model={**recipe.model, "channels": channels})
    samples = Samples(root)
    task, split = samples.trial(dataset, recipe, first_seed)
    content = {"dataset": samples.describe(dataset), "split": split.hash}
    content |= {"monitor": recipe.fit["monitor"], "recipe": recorded(recipe)}
    pairs = product(range(first_seed, first_seed + seeds), values_of(recipe))
    calls = {
        (setting, value, seed): delayed(trial)(task, split, seed, setting, value)
        for seed, (setting, value) in pairs
    }
    identity = itemgetter("setting", "value", "seed")
    collect(f"settings-{dataset}", content, calls, identity, str, replace=replace)


def values_of(recipe: Recipe) -> Iterator[tuple[str | None, float | None]]:
    """Yields no change, then all other values of each setting in turn."""
    yield None, None
    for setting, (group, key, values) in SETTINGS.items():
        yield from ((setting, value) for value in values if value != getattr(recipe, group)[key])


def with_setting(recipe: Recipe, setting: str | None, value: float | None) -> Recipe:
    """The recipe with one setting changed."""
    if setting is None:
        return recipe
    group, key, _ = SETTINGS[setting]
    return changed(recipe, **{group: {**getattr(recipe, group), key: value}})


def trial(
    task: Task, split: Split, seed: int, setting: str | None, value: float | None
) -> list[Run]:
    """The best score of validation samples over the epochs, and the seconds of training."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    task = changed(task, changed=with_setting(task.recipe, setting, value))
    label_graph = task.recipe.label_graph("complete", task.dataset, split)
    result, _ = task.train(split, seed, label_graph, False, {})
    scores = {"validation": result.best_value, "epochs": result.num_epochs}
    seconds = time.perf_counter() - start
    return [{"setting": setting, "value": value, "seed": seed, **scores, "seconds": seconds}]


if __name__ == "__main__":
    sys.exit(run(main))
