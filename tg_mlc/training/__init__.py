"""Training with Lightning: the module, its objective, the data module, and :func:`fit`, which resumes exactly.

Objectives need no Lightning; all else is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_mlc._optional import imported_on_use, require
from tg_mlc.training.objectives import BinaryObjective, Objective

if TYPE_CHECKING:
    from lightning.pytorch import seed_everything

    from tg_mlc.training.callbacks import AtomicCheckpointIO
    from tg_mlc.training.data import EpochSampler, MultiLabelDataModule
    from tg_mlc.training.fitting import FitResult, fit
    from tg_mlc.training.module import MultiLabelModule
    from tg_mlc.training.train import TrainSettings, train_model

__all__ = [
    "AtomicCheckpointIO",
    "BinaryObjective",
    "EpochSampler",
    "FitResult",
    "MultiLabelDataModule",
    "MultiLabelModule",
    "Objective",
    "TrainSettings",
    "fit",
    "seed_everything",
    "train_model",
]

__getattr__ = imported_on_use(
    __name__,
    {
        "AtomicCheckpointIO": "tg_mlc.training.callbacks",
        "EpochSampler": "tg_mlc.training.data",
        "FitResult": "tg_mlc.training.fitting",
        "MultiLabelDataModule": "tg_mlc.training.data",
        "MultiLabelModule": "tg_mlc.training.module",
        "TrainSettings": "tg_mlc.training.train",
        "fit": "tg_mlc.training.fitting",
        "seed_everything": "lightning.pytorch",
        "train_model": "tg_mlc.training.train",
    },
    before=lambda: require("lightning.pytorch", extra="train"),
)
