"""Training with Lightning: module, objective, data module, and :func:`fit`, which resumes exactly.

Objectives do not need Lightning. All other names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_mlc._optional import imported_on_use, require
from tg_mlc.training.objectives import BinaryObjective, Objective

if TYPE_CHECKING:
    from lightning.pytorch import seed_everything

    from tg_mlc.training.data import MultiLabelDataModule
    from tg_mlc.training.fitting import Training, fit
    from tg_mlc.training.module import MultiLabelModule

__all__ = [
    "BinaryObjective",
    "MultiLabelDataModule",
    "MultiLabelModule",
    "Objective",
    "Training",
    "fit",
    "seed_everything",
]

__getattr__ = imported_on_use(
    __name__,
    {
        "MultiLabelDataModule": "tg_mlc.training.data",
        "MultiLabelModule": "tg_mlc.training.module",
        "Training": "tg_mlc.training.fitting",
        "fit": "tg_mlc.training.fitting",
        "seed_everything": "lightning.pytorch",
    },
    before=lambda: require("lightning.pytorch", extra="train"),
)
