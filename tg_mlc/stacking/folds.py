"""LaMP trained once for each fold of the training samples, which it then scores."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from tg_mlc.models import dna_lamp, molecule_lamp, table_lamp
from tg_mlc.training import BinaryObjective
from tg_mlc.training.fitting import TrainSettings, train_model

#: With more labels, each attends to the ten most correlated labels, not to all.
MAX_COMPLETE, TOP_K = 64, 10
NUM_FOLDS = (5, 3, 2)  #: the first number that the time allows to train for :obj:`MIN_EPOCHS`
MIN_EPOCHS, MAX_EPOCHS = 3, 40
#: Enough for messages that start from base scores; large data sets take 8 epochs if time allows.
NUM_STEPS = 1500
BATCH_SIZE = 32
PATIENCE = 5  #: epochs without a better one
_TIMED = 4  # batches

#: Trains on the first fold with changed options and Lightning callbacks; returns the least loss.
Attempt = Callable[..., float]
#: Finds the best changes by attempts, given the default options.
Search = Callable[[Attempt, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class LaMPSettings:
    """How LaMP is built and trained on samples of a kind."""

    build: Callable[..., nn.Module]
    model: Mapping[str, Any]
    train: TrainSettings
    #: Changes of :attr:`model` that are tried in turn on the first fold, while there is time.
    trials: tuple[Mapping[str, Any], ...] = field(default=({},))
    #: Changes of :attr:`model` where time is too short for an epoch of two folds.
    light: Mapping[str, Any] = field(default_factory=lambda: {"num_steps": 1, "channels": 32})


#: LaMP's default options, of its model and of its training; kinds of input change some below.
MODEL: dict[str, Any] = {
    "channels": 64,
    "dropout": 0.2,
    "attention_dropout": 0.0,
    # Training starts from the meaning of the base scores, and messages begin with nothing to add.
    "score_skip": True,
}
MODULE: dict[str, Any] = {"lr": 1e-3, "weight_decay": 0.01, "lr_schedule": "cosine", "warmup": 0.05}
FIT: dict[str, Any] = {"ema_decay": 0.98, "gradient_clip": 1.0}
OBJECTIVE = BinaryObjective(intermediate_weight=0.1)

_TABLE: dict[str, Any] = {
    **MODEL,
    "node_messages": False,
    "num_steps": 2,
    "input_dropout": 0.3,
    "frequency_strength": 0.5,
}
_MOLECULES = {"num_steps": 1, "num_feature_layers": 2, "dropout": 0.1, "attention_dropout": 0.0}
_DNA = {"num_steps": 2, "num_feature_layers": 1, "dropout": 0.2, "score_skip": True}
_TRAIN = TrainSettings(
    module=MODULE,
    objective=OBJECTIVE,
    fit={**FIT, "monitor": "val/loss", "accelerator": "cpu", "logger": False},
    batch_size=BATCH_SIZE,
)
_SLOW = {**MODULE, "lr": 3e-4, "weight_decay": 0.1}
_TRAIN_MOLECULES = replace(_TRAIN, module=_SLOW, objective=BinaryObjective())
_TRIALS: tuple[dict[str, Any], ...] = (
    {},
    {"channels": 128, "num_steps": 1},
    {"input_dropout": 0.1},
)
#: By the attribute :obj:`settings` of kinds of input.
SETTINGS: dict[str, LaMPSettings] = {
    "table": LaMPSettings(table_lamp, _TABLE, _TRAIN, _TRIALS),
    "molecules": LaMPSettings(molecule_lamp, _MOLECULES, _TRAIN_MOLECULES),
    "dna": LaMPSettings(dna_lamp, _DNA, _TRAIN),
}


@dataclass
class Folds:
    """Models of all folds, and their scores of the samples that they were trained without."""

    models: list[nn.Module]
    options: dict[str, Any]
    held_out: np.ndarray  #: logits :math:`(N, L)`
    epochs: int  #: how many the first fold was best after
    fold: np.ndarray  #: the number :math:`(N)` of the model that was trained without each sample


def settings_of(dataset: MultiLabelDataset) -> LaMPSettings:
    """Returns the settings for samples with base scores."""
    return SETTINGS[kind_of(dataset).settings]


def label_graph_of(dataset: MultiLabelDataset) -> LabelGraph:
    """Returns the complete label graph, or the largest correlations of many labels."""
    names = dataset.label_names
    if dataset.num_labels <= MAX_COMPLETE:
        return fully_connected(names)
    return co_occurrence(dataset.y, weight="correlation", top_k=TOP_K, label_names=names)


def train_folds(
    dataset: MultiLabelDataset, seconds: float, seed: int, search: Search | None = None
) -> Folds | None:
    """Trains a model without each fold, within a time; returns :obj:`None` if it is too short.

    Args:
        dataset (MultiLabelDataset): Training samples with base scores.
        seconds (float): The time.
        seed (int): Seed of folds and weights.
        search (callable, optional): Searches options, in further time.
            (default: :obj:`None`, a few are tried)
    """
    end, settings = time.monotonic() + seconds, settings_of(dataset)
    plan = _plan(settings, dataset, seconds)
    if plan is None:
        return None
    fold = stratified_folds(dataset.y, plan.num_folds, seed)
    splits = [_split(fold, part) for part in range(plan.num_folds)]
    left = end - time.monotonic()
    options, epochs, cost = _choose(settings, dataset, splits[0], plan, left, seed, search)
    if search is not None:
        end = time.monotonic() + seconds
    models, held_out = [], torch.empty_like(dataset.y)
    for part, split in enumerate(splits):
        # Fewer where the machine has become slower.
        affordable = int((end - time.monotonic()) / (plan.num_folds - part) / cost)
        num_epochs = max(1, min(epochs, affordable))
        model = _train(settings, dataset, split, options, num_epochs, seed).model
        models.append(model.eval().requires_grad_(False))
        held_out[split.val] = logits_of(model, batches_of(dataset[split.val]))
    return Folds(models, options, held_out.double().numpy(), epochs, fold)


class _Plan(NamedTuple):
    """As much as the time allows."""

    changes: Mapping[str, Any]  #: of :attr:`LaMPSettings.model`
    num_folds: int
    epochs: int


def _plan(settings: LaMPSettings, dataset: MultiLabelDataset, seconds: float) -> _Plan | None:
    if seconds <= 0:
        return None  # so that no model is built to be timed
    label_graph, num_samples = label_graph_of(dataset), len(dataset)
    wanted = int(np.clip(NUM_STEPS * BATCH_SIZE / num_samples, 8, MAX_EPOCHS))
    no_changes: Mapping[str, Any] = {}
    for changes in (no_changes, settings.light):
        model = settings.build(dataset, label_graph, **{**settings.model, **changes})
        # The rest is for trials, and for a machine that may become slower.
        affordable = 0.7 * seconds / seconds_per_epoch(model, dataset)
        for num_folds in (number for number in NUM_FOLDS if number <= num_samples):
            epochs = int(affordable / (1 + num_folds))
            if epochs >= MIN_EPOCHS or (num_folds == NUM_FOLDS[-1] and epochs > 0):
                return _Plan(changes, num_folds, min(wanted, epochs))
    return None


def seconds_per_epoch(model: nn.Module, dataset: MultiLabelDataset) -> float:
    """How long a pass over all samples takes to train, measured on its first batches."""
    loader, times = DataLoader(dataset, BATCH_SIZE), []
    for batch in islice(loader, _TIMED):
        before = time.monotonic()
        model(batch).sum().backward()
        times.append(time.monotonic() - before)
    # The first ones may compile kernels. Collating, the optimiser and validation take about half as
    # long again.
    return 1.5 * min(times) * len(loader)


def _split(fold: np.ndarray, part: int) -> Split:
    rows, held_out = torch.arange(len(fold)), torch.from_numpy(fold == part)
    return Split(rows[~held_out], rows[held_out], rows[:0], f"fold {part}")


class _Trained(NamedTuple):
    model: nn.Module  #: after the last epoch
    least: float  #: held-out loss
    best_epoch: int
    seconds: float  #: of an epoch


def _choose(
    settings: LaMPSettings,
    dataset: MultiLabelDataset,
    split: Split,
    plan: _Plan,
    seconds: float,
    seed: int,
    search: Search | None,
) -> tuple[dict[str, Any], int, float]:
    """Returns the options and the number of epochs that do best on a fold, and the seconds of an
    epoch.

    One choice serves all folds: a model whose epoch is chosen by the samples that it scores seems
    better than it is.
    """
    default, tried = {**settings.model, **plan.changes}, list[tuple[dict[str, Any], _Trained]]()

    def attempt(changes: Mapping[str, Any], *callbacks: Callback) -> float:
        options = {**default, **changes}
        trained = _train(settings, dataset, split, options, plan.epochs, seed, PATIENCE, callbacks)
        tried.append((options, trained))
        return trained.least

    if search is None:
        start = time.monotonic()
        for count, trial in enumerate(settings.trials):
            elapsed = time.monotonic() - start
            # Leave time for all folds.
            if count and elapsed + elapsed / count * (1 + plan.num_folds) > seconds:
                break
            attempt({**trial, **plan.changes})
        options, best = min(tried, key=lambda pair: pair[1].least)
    else:
        start_options = {"channels": MODEL["channels"], **settings.train.module, **default}
        chosen = {**default, **search(attempt, start_options)}
        if chosen not in [options for options, _ in tried]:
            attempt(chosen)
        options, best = next(pair for pair in tried if pair[0] == chosen)
    return options, best.best_epoch, best.seconds


def _train(
    settings: LaMPSettings,
    dataset: MultiLabelDataset,
    split: Split,
    options: Mapping[str, Any],
    epochs: int,
    seed: int,
    patience: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> _Trained:
    start, train = time.monotonic(), settings.train
    module = {key: options.get(key, value) for key, value in train.module.items()}
    model = {key: value for key, value in options.items() if key not in module}
    fit = {**train.fit, "max_epochs": epochs, "patience": patience, "callbacks": callbacks}

    def build(samples: MultiLabelDataset) -> nn.Module:
        return settings.build(samples, label_graph_of(samples), **model)

    with tempfile.TemporaryDirectory() as folder:
        changed = replace(train, module=module, fit=fit)
        result = train_model(build, dataset, split, changed, folder, seed=seed)
        best, last = (load_file(path) for path in (result.checkpoint, result.last_checkpoint))
        result.module.load_state_dict(last["state_dict"])
    seconds = (time.monotonic() - start) / result.num_epochs
    return _Trained(result.module.model, result.best_value, best["epoch"] + 1, seconds)
