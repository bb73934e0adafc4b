"""Cells of the papers' tables: one data set, one row and one seed, each in a file of its own."""

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
#: How the change of a row begins that has another number of steps, or another dropout of the attention among labels.
STEPS, LABEL_DROPOUT = "T=", "label dropout "
#: Their names as options of models; those of LaMP hand theirs down.
STEPS_OPTIONS = ("decoder_steps", "num_steps")
#: Types of options that are recorded.
PLAIN = (bool, int, float, str)
#: Options of training that a cell says elsewhere, or that change no result.
ELSEWHERE = ("accelerator", "deterministic", "resume")


@dataclass(frozen=True)
class Cell:
    """The data set, the row and the seed of one file."""

    dataset: str
    row: Row
    seed: int

    @property
    def name(self) -> str:
        """That of the file, from the folder of results."""
        row = self.row
        messages = "node messages" if row.node_messages else None
        parts = [
            part.replace(" ", "-") for part in (row.model, messages, row.graph, row.change) if part
        ]
        return f"{FOLDER}/{self.dataset}/{'-'.join([*parts, f's{self.seed}'])}"

    def path(self, *, tracked: bool) -> Path:
        """The file, among tracked results or one's own."""
        return (files.RESULTS if tracked else files.RUNS) / f"{self.name}.json"


def stored(*, tracked: bool) -> pd.DataFrame:
    """All cells, by name."""
    folder = (files.RESULTS if tracked else files.RUNS) / FOLDER
    return table_of(map(files.read_file, sorted(folder.glob("*/*.json"))))


def table_of(contents: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """The runs of cells as a table, with the data set of each and the content of its file."""
    found = list(contents)
    runs = (
        frame(content["run"] for content in found)
        if found
        else pd.DataFrame(columns=["row", "seed", "seconds"])
    )
    return runs.assign(dataset=[content["dataset"]["name"] for content in found], content=found)


def recipe_of(
    dataset: str, row: Row, channels: int | None = None, epochs: int | None = None
) -> Recipe:
    """How a row is trained on a data set, smaller on request."""
    published = RECIPES[dataset].as_published()
    recipe = RECIPES[dataset].as_member(FAMILY[row.model]) if row.model in FAMILY else published
    # A model whose channels are None has no states.
    sized = channels is not None and recipe.model.get("channels", channels) is not None
    model, change = {**recipe.model, **({"channels": channels} if sized else {})}, row.change or ""
    if change.startswith(LABEL_DROPOUT):
        model["label_kwargs"] = {"attention_dropout": float(change.removeprefix(LABEL_DROPOUT))}
    elif change:
        model[_steps_option(recipe)] = int(change.removeprefix(STEPS))
    return replace(
        recipe,
        model=model,
        fit=recipe.fit if epochs is None else {**recipe.fit, "max_epochs": epochs},
    )


def without_own_steps(dataset: str, row: Row) -> Row:
    """The same row, without a change to the number of steps that its recipe has anyway."""
    recipe = recipe_of(dataset, replace(row, change=None))
    # Recipes of LaMP give theirs; the others have MPED's.
    own = recipe.model.get(
        _steps_option(recipe), inspect.signature(mped).parameters["decoder_steps"].default
    )
    return replace(row, change=None) if row.change == f"{STEPS}{own}" else row


def _steps_option(recipe: Recipe) -> str:
    """The option of the model for its number of label message passing steps."""
    return next(
        (name for name in STEPS_OPTIONS if name in inspect.signature(recipe.build).parameters),
        "num_steps",
    )


def settings_of(cell: Cell, task: Task, split: Split, data: Mapping[str, Any]) -> dict[str, Any]:
    """All that the seeds of a row have to share: the samples, and all settings, given or by default."""
    recipe = task.recipe
    found: dict[str, Any] = {"data": data["sha256"], "split": recipe.splits[0]}
    found["settings"] = {
        key: value for key, value in recipe.settings.items() if key != "classifiers"
    }
    if cell.row.node_messages is None:
        found["model"] = rivals(cell.dataset, cell.seed)[cell.row.model].settings
        if cell.dataset in MOLECULES:
            found["fingerprints"] = {"radius": 2, "num_bits": 2048}
    else:
        found |= _of_network(cell.row, task, split)
    return cast("dict[str, Any]", json.loads(json.dumps(found)))


def _of_network(row: Row, task: Task, split: Split) -> dict[str, Any]:
    recipe, model = task.recipe, untrained(row, task, split)
    objective = recipe.objective_class(**recipe.objective)
    options = (
        _defaults(input_encoder) | _defaults(recipe.build) | {"node_messages": row.node_messages}
    )
    return {
        "model": {**options, **recipe.model},
        "parts": parts_of(model),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "module": {**_defaults(MultiLabelModule), **recipe.module},
        "objective": {"class": type(objective).__name__, **vars(objective)},
        "fit": {
            **{key: value for key, value in _defaults(fit).items() if key not in ELSEWHERE},
            **recipe.fit,
        },
        "batch_size": recipe.batch_size,
    }


def _defaults(call: Callable[..., Any]) -> dict[str, Any]:
    """Arguments whose defaults are plain data."""
    options = inspect.signature(call).parameters.values()
    return {option.name: option.default for option in options if isinstance(option.default, PLAIN)}


def untrained(row: Row, task: Task, split: Split) -> nn.Module:
    """The model of a row, of which the content of samples decides only the weights."""
    kind = {None: "edgeless", "learned": "complete"}.get(row.graph, row.graph)
    options = {"node_messages": row.node_messages, **task.recipe.model}
    blueprint = Blueprint(task.recipe.build.__name__, options, describe_samples(task.dataset))
    return blueprint.build(task.recipe.label_graph(kind, task.dataset, split))


def parts_of(model: nn.Module) -> dict[str, str]:
    """The values of all options of each class of its modules, which also tell what builders hand down by default."""
    found: dict[str, dict[str, list[str]]] = {}
    for part in model.modules():
        options = found.setdefault(type(part).__name__, {})
        for name, value in vars(part).items():
            if (
                name[0] != "_"
                and name != "training"
                and _is_plain(value)
                and str(value) not in options.get(name, [])
            ):
                options.setdefault(name, []).append(str(value))
    return {
        kind: ", ".join(f"{name}={' or '.join(values)}" for name, values in options.items())
        for kind, options in found.items()
        if options
    }


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (
        isinstance(value, list | tuple) and all(map(_is_plain, value))
    )


@dataclass(frozen=True)
class Learned:
    """The label graph that a cell's model learned, and how long that took."""

    label_graph: LabelGraph
    seconds: float


def run_cell(
    cell: Cell,
    task: Task,
    split: Split,
    options: dict[str, Any],
    learned: dict[Cell, Learned] | None = None,
) -> dict[str, Any]:
    """The content of a cell's file beside its settings; models along all pairs leave their graph for another cell."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    if cell.row.node_messages is None:
        scores = rivals(cell.dataset, cell.seed)[cell.row.model].scores(task, split)
        return {
            "run": task.run(
                cell.row, split, cell.seed, time.perf_counter() - start, *scores
            ).to_dict()
        }
    node_messages, timer = bool(cell.row.node_messages), EpochTimer()
    # Models without a label graph do not look at it.
    along_all, learned = (
        replace(cell, row=replace(cell.row, graph="complete")),
        {} if learned is None else learned,
    )
    known = learned.get(along_all) if cell.row.graph == "learned" else None
    if known is None:
        label_graph = label_graph_of(
            task, split, cell.seed, cell.row.graph or "edgeless", node_messages, options
        )
    else:
        label_graph, start = known.label_graph, start - known.seconds
    # nothing is known to models in tables, so that is how to choose an epoch
    if cell.row.model == "lamp-given":
        nothing = torch.full_like(task.dataset.y, torch.nan)
        task = replace(task, dataset=with_attribute(task.dataset, "given", nothing))
    result, data = task.train(
        split, cell.seed, label_graph, node_messages, {**options, "callbacks": [timer]}
    )
    on_val = result.scores(data.val_dataloader())
    testing = time.perf_counter()
    on_test = result.scores(data.test_dataloader())
    end = time.perf_counter()
    if cell == along_all and cell.row.model != "lamp-given":
        learned[cell] = Learned(learned_by(task, result, data), end - start)
    run = task.run(cell.row, split, cell.seed, end - start, on_val, on_test)
    run.density, run.validation = (
        (label_graph.density if cell.row.graph else None),
        result.best_value,
    )
    preprocessor = task.dataset.preprocessor
    told = {
        "inputs": None if preprocessor is None else to_state(preprocessor),
        "label graph": (label_graph.edge_index, label_graph.edge_weight),
        "weights": result.module.model.state_dict(),
        "validation scores": on_val,
    }
    seconds = {"train": float(np.median(timer.seconds)), "test": end - testing}
    found = {"run": run.to_dict(), "epochs": result.num_epochs, "seconds_per_epoch": seconds}
    return {**found, "fingerprints": {name: fingerprint(value) for name, value in told.items()}}


class EpochTimer(Callback):
    """Seconds that the training batches of each epoch take."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_epoch_start(self, *_: Any) -> None:
        self._start = self._last = time.perf_counter()

    def on_train_batch_end(self, *_: Any) -> None:
        self._last = time.perf_counter()

    def on_train_epoch_end(self, *_: Any) -> None:
        # Validation lies between the last batch and the end of an epoch.
        self.seconds.append(self._last - self._start)


def fingerprint(value: Any) -> str:
    """The SHA-256 of tensors and plain data, however they are nested."""
    digest = hashlib.sha256()
    for part in _flat(value):
        digest.update(part)
    return digest.hexdigest()


def _flat(value: Any) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple):
        yield f"{type(value).__name__} {len(value)}".encode()
        for each in value:
            yield from _flat(each)
    elif isinstance(value, Tensor):
        yield f"{value.dtype} {list(value.shape)}".encode()
        yield value.detach().cpu().contiguous().numpy().tobytes()
    else:
        yield repr(value).encode()
