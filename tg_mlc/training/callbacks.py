"""Callbacks of :func:`tg_mlc.training.fit` beside Lightning's, most of which make resuming exact;
its checkpoint files, its progress bar, and suppression of Lightning's own output.
"""

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
    ModelCheckpoint,
    ProgressBar,
    WeightAveraging,
)
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn
from tqdm import tqdm

from tg_mlc._files import replace_when_done
from tg_mlc.inference.checkpoint import check_whole, load_file

_EXPECTED_WARNINGS = (
    # Small data is loaded fastest in the same process.
    ".*does not have many workers.*",
    # Files of an earlier run with the same name are meant to be replaced.
    ".*exists and is not empty.*",
    # Metrics are logged once per epoch.
    ".*smaller than the logging interval.*",
    # Not every epoch is validated.
    ".*could not find the monitored key.*",
    # All processes log the same.
    ".*sync_dist=True.*",
    # Whoever overfits some batches wants the same ones in every epoch.
    ".*requested to overfit.*",
    # Lightning's own business with PyTorch.
    ".*LeafSpec.*",
)


class RandomState(Callback):
    """State of all random number generators, which Lightning leaves out of checkpoints and dropout
    depends on."""

    def __init__(self) -> None:
        self._restored: dict[str, Any] | None = None
        self._num_processes = 1

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Notes how many processes there are."""
        self._num_processes = trainer.world_size

    def state_dict(self) -> dict[str, Any]:
        """Returns the present state, of several processes with those of the others."""
        name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the generator that seed_everything seeds
        own = {
            "python": random.getstate(),
            "numpy": (name, torch.from_numpy(np.asarray(keys, dtype=np.int64)), *rest),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }
        if self._num_processes == 1:
            return own
        states: list[Any] = [None] * self._num_processes
        torch.distributed.all_gather_object(states, own)
        return {**states[0], "others": states[1:]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes a state, which the next epoch starts from."""
        self._restored = state_dict

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Restores the state, as late as can be: setting up a training draws random numbers too; or
        begins with another one in each process.
        """
        rank = trainer.global_rank
        if self._restored is not None:
            state = self._restored["others"][rank - 1] if rank else self._restored
            name, keys, *rest = state["numpy"]
            random.setstate(state["python"])
            np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
            torch.set_rng_state(state["torch"])
            if state["cuda"] and torch.cuda.device_count() == len(state["cuda"]):
                torch.cuda.set_rng_state_all(state["cuda"])
            self._restored = None
        elif rank and trainer.current_epoch == 0:
            torch.manual_seed(torch.initial_seed() + rank)


class ExponentialMovingAverage(WeightAveraging):
    r"""Validates, and stores, a running average of the weights; buffers stay those of the last
    step.

    After step :math:`n` the average moves by :math:`1 - \min(d, (1 + n) / (10 + n))` towards the
    weights, so that a short training is not held back by its first steps.

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
            step = get_ema_multi_avg_fn(min(decay, (1 + n) / (10 + n)))  # type: ignore[no-untyped-call]
            step(averaged, current, n)

        # Buffers are copied, not averaged: averages of integers, such as the offsets of a look-up,
        # mean nothing.
        super().__init__(use_buffers=False, multi_avg_fn=average)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Puts the average where the model is about to be, as one left behind would be copied at
        every step."""
        self._device = trainer.strategy.root_device
        super().setup(trainer, pl_module, stage)


class PatientStopping(EarlyStopping):
    """Early stopping that, resumed after it has stopped, stops at once instead of training one more
    epoch."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stops if patience had run out before."""
        trainer.should_stop = trainer.should_stop or self.wait_count >= self.patience


class FileCheckpoint(ModelCheckpoint):
    """Checkpoint of the best or, without a metric, the last epoch under a fixed name, in a folder
    that may be moved."""

    def __init__(self, path: Path, monitor: str | None = None, mode: str = "min") -> None:
        super().__init__(
            dirpath=path.parent,
            filename=path.stem,
            monitor=monitor,
            mode=mode,
            save_on_train_epoch_end=True,
            enable_version_counter=False,
        )

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes the checkpoint, unless the metric is NaN, which is an error."""
        value = trainer.callback_metrics.get(self.monitor or "")
        if value is not None and value.isnan():
            raise ValueError(
                f"Expected '{self.monitor}' to be a number (got NaN, as no label has known samples of both classes in "
                f"the validation part); use monitor='val/loss' or another split"
            )
        super().on_train_epoch_end(trainer, pl_module)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state over, with the path of the present folder."""
        if not state_dict["best_model_path"]:
            return
        path = str(Path(str(self.dirpath)) / f"{self.filename}{self.FILE_EXTENSION}")
        if self.monitor is not None:
            if not Path(path).is_file():
                raise FileNotFoundError(
                    f"Expected the best weights so far in '{path}' (found no such file); put it back, or train without "
                    f"'resume'"
                )
            check_whole(path)
        best = dict.fromkeys(
            [path] if state_dict["best_k_models"] else [], state_dict["best_model_score"]
        )
        moved = {
            "dirpath": self.dirpath,
            "best_model_path": path,
            "kth_best_model_path": path,
            "best_k_models": best,
        }
        super().load_state_dict({**state_dict, **moved, "last_model_path": ""})


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its final name and renames it, so that a killed run never leaves
    half a file there (as Lightning's own writer may, through a temporary folder), and reads nothing
    but tensors and plain data.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any = None
    ) -> None:
        """Writes a checkpoint; an error names the free space of the disk."""
        if storage_options is not None:
            raise TypeError(
                f"Expected no 'storage_options': checkpoints are local files (got {storage_options!r})"
            )
        path = Path(path)
        try:
            with replace_when_done(path) as unfinished:
                torch.save(checkpoint, unfinished)
        except (OSError, RuntimeError) as error:  # PyTorch's writer raises the latter
            room = shutil.disk_usage(path.parent).free
            raise OSError(
                f"Expected to write the checkpoint '{path}' (got {str(error).splitlines()[0]!r}, with {room:,} bytes "
                f"free on that disk); make room there, and resume from the checkpoint of the last complete epoch"
            ) from error

    def load_checkpoint(
        self,
        path: str | os.PathLike[str],
        map_location: Any = lambda storage, _: storage,
        weights_only: bool | None = True,
    ) -> dict[str, Any]:
        """Reads a checkpoint, if it is whole."""
        return load_file(path, map_location, weights_only is not False)


class RunProgressBar(ProgressBar):
    """One bar for the whole training, with the monitored metric and the time left until its last
    epoch; nothing if the output is no terminal. Lightning's own bars tell the time left of one
    epoch, which here often takes about a second.
    """

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
        self._bar = tqdm(
            total=trainer.estimated_stepping_batches,
            initial=trainer.global_step,
            desc="Training",
            unit="step",
            leave=False,
            dynamic_ncols=True,
            disable=not (self._enabled and sys.stdout.isatty()),
            file=sys.stdout,
        )

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self._bar.update(trainer.global_step - self._bar.n)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Shows epoch and metric."""
        value = trainer.callback_metrics.get(self.monitor)
        shown = "" if value is None else f"{float(value):.4f}"
        self._bar.set_postfix({"epoch": trainer.current_epoch + 1, self.monitor: shown})

    def on_train_end(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def on_exception(self, *_: Any) -> None:
        self.on_train_end()

    def print(self, *args: Any, **kwargs: Any) -> None:
        tqdm.write(kwargs.get("sep", " ").join(map(str, args)))


@contextmanager
def quiet() -> Iterator[None]:
    """Holds back Lightning's tips and notes, but none of its warnings that tell something new."""
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
