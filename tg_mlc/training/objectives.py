"""Objectives: the loss of a family of models, and scores of labels from model outputs."""

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
from tg_mlc.inference.batches import outputs_of
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
    """Base class of objectives: a loss, and scores, which
    :class:`~tg_mlc.training.MultiLabelModule` uses to train and predict.

    A subclass is a dataclass whose fields are plain data. Checkpoints store the fields, and loading
    restores the same objective. An example for models that return probabilities:

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
            :obj:`max_given`, of each training sample's labels, and the other labels give the loss
            (see :class:`~tg_mlc.nn.GivenLabels`). The `"General Multi-label Image Classification
            with Transformers" <https://arxiv.org/abs/2011.14027>`_ paper uses 0.75. Validation
            samples get random given labels too, the same in every epoch, unless they have an
            attribute :obj:`given`. (default: :obj:`0.0`)

    Raises:
        ValueError: If an option is out of range.
    """

    max_given: float = 0.0
    is_sigmoid: ClassVar[bool] = False  #: whether scores are the sigmoid of the model output

    def __init_subclass__(cls) -> None:
        register("objective", cls)

    def __post_init__(self) -> None:
        check_number("max_given", self.max_given, below=1.0)

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns the training loss. NaN in ``batch.y`` means that a label is unknown."""

    @abstractmethod
    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns scores :math:`(B, L)` in :math:`[0, 1]`."""

    def validate(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns scores and loss of a validation batch; override it to save a forward pass."""
        return self.scores(model, batch), self.loss(model, batch)

    def num_terms(self, batch: Batch) -> Tensor:
        """Returns the number of terms in the validation loss: by default, known labels."""
        num_known: Tensor = (~batch.y.isnan()).sum()
        return num_known

    def is_mean(self) -> bool:
        """Tells whether the training loss is a mean of :meth:`num_terms` terms; False by default.
        Only a mean can be weighted so that several processes train as one.
        """
        return False

    def training_batch(self, batch: Batch) -> Batch:
        """Returns a training batch, with random given labels if :attr:`max_given` is not zero."""
        return reveal(batch, self.max_given) if self.max_given > 0.0 else batch

    def validation_batch(self, batch: Batch, batch_idx: int) -> Batch:
        """Returns a validation batch, with random given labels unless samples have given labels."""
        if self.max_given == 0.0 or "given" in batch:
            return batch
        return reveal(batch, self.max_given, torch.Generator().manual_seed(batch_idx))

    def check(self, model: nn.Module) -> None:
        """Raises :obj:`ValueError` if the options do not fit the model."""
        if self.max_given > 0.0 and not takes_given_labels(model):
            expected = "a model that takes known labels for max_given > 0"
            hint = "build it with given_labels=True, as LaMP, or set max_given=0.0"
            raise ValueError(f"Expected {expected} (got {type(model).__name__}); {hint}")
        self.check_model(model)

    def check_model(self, model: nn.Module) -> None:  # noqa: B027
        """Raises :obj:`ValueError` if the model cannot be trained; by default does nothing."""


def reveal(batch: Batch, max_fraction: float, generator: torch.Generator | None = None) -> Batch:
    """Returns a batch with additional random given labels. Their targets become NaN."""
    given, targets = draw_given(batch.y, max_fraction, generator)
    batch = copy(batch)
    batch.given = torch.where(given.isnan(), batch.get("given", given), given)
    batch.y = targets
    return batch


class SigmoidScores:
    """Scores and validation of objectives whose models return logits."""

    is_sigmoid: ClassVar[bool] = True

    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns probabilities."""
        return outputs_of(model, batch).float().sigmoid()

    def validate(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns probabilities and the cross-entropy of the final logits."""
        logits = outputs_of(model, batch).float()
        return logits.sigmoid(), masked_bce(logits, batch.y)


def _options_of(loss_name: str) -> set[str]:
    return {*inspect.signature(LOSSES[loss_name]).parameters} - {"logits", "y", "label_smoothing"}


@dataclass(frozen=True)
class BinaryObjective(SigmoidScores, Objective):
    r"""Loss :func:`~tg_mlc.losses.lamp_loss` on logits, and scores by a sigmoid for each label.

    The validation loss is :func:`~tg_mlc.losses.masked_bce` of the final logits alone.

    Args:
        intermediate_weight (float, optional): The weight :math:`\lambda` of intermediate readouts
            in the loss. If not zero, ``model(batch, return_intermediate=True)`` returns an object
            with :obj:`logits` and :obj:`intermediate`, as LaMP. (default: :obj:`0.0`)
        label_smoothing (float, optional): Smoothing of the training targets. (default: :obj:`0.0`)
        loss_name (str, optional): :obj:`"bce"`, :obj:`"focal"`, :obj:`"asymmetric"`,
            :obj:`"soft_f1"` or :obj:`"listwise"`, of :mod:`tg_mlc.losses`. (default: :obj:`"bce"`)
        loss_options (dict, optional): Options of the loss, as numbers or lists, *e.g.*
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
        got = shorten(repr(self.loss_options))
        if not isinstance(self.loss_options, Mapping):
            raise ValueError(f"Expected 'loss_options' to be a mapping (got {got})")
        loss = LOSSES[self.loss_name]
        allowed = _options_of(self.loss_name)
        if unknown := sorted({*self.loss_options} - allowed):
            is_own = "label_smoothing" in unknown
            hint = "; 'label_smoothing' is an option of the objective" if is_own else ""
            expected = f"Expected 'loss_options' of {self.loss_name!r} among {sorted(allowed)}"
            raise ValueError(f"{expected} (got {unknown}){hint}")
        # The number of labels is unknown, so the check uses one column per weight.
        weights = self.loss_options.get("pos_weight")
        is_list = isinstance(weights, list | tuple | Tensor)
        zeros = torch.zeros(1, torch.as_tensor(weights).numel() if is_list else 1)
        loss(zeros, zeros, **self.loss_options)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns LaMP's loss."""
        if self.intermediate_weight > 0.0:
            output = model(batch, return_intermediate=True)
            logits, intermediate = output.logits, output.intermediate
        else:
            logits, intermediate = outputs_of(model, batch), ()
        node = type(logits.grad_fn).__name__.removesuffix("Backward0")
        if node in ("Sigmoid", "Softmax"):
            reason = "but the loss takes logits and applies a sigmoid itself"
            message = f"The network ends in '{node.lower()}', {reason}; return what comes before it"
            warnings.warn(message, stacklevel=2)
        options = {"label_smoothing": self.label_smoothing, **self.loss_options}
        options["loss"] = LOSSES[self.loss_name]
        return lamp_loss(logits, batch.y, intermediate, self.intermediate_weight, **options)

    def is_mean(self) -> bool:
        """Tells whether the loss is a mean over known labels, not a function of the whole batch."""
        return self.loss_name in ("bce", "focal", "asymmetric")

    def check_model(self, model: nn.Module) -> None:
        """Raises if intermediate readouts have a weight, but the model does not return any."""
        arguments = inspect.signature(model.forward).parameters
        if self.intermediate_weight > 0.0 and "return_intermediate" not in arguments:
            expected = "a model whose forward takes 'return_intermediate'"
            hint = "set intermediate_weight=0.0 to train without intermediate terms"
            raise ValueError(f"Expected {expected} (got {type(model).__name__}); {hint}")


#: Names that :func:`with_objective` takes: the options of the objective, and those of its losses.
OPTIONS = {*inspect.signature(BinaryObjective).parameters}.union(*map(_options_of, LOSSES))


def with_objective(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options of a module, in which an :obj:`objective` replaces the options of
    :class:`BinaryObjective` and of its loss.
    """
    by_name = {name: value for name, value in options.items() if name in OPTIONS}
    if not by_name:
        return dict(options)
    if options.get("objective") is not None:
        raise ValueError(f"Expected either 'objective' or {sorted(by_name)} (got both)")
    own = {name: by_name.pop(name) for name in list(by_name) if name in vars(BinaryObjective())}
    arrays = {name: value for name, value in by_name.items() if hasattr(value, "tolist")}
    by_name |= {name: value.tolist() for name, value in arrays.items()}
    if by_name:
        own["loss_options"] = {**own.get("loss_options", {}), **by_name}
    others = {name: value for name, value in options.items() if name not in OPTIONS}
    return {**others, "objective": BinaryObjective(**own)}


def describe_objective(objective: Objective) -> dict[str, Any]:
    """Returns the class and the options of an objective as plain data."""
    return {_CLASS: type(objective).__name__, **vars(objective)}


def make_objective(objective: Objective | Mapping[str, Any] | None) -> Objective:
    """Makes an objective from its description; by default a :class:`BinaryObjective`."""
    if objective is None or isinstance(objective, Objective):
        return objective or BinaryObjective()
    if not isinstance(objective, Mapping) or _CLASS not in objective:
        expected = "Expected 'objective' to be an Objective, or its description in a checkpoint"
        raise ValueError(f"{expected} (got {shorten(repr(objective))})")
    options = dict(objective)
    result: Objective = find("objective", options.pop(_CLASS))(**options)
    return result
