"""The base class of stages, the steps of a model from inputs to decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc._names import register
from tg_mlc.inference.flow import Flow

#: Tensors by name: the inputs of a program and the results of its stages.
Values = dict[str, Tensor]
State = Mapping[str, Any]  #: Tensors and plain data of a stage.
NetworkClass: TypeAlias = "type[nn.Module] | None"  #: The class of a user's own network.


class TensorStage(nn.Module):
    """A stage that computes with tensors only, for exported programs. The base changes nothing."""

    def begin(self, values: Values) -> Values:
        """Returns the inputs for the first stage. All stages begin before the first one runs."""
        return values

    def forward(self, values: Values) -> Values:
        """Returns the inputs of the next stage, with ``logits`` or ``probability`` if computed."""
        return values


class Stage(ABC):
    """One step of a model, with its learned state.

    A new stage is a subclass in its own file. It is saved under the name of its class, and works
    in every interface of a model: Python, command line, server, estimators and exported programs.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register("stage", cls)

    @property
    def takes_given(self) -> bool:
        """Whether given labels change the stage's results for other labels."""
        return False

    def begin(self, flow: Flow) -> None:  # noqa: B027 - by default, nothing
        """Checks and prepares a flow of samples and given labels, before any stage computes."""

    def prepare(self, flow: Flow) -> None:  # noqa: B027 - by default, nothing
        """Computes all that does not depend on given labels, once before calls of :meth:`apply`."""

    def terms(self, flow: Flow) -> dict[str, Tensor] | None:
        """Returns terms by name whose sum is the logits; :obj:`None` if the stage has no terms.

        Args:
            flow (Flow): The flow as :meth:`apply` takes it.
        """
        return None

    @abstractmethod
    def apply(self, flow: Flow) -> None:
        """Runs the stage on the flow, in place."""

    def module(self) -> TensorStage:
        """Returns the stage as a module of tensors. Raises ValueError if that is impossible."""
        return TensorStage()

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Returns the content of the stage as tensors and plain data."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        """Restores a stage from its state.

        Args:
            state (dict): The result of :meth:`state_dict`.
            label_names (list[str]): The labels of the model.
            network (type, optional): The class of a user's own network.
        """

    def check_remade(self, remade: Self) -> None:  # noqa: B027 - by default, nothing
        """Raises ValueError if the stage restored from this state gives different results."""

    def to(self, device: torch.device | str) -> None:  # noqa: B027 - by default, nothing
        """Moves the stage to a device."""

    def __str__(self) -> str:
        return ""
