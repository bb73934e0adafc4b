"""Cross-fitting of LaMP: each fold is scored by a model that was trained without it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning.pytorch import Callback
from torch import nn
from torch_geometric.loader import DataLoader

from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.splits import stratified_folds
from tg_mlc.graphs import LabelGraph, co_occurrence, fully_connected
from tg_mlc.inference.batches import batches_of, logits_of
from tg_mlc.inference.checkpoint import load_file
from tg_mlc.inputs import kind_of
from tg_mlc.models import dna_lamp, mixed_lamp, molecule_lamp, table_lamp
from tg_mlc.training import BinaryObjective
from tg_mlc.training.fitting import TrainSettings, train_model

#: With over MAX_COMPLETE labels, each label attends only to the TOP_K most correlated labels.
MAX_COMPLETE, TOP_K = 64, 10
NUM_FOLDS = (5, 3, 2)  #: candidates; the first with time for :obj:`MIN_EPOCHS` is used
MIN_EPOCHS, MAX_EPOCHS = 3, 40
NUM_STEPS = 1500  #: training steps; enough if training starts from base scores
BATCH_SIZE = 32
PATIENCE = 5  #: epochs without improvement before training stops
_NUM_TIMED = 4  # Number of batches on which time is measured.

#: Trains on the first fold with changed options and Lightning callbacks; returns the lowest loss.
Attempt = Callable[..., float]
#: Calls an attempt with changes of the default options, and returns the best changes.
Search = Callable[[Attempt, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class LaMPSettings:
    """Settings of LaMP and its training for a kind of input."""

    build: Callable[..., nn.Module]
    model: Mapping[str, Any]
    train: TrainSettings
    #: Changes of :attr:`model` that are compared on the first fold as long as time allows.
    trials: tuple[Mapping[str, Any], ...] = ({},)


#: Default options of LaMP and its training; some kinds of input override options below.
MODEL: dict[str, Any] = {"channels": 64, "dropout": 0.2, "attention_dropout": 0.0}
MODEL["score_skip"] = True  # Training starts from the base scores.
MODULE: dict[str, Any] = {"lr": 1e-3, "weight_decay": 0.01, "lr_schedule": "cosine", "warmup": 0.05}
FIT: dict[str, Any] = {"ema_decay": 0.98, "gradient_clip": 1.0}
OBJECTIVE = BinaryObjective(intermediate_weight=0.1)

_TABLE: dict[str, Any] = {**MODEL, "node_messages": False, "num_steps": 2}
_TABLE |= {"input_dropout": 0.3, "frequency_strength": 0.5}
_MOLECULES = {"num_steps": 1, "num_feature_layers": 2, "dropout": 0.1, "attention_dropout": 0.0}
_MIXED = {**MODEL, "num_steps": 2, "input_dropout": 0.3, "frequency_strength": 0.5}
_DNA = {"num_steps": 2, "num_feature_layers": 1, "dropout": 0.2, "score_skip": True}
_FIT = {**FIT, "monitor": "val/loss", "accelerator": "cpu", "logger": False}
_TRAIN = TrainSettings(MODULE, OBJECTIVE, _FIT, BATCH_SIZE)
_SLOW = {**MODULE, "lr": 3e-4, "weight_decay": 0.1}
_TRAIN_MOLECULES = replace(_TRAIN, module=_SLOW, objective=BinaryObjective())
# Changes of options if time is too short to train the default model on two folds.
_LIGHT: dict[str, Any] = {"num_steps": 1, "channels": 32}
_WIDE: dict[str, Any] = {"channels": 128, "num_steps": 1}
_TRIALS: tuple[dict[str, Any], ...] = ({}, _WIDE, {"input_dropout": 0.1})
#: LaMP settings by the attribute :obj:`settings` of a kind of input.
SETTINGS: dict[str, LaMPSettings] = {
    "table": LaMPSettings(table_lamp, _TABLE, _TRAIN, _TRIALS),
    "molecules": LaMPSettings(molecule_lamp, _MOLECULES, _TRAIN_MOLECULES),
    "dna": LaMPSettings(dna_lamp, _DNA, _TRAIN),
    "mixed": LaMPSettings(mixed_lamp, _MIXED, _TRAIN, _TRIALS),
}


@dataclass
class Folds:
    """Models of all folds, and their held-out scores."""

    models: list[nn.Module]
    options: dict[str, Any]
    held_out: np.ndarray  #: logits :math:`(N, L)`
    epochs: int  #: number of epochs, the best for the first fold
    fold: np.ndarray  #: for each sample, index :math:`(N)` of the model trained without it


def settings_of(dataset: MultiLabelDataset) -> LaMPSettings:
    """Returns the settings for samples with base scores."""
    return SETTINGS[kind_of(dataset).settings]


def label_graph_of(dataset: MultiLabelDataset) -> LabelGraph:
    """Returns the complete label graph, or, for many labels, a graph of largest correlations."""
    names = dataset.label_names
    if dataset.num_labels <= MAX_COMPLETE:
        return fully_connected(names)
    return co_occurrence(dataset.y, weight="correlation", top_k=TOP_K, label_names=names)


def train_folds(
    dataset: MultiLabelDataset, seconds: float, seed: int, search: Search | None = None
) -> Folds | None:
    """Trains one model per left-out fold; returns :obj:`None` if the time is too short."""
    end, settings = time.monotonic() + seconds, settings_of(dataset)
    plan = _plan(settings, dataset, seconds)
    if plan is None:
        return None
    fold = stratified_folds(dataset.y, plan.num_folds, seed)
    splits = [_split(fold, index) for index in range(plan.num_folds)]
    budget = end - time.monotonic()
    options, epochs, cost = _choose(settings, (dataset, splits[0]), plan, budget, seed, search)
    if search is not None:
        end = time.monotonic() + seconds
    models, held_out = [], torch.empty_like(dataset.y)
    for index, split in enumerate(splits):
        # The machine may have slowed down since the first fold.
        affordable = int((end - time.monotonic()) / (plan.num_folds - index) / cost)
        num_epochs = max(1, min(epochs, affordable))
        model = _train(settings, (dataset, split), options, num_epochs, seed).model
        models.append(model.eval().requires_grad_(False))
        held_out[split.val] = logits_of(model, batches_of(dataset[split.val]))
    return Folds(models, options, held_out.double().numpy(), epochs, fold)


class _Plan(NamedTuple):
    changes: Mapping[str, Any]  #: replacements of entries of :attr:`LaMPSettings.model`
    num_folds: int
    epochs: int


def _plan(settings: LaMPSettings, dataset: MultiLabelDataset, seconds: float) -> _Plan | None:
    if seconds <= 0:
        return None
    label_graph, num_samples = label_graph_of(dataset), len(dataset)
    target_epochs = int(np.clip(NUM_STEPS * BATCH_SIZE / num_samples, 8, MAX_EPOCHS))
    for changes in (dict[str, Any](), _LIGHT):
        model = settings.build(dataset, label_graph, **{**settings.model, **changes})
        # Reserve 30 % of the time for trials and slowdowns of the machine.
        affordable = 0.7 * seconds / seconds_per_epoch(model, dataset)
        for num_folds in (number for number in NUM_FOLDS if number <= num_samples):
            epochs = int(affordable / (1 + num_folds))
            if epochs >= MIN_EPOCHS or (num_folds == NUM_FOLDS[-1] and epochs > 0):
                return _Plan(changes, num_folds, min(target_epochs, epochs))
    return None


def seconds_per_epoch(model: nn.Module, dataset: MultiLabelDataset) -> float:
    """Returns the duration of an epoch over all samples, measured on its first batches."""
    loader, times = DataLoader(dataset, BATCH_SIZE), []
    for batch in islice(loader, _NUM_TIMED):
        before = time.monotonic()
        model(batch).sum().backward()
        times.append(time.monotonic() - before)
    # The minimum excludes compilation. Collating, optimiser and validation add half of the time.
    return 1.5 * min(times) * len(loader)


def _split(fold_of_row: np.ndarray, index: int) -> Split:
    rows, held_out = torch.arange(len(fold_of_row)), torch.from_numpy(fold_of_row == index)
    return Split(rows[~held_out], rows[held_out], rows[:0], f"fold {index}")


class _Trained(NamedTuple):
    model: nn.Module  #: the model after the last epoch
    least: float  #: lowest held-out loss of an epoch
    best_epoch: int
    seconds: float  #: time per epoch


def _choose(
    settings: LaMPSettings,
    samples: tuple[MultiLabelDataset, Split],
    plan: _Plan,
    seconds: float,
    seed: int,
    search: Search | None,
) -> tuple[dict[str, Any], int, float]:
    """Returns the best options and number of epochs for the first fold, and seconds per epoch. All
    folds share this choice: a choice per fold would bias the held-out scores of the fold.
    """
    default, tried = {**settings.model, **plan.changes}, list[tuple[dict[str, Any], _Trained]]()

    def attempt(changes: Mapping[str, Any], *callbacks: Callback) -> float:
        options = {**default, **changes}
        overrides: Any = {"patience": PATIENCE, "callbacks": callbacks}
        trained = _train(settings, samples, options, plan.epochs, seed, **overrides)
        tried.append((options, trained))
        return trained.least

    if search is None:
        start = time.monotonic()
        for num_done, trial in enumerate(settings.trials):
            elapsed = time.monotonic() - start
            # Stop if another trial would leave too little time to train all folds.
            if num_done and elapsed + elapsed / num_done * (1 + plan.num_folds) > seconds:
                break
            attempt({**trial, **plan.changes})
        options, best_trained = min(tried, key=lambda pair: pair[1].least)
    else:
        start_options = {"channels": MODEL["channels"], **settings.train.module, **default}
        chosen = {**default, **search(attempt, start_options)}
        if chosen not in [options for options, _ in tried]:
            attempt(chosen)
        options, best_trained = next(pair for pair in tried if pair[0] == chosen)
    return options, best_trained.best_epoch, best_trained.seconds


def _train(
    settings: LaMPSettings,
    samples: tuple[MultiLabelDataset, Split],
    options: Mapping[str, Any],
    epochs: int,
    seed: int,
    **overrides: Any,
) -> _Trained:
    start, train = time.monotonic(), settings.train
    module = {key: options.get(key, value) for key, value in train.module.items()}
    model = {key: value for key, value in options.items() if key not in module}
    fit = {**train.fit, "max_epochs": epochs, "patience": None, **overrides}
    changed = replace(train, module=module, fit=fit)

    def build(train: MultiLabelDataset) -> nn.Module:
        return settings.build(train, label_graph_of(train), **model)

    with tempfile.TemporaryDirectory() as folder:
        result = train_model(build, *samples, changed, folder, seed=seed)
        best, last = (load_file(path) for path in (result.checkpoint, result.last_checkpoint))
        result.module.load_state_dict(last["state_dict"])
    seconds = (time.monotonic() - start) / result.num_epochs
    return _Trained(result.module.model, result.best_value, best["epoch"] + 1, seconds)
