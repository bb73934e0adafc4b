"""Objectives: the loss of a family of models, and the scores of labels by their outputs."""

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

from tg_mlc import losses
from tg_mlc._names import find, register, shorten
from tg_mlc._options import check_choice, check_number
from tg_mlc.data.given import draw_given
from tg_mlc.losses import lamp_loss, masked_bce
from tg_mlc.nn.given import takes_given_labels

#: The losses of :class:`BinaryObjective`, by name.
LOSSES: dict[str, Callable[..., Tensor]] = {
    "bce": masked_bce,
    "focal": losses.focal_loss,
    "asymmetric": losses.asymmetric_loss,
    "soft_f1": losses.soft_f1_loss,
    "listwise": losses.listwise_loss,
}
# The key of an objective's class among its options. No option has this name: it is a keyword.
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
        max_given (float, optional): If not zero, the model is given a random fraction, up to
            :obj:`max_given`, of each training sample's labels, and the loss is that of the others
            (see :class:`~tg_mlc.nn.GivenLabels`). The `"General Multi-label Image Classification
            with Transformers" <https://arxiv.org/abs/2011.14027>`_ paper takes 0.75. Validation
            samples get such labels too, the same in every epoch, unless their attribute
            :obj:`given` holds known labels. (default: :obj:`0.0`)

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
        """Returns scores :math:`(B, L)` in :math:`[0, 1]`."""

    def validate(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns scores and loss of a validation batch; override it to save a forward pass."""
        return self.scores(model, batch), self.loss(model, batch)

    def num_terms(self, batch: Batch) -> Tensor:
        """Returns the number of terms in the validation loss, by default of known labels."""
        num_known: Tensor = (~batch.y.isnan()).sum()
        return num_known

    def is_mean(self) -> bool:
        """Tells whether the training loss is a mean of :meth:`num_terms` terms, by default not.
        Several processes then weigh their losses, and train as one.
        """
        return False

    def training_batch(self, batch: Batch) -> Batch:
        """Returns a training batch, with random given labels if :attr:`max_given` is not zero."""
        return reveal(batch, self.max_given) if self.max_given > 0.0 else batch

    def validation_batch(self, batch: Batch, batch_idx: int) -> Batch:
        """Returns a validation batch, with given labels as in training unless it has its own."""
        if self.max_given == 0.0 or "given" in batch:
            return batch
        return reveal(batch, self.max_given, torch.Generator().manual_seed(batch_idx))

    def check(self, model: nn.Module) -> None:
        """Raises :obj:`ValueError` for a model that the options cannot train."""
        if self.max_given > 0.0 and not takes_given_labels(model):
            expected = "a model that takes known labels for max_given > 0"
            hint = "build it with given_labels=True, as LaMP, or set max_given=0.0"
            raise ValueError(f"Expected {expected} (got {type(model).__name__}); {hint}")
        self.check_model(model)

    def check_model(self, model: nn.Module) -> None:  # noqa: B027
        """Raises :obj:`ValueError` for a model that cannot be trained; by default never."""


def reveal(batch: Batch, max_fraction: float, generator: torch.Generator | None = None) -> Batch:
    """Returns a batch with more given labels, drawn at random, whose targets become NaN."""
    given, rest = draw_given(batch.y, max_fraction, generator)
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
        intermediate_weight (float, optional): The weight :math:`\lambda` of intermediate readouts
            in the loss. If not zero, ``model(batch, return_intermediate=True)`` returns an object
            with :obj:`logits` and :obj:`intermediate`, as LaMP. (default: :obj:`0.0`)
        label_smoothing (float, optional): Smoothing of the training targets. (default: :obj:`0.0`)
        loss_name (str, optional): :obj:`"bce"`, :obj:`"focal"`, :obj:`"asymmetric"`,
            :obj:`"soft_f1"` or :obj:`"listwise"`, of :mod:`tg_mlc.losses`. (default: :obj:`"bce"`)
        loss_options (dict, optional): Its options, as numbers or lists, *e.g.*
            :obj:`{"pos_weight": 5.0}`. (default: :obj:`{}`)
        max_given (float, optional): As in :class:`Objective`. (default: :obj:`0.0`)

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
        check_choice("loss_name", self.loss_name, LOSSES)
        shown = shorten(repr(self.loss_options))
        if not isinstance(self.loss_options, Mapping):
            raise ValueError(f"Expected 'loss_options' to be a mapping (got {shown})")
        loss = LOSSES[self.loss_name]
        allowed = {*inspect.signature(loss).parameters} - {"logits", "y", "label_smoothing"}
        if unknown := sorted({*self.loss_options} - allowed):
            is_own = "label_smoothing" in unknown
            hint = "; 'label_smoothing' is an option of the objective" if is_own else ""
            expected = f"Expected 'loss_options' of {self.loss_name!r} among {sorted(allowed)}"
            raise ValueError(f"{expected} (got {unknown}){hint}")
        # The number of labels is not known yet, so that each weight gets a column.
        weights = self.loss_options.get("pos_weight")
        is_list = isinstance(weights, list | tuple | Tensor)
        one = torch.zeros(1, torch.as_tensor(weights).numel() if is_list else 1)
        loss(one, one, **self.loss_options)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns LaMP's loss."""
        if self.intermediate_weight > 0.0:
            output = model(batch, return_intermediate=True)
            logits, intermediate = output.logits, output.intermediate
        else:
            logits, intermediate = model(batch), ()
        end = type(logits.grad_fn).__name__.removesuffix("Backward0")
        if end in ("Sigmoid", "Softmax"):
            reason = "but the loss takes logits and applies a sigmoid itself"
            message = f"The network ends in '{end.lower()}', {reason}; return what comes before it"
            warnings.warn(message, stacklevel=2)
        options = {"label_smoothing": self.label_smoothing, **self.loss_options}
        options["loss"] = LOSSES[self.loss_name]
        return lamp_loss(logits, batch.y, intermediate, self.intermediate_weight, **options)

    def is_mean(self) -> bool:
        """Tells whether the loss is a mean over known labels; the others are of a whole batch."""
        return self.loss_name in ("bce", "focal", "asymmetric")

    def check_model(self, model: nn.Module) -> None:
        """Raises for a model without the intermediate readouts that are to be trained."""
        arguments = inspect.signature(model.forward).parameters
        if self.intermediate_weight > 0.0 and "return_intermediate" not in arguments:
            expected = "a model whose forward takes 'return_intermediate'"
            hint = "set intermediate_weight=0.0 to train without intermediate terms"
            raise ValueError(f"Expected {expected} (got {type(model).__name__}); {hint}")


def describe_objective(objective: Objective) -> dict[str, Any]:
    """Returns the class and the options of an objective as plain data."""
    return {_CLASS: type(objective).__name__, **vars(objective)}


def make_objective(objective: Objective | Mapping[str, Any] | None) -> Objective:
    """Makes an objective of its description, by default a :class:`BinaryObjective`."""
    if objective is None or isinstance(objective, Objective):
        return objective or BinaryObjective()
    if not isinstance(objective, Mapping) or _CLASS not in objective:
        expected = "Expected 'objective' to be an Objective, or its description in a checkpoint"
        raise ValueError(f"{expected} (got {shorten(repr(objective))})")
    options = dict(objective)
    made: Objective = find("objective", options.pop(_CLASS))(**options)
    return made
