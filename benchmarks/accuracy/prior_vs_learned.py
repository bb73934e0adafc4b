"""Compares label graphs: edgeless (el), fully connected (fc), priors (pr, ...) and learned, with and without feature
message passing.

    python benchmarks/prior_vs_learned.py --dataset bibtex --graphs el,fc,pr --seeds 3

    python benchmarks/prior_vs_learned.py --dataset bibtex --graphs el,fc --seeds 3 --encoders "published emb"

All rows of a seed share its split. Rows of a published encoder are LaMP without evidence and without a linear path.
Next to the variants stand the label frequencies, strong classical models tuned on the same validation samples, and what
the papers report. Differences between graphs are tested over the seeds. The
attention that fc learns is compared with priors, and with the true label graph where it is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import torch
from joblib import Parallel, delayed

from benchmarks.accuracy.baselines import rivals, run_rival, scores_of
from benchmarks.accuracy.papers import figures
from benchmarks.accuracy.recovery import co_occurrence_scores, mean_label_attention, recovery
from benchmarks.accuracy.resume import earlier_runs
from benchmarks.accuracy.rows import (
    BASELINES,
    LEARNED,
    OTHER_DECISIONS,
    PUBLISHED,
    encoder_and_graph,
    in_words,
    p_in_words,
    recorded,
    row_of,
    variant,
)
from benchmarks.accuracy.runs import Run, Task, compare, compare_rows, summarise
from benchmarks.command_line import chosen, run
from benchmarks.environment import describe_dataset, name_of, results_file, write_results
from tg_mlc.data import Split
from tg_mlc.datasets import MultiLabelDataset
from tg_mlc.graphs import edgeless, learned
from tg_mlc.recipes import RECIPES, EncoderName, Recipe
from tg_mlc.training import FitResult, MultiLabelDataModule

#: Attention is averaged over so many batches; more of them change it little.
NUM_BATCHES = 10
#: Known graphs that learned attention is compared with in any case; others if they are trained with.
ALWAYS_COMPARED = ("pr", "tree", "planted")
#: How many sources a label keeps in the learned graph, if there are four times as many labels.
LEARNED_TOP_K = 10


def main(
    dataset: str = "sider",
    seeds: int = 5,
    first_seed: int = 10,
    split: str | None = None,
    graphs: str = "el,fc,pr",
    encoders: str = "emb,fmp",
    without: str = "",
    root: Path = Path("data"),
    jobs: int = 1,
    max_epochs: int | None = None,
    save: bool = True,
    resume: bool = False,
) -> None:
    """Trains every variant with every seed, prints the table and writes benchmarks/results/.

    Args:
        dataset: The data set, one of those that have a recipe.
        seeds: Number of seeds.
        first_seed: The first of them; the recipes of molecules were found with seeds 0 to 3 (that of NCI also with 11).
        split: How samples are divided; the first method of the recipe if not given.
        graphs: The label graphs, joined by commas: el, fc, learned, and those that the recipe has.
        encoders: Without (emb) and with feature message passing (fmp); or fingerprints and descriptors only (vectors).
            Each may follow the word "published", for LaMP as it was published. Joined by commas.
        without: Rows of classifiers to leave out, joined by semicolons; --resume adds them later.
        root: Folder that keeps the data.
        jobs: How many trainings run at a time, each on one thread.
        max_epochs: Number of epochs, if not that of the recipe.
        save: Whether to write the results: after every training to a file of its own, which replaces the result file
            in the end.
        resume: Whether to keep the rows of a comparison that was broken off, else those of the result file, and make
            only those that it does not have; samples, settings and versions must be the same. The code must be too,
            which is not checked. Rows of fc are made again if they were not compared with one of these graphs.
    """
    if seeds < 1:
        raise SystemExit(f"Expected --seeds to be at least 1 (got {seeds})")
    recipe = _recipe(dataset, split)
    wanted = _named(f"--graphs of {dataset}", graphs, ("el", "fc", "learned", *recipe.graphs))
    names = get_args(EncoderName)
    with_encoders = _named("--encoders", encoders, (*names, *(PUBLISHED + name for name in names)))
    split = recipe.splits[0] if split is None else split
    options = {} if max_epochs is None else {"max_epochs": max_epochs}
    all_seeds = range(first_seed, first_seed + seeds)
    raw, trials = _trials(recipe, dataset, root, split, all_seeds)
    _try_out(trials[first_seed], set(wanted) - {"learned"}, with_encoders)
    priors = sorted({*wanted, *ALWAYS_COMPARED} & set(recipe.graphs))
    settings = {
        "dataset": {
            "name": dataset,
            **describe_dataset(raw),
            "counted_labels": int(trials[first_seed].task.counted.sum()),
        },
        "split": split,
        "redrawn": recipe.redraw is not None,
        "seeds": list(all_seeds),
        "recipe": recorded(recipe) | options,
        "published": recorded(recipe.as_published()) | options,
    }
    # Models as published alone do not replace a table of models with all that helps.
    alone = all(encoder.startswith(PUBLISHED) for encoder in with_encoders)
    file = name_of("prior_vs_learned", dataset, split, PUBLISHED.strip() if alone else "")
    rows = list(product(with_encoders, wanted))
    runs = earlier_runs(file, settings, [variant(*row) for row in rows], priors) if resume else []
    present = {(run.model, run.seed) for run in runs} | set(product(without.split(";"), all_seeds))
    calls = [*_rivals(trials, options, present), *_variants(trials, rows, options, priors, present)]
    for done in Parallel(n_jobs=jobs, return_as="generator")(calls):
        runs += done
        for row in done:
            print(f"{row.model:<28} seed {row.seed}: {_in_short(row.metrics)} ({row.seconds:.0f} s)", flush=True)
        if save:
            write_results(file, {**settings, "runs": [asdict(run) for run in runs]}, complete=False)
    found = _findings(runs, figures(dataset))
    print_summary(found["summary"], found["tests"], found["papers"])
    if save:
        content = {**settings, **found, "runs": [asdict(run) for run in runs]}
        print(f"Wrote {write_results(file, content)}")
        results_file(file, complete=False).unlink(missing_ok=True)


def _findings(runs: Sequence[Run], papers: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """What the runs say together, beside what the papers say."""
    models = dict.fromkeys(run.model for run in runs)
    variants = [parts for parts in map(encoder_and_graph, models) if parts is not None]
    encoders, graphs = (dict.fromkeys(parts) for parts in zip(*variants, strict=True))
    pairs = [(b, a) for a, b in combinations(sorted(graphs, key=lambda graph: graph != "el"), 2)]
    return {
        "summary": {model: summarise([run for run in runs if run.model == model]) for model in models},
        "papers": papers,
        "tests": [
            *(
                test
                for row, baseline in product(variants, BASELINES)
                for test in compare_rows(runs, variant(*row), baseline)
            ),
            *(test for encoder in encoders for pair in pairs for test in compare(runs, encoder, *pair)),
        ],
    }


class Trial(NamedTuple):
    """What one seed is run on."""

    task: Task
    split: Split


#: A function, its arguments and its options, for joblib.
Call = tuple[Callable[..., list[Run]], Any, Any]


def _rivals(trials: Mapping[int, Trial], options: dict[str, Any], present: Collection[tuple[str, int]]) -> list[Call]:
    """What makes the rows without labels as nodes; where all seeds share their samples, so do these rows."""
    alike = len({(id(trial.task), trial.split.hash) for trial in trials.values()}) == 1
    return [
        delayed(run_rival)(*trials[seed], seed, name, options)
        for seed in (list(trials)[:1] if alike else trials)
        for name in rivals(*trials[seed], seed, options)
        if (name, seed) not in present
    ]


def _variants(
    trials: Mapping[int, Trial],
    rows: Iterable[tuple[str, str]],
    options: dict[str, Any],
    priors: Sequence[str],
    present: Collection[tuple[str, int]],
) -> list[Call]:
    """What makes the rows of encoders and graphs."""
    return [
        delayed(run_variant)(*trial, seed, graph, encoder, options, priors)
        for encoder, graph in rows
        for seed, trial in trials.items()
        if (variant(encoder, graph), seed) not in present
    ]


def _try_out(trial: Trial, graphs: Iterable[str], encoders: Sequence[str]) -> None:
    """Builds every graph and a model of every encoder: what cannot be built is better known now than after hours."""
    recipe, dataset = trial.task.recipe, trial.task.dataset
    for graph in graphs:
        recipe.label_graph(graph, dataset, trial.split)
    for encoder in encoders:
        trained, name = as_named(trial.task, encoder)
        try:
            trained.recipe.build(
                dataset[trial.split.val], edgeless(dataset.label_names), encoder=name, **trained.recipe.model
            )
        except ValueError as error:
            raise SystemExit(
                f"Expected --encoders that models of {trial.task.name} have (got {encoder}): {error}"
            ) from None


def _trials(
    recipe: Recipe, name: str, root: Path, split: str, seeds: Sequence[int]
) -> tuple[MultiLabelDataset, dict[int, Trial]]:
    """The data set, and the samples and parts of every seed."""
    raw = recipe.load_dataset(root)
    trials: dict[int, Trial] = {}
    prepared: dict[str, Task] = {}
    for seed in seeds:
        dataset = raw if recipe.redraw is None else recipe.redraw(seed)
        parts = recipe.split(dataset, split, seed)
        key = parts.hash if recipe.redraw is None else str(seed)
        if key not in prepared:
            prepared[key] = Task(name, recipe.prepare(dataset, parts, root / name))
        trials[seed] = Trial(prepared[key], parts)
    return raw, trials


def _recipe(dataset: str, split: str | None) -> Recipe:
    if dataset not in RECIPES:
        raise SystemExit(f"Expected --dataset to be one of {', '.join(RECIPES)} (got {dataset})")
    recipe = RECIPES[dataset]
    if split is not None and split not in recipe.splits:
        raise SystemExit(f"Expected --split of {dataset} to be one of {', '.join(recipe.splits)} (got {split})")
    return recipe


def _named(option: str, text: str, known: Sequence[str]) -> list[str]:
    try:
        return chosen(option, text, known)
    except ValueError as error:
        raise SystemExit(str(error)) from None


def run_variant(
    task: Task,
    split: Split,
    seed: int,
    graph: str,
    encoder: str,
    options: dict[str, Any],
    priors: Sequence[str] = ALWAYS_COMPARED,
) -> list[Run]:
    """One row of label message passing."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    row = variant(encoder, graph)
    task, encoder = as_named(task, encoder)
    if graph == "learned":
        result, data = task.train(split, seed, task.recipe.label_graph("fc", task.dataset, split), encoder, options)
        label_graph = learned(
            result.module.model,
            data.train_dataloader(),
            top_k=max(1, min(LEARNED_TOP_K, task.dataset.num_labels // 4)),
            label_names=task.dataset.label_names,
        )
    else:
        label_graph = task.recipe.label_graph(graph, task.dataset, split)
    result, data = task.train(split, seed, label_graph, encoder, options)
    run = task.run(row, split, seed, time.perf_counter() - start, *scores_of(result, data))
    run.density, run.validation = label_graph.density, result.best_value
    if graph == "fc":
        run.recovery = _recovered(task, split, result, data, priors)
    return [run]


def as_named(task: Task, encoder: str) -> tuple[Task, EncoderName]:
    """The task with the recipe that an encoder's name in a row stands for, and that encoder."""
    if encoder.startswith(PUBLISHED):
        task = replace(task, changed=task.recipe.as_published())
    return task, cast(EncoderName, encoder.removeprefix(PUBLISHED))


def _recovered(
    task: Task, split: Split, result: FitResult, data: MultiLabelDataModule, priors: Sequence[str]
) -> dict[str, Any]:
    """How well the learned attention, and simple statistics of the training labels, rank the pairs that priors join."""
    batches = [batch for batch, _ in zip(data.val_dataloader(), range(NUM_BATCHES), strict=False)]
    y = task.dataset.y[split.train]
    scores = {LEARNED: mean_label_attention(result.module.model, batches)}
    scores |= {w: co_occurrence_scores(y, w) for w in ("count", "conditional", "correlation")}
    known = {name: task.recipe.label_graph(name, task.dataset, split) for name in priors if name in task.recipe.graphs}
    return {
        f"{score}, {name}": recovery(values, prior, task.counted)
        for name, prior in known.items()
        for score, values in scores.items()
        if score == LEARNED or name in ("planted", "tree")
    }


COLUMNS = ("ACC", "HA", "ebF1", "miF1", "maF1", "maAUC", "maAP")


def print_summary(
    summary: Mapping[str, dict[str, Any]],
    tests: Sequence[dict[str, Any]],
    papers: Mapping[str, Mapping[str, float]],
) -> None:
    """Prints mean ± standard deviation of every row, then the papers' figures, tests and the recovery of graphs."""
    print(f"\n{'model':<28}{'density':>8}" + "".join(f"{column:>15}" for column in COLUMNS))
    for model, row in summary.items():
        density = "" if row["density"] is None else f"{row['density']:.2f}"
        print(f"{model:<28}{density:>8}" + _cells(row["metrics"]))
        used = ", ".join(f"{name} {'/'.join(map(str, values))}" for name, values in row["thresholds"].items())
        print(f"  thresholds by seed: {used}")
        for key, name in OTHER_DECISIONS.items():
            print(f"{'  ' + name:<36}" + _cells(row[key]))
    for model, values in papers.items():
        cells = (f"{values[column]:.3f}" if column in values else "" for column in COLUMNS)
        print(f"{model:<36}" + "".join(f"{cell:>15}" for cell in cells))
    for test in tests:
        print(
            f"{row_of(test)} - {test['against']}, {test['metric']}: {test['mean_difference']:+.4f} "
            f"(sd {test['sd']:.4f}, {test['test']} {p_in_words(test['p'])}, {test['num_seeds']} seeds)"
        )
    for model, row in summary.items():
        for score, values in row["recovery"].items():
            print(f"{model}: {score}: {in_words(values)}")


def _cells(metrics: Mapping[str, Any]) -> str:
    return "".join(f"{_cell(**metrics[c]) if c in metrics else '':>15}" for c in COLUMNS)


def _cell(mean: float | None, sd: float | None) -> str:
    """A mean, with its standard deviation where there are several seeds; nothing where it is undefined."""
    if mean is None:
        return ""
    return f"{mean:.4f}" if sd is None else f"{mean:.4f}±{sd:.4f}"


def _in_short(metrics: Mapping[str, float | None]) -> str:
    return ", ".join(
        f"{name} {metrics[name]:.4f}" for name in ("ACC", "ebF1", "miF1", "maF1", "maAUC") if metrics[name] is not None
    )


if __name__ == "__main__":
    run(main)
