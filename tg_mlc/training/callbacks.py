"""The trainer of :func:`tg_mlc.training.fit`, its callbacks and its checkpoint files."""

from __future__ import annotations

import logging
import os
import random
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    ProgressBar,
    WeightAveraging,
)
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn
from tqdm import tqdm

from tg_mlc._files import replace_when_done
from tg_mlc._names import shorten
from tg_mlc.inference.checkpoint import check_whole, load_file

# Warnings of Lightning that do not apply here.
_EXPECTED_WARNINGS = (
    ".*does not have many workers.*",  # Small data is loaded fastest in the same process.
    ".*exists and is not empty.*",  # Files of an earlier run are meant to be replaced.
    ".*smaller than the logging interval.*",  # Metrics are logged once per epoch.
    ".*could not find the monitored key.*",  # Not every epoch is validated.
    ".*sync_dist=True.*",  # All processes log the same.
    ".*requested to overfit.*",  # Overfitting on purpose uses the same batches in every epoch.
    ".*LeafSpec.*",  # Lightning itself uses a deprecated PyTorch class.
)

# A summary and a sanity check take as long as several epochs of a small model. The samplers of this
# package already divide samples among processes.
_TRAINER_OPTIONS: dict[str, Any] = {
    "devices": 1,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
    "use_distributed_sampler": False,
}


class RandomState(Callback):
    """Stores the state of all random number generators, which Lightning's checkpoints lack."""

    def __init__(self) -> None:
        self._loaded_state: dict[str, Any] | None = None
        self._num_processes = 1

    def setup(self, trainer: Trainer, *_: Any, **__: Any) -> None:
        """Reads the number of processes."""
        self._num_processes = trainer.world_size

    def state_dict(self) -> dict[str, Any]:
        """Returns the random state of the first process, with the states of all other processes."""
        name, keys, *rest = np.random.get_state()  # noqa: NPY002
        own_state = {
            "python": random.getstate(),
            "numpy": (name, torch.from_numpy(np.asarray(keys, dtype=np.int64)), *rest),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }
        if self._num_processes == 1:
            return own_state
        states: list[Any] = [None] * self._num_processes
        torch.distributed.all_gather_object(states, own_state)
        return {**states[0], "others": states[1:]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Stores a state that is restored at the start of the next epoch."""
        self._loaded_state = state_dict

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Restores a loaded state. In a new training, gives each process its own random state."""
        rank = trainer.global_rank
        if self._loaded_state is not None:
            state = self._loaded_state["others"][rank - 1] if rank else self._loaded_state
            name, keys, *rest = state["numpy"]
            random.setstate(state["python"])
            np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
            torch.set_rng_state(state["torch"])
            if state["cuda"] and torch.cuda.device_count() == len(state["cuda"]):
                torch.cuda.set_rng_state_all(state["cuda"])
            self._loaded_state = None
        elif rank and trainer.current_epoch == 0:
            torch.manual_seed(torch.initial_seed() + rank)


class ExponentialMovingAverage(WeightAveraging):
    r"""Validates and stores a running average of the weights, and the current buffers.

    After step :math:`n` the average moves by :math:`1 - \min(d, (1 + n) / (10 + n))` towards the
    weights. In a short training, the first steps therefore do not dominate the average.

    Args:
        decay (float, optional): The decay :math:`d`. (default: :obj:`0.999`)

    Raises:
        ValueError: If :obj:`decay` is not in :math:`(0, 1)`.
    """

    def __init__(self, decay: float = 0.999) -> None:
        if not 0.0 < decay < 1.0:
            raise ValueError(f"Expected 'decay' ('ema_decay' of fit) between 0 and 1 (got {decay})")

        def average(averaged: Any, current: Any, num_averaged: Tensor | int) -> None:
            n = int(num_averaged)
            current_decay = min(decay, (1 + n) / (10 + n))
            update = get_ema_multi_avg_fn(current_decay)  # type: ignore[no-untyped-call]
            update(averaged, current, n)

        # Integer buffers, such as offsets of a look-up, cannot be averaged.
        super().__init__(use_buffers=False, multi_avg_fn=average)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Puts the average on the model's device, to avoid a copy in every step."""
        self._device = trainer.strategy.root_device
        super().setup(trainer, pl_module, stage)


class PatientStopping(EarlyStopping):
    """Early stopping that does not train another epoch if a stopped training is resumed."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stops if patience was exhausted before the training was resumed."""
        trainer.should_stop = trainer.should_stop or self.wait_count >= self.patience


def resuming_callbacks(
    monitor: str, mode: str, patience: int | None, ema_decay: float | None
) -> list[Callback]:
    """Returns callbacks for exact resuming, and for early stopping and averaging if requested."""
    callbacks: list[Callback] = [RandomState()]
    if ema_decay is not None:
        callbacks.append(ExponentialMovingAverage(ema_decay))
    if patience is not None:
        callbacks.append(PatientStopping(monitor, mode=mode, patience=patience, strict=False))
    return callbacks


class FileCheckpoint(ModelCheckpoint):
    """Checkpoint of the best epoch, or of the last if no metric is set. The folder may be moved."""

    def __init__(self, path: Path, monitor: str | None = None, mode: str = "min") -> None:
        options: Any = {"save_on_train_epoch_end": True, "enable_version_counter": False}
        super().__init__(path.parent, path.stem, monitor=monitor, mode=mode, **options)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes the checkpoint. Raises if the metric is NaN."""
        value = trainer.callback_metrics.get(self.monitor or "")
        if value is not None and value.isnan():
            got = "NaN, as no label has known validation samples of both classes"
            hint = "use monitor='val/loss' or another split"
            raise ValueError(f"Expected '{self.monitor}' to be a number (got {got}); {hint}")
        super().on_train_epoch_end(trainer, pl_module)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state, with paths changed to the current folder."""
        if not state_dict["best_model_path"]:
            return
        path = str(Path(str(self.dirpath)) / f"{self.filename}{self.FILE_EXTENSION}")
        if self.monitor is not None:
            if not Path(path).is_file():
                expected = f"Expected the best weights so far in '{path}' (got no such file)"
                raise FileNotFoundError(f"{expected}; put it back, or train without 'resume'")
            check_whole(path)
        paths = [path] if state_dict["best_k_models"] else []
        current = {
            "dirpath": self.dirpath,
            "best_model_path": path,
            "kth_best_model_path": path,
            "best_k_models": dict.fromkeys(paths, state_dict["best_model_score"]),
            "last_model_path": "",
        }
        super().load_state_dict({**state_dict, **current})


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes checkpoints atomically, and reads only tensors and plain data by default."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any = None
    ) -> None:
        """Writes a checkpoint. Errors report the free space on the disk."""
        if storage_options is not None:
            got = shorten(repr(storage_options))
            raise TypeError(f"Expected no 'storage_options' of a local file (got {got})")
        path = Path(path)
        try:
            with replace_when_done(path) as unfinished:
                torch.save(checkpoint, unfinished)
        except (OSError, RuntimeError) as error:  # PyTorch's writer raises RuntimeError.
            free = f"{shutil.disk_usage(path.parent).free:,} bytes free on that disk"
            got = f"{str(error).splitlines()[0]!r}, with {free}"
            hint = "make room there, and resume from the last complete epoch"
            message = f"Expected to write the checkpoint '{path}' (got {got}); {hint}"
            raise OSError(message) from error

    def load_checkpoint(
        self,
        path: str | os.PathLike[str],
        map_location: Any = lambda storage, _: storage,
        weights_only: bool | None = True,
    ) -> dict[str, Any]:
        """Reads a checkpoint. Raises if it is damaged."""
        return load_file(path, map_location, weights_only is not False)


class RunProgressBar(ProgressBar):
    """One progress bar for the whole training, on terminals. Lightning shows one bar per epoch."""

    def __init__(self, monitor: str) -> None:
        super().__init__()
        self.monitor = monitor
        self._enabled = True
        self._bar: Any = None

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        options: Any = {"unit": "step", "leave": False, "dynamic_ncols": True, "file": sys.stdout}
        options["disable"] = not (self._enabled and sys.stdout.isatty())
        total, initial = trainer.estimated_stepping_batches, trainer.global_step
        self._bar = tqdm(desc="Training", total=total, initial=initial, **options)

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self._bar.update(trainer.global_step - self._bar.n)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Shows epoch and metric."""
        value = trainer.callback_metrics.get(self.monitor)
        text = "" if value is None else f"{float(value):.4f}"
        self._bar.set_postfix({"epoch": trainer.current_epoch + 1, self.monitor: text})

    def on_train_end(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def on_exception(self, *_: Any) -> None:
        self.on_train_end()

    def print(self, *args: Any, **kwargs: Any) -> None:
        tqdm.write(kwargs.get("sep", " ").join(map(str, args)))


def make_trainer(
    folder: Path, monitor: str, callbacks: list[Callback], options: dict[str, Any]
) -> Trainer:
    """Returns a trainer with Lightning's options that logs to a folder."""
    options = {**_TRAINER_OPTIONS, "default_root_dir": folder, **options}
    logger, plugins = options.pop("logger", True), options.pop("plugins", None) or []
    if logger is True:
        csv_logger = CSVLogger(folder, name="logs")
        board_options: dict[str, Any] = {"version": csv_logger.version, "default_hp_metric": False}
        logger = [csv_logger, TensorBoardLogger(folder, name="logs", **board_options)]
    if logger:
        callbacks = [LearningRateMonitor("epoch"), *callbacks]
    has_bar = any(isinstance(callback, ProgressBar) for callback in callbacks)
    if options.get("enable_progress_bar", True) and not has_bar:
        callbacks = [RunProgressBar(monitor), *callbacks]
    plugins = [AtomicCheckpointIO(), *(plugins if isinstance(plugins, list) else [plugins])]
    return Trainer(callbacks=callbacks, logger=logger, plugins=plugins, **options)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppresses Lightning's tips and its expected warnings."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            for message in _EXPECTED_WARNINGS:
                warnings.filterwarnings("ignore", message)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
