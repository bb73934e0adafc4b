"""Progress bar of a whole training, and suppression of Lightning's own output."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar
from tqdm import tqdm

_EXPECTED_WARNINGS = (
    # Small data is loaded fastest in the same process.
    ".*does not have many workers.*",
    # Files of an earlier run with the same name are meant to be replaced.
    ".*exists and is not empty.*",
    # Metrics are logged once per epoch.
    ".*smaller than the logging interval.*",
    # Lightning's own business with PyTorch.
    ".*LeafSpec.*",
)


class RunProgressBar(ProgressBar):
    """One bar for the whole training, with the monitored metric and the time left until its last epoch; nothing if the
    output is no terminal. Lightning's own bars tell the time left of one epoch, which here often takes about a second.
    """

    def __init__(self, monitor: str) -> None:
        super().__init__()
        self.monitor = monitor
        self._enabled = True
        self._bar: Any = None

    def enable(self) -> None:
        """Shows the bar."""
        self._enabled = True

    def disable(self) -> None:
        """Hides the bar."""
        self._enabled = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens the bar."""
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
        """Moves the bar."""
        self._bar.update(trainer.global_step - self._bar.n)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Shows epoch and metric."""
        value = trainer.callback_metrics.get(self.monitor)
        shown = "" if value is None else f"{float(value):.4f}"
        self._bar.set_postfix({"epoch": trainer.current_epoch + 1, self.monitor: shown})

    def on_train_end(self, *_: Any) -> None:
        """Closes the bar."""
        if self._bar is not None:
            self._bar.close()

    def on_exception(self, *_: Any) -> None:
        """Closes the bar."""
        self.on_train_end()

    def print(self, *args: Any, **kwargs: Any) -> None:
        """Writes beside the bar."""
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
