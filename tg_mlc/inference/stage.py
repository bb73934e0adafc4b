"""Stage: one step of a model on the way from inputs to decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc._names import register
from tg_mlc.inference.flow import Flow

#: Tensors by name: those that a program takes, and what its stages make of them.
Values = dict[str, Tensor]
State = Mapping[str, Any]  #: Tensors and plain data of a stage.
NetworkClass: TypeAlias = "type[nn.Module] | None"  #: The class of a network of the user's own.


class TensorStage(nn.Module):
    """A stage in tensors alone, as a program takes it; this one changes nothing."""

    def begin(self, values: Values) -> Values:
        """Returns the tensors as the first stage takes them."""
        return values

    def forward(self, values: Values) -> Values:
        """Returns the tensors as the next stage takes them, with ``logits`` or ``probability``."""
        return values


class Stage(ABC):
    """One step of a model, with what it has learned.

    A new stage is a subclass in a file of its own. It is saved under the name of its class, and
    every face of a model (Python, command line, server, estimators, exported programs) has it at
    once.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register("stage", cls)

    @property
    def takes_given(self) -> bool:
        """Whether given labels change what the stage computes of other labels."""
        return False

    def begin(self, flow: Flow) -> None:  # noqa: B027 - by default, nothing
        """Checks and prepares a flow of samples and given labels, before any stage computes."""

    def prepare(self, flow: Flow) -> None:  # noqa: B027 - by default, nothing
        """Computes what given labels do not change, before several calls of :meth:`apply`."""

    def terms(self, flow: Flow) -> dict[str, Tensor] | None:
        """Returns terms by name that sum to the logits of the stage; :obj:`None` if it has none.

        Args:
            flow (Flow): The flow as :meth:`apply` takes it.
        """
        return None

    @abstractmethod
    def apply(self, flow: Flow) -> None:
        """Runs the stage on the flow, in place."""

    def module(self) -> TensorStage:
        """Returns the same computation with tensors alone; raises ValueError if there is none."""
        return TensorStage()

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Returns the content of the stage as tensors and plain data."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        """Makes a stage of its state.

        Args:
            state (dict): The result of :meth:`state_dict`.
            label_names (list[str]): The labels of the model.
            network (type, optional): The class of a network of the user's own.
        """

    def check_remade(self, remade: Self) -> None:  # noqa: B027 - by default, nothing
        """Raises ValueError if a stage made of this one's state computes something else."""

    def to(self, device: torch.device | str) -> None:  # noqa: B027 - by default, nothing
        """Moves the stage to a device."""

    def __str__(self) -> str:
        return ""
