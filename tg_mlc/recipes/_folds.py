"""LaMP trained once for each fold of the training samples, which it then scores."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.loader import DataLoader

from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.splits import stratified_folds
from tg_mlc.graphs import LabelGraph, co_occurrence, fully_connected
from tg_mlc.models import dna_lamp, molecule_lamp, table_lamp
from tg_mlc.training import BinaryObjective, FitResult, MultiLabelDataModule, MultiLabelModule, fit, seed_everything

#: With more labels than this each attends to the ten that it is most correlated with, not to all.
MAX_COMPLETE, TOP_K = 64, 10
NUM_FOLDS = (5, 3, 2)  #: as many as the time allows to train for at least :obj:`MIN_EPOCHS`
MIN_EPOCHS, MAX_EPOCHS = 3, 40
NUM_STEPS = 1500  #: enough for messages that start from evidence; larger data sets take 8 epochs at least if they can
BATCH_SIZE = 32
_TIMED = 4  # batches


@dataclass(frozen=True)
class Family:
    """How LaMP is built and trained on samples of a kind."""

    build: Callable[..., nn.Module]
    model: Mapping[str, Any]
    module: Mapping[str, Any]
    intermediate_weight: float
    #: What is tried in turn on the first fold, as changes of :attr:`model`, while there is time.
    trials: tuple[Mapping[str, Any], ...] = field(default=({},))
    #: What changes of :attr:`model` where time is too short for an epoch of two folds.
    light: Mapping[str, Any] = field(default_factory=lambda: {"num_steps": 1, "channels": 32})


_MODULE: dict[str, Any] = {"lr": 1e-3, "weight_decay": 0.01, "decay": "cosine", "warmup": 0.05}
_TABLE: dict[str, Any] = {
    "encoder": "emb",
    "num_steps": 2,
    "channels": 64,
    "dropout": 0.2,
    "attention_dropout": 0.0,
    "input_dropout": 0.3,
    "frequency_strength": 0.5,
    "evidence_skip": True,
}
#: By the names that saved models have of them. Settings are those of the recipes for published data sets.
FAMILIES: dict[str, Family] = {
    "table": Family(table_lamp, _TABLE, _MODULE, 0.1, ({}, {"channels": 128, "num_steps": 1}, {"input_dropout": 0.1})),
    "molecules": Family(
        molecule_lamp,
        {"num_steps": 1, "num_feature_layers": 2, "dropout": 0.1, "attention_dropout": 0.0},
        {**_MODULE, "lr": 3e-4, "weight_decay": 0.1},
        0.0,
    ),
    "dna": Family(
        dna_lamp, {"num_steps": 2, "num_feature_layers": 1, "dropout": 0.2, "evidence_skip": True}, _MODULE, 0.1
    ),
}


@dataclass
class Folds:
    """Models of all folds, and what they say of the samples that they were trained without."""

    models: list[nn.Module]
    options: dict[str, Any]
    label_graph: LabelGraph
    held_out: np.ndarray  #: logits :math:`(N, L)`
    epochs: int


def family_of(dataset: MultiLabelDataset) -> str:
    """The name of the family of samples with evidence."""
    if dataset.kind in ("bag", "vector"):
        return "table"
    return "molecules" if "smiles" in dataset[0] else "dna"


def label_graph_of(dataset: MultiLabelDataset) -> LabelGraph:
    """The complete label graph, or of many labels that of the largest correlations."""
    if dataset.num_labels <= MAX_COMPLETE:
        return fully_connected(dataset.label_names)
    return co_occurrence(dataset.y, weight="correlation", top_k=TOP_K, label_names=dataset.label_names)


def build(family: str, train: MultiLabelDataset, label_graph: LabelGraph, options: Mapping[str, Any]) -> nn.Module:
    """A model of a family."""
    return FAMILIES[family].build(train, label_graph, **options)


def train_folds(dataset: MultiLabelDataset, seconds: float, seed: int) -> Folds | None:
    """Trains on all folds but one, for each, within a time; :obj:`None` if it is too short.

    Args:
        dataset (MultiLabelDataset): Training samples with evidence.
        seconds (float): The time.
        seed (int): Seed of folds and weights.
    """
    start, name = time.monotonic(), family_of(dataset)
    family, graph = FAMILIES[name], label_graph_of(dataset)
    plan = _plan(name, dataset, graph, seconds)
    if plan is None:
        return None
    fold = stratified_folds(dataset.y, plan.num_folds, seed)
    splits = [_split(fold, part) for part in range(plan.num_folds)]
    tried: list[tuple[float, dict[str, Any], FitResult]] = []
    for trial in family.trials:
        spent = time.monotonic() - start
        if tried and spent * (1 + plan.num_folds / len(tried)) > seconds:
            break
        options = {**family.model, **trial, **plan.changes}
        result = _train(name, dataset, splits[0], graph, options, plan.epochs, seed)
        tried.append((result.best_value, options, result))
    _, options, first = min(tried, key=lambda each: each[0])
    results = [first, *(_train(name, dataset, split, graph, options, plan.epochs, seed) for split in splits[1:])]
    models = [_frozen(result) for result in results]
    held_out = torch.empty_like(dataset.y)
    for model, split in zip(models, splits, strict=True):
        held_out[split.val] = logits_of(model, dataset[split.val])
    return Folds(models, options, graph, held_out.double().numpy(), plan.epochs)


@torch.no_grad()
def logits_of(model: nn.Module, dataset: MultiLabelDataset, batch_size: int = 256) -> Tensor:
    """The logits :math:`(N, L)` of samples."""
    device = next(model.parameters()).device
    return torch.cat([model(batch.to(device)).cpu() for batch in DataLoader(dataset, batch_size)])


def seconds_per_epoch(model: nn.Module, dataset: MultiLabelDataset) -> float:
    """How long a pass over all samples takes to train, from a few batches of it."""
    loader, times = DataLoader(dataset, BATCH_SIZE), []
    for batch in islice(loader, _TIMED):
        before = time.monotonic()
        model(batch).sum().backward()
        times.append(time.monotonic() - before)
    # The first ones may compile kernels. Collating, the optimiser and validation take about half as long again.
    return 1.5 * min(times) * len(loader)


class _Plan(NamedTuple):
    """What the time allows."""

    changes: Mapping[str, Any]  #: of the settings of a family
    num_folds: int
    epochs: int


def _plan(name: str, dataset: MultiLabelDataset, label_graph: LabelGraph, seconds: float) -> _Plan | None:
    family, num_samples = FAMILIES[name], len(dataset)
    wanted = int(np.clip(NUM_STEPS * BATCH_SIZE / num_samples, 8, MAX_EPOCHS))
    changes: Mapping[str, Any]
    for changes in ({}, family.light):
        model = build(name, dataset, label_graph, {**family.model, **changes})
        # What is left is for trials, and for a machine that may become slower.
        affordable = 0.7 * seconds / seconds_per_epoch(model, dataset)
        for num_folds in (number for number in NUM_FOLDS if number <= num_samples):
            epochs = int(affordable / num_folds)
            if epochs >= MIN_EPOCHS or (num_folds == NUM_FOLDS[-1] and epochs > 0):
                return _Plan(changes, num_folds, min(wanted, epochs))
    return None


def _split(fold: np.ndarray, part: int) -> Split:
    rows = torch.arange(len(fold))
    held_out = torch.from_numpy(fold == part)
    return Split(rows[~held_out], rows[held_out], rows[:0], f"fold {part}")


def _train(
    name: str,
    dataset: MultiLabelDataset,
    split: Split,
    label_graph: LabelGraph,
    options: Mapping[str, Any],
    epochs: int,
    seed: int,
) -> FitResult:
    family = FAMILIES[name]
    settings: dict[str, Any] = {"monitor": "val/loss", "patience": 5, "ema_decay": 0.98, "gradient_clip": 1.0}
    with tempfile.TemporaryDirectory() as folder:
        seed_everything(seed, verbose=False)
        model = build(name, dataset[split.train], label_graph, options)
        objective = BinaryObjective(intermediate_weight=family.intermediate_weight)
        module = MultiLabelModule(model, dataset.label_names, objective, **family.module)
        data = MultiLabelDataModule(dataset, split, batch_size=BATCH_SIZE, seed=seed)
        return fit(module, data, folder, max_epochs=epochs, logger=False, accelerator="cpu", **settings)


def _frozen(result: FitResult) -> nn.Module:
    return result.module.model.eval().requires_grad_(False)
