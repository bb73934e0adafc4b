"""Reads training labels, in whatever form they come, as one sparse matrix of ones and NaNs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy import sparse
from torch import Tensor

from tg_mlc._frames import take_by_name
from tg_mlc._numbers import to_label_csr
from tg_mlc.graphs._check import as_names, check_label_names


@runtime_checkable
class HasTrain(Protocol):
    """The part of a :class:`tg_mlc.data.Split` that a label graph needs."""

    @property
    def train(self) -> Tensor: ...

    def check_fits(self, num_samples: int, of: str) -> None: ...


class TrainingLabels(NamedTuple):
    values: sparse.csr_array
    names: list[str] | None
    origin: str

    @property
    def num_labels(self) -> int:
        return int(self.values.shape[1])


def read_training_labels(y: Any, label_names: Sequence[str] | None, split: HasTrain | None) -> TrainingLabels:
    """Reads the training rows of a label matrix, or of a data set with its split."""
    if not isinstance(split, HasTrain | None):
        raise ValueError(f"Expected 'split' to be a Split (got {type(split).__name__}); see tg_mlc.data.random_split")
    label_names = None if label_names is None else as_names(label_names)
    if hasattr(y, "columns"):  # a data frame, which has an attribute "y" as well if it has such a column
        y = take_by_name(y, label_names, "label_names")
        label_names = [str(column) for column in y.columns] if label_names is None else label_names
    elif (of_data_set := y.sparse_y() if hasattr(y, "sparse_y") else getattr(y, "y", None)) is not None:
        if split is None:
            got = f"the data set {type(y).__name__} without 'split'"
            hint = "give a whole data set with its 'split', or the labels alone, 'dataset[split.train].y'"
            raise ValueError(f"Expected the labels of training samples only (got {got}); {hint}")
        label_names = getattr(y, "label_names", None) if label_names is None else label_names
        y = of_data_set
    values = to_label_csr(y)
    if split is not None:
        split.check_fits(values.shape[0], "'y'")
        values = values[np.asarray(split.train)]
    if not values.shape[0]:
        raise ValueError("Expected 'y' to hold at least one training sample (got none)")
    names = None if label_names is None else check_label_names(label_names, values.shape[1])
    of_split = f" of split {name!r}" if (name := getattr(split, "name", "")) else ""
    return TrainingLabels(values, names, f"{values.shape[0]} training samples{of_split}")
