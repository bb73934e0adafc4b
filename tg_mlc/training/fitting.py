"""Training in one call, which keeps the best weights and can be resumed: of a module, or of a model from samples and
settings, the way that recipes, the default and the estimator share.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import torch
from filelock import FileLock, Timeout
from lightning.pytorch import Trainer, seed_everything
from lightning.pytorch.callbacks import Callback, LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.loader import DataLoader
from tqdm import tqdm

from tg_mlc._names import check_same_names
from tg_mlc._options import check_count
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.inputs import Preprocessor
from tg_mlc.models.builders import blueprint_of
from tg_mlc.saving.checkpoint import load_file
from tg_mlc.saving.inference import ModuleInference
from tg_mlc.saving.model import data_hash
from tg_mlc.training.callbacks import (
    AtomicCheckpointIO,
    ExponentialMovingAverage,
    FileCheckpoint,
    PatientStopping,
    RandomState,
    RunProgressBar,
    quiet,
)
from tg_mlc.training.data import MultiLabelDataModule
from tg_mlc.training.module import MultiLabelModule, check_one_process
from tg_mlc.training.objectives import BinaryObjective, Objective

#: What "best" can mean, and whether more or less of it is better.
MONITORS = {
    "val/loss": "min",
    "val/macro_roc_auc": "max",
    "val/micro_roc_auc": "max",
    "val/macro_average_precision": "max",
}

# Of no use for small models on one device, and together as long as some epochs.
_TRAINER_OPTIONS = {"devices": 1, "enable_model_summary": False, "num_sanity_val_steps": 0}


@dataclass(frozen=True)
class FitResult:
    """The result of :func:`fit`."""

    module: MultiLabelModule  #: with the best weights, and :obj:`tuners` fitted on their validation scores
    checkpoint: Path  #: that of the best epoch
    last_checkpoint: Path  #: that of the last epoch, to resume from
    best_value: float  #: of the monitored metric
    num_epochs: int  #: how many epochs were trained, those before resuming included
    trainer: Trainer
    data: MultiLabelDataModule  #: the batches of the three parts
    model_folder: Path | None = None  #: what :func:`tg_mlc.load` reads, of a model that a builder made

    def predict(self, loader: DataLoader) -> Tensor:
        """Returns the scores of all samples of a loader, :math:`(N, L)`, in its order."""
        with quiet():
            return torch.cat(cast("list[Tensor]", self.trainer.predict(self.module, loader)))


def fit(
    module: MultiLabelModule,
    data: MultiLabelDataModule,
    folder: str | os.PathLike[str],
    *,
    max_epochs: int = 50,
    monitor: str = "val/macro_roc_auc",
    patience: int | None = 10,
    ema_decay: float | None = None,
    gradient_clip: float | None = None,
    precision: Any = "32-true",
    accelerator: str = "auto",
    deterministic: bool | Literal["warn"] = False,
    resume: str | os.PathLike[str] | bool = False,
    callbacks: Sequence[Callback] = (),
    **trainer_options: Any,
) -> FitResult:
    """Trains a module and returns it with the weights of its best epoch.

    The folder gets ``best.ckpt``, ``last.ckpt``, under ``logs`` the metrics of every epoch as CSV and for TensorBoard,
    ``model``, which :func:`tg_mlc.load` reads, if a :func:`~tg_mlc.models.builder` made the model, and ``.lock``, which
    keeps a second training out while one is under way. Checkpoints are written at the end of an
    epoch, and replaced as a whole. Training that was stopped at any moment therefore resumes from the end of its last
    complete epoch; called with the same arguments, it gives bit for bit the weights of an uninterrupted one on a CPU
    with the same number of threads.

    .. code-block:: python

        seed_everything(0)
        module = MultiLabelModule(LaMP(...), dataset.label_names)
        data = MultiLabelDataModule(dataset, split)
        result = fit(module, data, "runs/sider", max_epochs=60)
        scores = result.predict(data.test_dataloader())

    Args:
        module (MultiLabelModule): What to train.
        data (MultiLabelDataModule): What to train with.
        folder (str or PathLike): Where to put checkpoints and logs.
        max_epochs (int, optional): Number of epochs; the schedule of the learning rate ends there. (default: :obj:`50`)
        monitor (str, optional): The validation metric that says which epoch is best: one of :obj:`MONITORS`.
            (default: :obj:`"val/macro_roc_auc"`)
        patience (int, optional): Stops after so many epochs without a better one; never if :obj:`None`.
            (default: :obj:`10`)
        ema_decay (float, optional): Validates and keeps a running average of the weights with this decay.
            (default: :obj:`None`)
        gradient_clip (float, optional): Largest norm of the gradient. (default: :obj:`None`)
        precision (str, optional): Lightning's name of the precision, *e.g.* :obj:`"bf16-mixed"`.
            (default: :obj:`"32-true"`)
        accelerator (str, optional): Lightning's name of the device; one device is used. (default: :obj:`"auto"`)
        deterministic (bool or str, optional): If set to :obj:`True`, operations without a deterministic implementation
            raise an error; :obj:`"warn"` warns. (default: :obj:`False`)
        resume (bool or str or PathLike, optional): If set to :obj:`True`, goes on from ``last.ckpt`` in
            :obj:`folder`; or a checkpoint in :obj:`folder` to go on from. (default: :obj:`False`)
        callbacks (Sequence[Callback], optional): Further callbacks. (default: :obj:`()`)
        **trainer_options (optional): Further options of :class:`lightning.pytorch.Trainer`, *e.g.*
            ``logger=False``.

    Raises:
        ValueError: If an argument is of another type or out of range, several processes are asked for, a checkpoint to
            resume from lies in another folder or is damaged, or data set and module name different labels.
        FileNotFoundError: If there is no checkpoint to resume from, or that of its best epoch is gone.
        OSError: If a checkpoint cannot be written.
        RuntimeError: If no epoch was validated, or another training writes to :obj:`folder`.
        FloatingPointError: If the training diverges.
        SystemExit: If the process is told to terminate, with status 143.
    """
    _check_types(module, data)
    check_same_names(getattr(data.dataset, "label_names", None), module.label_names, "the data set")
    _check_options(monitor, patience, gradient_clip)
    folder = Path(folder).resolve()
    start = _find_checkpoint(folder, resume)
    loggers = _loggers(folder, trainer_options.pop("logger", True))
    best = FileCheckpoint(folder / "best.ckpt", monitor, MONITORS[monitor])
    last = FileCheckpoint(folder / "last.ckpt")
    with quiet():
        trainer = Trainer(
            max_epochs=max_epochs,
            callbacks=[*_callbacks(monitor, patience, ema_decay, bool(loggers)), *callbacks, best, last],
            logger=loggers,
            precision=precision,
            accelerator=accelerator,
            deterministic=deterministic,
            gradient_clip_val=gradient_clip,
            plugins=AtomicCheckpointIO(),
            default_root_dir=folder,
            **{**_TRAINER_OPTIONS, **trainer_options},
        )
        check_one_process(trainer)
        with _lock(folder):
            _initialize_lazy(module, data)
            try:
                trainer.fit(module, data, ckpt_path=start)
            except SIGTERMException:  # which Lightning would make an exit status of 0
                hint = "call fit with resume=True to go on from its last complete epoch"
                tqdm.write(f"tg_mlc: the training in '{folder}' was terminated; {hint}", file=sys.stderr)
                raise SystemExit(143) from None
            _load_best(module, best.best_model_path)
    result = FitResult(
        module=module,
        checkpoint=Path(best.best_model_path),
        last_checkpoint=Path(last.best_model_path),
        best_value=float(cast("Tensor", best.best_model_score)),
        num_epochs=trainer.current_epoch,
        trainer=trainer,
        data=data,
    )
    return replace(result, model_folder=_save_model(result, data, monitor, folder / "model"))


@dataclass(frozen=True)
class TrainSettings:
    """The settings of :func:`train_model`.

    Args:
        module (dict, optional): Arguments of :class:`MultiLabelModule`, such as :obj:`lr`. (default: :obj:`{}`)
        objective (Objective, optional): Loss and scores. (default: :class:`BinaryObjective`)
        fit (dict, optional): Arguments of :func:`fit`, such as :obj:`max_epochs`. (default: :obj:`{}`)
        batch_size (int, optional): Number of samples in a step. (default: :obj:`32`)
    """

    module: Mapping[str, Any] = field(default_factory=dict)
    objective: Objective = field(default_factory=BinaryObjective)
    fit: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int = 32


def train_model(
    build: Callable[[MultiLabelDataset], nn.Module],
    dataset: MultiLabelDataset,
    split: Split,
    settings: TrainSettings,
    folder: str | os.PathLike[str],
    *,
    seed: int = 0,
    preprocessor: Preprocessor | None = None,
    config: dict[str, Any] | None = None,
) -> FitResult:
    """Builds a model and trains it.

    .. code-block:: python

        settings = TrainSettings({"lr": 1e-3}, BinaryObjective(intermediate_weight=0.1), {"max_epochs": 10})
        result = train_model(lambda train: table_lamp(train, label_graph), dataset, split, settings, "runs/mine")

    Args:
        build (Callable): Makes the model of training samples.
        dataset (MultiLabelDataset): All samples, as the model takes them.
        split (Split): Which of them to train, validate and test with.
        settings (TrainSettings): How to train.
        folder (str or PathLike): Where to put checkpoints and logs.
        seed (int, optional): Seed of weights, dropout and the order of samples; it is that of all random numbers of the
            process from then on. (default: :obj:`0`)
        preprocessor, config (optional): As in :class:`MultiLabelModule`. (default: :obj:`None`)
    """
    seed_everything(seed, verbose=False)
    model, names = build(cast(MultiLabelDataset, dataset[split.train])), dataset.label_names
    module = MultiLabelModule(
        model, names, settings.objective, preprocessor=preprocessor, config=config, **settings.module
    )
    data = MultiLabelDataModule(dataset, split, batch_size=settings.batch_size, seed=seed)
    return fit(module, data, folder, **settings.fit)


def _check_types(module: Any, data: Any) -> None:
    for name, value, kind, made_of in (
        ("module", module, MultiLabelModule, "model, dataset.label_names"),
        ("data", data, MultiLabelDataModule, "dataset, split"),
    ):
        if not isinstance(value, kind):
            wanted = f"Expected '{name}' to be a {kind.__name__} (got {type(value).__name__})"
            raise ValueError(f"{wanted}; make one: {kind.__name__}({made_of})")


def _check_options(monitor: str, patience: int | None, gradient_clip: float | None) -> None:
    if monitor not in MONITORS:
        raise ValueError(f"Expected 'monitor' to be one of {list(MONITORS)} (got {monitor!r})")
    if patience is not None:
        check_count("patience", patience)
    if gradient_clip is not None and not gradient_clip > 0.0:  # Lightning takes such a norm for none
        raise ValueError(f"Expected 'gradient_clip' to be positive, or None to clip nothing (got {gradient_clip})")


def _find_checkpoint(folder: Path, resume: str | os.PathLike[str] | bool) -> Path | None:
    if resume is False:
        return None
    path = folder / "last.ckpt" if resume is True else Path(resume).resolve()
    if path.parent != folder:
        raise ValueError(f"Expected 'resume' to lie in 'folder', {folder}, beside the best weights (got {path})")
    if not path.is_file():
        raise FileNotFoundError(f"Expected a checkpoint to resume from (found no file {path}); train without 'resume'")
    return path


def _lock(folder: Path) -> AbstractContextManager[Any]:
    """Lock on a folder, which the system releases if the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(folder / ".lock", blocking=False).acquire()
    except Timeout:
        raise RuntimeError(
            f"Expected no other training that writes to '{folder}' (got one that is under way); wait for it, or choose "
            f"another folder"
        ) from None


def _callbacks(monitor: str, patience: int | None, ema_decay: float | None, log: bool) -> list[Callback]:
    callbacks: list[Callback] = [RandomState(), RunProgressBar(monitor)]
    if ema_decay is not None:
        callbacks.append(ExponentialMovingAverage(ema_decay))
    if patience is not None:
        callbacks.append(PatientStopping(monitor, mode=MONITORS[monitor], patience=patience))
    if log:
        callbacks.append(LearningRateMonitor("epoch"))
    return callbacks


def _loggers(folder: Path, logger: Any) -> Any:
    if logger is not True:
        return logger
    table = CSVLogger(folder, name="logs")
    return [table, TensorBoardLogger(folder, name="logs", version=table.version, default_hp_metric=False)]


def _initialize_lazy(module: MultiLabelModule, data: MultiLabelDataModule) -> None:
    """Runs one batch through a model whose layers learn their sizes from it, as an optimiser must know them."""
    if any(is_lazy(parameter) for parameter in module.parameters()):
        with torch.no_grad():
            module.eval()(next(iter(data.val_dataloader())))
        module.train()


def _load_best(module: MultiLabelModule, path: str) -> None:
    if not path:
        raise RuntimeError("Expected at least one epoch with validation (got none); raise 'max_epochs'")
    checkpoint = load_file(path, module.device)
    module.on_load_checkpoint(checkpoint)
    module.load_state_dict(checkpoint["state_dict"])
    module.eval()


def _save_model(result: FitResult, data: MultiLabelDataModule, monitor: str, folder: Path) -> Path | None:
    if blueprint_of(result.module.model) is None:
        return None
    thresholds = {metric: tuner.best_value for metric, tuner in result.module.tuners.items()}
    facts = {
        "validation": {monitor: result.best_value, **thresholds},
        "epochs": result.num_epochs,
        "data": data_hash(data.dataset),
        "split": data.split.hash,
    }
    try:
        return ModuleInference(result.module).save(folder, facts)
    except ValueError as error:
        warnings.warn(f"The model is in '{result.checkpoint}' only, as no folder can hold it: {error}", stacklevel=3)
        return None
