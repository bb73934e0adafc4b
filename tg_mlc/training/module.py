"""Lightning module: objective, optimiser, validation scores and thresholds around any model."""

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

from tg_mlc._names import check_same_names
from tg_mlc._options import check_choice, check_number
from tg_mlc.inference.batches import in_type_of, scores_of
from tg_mlc.inference.checkpoint import (
    KEY,
    check_plain,
    check_preprocessor,
    check_same_preprocessor,
    load_file,
    make_entry,
    own_entry,
    restore_preprocessor,
    restore_tuners,
)
from tg_mlc.inference.network import (
    check_same_model,
    check_settings,
    describe_model,
    describe_settings,
    label_graph_users,
)
from tg_mlc.inputs import Preprocessor
from tg_mlc.metrics import evaluate, tune_thresholds
from tg_mlc.metrics.thresholds import Decider
from tg_mlc.nn.given import given_in
from tg_mlc.training.objectives import Objective, describe_objective, make_objective

LRSchedule = Literal["none", "cosine", "linear", "plateau"]

#: On a plateau the learning rate is multiplied by this after so many epochs without a lower
#: validation loss, as in the authors' released code of LANET.
PLATEAU_FACTOR, PLATEAU_PATIENCE = 0.3, 5

_DECAYS: dict[str, Callable[[float], float]] = {
    "none": lambda _: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
    "linear": lambda done: 1.0 - done,
}

# Metrics that are logged during validation, and their names in tg_mlc.metrics.
_LOGGED = {
    "macro_roc_auc": "roc_auc_macro",
    "micro_roc_auc": "roc_auc_micro",
    "macro_average_precision": "average_precision_macro",
}


class MultiLabelModule(LightningModule):
    r"""Trains a model of the labels of a batch.

    An objective gives loss and scores; the optimiser is AdamW, with weight decay on matrices only.
    After every epoch the validation scores give ``val/loss``, ``val/macro_roc_auc``,
    ``val/micro_roc_auc`` and ``val/macro_average_precision``; a checkpoint holds the thresholds
    fitted on the validation scores of its own weights, the label names, the label graph, the
    objective, the settings of :obj:`model` that no shape tells, such as the number of heads, and
    :obj:`config`, all as tensors and plain data. To load one, into a model with the same graph and
    settings:

    .. code-block:: python

        module = MultiLabelModule.load_from_checkpoint("best.ckpt", model=model, weights_only=True)

    Args:
        model (torch.nn.Module): Maps a :class:`~torch_geometric.data.Batch` to what
            :obj:`objective` takes, by default logits :math:`(B, L)`.
        label_names (Sequence[str]): One name per label.
        objective (Objective, optional): Loss and scores. (default:
            :class:`~tg_mlc.training.BinaryObjective`)
        lr (float, optional): Learning rate. (default: :obj:`2e-4`, that of the LaMP paper)
        weight_decay (float, optional): Decoupled weight decay. (default: :obj:`0.0`)
        betas (tuple, optional): Coefficients of Adam's running averages. (default: :obj:`(0.9,
            0.999)`)
        eps (float, optional): Added to Adam's denominator. (default: :obj:`1e-8`)
        lr_schedule (str, optional): How the learning rate falls to zero by the last epoch:
            :obj:`"cosine"`, :obj:`"linear"`, or :obj:`"none"`; or :obj:`"plateau"`, to multiply it
            by 0.3 after more than 5 epochs without a lower validation loss. (default:
            :obj:`"none"`)
        warmup (float, optional): Share of all steps during which the learning rate rises. (default:
            :obj:`0.0`)
        config (dict, optional): Stored in checkpoints, *e.g.* what it takes to build the model
            again. (default: :obj:`None`)
        preprocessor (Preprocessor, optional): Makes samples of raw inputs, and is stored in
            checkpoints as arrays and plain data. (default: :obj:`None`)

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** what :obj:`model` returns from :meth:`forward`, scores :math:`(B, L)` from
          :meth:`predict_step`

    Raises:
        ValueError: If :obj:`model` is none that :obj:`objective` can train, an option is out of
            range, :obj:`config` is not plain data, :obj:`preprocessor` is not fitted, or the
            model's label graph has other labels or order.
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
        if not isinstance(model, nn.Module):
            raise ValueError(
                f"Expected 'model' to be a torch.nn.Module (got {type(model).__name__})"
            )
        label_names, config = [str(name) for name in label_names], dict(config or {})
        check_number("lr", lr)
        check_number("weight_decay", weight_decay)
        check_number("eps", eps)
        for i, beta in enumerate(betas):
            check_number(f"betas[{i}]", beta, below=1.0)
        check_choice("lr_schedule", lr_schedule, get_args(LRSchedule))
        if not 0.0 <= warmup < 1.0:
            raise ValueError(
                f"Expected 'warmup' to be a share of the training in [0, 1) (got {warmup})"
            )
        if lr_schedule == "plateau" and warmup > 0.0:
            raise ValueError(f"Expected no 'warmup' with lr_schedule='plateau' (got {warmup})")
        # Numbers of NumPy, as from a grid of settings, are no plain data.
        lr, weight_decay, eps, warmup = float(lr), float(weight_decay), float(eps), float(warmup)
        betas = float(betas[0]), float(betas[1])
        check_plain(config, "config")
        check_preprocessor(preprocessor)
        self.objective = make_objective(objective)
        self.objective.check(model)
        described = describe_objective(self.objective)
        check_plain(described, "objective")
        for layer in label_graph_users(model):
            if layer.num_labels != len(label_names):
                raise ValueError(
                    f"Expected 'label_names' to hold {layer.num_labels} names, one for each label of the model's graph "
                    f"(got {len(label_names)})"
                )
            check_same_names(layer.label_graph.get("label_names"), label_names, "the label graph")
        self.save_hyperparameters(ignore=["model", "objective", "preprocessor"])
        self.save_hyperparameters({"objective": described})
        self.model = model
        self.label_names: list[str] = label_names
        self.config: dict[str, Any] = config
        self.preprocessor = preprocessor
        # As it was built: what forward passes change, such as a counter, is no setting.
        self.settings = describe_settings(model)
        self._num_processes = 1
        self._validated: list[tuple[Tensor, ...]] = []
        # targets and scores of the validation samples
        self._scored: tuple[Tensor, Tensor] | None = None
        self._tuners: dict[str, Decider] = {}

    @property
    def tuners(self) -> dict[str, Decider]:
        """Thresholds by metric, fitted on the validation scores of the present weights; empty where
        there are none."""
        if not self._tuners and self._scored is not None:
            self._tuners = tune_thresholds(*self._scored)
        return self._tuners

    def setup(self, stage: str) -> None:
        """Refuses processes that would not train as one."""
        check_processes(self.trainer, self.objective)
        self._num_processes = self.trainer.world_size

    def forward(self, batch: Batch) -> Any:
        """Returns what the model does."""
        return self.model(in_type_of(self.model, batch))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Returns the loss of a batch; of several processes, its part in the mean of all."""
        batch = self.objective.training_batch(
            without_given(self.model, in_type_of(self.model, batch))
        )
        loss, size = self.objective.loss(self.model, batch), batch.num_graphs
        if several := self._num_processes > 1:
            loader: Any = self.trainer.train_dataloader
            size = min(
                each := loader.batch_size * self._num_processes,
                loader.sampler.num_samples - batch_idx * each,
            )
            num_terms = self.objective.num_terms(batch).to(loss) * (
                batch_idx < loader.sampler.num_own_batches
            )
            loss = (
                loss
                * num_terms
                / self.trainer.strategy.reduce(num_terms.clone(), reduce_op="mean").clamp(min=1e-9)
            )
        self.log(
            "train/loss", loss, on_step=False, on_epoch=True, batch_size=size, sync_dist=several
        )
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Collects targets, scores and loss of a batch."""
        batch = self.objective.validation_batch(in_type_of(self.model, batch), batch_idx)
        batch = without_given(self.model, batch)
        scores, loss = self.objective.validate(self.model, batch)
        expected = [batch.num_graphs, len(self.label_names)]
        if list(scores.shape) != expected:
            raise ValueError(
                f"Expected scores of shape {expected}, one per sample and label name (got {list(scores.shape)})"
            )
        num_terms = self.objective.num_terms(batch)
        if self._num_processes > 1:
            loader: Any = self.trainer.val_dataloaders
            num_terms = num_terms * (batch_idx < loader.sampler.num_own_batches)
        self._validated.append((batch.y, scores, loss.view(1), num_terms.view(1)))

    def on_validation_epoch_end(self) -> None:
        """Logs loss and metrics of all validation samples, those of other processes among them."""
        y, scores, losses, num_terms = (
            torch.cat(parts) for parts in zip(*self._validated, strict=True)
        )
        self._validated.clear()
        if self._num_processes > 1:
            loader: Any = self.trainer.val_dataloaders
            (y, scores), (losses, num_terms) = (
                gathered(loader.sampler, y, scores),
                gathered(None, losses, num_terms),
            )
        loss = (losses * num_terms).sum() / num_terms.sum().clamp(min=1)
        if not (loss.isfinite() and scores.isfinite().all()):
            first = "look for NaN among the inputs (QuantileScaler takes them); else " * (
                self.current_epoch == 0
            )
            raise FloatingPointError(
                f"Expected finite outputs (got NaN or infinity after epoch {self.current_epoch}): training has "
                f"diverged; {first}lower 'lr', or clip gradients"
            )
        self._scored, self._tuners = (y.cpu(), scores.cpu()), {}
        values = evaluate(*self._scored).values
        self.log_dict(
            {"val/loss": loss, **{f"val/{name}": values[key] for name, key in _LOGGED.items()}}
        )

    def on_train_epoch_start(self) -> None:
        """Forgets the scores, which are those of weights that are about to change."""
        self._scored, self._tuners = None, {}

    def predict_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Returns the scores of a batch, :math:`(B, L)`, in which labels that are given as its
        attribute :obj:`given` have 0 or 1, as they were given.
        """
        return scores_of(self.objective, self.model, in_type_of(self.model, batch))

    def configure_optimizers(self) -> Any:
        """Returns AdamW and the schedule of its learning rate."""
        options = self.hparams
        # Matrices decay, biases and scales of norms do not.
        matrices = [parameter for parameter in self.model.parameters() if parameter.dim() > 1]
        others = [parameter for parameter in self.model.parameters() if parameter.dim() <= 1]
        groups = [
            {"params": matrices, "weight_decay": options["weight_decay"]},
            {"params": others, "weight_decay": 0.0},
        ]
        optimizer = AdamW(
            [group for group in groups if group["params"]],
            lr=options["lr"],
            betas=tuple(options["betas"]),
            eps=options["eps"],
        )
        if options["lr_schedule"] == "none" and options["warmup"] == 0.0:
            return optimizer
        if options["lr_schedule"] == "plateau":
            plateau = ReduceLROnPlateau(optimizer, factor=PLATEAU_FACTOR, patience=PLATEAU_PATIENCE)
            scheduler = {"scheduler": plateau, "monitor": "val/loss", "interval": "epoch"}
            return {"optimizer": optimizer, "lr_scheduler": scheduler}
        total = self.trainer.estimated_stepping_batches
        # Which made a loader, whose workers fetch epoch 0: a training that resumes makes another
        # one for its own epoch.
        self.trainer.fit_loop._combined_loader = None
        if total == float("inf"):
            raise ValueError(
                "Expected 'max_epochs' or 'max_steps' for a learning rate with 'lr_schedule' or 'warmup'"
            )
        factor = lr_factor(options["lr_schedule"], options["warmup"], int(total))
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": LambdaLR(optimizer, factor), "interval": "step"},
        }

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]
        cls, checkpoint_path: Any, map_location: Any = None, *, strict: bool = True, **options: Any
    ) -> Self:
        """Makes a module from a checkpoint and :obj:`model`; a :obj:`ValueError` if they differ or
        it is damaged.

        Args:
            checkpoint_path (str or PathLike): The checkpoint.
            map_location (torch.device or str, optional): Where to put its tensors. (default: where
                they were)
            strict (bool, optional): As of :meth:`torch.nn.Module.load_state_dict`. (default:
                :obj:`True`)
            **options (optional): The model, and what takes the place of stored options.
        """
        weights_only = options.pop("weights_only", None) is not False
        checkpoint = load_file(checkpoint_path, map_location or "cpu", weights_only)
        own_entry(checkpoint, str(checkpoint_path))
        module = cls(**{**checkpoint["hyper_parameters"], **options})
        module.on_load_checkpoint(checkpoint)
        module.load_state_dict(checkpoint["state_dict"], strict=strict)
        return module

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Loads weights; those of another model are a :obj:`ValueError`."""
        try:
            return super().load_state_dict(state_dict, *args, **kwargs)
        except RuntimeError as error:
            first, *others = [*str(error).splitlines(), ""]
            if not first.startswith("Error(s) in loading"):
                raise
            raise ValueError(
                f"Expected a model with the settings that these weights were trained with (got another one: "
                f"{others[0].strip()[:200]} ...); build it with them, as in read_checkpoint(path).config if you stored "
                f"them there"
            ) from None

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds the entry that :func:`read_checkpoint` reads."""
        checkpoint[KEY] = make_entry(
            describe_model(self.model, self.settings), self.tuners, self.preprocessor
        )

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuses another label graph, other settings or names; takes thresholds and preprocessor
        over."""
        entry = own_entry(checkpoint)
        stored = checkpoint["hyper_parameters"]["label_names"]
        if stored != self.label_names:
            raise ValueError(
                f"Expected the label names of the checkpoint, {stored} (got {self.label_names})"
            )
        check_same_model(entry, self.model, self.settings)
        objectives = checkpoint["hyper_parameters"]["objective"], self.hparams["objective"]
        check_settings(*({"objective": {"class": described["class"]}} for described in objectives))
        self._scored, self._tuners = None, restore_tuners(entry["thresholds"])
        if self.preprocessor is None:
            self.preprocessor = restore_preprocessor(entry)
        else:
            check_same_preprocessor(entry, self.preprocessor)


def lr_factor(lr_schedule: LRSchedule, warmup: float, total_steps: int) -> Callable[[int], float]:
    """Returns the factor on the learning rate as a function of the optimiser steps taken so far: it
    rises linearly during the warm-up (a share of all steps), reaching 1 with its last step, and
    then decays, reaching 0 at the end.
    """
    warmup_steps = round(warmup * total_steps)

    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        done = (step - warmup_steps) / max(total_steps - warmup_steps, 1)
        return _DECAYS[lr_schedule](min(done, 1.0))

    return factor


def without_given(model: nn.Module, batch: Batch) -> Batch:
    """The same batch with unknown targets where labels are given, as these are not to be
    predicted."""
    given = given_in(model, batch)
    if given is None:
        return batch
    batch = copy(batch)
    batch.y = batch.y.masked_fill(~given.isnan(), torch.nan)
    return batch


def check_processes(trainer: Trainer, objective: Objective) -> None:
    """Refuses several processes that would not train as one with all of their samples."""
    if trainer.world_size == 1:
        return
    is_left = isinstance(trainer.strategy.launcher, _MultiProcessingLauncher)
    if not isinstance(trainer.strategy, DDPStrategy) or is_left:
        reason = (
            "trains in processes that end"
            if is_left
            else "divides weights that checkpoints have to hold whole"
        )
        got = type(trainer.strategy).__name__
        raise ValueError(
            f"Expected strategy='ddp' for several processes (got {got}, which {reason})"
        )
    if overfit := getattr(trainer, "overfit_batches", 0):
        raise ValueError(
            f"Expected no 'overfit_batches' with several processes (got {overfit}), which would train with the same "
            f"samples"
        )
    if not objective.is_mean():
        raise ValueError(
            f"Expected an objective whose loss is a mean over known labels, of which several processes have parts (got "
            f"{objective}); set devices=1 and num_nodes=1, or override 'num_terms' and 'is_mean'"
        )


def gathered(sampler: Any, *parts: Tensor) -> list[Tensor]:
    """The rows of all processes: with what has drawn the samples, in the order of these, each
    once."""
    own = [
        None if sampler is None else list(sampler)[: len(parts[0])],
        *(part.cpu() for part in parts),
    ]
    found: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, own)
    places, *rows = zip(*found, strict=True)
    together = [torch.cat(row) for row in rows]
    if sampler is not None:
        where = {place: row for row, place in enumerate(chain(*places))}
        order = torch.tensor([where[place] for place in sorted(where)])
        together = [part[order] for part in together]
    return [part.to(own_part.device) for part, own_part in zip(together, parts, strict=True)]
