"""Training in one call that keeps the best weights and can be resumed."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from operator import not_
from pathlib import Path
from typing import Any, Literal, cast

import torch
from filelock import FileLock, Timeout
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Trainer, seed_everything
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils.data import DataLoader as TorchDataLoader
from torch_geometric.loader import DataLoader
from tqdm import tqdm

from tg_mlc._names import check_names, check_same_names, closest, shorten
from tg_mlc._options import check_choice, check_count, check_flag
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data._label_values import check_known
from tg_mlc.data.splits import PARTS
from tg_mlc.inference.batches import make_loader, makes_batches
from tg_mlc.inference.checkpoint import load_file
from tg_mlc.inference.model import Model
from tg_mlc.inference.network import data_hash, label_graph_users
from tg_mlc.inputs import Preprocessor
from tg_mlc.metrics import Evaluation
from tg_mlc.models.builders import blueprint_of
from tg_mlc.training.callbacks import FileCheckpoint, make_trainer, quiet, resuming_callbacks
from tg_mlc.training.data import (
    EpochSampler,
    MultiLabelDataModule,
    data_module,
    split_off,
    targets_of,
)
from tg_mlc.training.module import MultiLabelModule, check_processes, gathered
from tg_mlc.training.objectives import OPTIONS, BinaryObjective, Objective, with_objective

#: Metrics that can select the best epoch, and whether lower or higher values are better.
MONITORS = {
    "val/loss": "min",
    "val/macro_roc_auc": "max",
    "val/micro_roc_auc": "max",
    "val/macro_average_precision": "max",
}


def _is_unlimited(value: Any) -> bool:
    """Tells whether there is no limit. Lightning reads 1.0 as a fraction, but 1 as a number."""
    return value is None or (isinstance(value, float) and value == 1.0)


def _is_not_zero(value: Any) -> bool:
    return bool(value != 0)


_END = "thresholds belong to the weights at the end of an epoch; see check_val_every_n_epoch"
# Checks of Lightning's options, because some values would change the meaning of the best epoch.
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "enable_checkpointing": ((None, True).__contains__, "the best weights are in a checkpoint"),
    "barebones": (not_, "it skips the checkpoint of the best weights"),
    "fast_dev_run": (not_, "it keeps no weights; try limit_train_batches=2 with max_epochs=1"),
    "limit_train_batches": (_is_not_zero, "training takes at least one batch"),
    "limit_val_batches": (_is_not_zero, "validation chooses the best epoch and the thresholds"),
    "limit_predict_batches": (_is_unlimited, "predictions are those of all samples"),
    "val_check_interval": (_is_unlimited, _END),
    "use_distributed_sampler": (not_, "samples are divided so that each counts once"),
}
_LOADING = ("batch_size", "num_workers", "seed", "shuffle", "drop_last")
_DATA_OPTIONS = ("val", "test", "split", *_LOADING)
_MODULE_OPTIONS = (*[*inspect.signature(MultiLabelModule).parameters][1:], *OPTIONS)


@dataclass(frozen=True)
class Training:
    """Further results of :func:`fit`, which the attribute :obj:`training` of its model holds."""

    model: Model
    #: module with the best weights, and with thresholds for their validation scores
    module: MultiLabelModule
    checkpoint: Path  #: checkpoint of the best epoch
    last_checkpoint: Path  #: checkpoint of the last epoch, to resume from
    best_value: float  #: best value of the monitored metric
    num_epochs: int  #: total number of epochs, including epochs before resuming
    trainer: Trainer
    data: MultiLabelDataModule  #: training, validation and test batches
    folder: Path | None = None  #: folder for :func:`tg_mlc.load`, if the model could be saved

    def __repr__(self) -> str:
        value = f"best_value={self.best_value:.4f}, num_epochs={self.num_epochs}"
        return f"Training('{self.checkpoint}', {value})"

    def scores(self, samples: DataLoader | Any) -> Tensor:
        """Returns scores :math:`(N, L)`, before calibration, in the order of a loader, a list or a
        data set. All processes of the training compute scores, and must call this method.
        """
        trainer, size, loader, sampler = self.trainer, self.data.batch_size, samples, None
        if not isinstance(samples, TorchDataLoader):
            process = trainer.global_rank, trainer.world_size
            sampler = EpochSampler(len(samples), 0, shuffle=False, batch_size=size, process=process)
            options = {"sampler": sampler, "generator": torch.Generator()}
            loader = make_loader(samples, batch_size=size, **options)
        with quiet():
            scores = torch.cat(cast("list[Tensor]", trainer.predict(self.module, loader)))
        is_alone = sampler is None or trainer.world_size == 1
        return scores if is_alone else gathered(sampler, scores)[0]

    def part(self, name: Literal["train", "val", "test"]) -> Any:
        """Returns the preprocessed samples of a part of the split, which must not be empty."""
        check_choice("part", name, PARTS)
        indices = getattr(self.data.split, name)
        if indices.numel() == 0:
            hint = f"call fit with {name}=0.1"
            raise ValueError(f"Expected samples in the part '{name}' (got none); {hint}")
        return self.data.part(indices)

    def evaluate(self, part: Literal["train", "val", "test"] = "test") -> Evaluation:
        """Returns all metrics of a part of the split, at thresholds from the validation part."""
        return self.prepared.evaluate(self.part(part))

    @property
    def prepared(self) -> Model:
        """The model for samples that are already preprocessed."""
        return self.model.of_samples()


def fit(
    module: MultiLabelModule | nn.Module,
    data: MultiLabelDataModule | Any,
    folder: str | os.PathLike[str],
    *,
    label_names: Sequence[str] | None = None,
    max_epochs: int = 50,
    monitor: str = "val/macro_roc_auc",
    patience: int | None = 10,
    ema_decay: float | None = None,
    gradient_clip: float | None = None,
    precision: Any = "32-true",
    accelerator: str = "auto",
    deterministic: bool | Literal["warn"] = False,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    calibrate: bool = False,
    coverage_share: float = 0.0,
    **options: Any,
) -> Model:
    """Trains a network and returns it, as a model, with the weights of its best epoch.

    The folder gets ``best.ckpt``, ``last.ckpt``, the metrics of every epoch under ``logs`` (as CSV
    and for TensorBoard), the folder ``model`` for :func:`tg_mlc.load` if the model can be
    saved, and ``.lock``, which prevents a second training there. An interrupted training resumes
    from its last complete epoch. On a CPU, with the same arguments and number of threads, the
    weights are then bit for bit those of an uninterrupted training.

    .. code-block:: python

        model = fit(Net(num_labels=12), samples, "runs/mine", val=0.1, test=0.1, label_names=names)
        print(model.training.evaluate())
        model.save("model")
        tg_mlc.load("model", Net).predict(new_samples)

    Args:
        module (torch.nn.Module or MultiLabelModule): A network that maps a batch to logits
            :math:`(B, L)`, or a module with its own objective.
        data (list of Data, Dataset, DataLoader or MultiLabelDataModule): Samples with :obj:`y` of
            shape :math:`(L)` or :math:`(1, L)`: 0, 1, or NaN for unknown; a loader of them; three
            lists, data sets or loaders for training, validation and test; or a module that loads
            the parts of a split. Of a loader, ``batch_size``, ``num_workers``, ``shuffle`` and
            ``drop_last`` apply; a loader that makes other batches is refused.
        folder (str or PathLike): The folder for checkpoints and logs.
        label_names (Sequence[str], optional): Names of labels. (default: the names in the samples,
            or in the label graph, or numbers)
        max_epochs (int, optional): Largest number of epochs; also the length of schedules.
            (default: :obj:`50`)
        monitor (str, optional): The validation metric that chooses the best epoch: one of
            :obj:`MONITORS`. (default: :obj:`"val/macro_roc_auc"`)
        patience (int, optional): Epochs without improvement until a stop; :obj:`None` never stops.
            (default: :obj:`10`)
        ema_decay (float, optional): Decay of a running average of the weights. The average is
            validated and kept. (default: :obj:`None`, no average)
        gradient_clip (float, optional): Largest norm of the gradient. (default: :obj:`None`)
        precision (str, optional): Lightning's name of the precision, *e.g.* :obj:`"bf16-mixed"`.
            (default: :obj:`"32-true"`)
        accelerator (str, optional): Lightning's name of the device type. One device is used unless
            options such as ``devices=2, strategy="ddp"`` request more. (default: :obj:`"auto"`)
        deterministic (bool or str, optional): If set to :obj:`True`, operations that are not
            deterministic raise an error; :obj:`"warn"` warns. (default: :obj:`False`)
        resume (bool, optional): Whether to continue from ``last.ckpt``. (default: :obj:`False`)
        callbacks (Sequence[Callback], optional): Further callbacks. (default: :obj:`()`)
        calibrate (bool, optional): Whether to calibrate the probabilities of each label on the
            validation samples. (default: :obj:`False`)
        coverage_share (float, optional): Fraction of randomly drawn samples that are held out to
            guarantee the coverage of ``predict(..., coverage=0.9)``. (default: :obj:`0`)
        **options (optional): :obj:`val` and :obj:`test`, each a fraction of the samples in a
            stratified split (0.1) or further samples, or a :obj:`split`; :obj:`batch_size`,
            :obj:`seed` (of the split and of the order of samples) and others of
            :class:`MultiLabelDataModule`; :obj:`lr`, :obj:`objective` and others of
            :class:`MultiLabelModule`; instead of an objective, the options of
            :class:`BinaryObjective` and of its loss, *e.g.* ``pos_weight=5.0`` or
            ``loss_name="focal", gamma=1.0``; and options of :class:`lightning.pytorch.Trainer`,
            *e.g.* ``logger=False``.

    Raises:
        ValueError: If an argument has another type or is out of range, no training sample knows a
            label, several processes cannot train as one, the checkpoint to resume from is damaged
            or has other settings of the optimiser, or data set and module have different label
            names.
        FileNotFoundError: If the checkpoint to resume from, or that of the best epoch, is missing.
        OSError: If a checkpoint cannot be written.
        RuntimeError: If no epoch was validated, or another training writes to :obj:`folder`.
        FloatingPointError: If the training diverges.
        SystemExit: If the process receives SIGTERM, with status 143.
    """
    data_options, module_options = (
        {name: options.pop(name) for name in names if name in options}
        for names in (_DATA_OPTIONS, _MODULE_OPTIONS)
    )
    check_flag("calibrate", calibrate)
    check_flag("resume", resume)
    data, coverage_samples = split_off(data, coverage_share, data_options)
    data = data_module(data, data_options)
    module = _make_module(module, data, label_names, module_options)
    check_same_names(getattr(data.dataset, "label_names", None), module.label_names, "the data set")
    if not makes_batches(data.dataset):
        check_known(targets_of(data.part(data.split.train)), module.label_names)
    _check_options(monitor, patience, gradient_clip, options)
    folder = Path(folder).resolve()
    best = FileCheckpoint(folder / "best.ckpt", monitor, MONITORS[monitor])
    last = FileCheckpoint(folder / "last.ckpt")
    if resume and not (path := folder / "last.ckpt").is_file():
        expected = f"Expected a checkpoint to resume from (got no file '{path}')"
        raise FileNotFoundError(f"{expected}; train without 'resume'")
    settings = {"max_epochs": max_epochs, "precision": precision, "accelerator": accelerator}
    settings |= {"deterministic": deterministic, "gradient_clip_val": gradient_clip, **options}
    resuming = resuming_callbacks(monitor, MONITORS[monitor], patience, ema_decay)
    with quiet():
        trainer = make_trainer(folder, monitor, [*resuming, *callbacks, best, last], settings)
        check_processes(trainer, module.objective)
        with nullcontext() if trainer.global_rank else _lock(folder):
            _train(trainer, module, data, folder, resume, options)
            _load_best(module, best.best_model_path)
    model = _make_model(module, data, calibrate, coverage_samples)
    best_value = float(cast("Tensor", best.best_model_score))
    values = {metric: tuner.best_value for metric, tuner in module.tuners.items()}
    model.facts = {"validation": {monitor: best_value, **values}, "epochs": trainer.current_epoch}
    model.facts |= {"data": data_hash(data.dataset), "split": data.split.hash}
    model.count_labels(model.targets(data.part(data.split.train), None))
    model.training = Training(
        model,
        module,
        checkpoint=Path(best.best_model_path),
        last_checkpoint=Path(last.best_model_path),
        best_value=best_value,
        num_epochs=trainer.current_epoch,
        trainer=trainer,
        data=data,
        folder=_save(model, module, trainer, folder / "model"),
    )
    return model


@dataclass(frozen=True)
class TrainSettings:
    """The settings of :func:`train_model`.

    Args:
        module (dict, optional): Arguments of :class:`MultiLabelModule`. (default: :obj:`{}`)
        objective (Objective, optional): Loss and scores. (default: :class:`BinaryObjective`)
        fit (dict, optional): Arguments of :func:`fit`. (default: :obj:`{}`)
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
) -> Training:
    """Builds a network and trains it.

    .. code-block:: python

        settings = TrainSettings({"lr": 1e-3}, fit={"max_epochs": 10})
        build = lambda train: table_lamp(train, label_graph)
        training = train_model(build, dataset, split, settings, "runs/mine")

    Args:
        build (Callable): Builds the network from training samples.
        dataset (MultiLabelDataset): All samples, preprocessed for the network.
        split (Split): The samples to train, validate and test with.
        settings (TrainSettings): The options of module, objective and :func:`fit`.
        folder (str or PathLike): The folder for checkpoints and logs.
        seed (int, optional): Seed of the process, and of the order of samples. (default: :obj:`0`)
        preprocessor, config (optional): As in :class:`MultiLabelModule`. (default: :obj:`None`)
    """
    seed_everything(seed, verbose=False)
    model = build(cast(MultiLabelDataset, dataset[split.train]))
    options = {**settings.module, "preprocessor": preprocessor, "config": config}
    module = MultiLabelModule(model, dataset.label_names, settings.objective, **options)
    data = MultiLabelDataModule(dataset, split, batch_size=settings.batch_size, seed=seed)
    training: Training = fit(module, data, folder, **settings.fit).training
    return training


def _train(
    trainer: Trainer, module: MultiLabelModule, data: Any, folder: Path, resume: bool, options: Any
) -> None:
    """Trains from the start, or from the last checkpoint if :obj:`resume` is set."""
    # A forward pass initialises lazy layers, whose sizes the optimiser needs.
    if any(map(is_lazy, module.parameters())):
        with torch.no_grad():
            module.eval()(next(iter(data.val_dataloader())))
        module.train()
    try:
        trainer.fit(module, data, ckpt_path=folder / "last.ckpt" if resume else None)
    except SIGTERMException:
        # Lightning would exit with status 0.
        hint = "call fit with resume=True to go on from its last complete epoch"
        tqdm.write(f"tg_mlc: the training in '{folder}' was terminated; {hint}", file=sys.stderr)
        raise SystemExit(143) from None
    except ValueError as error:
        # A batch norm cannot normalise a last batch of one sample.
        if "more than 1 value per channel" not in str(error):
            raise
        hint = "pass drop_last=True, or another batch_size"
        raise ValueError(f"Expected batches of several samples ({error}); {hint}") from error
    except MisconfigurationException as error:
        got = f"{shorten(options)}: {str(error).splitlines()[0]}"
        expected = "Expected options of the Trainer that suit the data"
        raise ValueError(f"{expected} (got {got})") from error


def _make_module(
    module: Any, data: MultiLabelDataModule, label_names: Any, options: dict[str, Any]
) -> MultiLabelModule:
    """Returns the module of a network, with label names from the first source that has any."""
    if isinstance(module, MultiLabelModule):
        if label_names is not None:
            options = {**options, "label_names": label_names}
        if options:
            expected = f"Expected {sorted(options)} to be arguments of the MultiLabelModule"
            raise ValueError(f"{expected} (got them in 'fit')")
        return module
    if not isinstance(module, nn.Module):
        expected = "Expected 'module' to be a torch.nn.Module, or a MultiLabelModule"
        raise ValueError(f"{expected} (got {type(module).__name__})")
    num_labels = next(iter(data.val_dataloader())).y.size(1)
    sources = [label_names, getattr(data.dataset, "label_names", None)]
    sources += [layer.label_graph.get("label_names") for layer in label_graph_users(module)][:1]
    numbers = [f"label_{i}" for i in range(num_labels)]
    names: Any = next((names for names in sources if names is not None), numbers)
    check_names(list(names), num_labels, "label_names", "labels")
    return MultiLabelModule(module, names, **with_objective(options))


def _check_options(
    monitor: str, patience: int | None, gradient_clip: float | None, options: Mapping[str, Any]
) -> None:
    known = {*inspect.signature(Trainer).parameters}
    if unknown := [name for name in options if name not in known]:
        names = {*known, *_DATA_OPTIONS, *_MODULE_OPTIONS, *inspect.signature(fit).parameters}
        close = closest(unknown[0], sorted(names))
        hint = "" if close is None else f"; is '{close}' meant?"
        raise ValueError(f"Expected options that 'fit' knows (got '{unknown[0]}'){hint}")
    for name, (allows, reason) in _ALLOWED.items():
        if name in options and not allows(options[name]):
            got = shorten(repr(options[name]))
            raise ValueError(f"Expected '{name}' to be left out (got {got}): {reason}")
    check_choice("monitor", monitor, MONITORS)
    check_count("patience", patience, or_none=True)
    # Lightning does not clip if the norm is 0.
    if gradient_clip is not None and not gradient_clip > 0.0:
        expected = "Expected 'gradient_clip' to be positive, or None to clip nothing"
        raise ValueError(f"{expected} (got {gradient_clip})")


def _lock(folder: Path) -> AbstractContextManager[Any]:
    """Returns a lock on a folder. The system releases the lock if the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(folder / ".lock", blocking=False).acquire()
    except Timeout:
        expected = f"Expected no other training that writes to '{folder}' (got one under way)"
        raise RuntimeError(f"{expected}; wait for it, or choose another folder") from None


def _load_best(module: MultiLabelModule, path: str) -> None:
    if not path:
        hint = "raise 'max_epochs', 'max_steps' or 'max_time'"
        raise RuntimeError(f"Expected at least one epoch with validation (got none); {hint}")
    checkpoint = load_file(path, module.device)
    module.on_load_checkpoint(checkpoint)
    module.load_state_dict(checkpoint["state_dict"])
    module.eval()


def _make_model(
    module: MultiLabelModule, data: MultiLabelDataModule, calibrate: bool, coverage_samples: Any
) -> Model:
    """Returns the model of a trained module, with calibration and coverage stages if requested."""
    model = Model.of(module)
    model.network_stage.examples = next(iter(data.val_dataloader()))
    prepared = model.of_samples()
    if calibrate:
        prepared.calibrate(data.part(data.split.val), batch_size=data.batch_size)
    if coverage_samples is not None:
        prepared.conformalize(coverage_samples, batch_size=data.batch_size)
    model.stages = [*model.preparing, *prepared.stages[1:]]
    return model


def _save(model: Model, module: MultiLabelModule, trainer: Trainer, folder: Path) -> Path | None:
    """Saves the model in the first process. Returns the folder, or :obj:`None` on failure."""
    saved: Path | None = None
    if trainer.is_global_zero:
        try:
            saved = model.save(folder)
        except ValueError as error:
            # Networks without a blueprint can still be saved by 'save' with arguments.
            if blueprint_of(module.model) is not None:
                path = folder.parent / "best.ckpt"
                reason = f"because no folder can hold it: {error}"
                warnings.warn(f"The model is in '{path}' only, {reason}", stacklevel=3)
    return trainer.strategy.broadcast(saved)
