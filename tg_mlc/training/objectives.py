"""Objectives: what a family of models minimises, and how its outputs become scores of labels."""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from tg_mlc._names import find, register
from tg_mlc._options import check_number
from tg_mlc.data.given import draw_given
from tg_mlc.losses import (
    asymmetric_loss,
    focal_loss,
    lamp_loss,
    listwise_loss,
    masked_bce,
    soft_f1_loss,
)
from tg_mlc.nn.given import takes_given_labels

#: The losses of :class:`BinaryObjective`, by name.
LOSSES: dict[str, Callable[..., Tensor]] = {
    "bce": masked_bce,
    "focal": focal_loss,
    "asymmetric": asymmetric_loss,
    "soft_f1": soft_f1_loss,
    "listwise": listwise_loss,
}
# The key of an objective's class among its options; no option has this name, because it is a
# keyword.
_CLASS = "class"


@dataclass(frozen=True, kw_only=True)
class Objective(ABC):
    """Base class of the losses and scores that :class:`~tg_mlc.training.MultiLabelModule` trains
    and predicts with.

    A subclass is a dataclass whose fields are plain data, so that checkpoints store them and
    loading makes the same objective again. One for models that give probabilities:

    .. code-block:: python

        @dataclass(frozen=True)
        class Brier(Objective):
            def loss(self, model, batch):
                return (model(batch) - batch.y).square().mean()

            def scores(self, model, batch):
                return model(batch)


        module = MultiLabelModule(model, label_names, Brier())

    Args:
        max_given (float, optional): Other than zero, random labels are given to the model in
            training, of every sample a share from 0 to :obj:`max_given`, and the loss is that of
            the others; the model then takes labels that are known already (see
            :class:`~tg_mlc.nn.GivenLabels`). The `"General Multi-label Image Classification with
            Transformers" <https://arxiv.org/abs/2011.14027>`_ paper takes 0.75. Validation samples
            are given such labels too, in every epoch the same, so that the best epoch is the one
            that uses them best; samples with an attribute :obj:`given` are given those labels
            instead, none if all are NaN. (default: :obj:`0.0`)

    Raises:
        ValueError: If an option is out of range.
    """

    max_given: float = 0.0
    is_sigmoid: ClassVar[bool] = False  #: whether scores are the sigmoid of what the model returns

    def __init_subclass__(cls) -> None:
        register("objective", cls)

    def __post_init__(self) -> None:
        check_number("max_given", self.max_given, below=1.0)

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns what training minimises; labels that are NaN in ``batch.y`` are unknown."""

    @abstractmethod
    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns scores :math:`(B, L)` in :math:`[0, 1]`, as decisions, metrics and predictions
        take them."""

    def validate(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns scores and loss of a validation batch; override it where one forward pass gives
        both."""
        return self.scores(model, batch), self.loss(model, batch)

    def num_terms(self, batch: Batch) -> Tensor:
        """Returns how many terms the loss of validation is the mean of, by default the number of
        known labels."""
        num_known: Tensor = (~batch.y.isnan()).sum()
        return num_known

    def is_mean(self) -> bool:
        """Tells whether the loss of training is the mean of :meth:`num_terms` terms as well, by
        default not: several processes then weigh theirs, so that all together train as one with all
        samples of a step.
        """
        return False

    def training_batch(self, batch: Batch) -> Batch:
        """Returns a training batch, some labels of which are given if :attr:`max_given` says so."""
        return reveal(batch, self.max_given) if self.max_given > 0.0 else batch

    def validation_batch(self, batch: Batch, batch_idx: int) -> Batch:
        """Returns a validation batch, some labels of which are given if :attr:`max_given` says so,
        unless it says itself which are known.
        """
        if self.max_given == 0.0 or "given" in batch:
            return batch
        return reveal(batch, self.max_given, torch.Generator().manual_seed(batch_idx))

    def check(self, model: nn.Module) -> None:
        """Refuses, by a :obj:`ValueError`, a model that cannot be trained as the options say."""
        if self.max_given > 0.0 and not takes_given_labels(model):
            raise ValueError(
                f"Expected a model that takes known labels for max_given > 0, as LaMP(given_labels=True) does (got "
                f"{type(model).__name__}); set max_given=0.0 to train without known labels"
            )
        self.check_model(model)

    def check_model(self, model: nn.Module) -> None:  # noqa: B027
        """Refuses, by a :obj:`ValueError`, a model that this objective cannot train; takes any
        unless overridden."""


def reveal(batch: Batch, max_share: float, generator: torch.Generator | None = None) -> Batch:
    """Returns a batch in which random labels are given (:func:`~tg_mlc.data.given.draw_given`).

    Their targets become NaN. Labels that are given already stay given, whether their targets are
    NaN or not.
    """
    given, rest = draw_given(batch.y, max_share, generator)
    batch = copy(batch)
    batch.given = torch.where(given.isnan(), batch.get("given", given), given)
    batch.y = rest
    return batch


class SigmoidScores:
    """Scores and validation of objectives whose models return logits."""

    is_sigmoid: ClassVar[bool] = True

    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns probabilities."""
        scores: Tensor = model(batch).float().sigmoid()
        return scores

    def validate(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns probabilities and the cross-entropy of the final logits."""
        logits: Tensor = model(batch).float()
        return logits.sigmoid(), masked_bce(logits, batch.y)


@dataclass(frozen=True)
class BinaryObjective(SigmoidScores, Objective):
    r"""Independent labels: :func:`~tg_mlc.losses.lamp_loss` on logits, and their sigmoid as scores.

    The loss of validation is :func:`~tg_mlc.losses.masked_bce` of the final logits alone.

    Args:
        intermediate_weight (float, optional): The weight :math:`\lambda` of the loss of
            intermediate readouts. If it is not zero, ``model(batch, return_intermediate=True)``
            returns an object with :obj:`logits` and :obj:`intermediate`, as
            :class:`~tg_mlc.models.LaMP` does. (default: :obj:`0.0`)
        label_smoothing (float, optional): Smoothing of the training targets. (default: :obj:`0.0`)
        loss_name (str, optional): The loss of each term: :obj:`"bce"`, :obj:`"focal"`,
            :obj:`"asymmetric"`, :obj:`"soft_f1"` or :obj:`"listwise"` (see :mod:`tg_mlc.losses`).
            (default: :obj:`"bce"`)
        loss_options (dict, optional): Its options, as numbers or lists, *e.g.* :obj:`{"pos_weight":
            5.0}`. (default: :obj:`{}`)
        max_given (float, optional): The largest share of labels that are given in training, as in
            :class:`Objective`. (default: :obj:`0.0`)

    Raises:
        ValueError: If an option is out of range.
    """

    intermediate_weight: float = 0.0
    label_smoothing: float = 0.0
    loss_name: str = "bce"
    loss_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("intermediate_weight", self.intermediate_weight)
        check_number("label_smoothing", self.label_smoothing, below=1.0)
        if self.loss_name not in LOSSES:
            raise ValueError(
                f"Expected 'loss_name' to be one of {list(LOSSES)} (got {self.loss_name!r})"
            )
        if not isinstance(self.loss_options, Mapping):
            raise ValueError(f"Expected 'loss_options' to be a mapping (got {self.loss_options!r})")
        allowed = set(inspect.signature(LOSSES[self.loss_name]).parameters) - {
            "logits",
            "y",
            "label_smoothing",
        }
        if unknown := sorted(set(self.loss_options) - allowed):
            hint = (
                "; 'label_smoothing' is an option of the objective"
                if "label_smoothing" in unknown
                else ""
            )
            raise ValueError(
                f"Expected 'loss_options' of {self.loss_name!r} among {sorted(allowed)} (got {unknown}){hint}"
            )
        # One column for each weight, as the number of labels is not known yet.
        weights = self.loss_options.get("pos_weight")
        one = torch.zeros(
            1, torch.as_tensor(weights).numel() if isinstance(weights, list | tuple | Tensor) else 1
        )
        LOSSES[self.loss_name](one, one, **self.loss_options)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns LaMP's loss."""
        if self.intermediate_weight > 0.0:
            output = model(batch, return_intermediate=True)
            logits, intermediate = output.logits, output.intermediate
        else:
            logits, intermediate = model(batch), ()
        if (end := type(logits.grad_fn).__name__.removesuffix("Backward0")) in (
            "Sigmoid",
            "Softmax",
        ):
            told = f"The network ends in '{end.lower()}', but the loss takes logits and applies a sigmoid itself"
            warnings.warn(f"{told}; return what comes before it", stacklevel=2)
        options = {"label_smoothing": self.label_smoothing, **self.loss_options}
        loss = LOSSES[self.loss_name]
        return lamp_loss(
            logits, batch.y, intermediate, self.intermediate_weight, loss=loss, **options
        )

    def is_mean(self) -> bool:
        """Tells that a loss of entries is the mean over known labels; others are of a whole
        batch."""
        return self.loss_name in ("bce", "focal", "asymmetric")

    def check_model(self, model: nn.Module) -> None:
        """Refuses a model without the intermediate readouts that are to be trained."""
        if (
            self.intermediate_weight > 0.0
            and "return_intermediate" not in inspect.signature(model.forward).parameters
        ):
            raise ValueError(
                f"Expected a model whose forward takes 'return_intermediate' for intermediate_weight > 0 (got "
                f"{type(model).__name__}); set intermediate_weight=0.0 to train without intermediate terms"
            )


def describe_objective(objective: Objective) -> dict[str, Any]:
    """Returns the class and the options of an objective as plain data."""
    return {_CLASS: type(objective).__name__, **vars(objective)}


def make_objective(objective: Objective | Mapping[str, Any] | None) -> Objective:
    """Makes the objective that :func:`describe_objective` told, by default one of independent
    labels."""
    if objective is None or isinstance(objective, Objective):
        return objective or BinaryObjective()
    if not isinstance(objective, Mapping) or _CLASS not in objective:
        raise ValueError(
            f"Expected 'objective' to be an Objective, or what a checkpoint says of one (got {objective!r})"
        )
    options = dict(objective)
    made: Objective = find("objective", options.pop(_CLASS))(**options)
    return made
