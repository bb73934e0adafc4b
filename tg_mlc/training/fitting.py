"""Training in one call, which keeps the best weights and can be resumed: of a module, or of a model
from samples and settings, the way that recipes, the default and the estimator share.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, cast

import torch
from filelock import FileLock, Timeout
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Trainer, seed_everything
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, ProgressBar
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils.data import ConcatDataset, RandomSampler, SequentialSampler, Subset
from torch.utils.data import DataLoader as TorchDataLoader
from torch_geometric.data import Dataset
from torch_geometric.loader import DataLoader
from tqdm import tqdm

from tg_mlc._names import check_names, check_same_names
from tg_mlc._options import check_choice, check_count, check_flag, check_number, check_share
from tg_mlc.data import MultiLabelDataset, Split, predefined_split, random_split, stratified_split
from tg_mlc.data.splits import PARTS
from tg_mlc.inference.batches import make_loader
from tg_mlc.inference.checkpoint import load_file
from tg_mlc.inference.model import Model
from tg_mlc.inference.network import data_hash, label_graph_users
from tg_mlc.inputs import Preprocessor
from tg_mlc.metrics import Evaluation
from tg_mlc.models.builders import blueprint_of
from tg_mlc.training.callbacks import (
    AtomicCheckpointIO,
    ExponentialMovingAverage,
    FileCheckpoint,
    PatientStopping,
    RandomState,
    RunProgressBar,
    quiet,
)
from tg_mlc.training.data import EpochSampler, MultiLabelDataModule, as_samples
from tg_mlc.training.module import MultiLabelModule, check_processes, gathered
from tg_mlc.training.objectives import BinaryObjective, Objective

#: Metrics that can choose the best epoch, and whether it is the one with the least or the most.
MONITORS = {
    "val/loss": "min",
    "val/macro_roc_auc": "max",
    "val/micro_roc_auc": "max",
    "val/macro_average_precision": "max",
}

# Small models need no summary and no sanity check, which take as long as some epochs; samplers
# divide samples already.
_TRAINER_OPTIONS = {"devices": 1, "enable_model_summary": False, "num_sanity_val_steps": 0}
_TRAINER_OPTIONS |= {"use_distributed_sampler": False}


def _is_all(value: Any) -> bool:
    """Tells whether a limit is none: 1.0 is a share of all, and 1 a number of batches."""
    return value is None or (isinstance(value, float) and value == 1.0)


# Values of Lightning's options without which there is no best epoch, or that would falsify it, and
# what to do.
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "enable_checkpointing": (
        lambda value: value in (None, True),
        "the best weights are kept in a checkpoint",
    ),
    "barebones": (
        lambda value: not value,
        "it leaves out the checkpoint that the best weights are kept in",
    ),
    "fast_dev_run": (
        lambda value: not value,
        "it keeps no weights; try limit_train_batches=2 with max_epochs=1",
    ),
    "limit_train_batches": (lambda value: value != 0, "training takes at least one batch"),
    "limit_val_batches": (
        lambda value: value != 0,
        "validation chooses the best epoch and the thresholds",
    ),
    "limit_predict_batches": (_is_all, "predictions are those of all samples"),
    "val_check_interval": (
        _is_all,
        "thresholds have to be those of the weights at the end of an epoch; see check_val_every_n_epoch",
    ),
    "use_distributed_sampler": (
        lambda value: not value,
        "samples are divided so that each counts once",
    ),
}
_OF_DATA = ("val", "test", "split", "batch_size", "num_workers", "seed")
_OF_MODULE = tuple(inspect.signature(MultiLabelModule).parameters)[1:]


@dataclass(frozen=True)
class Training:
    """The results of :func:`fit` beside its model, which are its attribute :obj:`training`."""

    model: Model
    #: with the best weights, and :obj:`tuners` fitted on their validation scores
    module: MultiLabelModule
    checkpoint: Path  #: that of the best epoch
    last_checkpoint: Path  #: that of the last epoch, to resume from
    best_value: float  #: of the monitored metric
    num_epochs: int  #: how many epochs were trained, those before resuming included
    trainer: Trainer
    data: MultiLabelDataModule  #: the batches of the three parts
    folder: Path | None = None  #: what :func:`tg_mlc.load` reads, if the model can be made again

    def __repr__(self) -> str:
        return f"Training('{self.checkpoint}', best_value={self.best_value:.4f}, num_epochs={self.num_epochs})"

    def scores(self, samples: DataLoader | Any) -> Tensor:
        """Returns the scores of all samples of a loader, a list or a data set, :math:`(N, L)`, in
        its order, as the module computes them: by all processes of the training, not calibrated.
        """
        trainer, size, loader, sampler = self.trainer, self.data.batch_size, samples, None
        if not isinstance(samples, TorchDataLoader):
            process = trainer.global_rank, trainer.world_size
            sampler = EpochSampler(len(samples), 0, shuffle=False, batch_size=size, process=process)
            loader = make_loader(
                samples, batch_size=size, sampler=sampler, generator=torch.Generator()
            )
        with quiet():
            scores = torch.cat(cast("list[Tensor]", trainer.predict(self.module, loader)))
        return (
            scores if sampler is None or trainer.world_size == 1 else gathered(sampler, scores)[0]
        )

    def part(self, name: Literal["train", "val", "test"]) -> Any:
        """Returns the samples of a part of the split, which have passed the preprocessor.

        Args:
            name (str): Which part.

        Raises:
            ValueError: If there is no such part, or it is empty.
        """
        check_choice("part", name, PARTS)
        chosen = getattr(self.data.split, name)
        if chosen.numel() == 0:
            raise ValueError(
                f"Expected samples in the part '{name}' (got none); call fit with {name}=0.1"
            )
        return self.data.part(chosen)

    def evaluate(self, part: Literal["train", "val", "test"] = "test") -> Evaluation:
        """Returns all metrics of a part of the split, at the thresholds that were chosen on the
        validation part.

        Args:
            part (str, optional): Which part. (default: :obj:`"test"`)

        Raises:
            ValueError: If there is no such part, or it is empty.
        """
        return self.prepared.evaluate(self.part(part))

    @property
    def prepared(self) -> Model:
        """The model of samples that have passed the preprocessor."""
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

    The folder gets ``best.ckpt``, ``last.ckpt``, under ``logs`` the metrics of every epoch as CSV
    and for TensorBoard, ``model``, which :func:`tg_mlc.load` reads, if the model can be made again,
    and ``.lock``, which keeps a second training out while one is under way. Checkpoints are written
    at the end of an epoch, and replaced as a whole. Training that was stopped at any moment
    therefore resumes from the end of its last complete epoch; called with the same arguments, it
    gives bit for bit the weights of an uninterrupted one on a CPU with the same number of threads.

    .. code-block:: python

        model = fit(Net(num_labels=12), samples, "runs/mine", val=0.1, test=0.1, label_names=names)
        print(model.training.evaluate())
        model.save("model")
        tg_mlc.load("model", Net).predict(new_samples)

    Args:
        module (torch.nn.Module or MultiLabelModule): The model: a network that returns logits
            :math:`(B, L)` of a batch, or a module with an objective of its own.
        data (list of Data, Dataset, DataLoader or MultiLabelDataModule): The data: samples with
            :obj:`y` of shape :math:`(L)` or :math:`(1, L)`: 0, 1, or NaN for unknown; a loader,
            whose samples and size of batches are taken; three of them for training, validation and
            test; or a module that loads the parts of a split.
        folder (str or PathLike): Where to put checkpoints and logs.
        label_names (Sequence[str], optional): The labels. (default: those of the samples, or of the
            label graph, or their numbers)
        max_epochs (int, optional): Number of epochs; the schedule of the learning rate ends there.
            (default: :obj:`50`)
        monitor (str, optional): The validation metric that says which epoch is best: one of
            :obj:`MONITORS`. (default: :obj:`"val/macro_roc_auc"`)
        patience (int, optional): Stops after so many epochs without a better one; never if
            :obj:`None`. (default: :obj:`10`)
        ema_decay (float, optional): Validates and keeps a running average of the weights with this
            decay. (default: :obj:`None`)
        gradient_clip (float, optional): Largest norm of the gradient. (default: :obj:`None`)
        precision (str, optional): Lightning's name of the precision, *e.g.* :obj:`"bf16-mixed"`.
            (default: :obj:`"32-true"`)
        accelerator (str, optional): Lightning's name of the device; one is used unless ``devices=2,
            strategy="ddp"`` or the like says more. (default: :obj:`"auto"`)
        deterministic (bool or str, optional): If set to :obj:`True`, operations without a
            deterministic implementation raise an error; :obj:`"warn"` warns. (default:
            :obj:`False`)
        resume (bool, optional): If set to :obj:`True`, goes on from ``last.ckpt`` in :obj:`folder`.
            (default: :obj:`False`)
        callbacks (Sequence[Callback], optional): Further callbacks. (default: :obj:`()`)
        calibrate (bool, optional): Whether to calibrate the probabilities of each label by the
            validation samples, as :meth:`Model.calibrate <tg_mlc.inference.Model.calibrate>` does.
            (default: :obj:`False`)
        coverage_share (float, optional): The share of samples, drawn at random, that are left out
            of the split, so that ``predict(..., coverage=0.9)`` can promise what label sets hold.
            (default: :obj:`0`)
        **options (optional): The shares :obj:`val` and :obj:`test` of samples in a stratified split
            (0.1 each), or a :obj:`split`; :obj:`batch_size`, :obj:`num_workers` and :obj:`seed` (of
            the split and of the order of samples) of :class:`MultiLabelDataModule`; :obj:`lr`,
            :obj:`objective` and others of :class:`MultiLabelModule`; and those of
            :class:`lightning.pytorch.Trainer`, *e.g.* ``logger=False``.

    Raises:
        ValueError: If an argument is of another type or out of range, several processes would not
            train as one, a checkpoint to resume from lies in another folder or is damaged, or data
            set and module name different labels.
        FileNotFoundError: If there is no checkpoint to resume from, or that of its best epoch is
        gone.
        OSError: If a checkpoint cannot be written.
        RuntimeError: If no epoch was validated, or another training writes to :obj:`folder`.
        FloatingPointError: If the training diverges.
        SystemExit: If the process is told to terminate, with status 143.
    """
    of_data, of_module = (
        {name: options.pop(name) for name in names if name in options}
        for names in (_OF_DATA, _OF_MODULE)
    )
    check_flag("calibrate", calibrate)
    check_flag("resume", resume)
    data, kept = _kept(data, coverage_share, of_data)
    data = _data_module(data, of_data)
    module = _module(module, data, label_names, of_module)
    check_same_names(getattr(data.dataset, "label_names", None), module.label_names, "the data set")
    _check_options(monitor, patience, gradient_clip, options)
    folder = Path(folder).resolve()
    start = folder / "last.ckpt" if resume else None
    if start is not None and not start.is_file():
        hint = "train without 'resume'"
        raise FileNotFoundError(
            f"Expected a checkpoint to resume from (got no file '{start}'); {hint}"
        )
    loggers = options.pop("logger", True)
    if loggers is True:
        table = CSVLogger(folder, name="logs")
        loggers = [
            table,
            TensorBoardLogger(folder, name="logs", version=table.version, default_hp_metric=False),
        ]
    plugins = options.pop("plugins", None) or []
    bar = options.get("enable_progress_bar", True) and not any(
        isinstance(each, ProgressBar) for each in callbacks
    )
    best = FileCheckpoint(folder / "best.ckpt", monitor, MONITORS[monitor])
    last = FileCheckpoint(folder / "last.ckpt")
    with quiet():
        trainer = Trainer(
            max_epochs=max_epochs,
            callbacks=[
                *_callbacks(monitor, patience, ema_decay, bool(loggers), bar),
                *callbacks,
                best,
                last,
            ],
            logger=loggers,
            precision=precision,
            accelerator=accelerator,
            deterministic=deterministic,
            plugins=[AtomicCheckpointIO(), *(plugins if isinstance(plugins, list) else [plugins])],
            **{
                **_TRAINER_OPTIONS,
                "default_root_dir": folder,
                "gradient_clip_val": gradient_clip,
                **options,
            },
        )
        check_processes(trainer, module.objective)
        with nullcontext() if trainer.global_rank else _lock(folder):
            # an optimiser must know the sizes that one batch tells
            if any(map(is_lazy, module.parameters())):
                with torch.no_grad():
                    module.eval()(next(iter(data.val_dataloader())))
                module.train()
            try:
                trainer.fit(module, data, ckpt_path=start)
            except SIGTERMException:  # which Lightning would make an exit status of 0
                hint = "call fit with resume=True to go on from its last complete epoch"
                tqdm.write(
                    f"tg_mlc: the training in '{folder}' was terminated; {hint}", file=sys.stderr
                )
                raise SystemExit(143) from None
            except MisconfigurationException as error:
                got = f"{options}: {str(error).splitlines()[0]}"
                raise ValueError(
                    f"Expected options of the Trainer that suit the data (got {got})"
                ) from error
            _load_best(module, best.best_model_path)
    best_value = float(cast("Tensor", best.best_model_score))
    model = Model.of(module)
    model.network_stage.examples = next(iter(data.val_dataloader()))
    prepared = model.of_samples()
    if calibrate:
        prepared.calibrate(data.part(data.split.val), batch_size=data.batch_size)
    if kept is not None:
        prepared.conformalize(kept, batch_size=data.batch_size)
    model.stages = [*model.preparing, *prepared.stages[1:]]
    thresholds = {metric: tuner.best_value for metric, tuner in module.tuners.items()}
    model.facts = {
        "validation": {monitor: best_value, **thresholds},
        "epochs": trainer.current_epoch,
        "data": data_hash(data.dataset),
        "split": data.split.hash,
    }
    model.training = Training(
        model=model,
        module=module,
        checkpoint=Path(best.best_model_path),
        last_checkpoint=Path(last.best_model_path),
        best_value=best_value,
        num_epochs=trainer.current_epoch,
        trainer=trainer,
        data=data,
        folder=_saved(model, module, trainer, folder / "model"),
    )
    return model


@dataclass(frozen=True)
class TrainSettings:
    """The settings of :func:`train_model`.

    Args:
        module (dict, optional): Arguments of :class:`MultiLabelModule`, such as :obj:`lr`.
            (default: :obj:`{}`)
        objective (Objective, optional): Loss and scores. (default: :class:`BinaryObjective`)
        fit (dict, optional): Arguments of :func:`fit`, such as :obj:`max_epochs`. (default:
            :obj:`{}`)
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

        settings = TrainSettings(
            {"lr": 1e-3}, BinaryObjective(intermediate_weight=0.1), {"max_epochs": 10}
        )
        training = train_model(
            lambda train: table_lamp(train, label_graph), dataset, split, settings, "runs/mine"
        )

    Args:
        build (Callable): Makes the model of training samples.
        dataset (MultiLabelDataset): All samples, as the model takes them.
        split (Split): Which of them to train, validate and test with.
        settings (TrainSettings): How to train.
        folder (str or PathLike): Where to put checkpoints and logs.
        seed (int, optional): Seed of weights, dropout and the order of samples; it is that of all
            random numbers of the process from then on. (default: :obj:`0`)
        preprocessor, config (optional): As in :class:`MultiLabelModule`. (default: :obj:`None`)
    """
    seed_everything(seed, verbose=False)
    model, names = build(cast(MultiLabelDataset, dataset[split.train])), dataset.label_names
    module = MultiLabelModule(
        model,
        names,
        settings.objective,
        preprocessor=preprocessor,
        config=config,
        **settings.module,
    )
    data = MultiLabelDataModule(dataset, split, batch_size=settings.batch_size, seed=seed)
    training: Training = fit(module, data, folder, **settings.fit).training
    return training


def _kept(data: Any, share: float, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """The samples to train, validate and test with, and those that no fit sees, drawn at random, if
    any."""
    check_number("coverage_share", share, below=1.0)
    if not share:
        return data, None
    is_divided = isinstance(data, (MultiLabelDataModule, TorchDataLoader)) or "split" in options
    if is_divided or (
        isinstance(data, (list, tuple)) and any(isinstance(part, TorchDataLoader) for part in data)
    ):
        raise ValueError(
            f"Expected samples that are not divided yet for coverage_share={share:g} (got loaders, a data module or a "
            f"'split'); keep some out of these, and pass them to 'conformalize' of the model"
        )
    samples = as_samples(data)
    split = random_split(len(samples), (1 - share, 0.0, share), options.get("seed", 0))
    some, kept = (
        samples[part] if isinstance(samples, Dataset) else Subset(samples, part.tolist())
        for part in (split.train, split.test)
    )
    return some, kept


def _data_module(data: Any, options: dict[str, Any]) -> MultiLabelDataModule:
    """The data module of samples or loaders, with shares of a split or a split, or one that is
    ready."""
    if isinstance(data, MultiLabelDataModule):
        if options:
            raise ValueError(
                f"Expected {sorted(options)} to be options of the MultiLabelDataModule (got them in 'fit')"
            )
        return data
    several = isinstance(data, (list, tuple)) and any(
        isinstance(part, TorchDataLoader) for part in data
    )
    if several or isinstance(data, TorchDataLoader):
        loaders = list(data) if several else [data]
        for loader in loaders:
            _check_loader(loader)
        options = {
            "batch_size": loaders[0].batch_size,
            "num_workers": loaders[0].num_workers,
            **options,
        }
        data = loaders[0].dataset
        if several:
            if len(loaders) != len(PARTS) or {"val", "test", "split"} & {*options}:
                raise ValueError(
                    f"Expected three loaders, for training, validation and test, without 'val', 'test' and 'split' "
                    f"(got {len(loaders)} and {sorted(options)})"
                )
            bounds = [0, *accumulate(len(loader.dataset) for loader in loaders)]
            data = ConcatDataset([loader.dataset for loader in loaders])
            train, validate, test = map(range, bounds[:-1], bounds[1:])
            options["split"] = predefined_split(train, validate, test, bounds[-1])
    samples = as_samples(data)
    shares = {name: options.pop(name) for name in ("val", "test") if name in options}
    if shares and "split" in options:
        raise ValueError(f"Expected either 'split' or {sorted(shares)} (got both)")
    if "split" not in options:
        val, test = shares.get("val", 0.1), shares.get("test", 0.1)
        for name, share in (("val", val), ("test", test), ("val + test", val + test)):
            check_share(name, share)
        y = (
            samples.y
            if isinstance(samples, MultiLabelDataset)
            else torch.cat([sample.y for sample in samples])
        )
        options["split"] = stratified_split(y, (1 - val - test, val, test), options.get("seed", 0))
    return MultiLabelDataModule(samples, **options)


def _check_loader(loader: Any) -> None:
    """Refuses a loader whose batches another loader of its samples would not make."""
    plain = isinstance(loader, TorchDataLoader) and loader.batch_size is not None
    usual = plain and type(loader.sampler) in (RandomSampler, SequentialSampler)
    if not usual or getattr(loader, "follow_batch", None) or getattr(loader, "exclude_keys", None):
        raise ValueError(
            f"Expected loaders with 'batch_size' and 'shuffle' alone, because a saved model batches new samples itself "
            f"(got a {type(loader).__name__} with a sampler, 'follow_batch' or 'exclude_keys'); pass its samples, and "
            f"make in 'forward' what a batch lacks"
        )


def _module(
    module: Any,
    data: MultiLabelDataModule,
    label_names: Sequence[str] | None,
    options: dict[str, Any],
) -> MultiLabelModule:
    """The module of a network, whose labels are named by the caller, the samples, the label graph,
    or numbers."""
    if isinstance(module, MultiLabelModule):
        if label_names is not None or options:
            given = sorted([*options, *(["label_names"] if label_names is not None else [])])
            raise ValueError(
                f"Expected {given} to be arguments of the MultiLabelModule (got them in 'fit')"
            )
        return module
    if not isinstance(module, nn.Module):
        raise ValueError(
            f"Expected 'module' to be a torch.nn.Module, or a MultiLabelModule (got {type(module).__name__})"
        )
    sample = next(iter(data.val_dataloader()))
    num_labels = sample.y.size(1)
    graph = next((layer.label_graph for layer in label_graph_users(module)), None)
    of_graph = None if graph is None else graph.get("label_names")
    found = [label_names, getattr(data.dataset, "label_names", None), of_graph]
    names = next(
        (names for names in found if names is not None), [f"label_{i}" for i in range(num_labels)]
    )
    check_names(list(names), num_labels, "label_names", "labels")
    return MultiLabelModule(module, names, **options)


def _check_options(
    monitor: str, patience: int | None, gradient_clip: float | None, options: Mapping[str, Any]
) -> None:
    for name, (allows, reason) in _ALLOWED.items():
        if name in options and not allows(options[name]):
            raise ValueError(f"Expected '{name}' to be left out (got {options[name]!r}): {reason}")
    check_choice("monitor", monitor, MONITORS)
    if patience is not None:
        check_count("patience", patience)
    # Lightning takes such a norm for none
    if gradient_clip is not None and not gradient_clip > 0.0:
        raise ValueError(
            f"Expected 'gradient_clip' to be positive, or None to clip nothing (got {gradient_clip})"
        )


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


def _callbacks(
    monitor: str, patience: int | None, ema_decay: float | None, log: bool, bar: bool
) -> list[Callback]:
    callbacks: list[Callback] = [RandomState(), *([RunProgressBar(monitor)] if bar else [])]
    if ema_decay is not None:
        callbacks.append(ExponentialMovingAverage(ema_decay))
    if patience is not None:
        callbacks.append(
            PatientStopping(monitor, mode=MONITORS[monitor], patience=patience, strict=False)
        )
    if log:
        callbacks.append(LearningRateMonitor("epoch"))
    return callbacks


def _load_best(module: MultiLabelModule, path: str) -> None:
    if not path:
        raise RuntimeError(
            "Expected at least one epoch with validation (got none); raise 'max_epochs', 'max_steps' or 'max_time'"
        )
    checkpoint = load_file(path, module.device)
    module.on_load_checkpoint(checkpoint)
    module.load_state_dict(checkpoint["state_dict"])
    module.eval()


def _saved(model: Model, module: MultiLabelModule, trainer: Trainer, folder: Path) -> Path | None:
    """The folder that the model was saved to, by the first process; :obj:`None` if no folder can
    hold it."""
    saved: Path | None = None
    if trainer.is_global_zero:
        try:
            saved = model.save(folder)
        except ValueError as error:
            # The user may give 'save' the arguments of another network.
            if blueprint_of(module.model) is not None:
                reason = f"as no folder can hold it: {error}"
                warnings.warn(
                    f"The model is in '{folder.parent / 'best.ckpt'}' only, {reason}", stacklevel=3
                )
    return trainer.strategy.broadcast(saved)
