"""Comparison of label graphs, with and without messages among components; and ablations.

    python -m benchmarks.accuracy.prior_vs_learned --dataset bibtex --seeds 3
    python -m benchmarks.accuracy.prior_vs_learned --graphs edgeless,mine.safetensors
    python -m benchmarks.accuracy.prior_vs_learned --dataset bibtex --graphs edgeless,complete
        --node_messages false --settings published
    python -m benchmarks.accuracy.prior_vs_learned --dataset bibtex --graphs complete
        --node_messages false --ablation

Label graphs are edgeless, complete, priors, learned, or read from files. All rows of a seed share
its split. Rows with published settings are LaMP without base scores and without a linear path.
The variants are compared with label frequencies, strong classical models tuned on the same
validation samples, and the papers' figures. Differences between graphs, and from the whole recipe,
are tested over the seeds. The attention along the complete graph is compared with priors, and with
the true label graph where it is known.

Results go to benchmarks/runs/; --replace writes the tracked file of benchmarks/results/ instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from dataclasses import replace as replace_fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast, get_args

import torch
from joblib import delayed

from benchmarks.accuracy.baselines import baselines, classifier_scores, run_baseline, scores_of
from benchmarks.accuracy.label_graphs import (
    co_occurrence_scores,
    label_graph_of,
    mean_label_attention,
    recovery,
)
from benchmarks.accuracy.runs import (
    LAMP,
    LEARNED,
    Row,
    Samples,
    Settings,
    Task,
    in_short,
    recorded,
    row_and_seed,
)
from benchmarks.command_line import chosen, run
from benchmarks.files import check_replacement, collect, name_of, read_file
from benchmarks.report.comparisons import Comparison, full
from tg_mlc._files import sha256
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.graphs import LabelGraph, edgeless
from tg_mlc.papers.base_scores import PUBLISHED
from tg_mlc.papers.recipes import RECIPES, Recipe
from tg_mlc.papers.recipes.tables import TABLES
from tg_mlc.training import MultiLabelDataModule, Training

#: Number of batches over which attention is averaged. More batches change the mean little.
NUM_BATCHES = 10
#: The change of rows in which the components of molecules are fingerprints and descriptors only.
WITHOUT_ATOMS = "without atoms"
#: Known graphs that are always compared with attention. Other graphs need a row to be compared.
ALWAYS_COMPARED = ("prior", "tree", "planted")


@dataclass(frozen=True)
class Change:
    """A difference of an ablation from the recipe."""

    graph: str | None = None
    base_scores: tuple[str, ...] | None = None  #: The classifiers that remain.
    #: Arguments to replace, by the recipe's attributes that hold them.
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def of(self, recipe: Recipe) -> Recipe:
        """The changed recipe."""
        parts = {name: {**getattr(recipe, name), **values} for name, values in self.parts.items()}
        return replace_fields(recipe, **parts)


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
    """The changes that affect the recipe. Other changes concern parts that the recipe lacks."""
    present = set(classifiers)

    def differs(change: Change) -> bool:
        titles = {PUBLISHED[kind].title for kind in change.base_scores or ()}
        other_scores = change.base_scores is not None and titles < present
        other_graph = change.graph not in (None, graph)
        return other_scores or other_graph or (bool(change.parts) and change.of(recipe) != recipe)

    return {name: change for name, change in CHANGES.items() if differs(change)}


def main(
    dataset: str = "sider",
    seeds: int = 5,
    first_seed: int = 10,
    split: str | None = None,
    graphs: str = "edgeless,complete,prior",
    node_messages: str = "false,true",
    atoms: bool = True,
    settings: str = "best",
    without: str = "",
    root: Path = Path("data"),
    jobs: int = 1,
    max_epochs: int | None = None,
    replace: bool = False,
    ablation: bool = False,
) -> None:
    """Trains every variant with every seed, prints the table and writes benchmarks/runs/.

    Rows of an interrupted comparison, else of its file of results, are kept if samples, settings
    and versions are the same. The code is not compared: to make all rows again, remove the file.
    Rows of complete are made again if they were not compared with one of these graphs.

    Args:
        dataset: The data set.
        seeds: Number of seeds.
        first_seed: The first seed. The recipes of molecules were found with seeds 0 to 3, that of
            NCI also with 11.
        split: How samples are divided. Default: the first method of the recipe.
        graphs: The label graphs, joined by commas: edgeless, complete, learned, graphs of the
            recipe, and files that LabelGraph.save wrote, named by their stem.
        node_messages: Whether components send messages to each other: false, true, or both, joined
            by a comma.
        atoms: Whether molecules have atoms as components, or fingerprints and descriptors only.
        settings: The best settings here (best), or near the paper's (published), joined by commas.
        without: Rows of classifiers to skip, joined by semicolons. The same command without this
            option adds them.
        root: Folder that keeps the data.
        jobs: Number of simultaneous trainings, each on one thread.
        max_epochs: Number of epochs, if not that of the recipe.
        replace: Whether to replace the tracked file in benchmarks/results/ instead. Rows are kept
            after every training in a file that replaces the file of results in the end.
        ablation: Whether to train the recipe of a table without one of its parts at a time too.
    """
    check_replacement(replace, max_epochs=max_epochs)
    recipe, split = _checked(dataset, seeds, split, ablation)
    standard = ("edgeless", "complete", "learned")
    graph_files = own_graphs(graphs, (*standard, *recipe.graphs))
    recipe = with_graphs(recipe, graph_files)
    paths = {str(path): name for name, path in graph_files.items()}
    graph_list = ",".join(paths.get(str(Path(entry.strip())), entry) for entry in graphs.split(","))
    selected = chosen(f"--graphs of {dataset}", graph_list, (*standard, *recipe.graphs))
    setting_names = cast("list[Settings]", chosen("--settings", settings, get_args(Settings)))
    flags = chosen("--node_messages", node_messages, ("false", "true"))
    rows = [
        Row(LAMP, flag == "true", graph, setting, None if atoms else WITHOUT_ATOMS)
        for setting, flag, graph in product(setting_names, flags, selected)
    ]
    if not atoms:
        recipe = replace_fields(recipe, model={**recipe.model, "atoms": False})
    options = {} if max_epochs is None else {"max_epochs": max_epochs}
    all_seeds, skipped = range(first_seed, first_seed + seeds), without.split(";")
    if "best" not in setting_names:  # Published settings need no base scores.
        kinds = tuple(kind for kind in recipe.classifiers if PUBLISHED[kind].title not in skipped)
        recipe = replace_fields(recipe, classifiers=kinds)
    samples = Samples(root)
    trials = {seed: samples.trial(dataset, recipe, seed, split) for seed in all_seeds}
    first_task, _ = trials[first_seed]
    _try_out(*trials[first_seed], rows)
    changes: dict[str, Change] = {}
    if ablation:
        entries = classifier_scores(first_task.dataset).classifiers.values()
        changes = changes_of(recipe, [entry.title for entry in entries], selected[0])
        rows += [
            replace_fields(rows[0], graph=change.graph or selected[0], change=name)
            for name, change in changes.items()
        ]
    priors = sorted({*selected, *ALWAYS_COMPARED} & set(recipe.graphs))
    content: dict[str, Any] = {
        "dataset": {**samples.describe(dataset), "counted_labels": int(first_task.counted.sum())},
        "split": split,
        "redrawn": recipe.redraw is not None,
        "seeds": list(all_seeds),
        "recipes": {
            "best": recorded(recipe) | options,
            "published": recorded(recipe.as_published()) | options,
        },
        "own_graphs": {name: sha256(path.read_bytes()) for name, path in graph_files.items()},
    }
    # Results with published settings alone have a separate file.
    published = "published" if setting_names == ["published"] else ""
    name = name_of("prior_vs_learned", dataset, split, published)
    if ablation:
        name = f"ablation-{dataset}"
        content["changes"] = {name: asdict(change) for name, change in changes.items()}
    # If all seeds share their samples, rows without label nodes need one seed only.
    shared = len({(id(task.dataset), seed_split.hash) for task, seed_split in trials.values()}) == 1
    calls = {
        (Row(model), seed): delayed(run_baseline)(*trials[seed], seed, model, options)
        for seed in (all_seeds[:1] if shared else all_seeds)
        for model in baselines(*trials[seed], seed, options)
        if model not in skipped
    }
    calls |= {
        (row, seed): delayed(run_variant)(*trial, seed, row, options, priors)
        for row, (seed, trial) in product(rows, trials.items())
        if row.model not in skipped
    }

    def keeps(run: Mapping[str, Any]) -> bool:
        scores = run["recovery"]
        compared = all(f"{LEARNED}, {prior}" in scores for prior in priors)
        return not scores or Row.of(run) not in rows or compared

    options = {"keeps": keeps, "jobs": jobs, "replace": replace}
    path = collect(name, content, calls, row_and_seed, in_short, **options)
    print("\n".join(["", *full(Comparison.of(name, [read_file(path)]))]))


def _checked(dataset: str, seeds: int, split: str | None, ablation: bool) -> tuple[Recipe, str]:
    """Returns the recipe and the split of a run. Raises SystemExit if an option is invalid."""
    if seeds < 1:
        raise SystemExit(f"Expected --seeds to be at least 1 (got {seeds})")
    if dataset not in RECIPES:
        raise SystemExit(f"Expected --dataset to be one of {', '.join(RECIPES)} (got {dataset})")
    if ablation and dataset not in TABLES:
        valid = ", ".join(TABLES)
        raise SystemExit(f"Expected --dataset of --ablation to be one of {valid} (got {dataset})")
    splits = RECIPES[dataset].splits
    if split is not None and split not in splits:
        valid = ", ".join(splits)
        raise SystemExit(f"Expected --split of {dataset} to be one of {valid} (got {split})")
    return RECIPES[dataset], split or splits[0]


def own_graphs(text: str, known: Collection[str]) -> dict[str, Path]:
    """The files in a comma-separated list of label graphs, by name."""
    paths = {path.stem: path for entry in text.split(",") if (path := Path(entry.strip())).suffix}
    intro = "Expected a file of --graphs to"
    for name, path in paths.items():
        if name in known:
            raise SystemExit(
                f"{intro} have another name than the known graphs (got '{path}'); rename it"
            )
        if not path.is_file():
            raise SystemExit(f"{intro} be one that LabelGraph.save wrote (got no '{path}')")
    return paths


def with_graphs(recipe: Recipe, files: Mapping[str, Path]) -> Recipe:
    """Adds label graphs from files to a recipe."""

    def read(dataset: MultiLabelDataset, split: Split, path: Path) -> LabelGraph:
        graph, names = LabelGraph.load(path), list(dataset.label_names)
        if graph.num_labels != len(names):
            raise SystemExit(
                f"Expected '{path}' to have the {len(names)} labels of the data set (got "
                f"{graph.num_labels}); build it anew"
            )
        if list(graph.label_names or names) != names:
            order = "the labels of the data set, in its order"
            raise SystemExit(f"Expected '{path}' to have {order}; build it anew")
        return graph

    loaders = {name: partial(read, path=path) for name, path in files.items()}
    return replace_fields(recipe, graphs={**recipe.graphs, **loaders})


def _try_out(task: Task, split: Split, rows: Sequence[Row]) -> None:
    """Builds every graph and kind of model, so that errors show now rather than after hours."""
    for graph in {row.graph for row in rows} - {"learned"}:
        task.recipe.label_graph(graph, task.dataset, split)
    for row in {replace_fields(row, graph=None) for row in rows}:
        recipe = task.with_settings(row.settings).recipe
        # Initial values of embeddings take long to compute, and do not matter here.
        options = {**recipe.model, **({"latent": False} if "latent" in recipe.model else {})}
        try:
            labels, train = edgeless(task.dataset.label_names), task.dataset[split.train]
            recipe.build(train, labels, node_messages=row.node_messages, **options)
        except (TypeError, ValueError) as error:
            intro = f"Expected --atoms and --node_messages that models of {task.name} take"
            raise SystemExit(f"{intro}: {error}") from None


def run_variant(
    task: Task,
    split: Split,
    seed: int,
    row: Row,
    options: dict[str, Any],
    priors: Sequence[str] = ALWAYS_COMPARED,
) -> list[dict[str, Any]]:
    """Trains and evaluates one row of label message passing with one seed."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    task, node_messages = task.with_settings(row.settings), bool(row.node_messages)
    if change := CHANGES.get(row.change or ""):
        dataset = task.dataset
        if change.base_scores is not None:
            kinds = list(classifier_scores(dataset).classifiers)
            columns = [kinds.index(kind) for kind in change.base_scores]
            scores = dataset.rows("base_scores")[..., columns]
            dataset = with_attribute(dataset, "base_scores", scores)
        task = Task(task.name, dataset, change.of(task.recipe))
    label_graph = label_graph_of(task, split, seed, cast(str, row.graph), node_messages, options)
    result, data = task.train(split, seed, label_graph, node_messages, options)
    run = task.run(row, split, seed, time.perf_counter() - start, *scores_of(result, data))
    run.density, run.validation = label_graph.density, result.best_value
    if row.graph == "complete" and not change:
        run.recovery = _recovered(task, split, result, data, priors)
    return [run.to_dict()]


def _recovered(
    task: Task, split: Split, result: Training, data: MultiLabelDataModule, priors: Sequence[str]
) -> dict[str, Any]:
    """Scores of attention and of training co-occurrence as rankings of the pairs of each prior."""
    batches = [batch for batch, _ in zip(data.val_dataloader(), range(NUM_BATCHES), strict=False)]
    y = task.dataset.y[split.train]
    scores = {LEARNED: mean_label_attention(result.module.model, batches)}
    scores |= {key: co_occurrence_scores(y, key) for key in ("count", "conditional", "correlation")}
    recovered = {}
    for name in (name for name in priors if name in task.recipe.graphs):
        prior = task.recipe.label_graph(name, task.dataset, split)
        for score, values in scores.items():
            if score == LEARNED or name in ("planted", "tree"):
                recovered[f"{score}, {name}"] = recovery(values, prior, task.counted)
    return recovered


if __name__ == "__main__":
    sys.exit(run(main))
