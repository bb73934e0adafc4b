"""Training with Lightning: the module, its objective, the data module, and :func:`fit`, which resumes exactly."""

from tg_mlc._optional import require

require("lightning.pytorch", extra="train")

from lightning.pytorch import seed_everything  # noqa: E402

from tg_mlc.training.c2ae import C2AEObjective  # noqa: E402
from tg_mlc.training.checkpoint import AtomicCheckpointIO, Checkpoint, read_checkpoint  # noqa: E402
from tg_mlc.training.data import EpochSampler, MultiLabelDataModule  # noqa: E402
from tg_mlc.training.energies import InferenceNetworkObjective, UnrolledObjective  # noqa: E402
from tg_mlc.training.fitting import FitResult, fit  # noqa: E402
from tg_mlc.training.module import MultiLabelModule  # noqa: E402
from tg_mlc.training.objectives import BinaryObjective, Objective  # noqa: E402
from tg_mlc.training.sequences import SequenceObjective  # noqa: E402

__all__ = [
    "AtomicCheckpointIO",
    "BinaryObjective",
    "C2AEObjective",
    "Checkpoint",
    "EpochSampler",
    "FitResult",
    "InferenceNetworkObjective",
    "MultiLabelDataModule",
    "MultiLabelModule",
    "Objective",
    "SequenceObjective",
    "UnrolledObjective",
    "fit",
    "read_checkpoint",
    "seed_everything",
]
