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

    The state is arrays and plain data, so that checkpoints contain no pickled code;
    :func:`from_state` finds the class by its name. A custom class must be imported before its
    checkpoints are read, and its name must differ from the classes of other modules.

    .. code-block:: python

        preprocessor = Chain(Words(), TfIdf())
        known = preprocessor.fit_transform(dataset, split)
        module = MultiLabelModule(
            table_lamp(known[split.train], graph), names, preprocessor=preprocessor
        )
        ...
        new = read_checkpoint("best.ckpt").preprocessor.transform(["A text without labels."])
    """

    #: Whether samples get scores of base classifiers, as :obj:`base_scores`.
    makes_base_scores: ClassVar[bool] = False

    @property
    def unknown(self) -> Tensor | float | None:
        """The value for unknown vector entries before this step: NaN if the step accepts missing
        entries, or means of training samples :math:`(F)`; :obj:`None` if there is no such value.
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
            split (Split): The split, with the training samples.
        """

    @abstractmethod
    def transform(self, raw: Any) -> MultiLabelDataset:
        """Makes samples of new inputs.

        Args:
            raw (Any): Samples, or raw inputs of the class.
        """

    def unreadable(self, raw: Any) -> dict[int, str]:
        """Returns by row why raw inputs of :meth:`transform` are unreadable; empty if the class
        does not check inputs.
        """
        return {}

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """Fits to the training samples of a split, and transforms all samples.

        Training samples may differ from those of :meth:`transform`, *e.g.* have held-out scores.

        Args:
            dataset (MultiLabelDataset): All samples.
            split (Split): The split, with the training samples.
        """
        return self.fit(dataset, split).transform(dataset)

    def state_dict(self) -> dict[str, Any]:
        """Returns fitted values and options as plain data and arrays: by default, attributes."""
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads the learned values of a :meth:`state_dict`."""
        vars(self).update(state)
        return self


class Chain(Preprocessor):
    """A sequence of preprocessors, each fitted to the output of the previous one.

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
    """Returns name and state of a fitted preprocessor, as tensors and plain data only."""
    return {"name": type(preprocessor).__name__, "state": as_tensors(preprocessor.state_dict())}


def from_state(entry: Mapping[str, Any]) -> Preprocessor:
    """Restores the preprocessor of :func:`to_state`. Raises ValueError for unknown classes."""
    preprocessor: Preprocessor = find("preprocessor", entry["name"])()
    return preprocessor.load_state_dict(entry["state"])


def as_tensors(value: Any) -> Any:
    """Converts arrays in plain data to tensors."""
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
