"""Training with Lightning: the module, its objective, the data module, and :func:`fit`, which resumes exactly."""

from tg_mlc._optional import require

require("lightning.pytorch", extra="train")

from lightning.pytorch import seed_everything  # noqa: E402

from tg_mlc.training.data import EpochSampler, MultiLabelDataModule  # noqa: E402
from tg_mlc.training.fitting import FitResult, fit  # noqa: E402
from tg_mlc.training.module import MultiLabelModule  # noqa: E402
from tg_mlc.training.objectives import BinaryObjective, Objective  # noqa: E402
from tg_mlc.training.train import TrainSettings, train_model  # noqa: E402

__all__ = [
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
