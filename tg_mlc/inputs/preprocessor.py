"""Preprocessor: a step that is fitted to data before a model, and saved with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from tg_mlc._names import find, register
from tg_mlc.data import MultiLabelDataset, Split


class Preprocessor(ABC):
    """A step between raw inputs and a model, fitted to training samples.

    Its state is arrays and plain data, so that a checkpoint holds it without pickled code;
    :func:`from_state` finds the class by its name. A class of your own has to be imported before
    its checkpoints are read, and needs a name that no class of another module has.

    .. code-block:: python

        preprocessor = Chain(Words(), TfIdf())
        known = preprocessor.fit_transform(dataset, split)
        module = MultiLabelModule(
            table_lamp(known[split.train], graph), names, preprocessor=preprocessor
        )
        ...
        new = read_checkpoint("best.ckpt").preprocessor.transform(["A text without labels."])
    """

    #: Whether samples get the scores of base classifiers, as their attribute :obj:`base_scores`.
    makes_base_scores: ClassVar[bool] = False

    @property
    def unknown(self) -> Tensor | float | None:
        """The value of an unknown number of a vector before this step: NaN if the step takes
        missing entries, or means of training samples :math:`(F)`; :obj:`None` if it is not known.
        """
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register("preprocessor", cls)

    @abstractmethod
    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Learns from the training samples of a split; its validation samples may choose settings.

        Args:
            dataset (MultiLabelDataset): All samples.
            split (Split): Which of them are training samples.
        """

    @abstractmethod
    def transform(self, raw: Any) -> MultiLabelDataset:
        """Makes samples of new inputs.

        Args:
            raw (Any): Samples, or what the class makes samples of.
        """

    def unreadable(self, raw: Any) -> dict[int, str]:
        """The reasons, by row, why raw inputs of :meth:`transform` cannot be read; none if the
        class does not check them.
        """
        return {}

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """Fits to the training samples of a split, and transforms all samples.

        Training samples may get other values than by :meth:`transform`, such as held-out scores.

        Args:
            dataset (MultiLabelDataset): All samples.
            split (Split): Which of them are training samples.
        """
        return self.fit(dataset, split).transform(dataset)

    def state_dict(self) -> dict[str, Any]:
        """The learned and chosen values as arrays and plain data; by default, all attributes."""
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Replaces the learned values by those of another one's :meth:`state_dict`."""
        vars(self).update(state)
        return self


class Chain(Preprocessor):
    """Preprocessors one after another, each fitted to the outputs of those before it.

    Args:
        *steps (Preprocessor): The preprocessors.
    """

    def __init__(self, *steps: Preprocessor) -> None:
        self.steps = steps

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        self.fit_transform(dataset, split)
        return self

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        for step in self.steps:
            dataset = step.fit_transform(dataset, split)
        return dataset

    def transform(self, raw: Any) -> MultiLabelDataset:
        for step in self.steps:
            raw = step.transform(raw)
        return cast(MultiLabelDataset, raw)

    def unreadable(self, raw: Any) -> dict[int, str]:
        return self.steps[0].unreadable(raw)

    def state_dict(self) -> dict[str, Any]:
        return {"steps": [to_state(step) for step in self.steps]}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.steps = tuple(from_state(step) for step in state["steps"])
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.steps))})"


def to_state(preprocessor: Preprocessor) -> dict[str, Any]:
    """The name of a fitted preprocessor and its state, made of tensors and plain data only."""
    return {"name": type(preprocessor).__name__, "state": as_tensors(preprocessor.state_dict())}


def from_state(entry: Mapping[str, Any]) -> Preprocessor:
    """The preprocessor of :func:`to_state`; a :class:`ValueError` if its class is unknown."""
    preprocessor: Preprocessor = find("preprocessor", entry["name"])()
    return preprocessor.load_state_dict(entry["state"])


def as_tensors(value: Any) -> Any:
    """Plain data with tensors in place of arrays."""
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            return torch.tensor(value)
        return torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: as_tensors(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_tensors(item) for item in value]
    return value
