"""Cells of the papers' tables: one data set, one row and one seed, each in its own file."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from lightning.pytorch import Callback
from torch import Tensor, nn

from benchmarks import files
from benchmarks.accuracy.baselines import rivals
from benchmarks.accuracy.label_graphs import label_graph_of, learned_by
from benchmarks.accuracy.runs import Row, Task, frame
from tg_mlc.data import Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.graphs import LabelGraph
from tg_mlc.inputs.kinds import input_encoder
from tg_mlc.inputs.preprocessor import to_state
from tg_mlc.models.builders import Blueprint, describe_samples
from tg_mlc.papers import mped
from tg_mlc.papers.recipes import RECIPES, Recipe
from tg_mlc.papers.recipes.family import FAMILY
from tg_mlc.papers.recipes.graphs import MOLECULES
from tg_mlc.training import MultiLabelModule, fit

FOLDER = "cells"
#: Prefixes of changes of a row: another number of steps, another dropout of label attention.
STEPS, LABEL_DROPOUT = "T=", "label dropout "
#: Options of models for the number of steps, by priority. LaMP's builders forward ``num_steps``.
STEPS_OPTIONS = ("decoder_steps", "num_steps")
#: Types of options that are recorded.
PLAIN = (bool, int, float, str)
#: Options of training that a cell records elsewhere, or that change no result.
ELSEWHERE = ("accelerator", "deterministic", "resume")


@dataclass(frozen=True)
class Cell:
    """The data set, the row and the seed of one file."""

    dataset: str
    row: Row
    seed: int

    @property
    def name(self) -> str:
        """The name of the file in the folder of results."""
        messages = "node messages" if self.row.node_messages else None
        parts = (self.row.model, messages, self.row.graph, self.row.change, f"s{self.seed}")
        name = "-".join(part.replace(" ", "-") for part in parts if part)
        return f"{FOLDER}/{self.dataset}/{name}"

    def path(self, *, tracked: bool) -> Path:
        """The path of the file, in ``results/`` if tracked, else in ``runs/``."""
        return (files.RESULTS if tracked else files.RUNS) / f"{self.name}.json"


def stored(*, tracked: bool) -> pd.DataFrame:
    """A table of all cells, sorted by name."""
    folder = (files.RESULTS if tracked else files.RUNS) / FOLDER
    return table_of(map(files.read_file, sorted(folder.glob("*/*.json"))))


def table_of(contents: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """A table of the runs of cells, with columns for data sets and for contents of the files."""
    results = list(contents)
    runs = pd.DataFrame(columns=["row", "seed", "seconds"])
    if results:
        runs = frame(result["run"] for result in results)
    return runs.assign(dataset=[result["dataset"]["name"] for result in results], content=results)


def recipe_of(
    dataset: str, row: Row, channels: int | None = None, epochs: int | None = None
) -> Recipe:
    """The recipe of a row on a data set, with other channels or epochs if specified."""
    published = RECIPES[dataset].as_published()
    recipe = RECIPES[dataset].as_member(FAMILY[row.model]) if row.model in FAMILY else published
    # A model with channels=None has no states, so that its size cannot change.
    resize = channels is not None and recipe.model.get("channels", channels) is not None
    model, change = {**recipe.model, **({"channels": channels} if resize else {})}, row.change or ""
    if change.startswith(LABEL_DROPOUT):
        model["label_kwargs"] = {"attention_dropout": float(change.removeprefix(LABEL_DROPOUT))}
    elif change:
        model[_steps_option(recipe)] = int(change.removeprefix(STEPS))
    settings = recipe.fit if epochs is None else {**recipe.fit, "max_epochs": epochs}
    return replace(recipe, model=model, fit=settings)


def without_own_steps(dataset: str, row: Row) -> Row:
    """Removes a row's change of the number of steps if its recipe has the same number."""
    recipe = recipe_of(dataset, replace(row, change=None))
    # Recipes of LaMP specify their number of steps; the others have MPED's default.
    default = inspect.signature(mped).parameters["decoder_steps"].default
    num_steps = recipe.model.get(_steps_option(recipe), default)
    return replace(row, change=None) if row.change == f"{STEPS}{num_steps}" else row


def _steps_option(recipe: Recipe) -> str:
    """The option of the model for its number of label message passing steps."""
    options = inspect.signature(recipe.build).parameters
    return next((name for name in STEPS_OPTIONS if name in options), "num_steps")


def settings_of(cell: Cell, task: Task, split: Split, data: Mapping[str, Any]) -> dict[str, Any]:
    """The samples and all settings, with defaults, in which the seeds of a row must agree."""
    recipe = task.recipe
    settings = {key: value for key, value in recipe.settings.items() if key != "classifiers"}
    shared = {"data": data["sha256"], "split": recipe.splits[0], "settings": settings}
    if cell.row.node_messages is None:
        shared["model"] = rivals(cell.dataset, cell.seed)[cell.row.model].settings
        if cell.dataset in MOLECULES:
            shared["fingerprints"] = {"radius": 2, "num_bits": 2048}
    else:
        shared |= _network_settings(cell.row, task, split)
    return cast("dict[str, Any]", json.loads(json.dumps(shared)))


def _network_settings(row: Row, task: Task, split: Split) -> dict[str, Any]:
    recipe, model = task.recipe, untrained(row, task, split)
    objective = recipe.objective_class(**recipe.objective)
    options = {**_defaults(input_encoder), **_defaults(recipe.build)}
    defaults = {key: value for key, value in _defaults(fit).items() if key not in ELSEWHERE}
    return {
        "model": {**options, "node_messages": row.node_messages, **recipe.model},
        "parts": parts_of(model),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "module": {**_defaults(MultiLabelModule), **recipe.module},
        "objective": {"class": type(objective).__name__, **vars(objective)},
        "fit": {**defaults, **recipe.fit},
        "batch_size": recipe.batch_size,
    }


def _defaults(call: Callable[..., Any]) -> dict[str, Any]:
    """The defaults of a function's arguments, if they are plain data."""
    options = inspect.signature(call).parameters.values()
    return {option.name: option.default for option in options if isinstance(option.default, PLAIN)}


def untrained(row: Row, task: Task, split: Split) -> nn.Module:
    """Builds the model of a row. The content of samples affects its weights only."""
    kind = {None: "edgeless", "learned": "complete"}.get(row.graph, row.graph)
    options = {"node_messages": row.node_messages, **task.recipe.model}
    blueprint = Blueprint(task.recipe.build.__name__, options, describe_samples(task.dataset))
    return blueprint.build(task.recipe.label_graph(kind, task.dataset, split))


def parts_of(model: nn.Module) -> dict[str, str]:
    """The plain options of modules as text by class, including options that builders forward."""
    classes: dict[str, dict[str, list[str]]] = {}
    for module in model.modules():
        options = classes.setdefault(type(module).__name__, {})
        for name, value in vars(module).items():
            is_recorded = name[0] != "_" and name != "training" and _is_plain(value)
            if is_recorded and str(value) not in options.get(name, []):
                options.setdefault(name, []).append(str(value))
    texts = {
        name: ", ".join(f"{option}={' or '.join(values)}" for option, values in options.items())
        for name, options in classes.items()
    }
    return {name: text for name, text in texts.items() if text}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, PLAIN)


@dataclass(frozen=True)
class Learned:
    """The label graph that a cell's model learned, and the seconds that it took."""

    label_graph: LabelGraph
    seconds: float


def run_cell(
    cell: Cell,
    task: Task,
    split: Split,
    options: dict[str, Any],
    learned: dict[Cell, Learned] | None = None,
) -> dict[str, Any]:
    """The content of a cell's file without settings. Adds a learned label graph to ``learned``."""
    torch.set_num_threads(1)
    row, start = cell.row, time.perf_counter()
    if row.node_messages is None:
        scores = rivals(cell.dataset, cell.seed)[row.model].scores(task, split)
        run = task.run(row, split, cell.seed, time.perf_counter() - start, *scores)
        return {"run": run.to_dict()}
    node_messages, timer = bool(row.node_messages), EpochTimer()
    complete_cell = replace(cell, row=replace(row, graph="complete"))
    learned = {} if learned is None else learned
    cached = learned.get(complete_cell) if row.graph == "learned" else None
    if cached is None:
        # Models without a label graph ignore it.
        graph = row.graph or "edgeless"
        label_graph = label_graph_of(task, split, cell.seed, graph, node_messages, options)
    else:
        label_graph, start = cached.label_graph, start - cached.seconds
    # The tables predict without given labels, so validation samples have none either.
    if row.model == "lamp-given":
        unknown = torch.full_like(task.dataset.y, torch.nan)
        task = replace(task, dataset=with_attribute(task.dataset, "given", unknown))
    options = {**options, "callbacks": [timer]}
    result, data = task.train(split, cell.seed, label_graph, node_messages, options)
    val_scores = result.scores(data.val_dataloader())
    test_start = time.perf_counter()
    test_scores = result.scores(data.test_dataloader())
    end = time.perf_counter()
    if cell == complete_cell and row.model != "lamp-given":
        learned[cell] = Learned(learned_by(task, result, data), end - start)
    run = task.run(row, split, cell.seed, end - start, val_scores, test_scores)
    run.density = label_graph.density if row.graph else None
    run.validation = result.best_value
    preprocessor = task.dataset.preprocessor
    hashed = {
        "inputs": None if preprocessor is None else to_state(preprocessor),
        "label graph": (label_graph.edge_index, label_graph.edge_weight),
        "weights": result.module.model.state_dict(),
        "validation scores": val_scores,
    }
    seconds = {"train": float(np.median(timer.seconds)), "test": end - test_start}
    content = {"run": run.to_dict(), "epochs": result.num_epochs, "seconds_per_epoch": seconds}
    return {**content, "fingerprints": {name: fingerprint(value) for name, value in hashed.items()}}


class EpochTimer(Callback):
    """Seconds that the training batches of each epoch take."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_epoch_start(self, *_: Any) -> None:
        self._start = self._last = time.perf_counter()

    def on_train_batch_end(self, *_: Any) -> None:
        self._last = time.perf_counter()

    def on_train_epoch_end(self, *_: Any) -> None:
        # Validation runs between the last batch and the end of an epoch.
        self.seconds.append(self._last - self._start)


def fingerprint(value: Any) -> str:
    """The SHA-256 of nested tensors and plain data."""
    digest = hashlib.sha256()
    for chunk in _flat(value):
        digest.update(chunk)
    return digest.hexdigest()


def _flat(value: Any) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _flat(item)
    elif isinstance(value, Tensor):
        yield f"{value.dtype} {list(value.shape)}".encode()
        yield value.detach().cpu().contiguous().numpy().tobytes()
    else:
        yield repr(value).encode()
