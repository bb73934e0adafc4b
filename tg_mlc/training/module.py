"""Lightning module that adds objective, optimiser, validation and thresholds to a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import chain
from typing import Any, Literal, get_args

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.strategies.launchers import _MultiProcessingLauncher
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau
from torch_geometric.data import Batch
from typing_extensions import Self

from tg_mlc._names import check_same_names, few, shorten
from tg_mlc._options import check_choice, check_number
from tg_mlc.inference import checkpoint as checkpoints
from tg_mlc.inference.batches import in_type_of, scores_of
from tg_mlc.inference.network import (
    check_same_graph,
    check_settings,
    describe_model,
    describe_settings,
    label_graph_users,
)
from tg_mlc.inputs import Preprocessor
from tg_mlc.inputs.preprocessor import from_state
from tg_mlc.metrics import evaluate, tune_thresholds
from tg_mlc.metrics.thresholds import Decider
from tg_mlc.nn.given import given_in
from tg_mlc.training.objectives import Objective, describe_objective, make_objective

LRSchedule = Literal["none", "cosine", "linear", "plateau"]

#: Factor of the learning rate, and epochs without a lower validation loss before it applies, as in
#: the code of LANET's authors.
PLATEAU_FACTOR, PLATEAU_PATIENCE = 0.3, 5

_DECAYS: dict[str, Callable[[float], float]] = {
    "none": lambda _: 1.0,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
    "linear": lambda progress: 1.0 - progress,
}

# Metrics that are logged during validation, and their names in tg_mlc.metrics.
_LOGGED = {
    "macro_roc_auc": "roc_auc_macro",
    "micro_roc_auc": "roc_auc_micro",
    "macro_average_precision": "average_precision_macro",
}

# Settings that the states of optimiser and schedule in a checkpoint depend on.
_OPTIMISER = ("lr", "weight_decay", "betas", "eps", "lr_schedule", "warmup")


class MultiLabelModule(LightningModule):
    r"""Trains a model that predicts the labels of a batch.

    The optimiser is AdamW, with weight decay on matrices only. Every epoch logs ``val/loss``,
    ``val/macro_roc_auc``, ``val/micro_roc_auc`` and ``val/macro_average_precision``. A checkpoint
    holds, as tensors and plain data: weights, thresholds, label names, label graph, objective,
    settings of :obj:`model` that weight shapes do not determine (such as the number of heads), and
    :obj:`config`. It loads into a model with the same graph and settings:

    .. code-block:: python

        module = MultiLabelModule.load_from_checkpoint("best.ckpt", model=model, weights_only=True)

    Args:
        model (torch.nn.Module): Maps a :class:`~torch_geometric.data.Batch` to the input of
            :obj:`objective`, by default logits :math:`(B, L)`.
        label_names (Sequence[str]): One name per label.
        objective (Objective, optional): Loss and scores.
            (default: :class:`~tg_mlc.training.BinaryObjective`)
        lr (float, optional): Learning rate. (default: :obj:`2e-4`, as in the LaMP paper)
        weight_decay (float, optional): Decoupled weight decay. (default: :obj:`0.0`)
        betas (tuple, optional): Decay rates of Adam's averages. (default: :obj:`(0.9, 0.999)`)
        eps (float, optional): Constant in Adam's denominator. (default: :obj:`1e-8`)
        lr_schedule (str, optional): The schedule of the learning rate: :obj:`"cosine"` or
            :obj:`"linear"` to zero at the last epoch, :obj:`"plateau"` (times 0.3 after more than 5
            epochs without a lower validation loss), or :obj:`"none"`. (default: :obj:`"none"`)
        warmup (float, optional): Fraction of steps with a rising rate. (default: :obj:`0.0`)
        config (dict, optional): Options to store in checkpoints. (default: :obj:`None`)
        preprocessor (Preprocessor, optional): Converts raw inputs to samples; stored in
            checkpoints. (default: :obj:`None`)

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** what :obj:`model` returns from :meth:`forward`, scores :math:`(B, L)` from
          :meth:`predict_step`

    Raises:
        ValueError: If :obj:`objective` cannot train :obj:`model`, an option is out of range,
            :obj:`config` is not plain data, :obj:`preprocessor` is not fitted, or the model's label
            graph has other labels or another order.
    """

    def __init__(
        self,
        model: nn.Module,
        label_names: Sequence[str],
        objective: Objective | Mapping[str, Any] | None = None,
        *,
        lr: float = 2e-4,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        lr_schedule: LRSchedule = "none",
        warmup: float = 0.0,
        config: dict[str, Any] | None = None,
        preprocessor: Preprocessor | None = None,
    ) -> None:
        super().__init__()
        class_name = type(model).__name__
        if not isinstance(model, nn.Module):
            raise ValueError(f"Expected 'model' to be a torch.nn.Module (got {class_name})")
        label_names, config = [str(name) for name in label_names], dict(config or {})
        check_number("lr", lr)
        check_number("weight_decay", weight_decay)
        check_number("eps", eps)
        for i, beta in enumerate(betas):
            check_number(f"betas[{i}]", beta, below=1.0)
        check_choice("lr_schedule", lr_schedule, get_args(LRSchedule))
        check_number("warmup", warmup, below=1.0)
        if lr_schedule == "plateau" and warmup > 0.0:
            raise ValueError(f"Expected no 'warmup' with lr_schedule='plateau' (got {warmup})")
        # NumPy numbers, which a grid of settings may contain, are not plain data.
        lr, weight_decay, eps, warmup = float(lr), float(weight_decay), float(eps), float(warmup)
        betas = float(betas[0]), float(betas[1])
        checkpoints.check_plain(config, "config")
        checkpoints.check_preprocessor(preprocessor)
        self.objective = make_objective(objective)
        self.objective.check(model)
        description = describe_objective(self.objective)
        checkpoints.check_plain(description, "objective")
        for layer in label_graph_users(model):
            if layer.num_labels != (got := len(label_names)):
                names = f"{layer.num_labels} names, one for each label of the model's graph"
                raise ValueError(f"Expected 'label_names' to hold {names} (got {got})")
            check_same_names(layer.label_graph.get("label_names"), label_names, "the label graph")
        self.save_hyperparameters(ignore=["model", "objective", "preprocessor"])
        self.save_hyperparameters({"objective": description})
        self.model, self.preprocessor = model, preprocessor
        self.label_names: list[str] = label_names
        self.config: dict[str, Any] = config
        # Settings are read now, because forward passes may change attributes such as counters.
        self.settings = describe_settings(model)
        self._num_processes = 1
        self._validated: list[tuple[Tensor, ...]] = []
        # Targets and scores of the validation samples.
        self._scored: tuple[Tensor, Tensor] | None = None
        self._tuners: dict[str, Decider] = {}

    @property
    def tuners(self) -> dict[str, Decider]:
        """Thresholds by metric, for the latest validation scores; empty without scores."""
        if not self._tuners and self._scored is not None:
            self._tuners = tune_thresholds(*self._scored)
        return self._tuners

    def setup(self, stage: str) -> None:
        """Raises if several processes cannot train as one."""
        check_processes(self.trainer, self.objective)
        self._num_processes = self.trainer.world_size

    def forward(self, batch: Batch) -> Any:
        """Returns the model's output, by default logits."""
        return self.model(in_type_of(self.model, batch))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Returns the loss of a batch, reweighted so that the mean over processes is exact."""
        batch = without_given(self.model, in_type_of(self.model, batch))
        batch = self.objective.training_batch(batch)
        loss, size = self.objective.loss(self.model, batch), batch.num_graphs
        if is_parallel := self._num_processes > 1:
            loader: Any = self.trainer.train_dataloader
            step_size = loader.batch_size * self._num_processes
            size = min(step_size, loader.sampler.num_samples - batch_idx * step_size)
            is_own = batch_idx < loader.sampler.num_own_batches
            num_terms = self.objective.num_terms(batch).to(loss) * is_own
            mean_num_terms = self.trainer.strategy.reduce(num_terms.clone(), reduce_op="mean")
            loss = loss * num_terms / mean_num_terms.clamp(min=1e-9)
        logging = {"on_step": False, "on_epoch": True, "batch_size": size, "sync_dist": is_parallel}
        self.log("train/loss", loss, **logging)
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Collects targets, scores and loss of a batch."""
        batch = self.objective.validation_batch(in_type_of(self.model, batch), batch_idx)
        batch = without_given(self.model, batch)
        scores, loss = self.objective.validate(self.model, batch)
        shape = [batch.num_graphs, len(self.label_names)]
        if list(scores.shape) != shape:
            expected = f"Expected scores of shape {shape}, one per sample and label name"
            raise ValueError(f"{expected} (got {list(scores.shape)})")
        num_terms = self.objective.num_terms(batch)
        if self._num_processes > 1:
            loader: Any = self.trainer.val_dataloaders
            num_terms = num_terms * (batch_idx < loader.sampler.num_own_batches)
        self._validated.append((batch.y, scores, loss.view(1), num_terms.view(1)))

    def on_validation_epoch_end(self) -> None:
        """Logs loss and metrics of the validation samples of all processes."""
        y, scores, losses, num_terms = (
            torch.cat(parts) for parts in zip(*self._validated, strict=True)
        )
        self._validated.clear()
        if self._num_processes > 1:
            loader: Any = self.trainer.val_dataloaders
            y, scores = gathered(loader.sampler, y, scores)
            losses, num_terms = gathered(None, losses, num_terms)
        loss = (losses * num_terms).sum() / num_terms.sum().clamp(min=1)
        if not (loss.isfinite() and scores.isfinite().all()):
            got = f"NaN or infinity after epoch {self.current_epoch}"
            hint = "lower 'lr', or clip gradients"
            if self.current_epoch == 0:
                hint = f"look for NaN among the inputs (QuantileScaler takes them); else {hint}"
            expected = f"Expected finite outputs (got {got}): training has diverged"
            raise FloatingPointError(f"{expected}; {hint}")
        self._scored, self._tuners = (y.cpu(), scores.cpu()), {}
        values = evaluate(*self._scored).values
        metrics = {f"val/{name}": values[key] for name, key in _LOGGED.items()}
        self.log_dict({"val/loss": loss, **metrics})

    def on_train_epoch_start(self) -> None:
        """Deletes validation scores and thresholds, because the weights are about to change."""
        self._scored, self._tuners = None, {}

    def predict_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Returns the scores :math:`(B, L)` of a batch; given labels keep their values."""
        return scores_of(self.objective, self.model, in_type_of(self.model, batch))

    def configure_optimizers(self) -> Any:
        """Returns AdamW and the schedule of its learning rate."""
        options = self.hparams
        # Weight decay applies to matrices, but not to biases and scales of norms.
        groups = []
        for is_matrix, decay in ((True, options["weight_decay"]), (False, 0.0)):
            weights = [w for w in self.model.parameters() if (w.dim() > 1) == is_matrix]
            groups += [{"params": weights, "weight_decay": decay}] if weights else []
        betas = tuple(options["betas"])
        optimizer = AdamW(groups, lr=options["lr"], betas=betas, eps=options["eps"])
        if options["lr_schedule"] == "none" and options["warmup"] == 0.0:
            return optimizer
        if options["lr_schedule"] == "plateau":
            plateau = ReduceLROnPlateau(optimizer, factor=PLATEAU_FACTOR, patience=PLATEAU_PATIENCE)
            scheduler = {"scheduler": plateau, "monitor": "val/loss", "interval": "epoch"}
            return {"optimizer": optimizer, "lr_scheduler": scheduler}
        total = self.trainer.estimated_stepping_batches
        # Lightning has already built a loader, and its workers have prefetched epoch 0. A resumed
        # training needs a new loader.
        self.trainer.fit_loop._combined_loader = None
        if total == float("inf"):
            use = "a learning rate with 'lr_schedule' or 'warmup'"
            raise ValueError(f"Expected 'max_epochs' or 'max_steps' for {use} (got neither)")
        factor = lr_factor(options["lr_schedule"], options["warmup"], int(total))
        scheduler = {"scheduler": LambdaLR(optimizer, factor), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]
        cls, checkpoint_path: Any, map_location: Any = None, *, strict: bool = True, **options: Any
    ) -> Self:
        """Loads a module from a checkpoint and :obj:`model`, with Lightning's arguments.

        Args:
            checkpoint_path, map_location, strict (optional): As in Lightning.
            **options (optional): The model, and arguments that override stored values.

        Raises:
            ValueError: If the model differs, or the checkpoint is damaged.
        """
        weights_only = options.pop("weights_only", None) is not False
        checkpoint = checkpoints.load_file(checkpoint_path, map_location or "cpu", weights_only)
        checkpoints.own_entry(checkpoint, str(checkpoint_path))
        module = cls(**{**checkpoint["hyper_parameters"], **options})
        module.on_load_checkpoint(checkpoint)
        module.load_state_dict(checkpoint["state_dict"], strict=strict)
        return module

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Loads weights. Raises :obj:`ValueError` for weights of another model."""
        try:
            return super().load_state_dict(state_dict, *args, **kwargs)
        except RuntimeError as error:
            first, *others = [*str(error).splitlines(), ""]
            if not first.startswith("Error(s) in loading"):
                raise
            expected = "Expected a model with the settings that these weights were trained with"
            got = f"another one: {shorten(others[0].strip())}"
            hint = "build it with them; read_checkpoint(path).config holds them if you stored them"
            raise ValueError(f"{expected} (got {got}); {hint}") from None

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds the entry that :func:`read_checkpoint` reads."""
        description = describe_model(self.model, self.settings)
        checkpoint[checkpoints.KEY] = checkpoints.make_entry(
            description, self.tuners, self.preprocessor
        )

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Loads thresholds and preprocessor. Raises if settings or names differ."""
        entry = checkpoints.own_entry(checkpoint)
        stored = checkpoint["hyper_parameters"]["label_names"]
        if stored != self.label_names:
            got = f"(got {few(self.label_names)})"
            raise ValueError(f"Expected the label names of the checkpoint, {few(stored)} {got}")
        check_settings(entry["settings"], self.settings)
        check_same_graph(entry, self.model)
        if self._trainer is not None:
            self._check_optimiser(checkpoint["hyper_parameters"])
        objectives = checkpoint["hyper_parameters"]["objective"], self.hparams["objective"]
        # A resumed training has the same loss; other uses of the weights need the same scores.
        is_resumed = self._trainer is not None
        parts = [fields if is_resumed else {"class": fields["class"]} for fields in objectives]
        check_settings(*({"objective": part} for part in parts))
        self._scored, self._tuners = None, checkpoints.restore_tuners(entry["thresholds"])
        stored = entry["preprocessor"]
        if self.preprocessor is None:
            self.preprocessor = stored and from_state(stored)
        elif stored is not None:
            checkpoints.check_same_preprocessor(stored, self.preprocessor)

    def _check_optimiser(self, stored: Mapping[str, Any]) -> None:
        """Raises if a resumed training has other settings of the optimiser, whose state has the
        earlier ones.
        """
        settings = {name: self.hparams[name] for name in _OPTIMISER}
        changed = [name for name in _OPTIMISER if stored[name] != settings[name]]
        if changed:
            was, got = ({name: part[name] for name in changed} for part in (stored, settings))
            hint = "resume with these, or train anew from the weights: model.load_state_dict("
            hint += "read_checkpoint(path).state_dict)"
            expected = f"the optimiser's settings of the checkpoint, {shorten(was)}"
            raise ValueError(f"Expected {expected} (got {shorten(got)}); {hint}")


def lr_factor(lr_schedule: LRSchedule, warmup: float, total_steps: int) -> Callable[[int], float]:
    """Returns the learning-rate factor as a function of the step: a rise to 1, then a decay."""
    warmup_steps = round(warmup * total_steps)

    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        progress = (step - warmup_steps) / max(total_steps - warmup_steps, 1)
        return _DECAYS[lr_schedule](min(progress, 1.0))

    return factor


def without_given(model: nn.Module, batch: Batch) -> Batch:
    """Returns the batch with NaN as targets of given labels, which are not predicted."""
    given = given_in(model, batch)
    if given is None:
        return batch
    batch = copy(batch)
    batch.y = batch.y.masked_fill(~given.isnan(), torch.nan)
    return batch


def check_processes(trainer: Trainer, objective: Objective) -> None:
    """Raises if several processes cannot train like one process with all samples."""
    if trainer.world_size == 1:
        return
    is_temporary = isinstance(trainer.strategy.launcher, _MultiProcessingLauncher)
    if not isinstance(trainer.strategy, DDPStrategy) or is_temporary:
        reasons = "divides weights, which checkpoints hold whole", "trains in processes that end"
        got = f"{type(trainer.strategy).__name__}, which {reasons[is_temporary]}"
        raise ValueError(f"Expected strategy='ddp' for several processes (got {got})")
    if overfit := getattr(trainer, "overfit_batches", 0):
        expected = "Expected no 'overfit_batches' with several processes"
        raise ValueError(f"{expected} (got {overfit}), which would train with the same samples")
    if not objective.is_mean():
        expected = "an objective whose loss is a mean over known labels for several processes"
        hint = "set devices=1 and num_nodes=1, or override 'num_terms' and 'is_mean'"
        raise ValueError(f"Expected {expected} (got {shorten(objective)}); {hint}")


def gathered(sampler: Any, *parts: Tensor) -> list[Tensor]:
    """Returns the rows of all processes, in the order of samples if there is a sampler."""
    local: list[Any] = [None, *(part.cpu() for part in parts)]
    if sampler is not None:
        local[0] = list(sampler)[: len(parts[0])]
    received: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(received, local)
    indices, *rows = zip(*received, strict=True)
    merged = [torch.cat(row) for row in rows]
    if sampler is not None:
        row_of = {index: row for row, index in enumerate(chain(*indices))}
        order = torch.tensor([row_of[index] for index in sorted(row_of)])
        merged = [part[order] for part in merged]
    return [part.to(source.device) for part, source in zip(merged, parts, strict=True)]
