"""Ablation: a recipe as it is, and without one part at a time.

    python -m benchmarks.accuracy.ablation --dataset bibtex --seeds 3

All rows share the samples, the seeds and the validation samples that thresholds are tuned on. Differences from the
recipe as it is are tested over the seeds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from joblib import delayed

from benchmarks.accuracy.baselines import baselines, classifier_scores, run_baseline, scores_of
from benchmarks.accuracy.runs import LAMP, Row, Task, in_short, recorded
from benchmarks.command_line import run
from benchmarks.files import check_kept, check_replacement, collect, describe_dataset
from benchmarks.report.comparisons import Comparison, full
from tg_mlc.data import Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.papers.recipes import Recipe
from tg_mlc.papers.recipes.tables import TABLES
from tg_mlc.stacking.classifiers import PUBLISHED


@dataclass(frozen=True)
class Change:
    """A difference from the recipe."""

    graph: str | None = None
    base_scores: tuple[str, ...] | None = None  #: the classifiers that are kept
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)  #: arguments by the recipe's attributes

    def of(self, recipe: Recipe) -> Recipe:
        """The changed recipe."""
        return replace(recipe, **{name: {**getattr(recipe, name), **values} for name, values in self.parts.items()})


CHANGES = {
    "no messages among labels": Change(graph="edgeless"),
    "no base scores": Change(parts={"model": {"base_scores": None}}),
    "base scores of the SVM alone": Change(base_scores=("svm",)),
    "base scores of kernel ridge alone": Change(base_scores=("ridge",)),
    "no base scores in the logits": Change(parts={"model": {"score_skip": False}}),
    "readout tied to the labels": Change(parts={"model": {"tied": True}}),
    "one step": Change(parts={"model": {"num_steps": 1}}),
    "readout from frequencies": Change(parts={"model": {"frequency_strength": 1.0}}),
    "no dropout of words": Change(parts={"model": {"input_dropout": 0.0}}),
    "no loss of earlier steps": Change(parts={"objective": {"intermediate_weight": 0.0}}),
    "constant learning rate": Change(parts={"module": {"lr_schedule": "none", "warmup": 0.0}}),
    "no weight decay": Change(parts={"module": {"weight_decay": 0.0}}),
    "no averaged weights": Change(parts={"fit": {"ema_decay": None}}),
}


def changes_of(recipe: Recipe, classifiers: Iterable[str], graph: str) -> dict[str, Change]:
    """Those that change something: a recipe may do without a part already."""
    present = set(classifiers)

    def differs(change: Change) -> bool:
        kept = None if change.base_scores is None else {PUBLISHED[kind].title for kind in change.base_scores}
        other_scores = kept is not None and kept < present
        return other_scores or change.graph not in (None, graph) or (bool(change.parts) and change.of(recipe) != recipe)

    return {name: change for name, change in CHANGES.items() if differs(change)}


def main(
    dataset: str = "bibtex",
    seeds: int = 3,
    first_seed: int = 10,
    graph: str = "complete",
    root: Path = Path("data"),
    jobs: int = 1,
    max_epochs: int | None = None,
    replace: bool = False,
) -> None:
    """Trains the recipe and all its changes with every seed, prints the table and writes benchmarks/runs/.

    Args:
        dataset: The data set, one of words or vectors with an official split.
        seeds: Number of seeds.
        first_seed: The first of them.
        graph: The label graph.
        root: Folder that keeps the data.
        jobs: How many trainings run at a time, each on one thread.
        max_epochs: Number of epochs, if not that of the recipe.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    check_replacement(replace, max_epochs=max_epochs)
    if dataset not in TABLES:
        raise SystemExit(f"Expected --dataset to be one of {', '.join(TABLES)} (got {dataset})")
    recipe = TABLES[dataset]
    options = {} if max_epochs is None else {"max_epochs": max_epochs}
    raw = recipe.load_dataset(root)
    split = recipe.split(raw, recipe.splits[0], first_seed)
    task = Task(dataset, recipe.prepare(raw, split, root / dataset))
    titles = [each.title for each in classifier_scores(task.dataset).classifiers.values()]
    changes = changes_of(recipe, titles, graph)
    rows = [
        Row(LAMP, False, change.graph or graph, "best", name) for name, change in {None: Change(), **changes}.items()
    ]
    first, chosen = (
        [Row(name) for name in baselines(task, split, first_seed, options)],
        range(first_seed, first_seed + seeds),
    )
    made = {(row, seed) for row in rows for seed in chosen} | {(row, first_seed) for row in first}
    name = f"ablation-{dataset}"
    check_kept(name, lambda run: (Row.of(run), run["seed"]), made, replace=replace)
    content = {
        "dataset": {**describe_dataset(dataset, raw), "counted_labels": int(task.counted.sum())},
        "split": recipe.splits[0],
        "seeds": list(chosen),
        "recipes": {"best": recorded(recipe) | options},
        "changes": {name: asdict(change) for name, change in changes.items()},
    }
    calls = [delayed(run_baseline)(task, split, first_seed, row.model, options) for row in first]
    calls += [delayed(run_change)(task, split, seed, row, options) for row in rows for seed in chosen]
    path = collect(name, content, calls, in_short, jobs=jobs, replace=replace)
    print("\n".join(["", *full(Comparison.read(name, path)), "", f"Wrote {path}"]))


def run_change(task: Task, split: Split, seed: int, row: Row, options: dict[str, Any]) -> list[dict[str, Any]]:
    """One row of one seed, of the whole recipe if it has no change."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    change = CHANGES[row.change] if row.change else Change()
    dataset = task.dataset
    if change.base_scores is not None:
        places = [list(classifier_scores(dataset).classifiers).index(kind) for kind in change.base_scores]
        dataset = with_attribute(dataset, "base_scores", dataset.rows("base_scores")[..., places])
    changed = Task(task.name, dataset, change.of(task.recipe))
    label_graph = changed.recipe.label_graph(row.graph, dataset, split)
    result, data = changed.train(split, seed, label_graph, False, options)
    run = changed.run(row, split, seed, time.perf_counter() - start, *scores_of(result, data))
    run.density, run.validation = label_graph.density, result.best_value
    return [run.to_dict()]


if __name__ == "__main__":
    sys.exit(run(main))
