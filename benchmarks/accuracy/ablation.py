"""What each part of a recipe adds: the recipe as it is, and without one part at a time.

    python -m benchmarks.accuracy.ablation --dataset bibtex --seeds 3

All rows share the samples, the seeds and the validation samples that thresholds are tuned on. Differences from the
recipe as it is are tested over the seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from joblib import Parallel, delayed

from benchmarks.accuracy.baselines import rivals, run_rival, scores_of
from benchmarks.accuracy.prior_vs_learned import print_summary
from benchmarks.accuracy.rows import recorded
from benchmarks.accuracy.runs import Run, Task, compare_rows, summarise
from benchmarks.command_line import run
from benchmarks.environment import describe_dataset, write_results
from tg_mlc.data import Split
from tg_mlc.recipes import TABLES, Recipe
from tg_mlc.recipes._evidence import NAMES, Kind
from tg_mlc.recipes.tables import PreparedTable

WHOLE = "the recipe"


@dataclass(frozen=True)
class Change:
    """What differs from the recipe."""

    graph: str | None = None
    evidence: tuple[Kind, ...] | None = None  #: the classifiers that are kept
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)  #: arguments by the recipe's attributes

    def of(self, recipe: Recipe) -> Recipe:
        """The changed recipe."""
        return replace(recipe, **{name: {**getattr(recipe, name), **values} for name, values in self.parts.items()})


CHANGES = {
    WHOLE: Change(),
    "no messages among labels": Change(graph="el"),
    "no evidence": Change(evidence=()),
    "evidence of the SVM alone": Change(evidence=("svm",)),
    "evidence of kernel ridge alone": Change(evidence=("ridge",)),
    "no evidence in the logits": Change(parts={"model": {"evidence_skip": False}}),
    "readout tied to the labels": Change(parts={"model": {"tied": True}}),
    "one step": Change(parts={"model": {"num_steps": 1}}),
    "readout from frequencies": Change(parts={"model": {"frequency_strength": 1.0}}),
    "no dropout of words": Change(parts={"model": {"input_dropout": 0.0}}),
    "no loss of earlier steps": Change(parts={"module": {"intermediate_weight": 0.0}}),
    "constant learning rate": Change(parts={"module": {"decay": "none", "warmup": 0.0}}),
    "no weight decay": Change(parts={"module": {"weight_decay": 0.0}}),
    "no averaged weights": Change(parts={"fit": {"ema_decay": None}}),
}


def changes_of(recipe: Recipe, classifiers: Iterable[str], graph: str) -> dict[str, Change]:
    """Those that change something: a recipe may do without a part already."""
    present = set(classifiers)

    def differs(change: Change) -> bool:
        kept = None if change.evidence is None else {NAMES[kind] for kind in change.evidence}
        other_evidence = kept is not None and kept < present
        return (
            other_evidence or change.graph not in (None, graph) or (bool(change.parts) and change.of(recipe) != recipe)
        )

    return {name: change for name, change in CHANGES.items() if name == WHOLE or differs(change)}


def main(
    dataset: str = "bibtex",
    seeds: int = 3,
    first_seed: int = 10,
    graph: str = "fc",
    root: Path = Path("data"),
    jobs: int = 1,
    max_epochs: int | None = None,
    save: bool = True,
) -> None:
    """Trains the recipe and all its changes with every seed, prints the table and writes benchmarks/results/.

    Args:
        dataset: The data set, one of words or vectors with an official split.
        seeds: Number of seeds.
        first_seed: The first of them.
        graph: The label graph.
        root: Folder that keeps the data.
        jobs: How many trainings run at a time, each on one thread.
        max_epochs: Number of epochs, if not that of the recipe.
        save: Whether to write the results.
    """
    if dataset not in TABLES:
        raise SystemExit(f"Expected --dataset to be one of {', '.join(TABLES)} (got {dataset})")
    recipe = TABLES[dataset]
    options = {} if max_epochs is None else {"max_epochs": max_epochs}
    raw = recipe.load_dataset(root)
    split = recipe.split(raw, recipe.splits[0], first_seed)
    task = Task(dataset, recipe.prepare(raw, split, root / dataset))
    changes = changes_of(recipe, cast(PreparedTable, task.dataset).classifiers, graph)
    chosen = range(first_seed, first_seed + seeds)
    calls: list[tuple[Callable[..., Any], Any, Any]] = [
        delayed(run_rival)(task, split, first_seed, name, options) for name in rivals(task, split, first_seed, options)
    ]
    calls += [delayed(run_change)(task, split, seed, name, graph, options) for name in changes for seed in chosen]
    runs: list[Run] = []
    for done in Parallel(n_jobs=jobs, return_as="generator")(calls):
        runs += done
        print("\n".join(f"{run.model:<32} seed {run.seed} ({run.seconds:.0f} s)" for run in done), flush=True)
    summary = {model: summarise([run for run in runs if run.model == model]) for model in _models(runs)}
    tests = [test for name in changes if name != WHOLE for test in compare_rows(runs, name, WHOLE)]
    print_summary(summary, tests, {})
    if save:
        content = {
            "dataset": {"name": dataset, **describe_dataset(raw), "counted_labels": int(task.counted.sum())},
            "split": recipe.splits[0],
            "graph": graph,
            "seeds": list(chosen),
            "recipe": recorded(recipe) | options,
            "changes": {name: asdict(change) for name, change in changes.items()},
            "summary": summary,
            "tests": tests,
            "runs": [asdict(run) for run in runs],
        }
        print(f"Wrote {write_results(f'ablation-{dataset}', content)}")


def run_change(task: Task, split: Split, seed: int, name: str, graph: str, options: dict[str, Any]) -> list[Run]:
    """One row of one seed."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    change = CHANGES[name]
    dataset = cast(PreparedTable, task.dataset)
    if change.evidence is not None:
        dataset = dataset.with_evidence_of([NAMES[kind] for kind in change.evidence])
    changed = Task(task.name, dataset, change.of(task.recipe))
    label_graph = changed.recipe.label_graph(change.graph or graph, dataset, split)
    result, data = changed.train(split, seed, label_graph, "emb", options)
    run = changed.run(name, split, seed, time.perf_counter() - start, *scores_of(result, data))
    run.density, run.validation = label_graph.density, result.best_value
    return [run]


def _models(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.model for run in runs))


if __name__ == "__main__":
    run(main)
