"""Predefined splits, such as published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tg_mlc.data.splits.split import PARTS, Split

if TYPE_CHECKING:
    import numpy as np


def predefined_split(
    train: Tensor | np.ndarray | Sequence[int],
    val: Tensor | np.ndarray | Sequence[int],
    test: Tensor | np.ndarray | Sequence[int],
    num_samples: int,
) -> Split:
    """Makes a split from given indices, *e.g.* those that a data set was published with.

    Args:
        train (torch.Tensor, numpy.ndarray or list[int]): Indices of the training samples.
        val (torch.Tensor, numpy.ndarray or list[int]): Indices of the validation samples.
        test (torch.Tensor, numpy.ndarray or list[int]): Indices of the test samples.
        num_samples (int): Number of samples of the data set; not all of them need to be used.

    Raises:
        ValueError: If an index is out of range or occurs twice.
    """
    split = Split(torch.as_tensor(train), torch.as_tensor(val), torch.as_tensor(test), name="predefined")
    for part, indices in zip(PARTS, split.parts, strict=True):
        if indices.numel() > 0 and indices[-1] >= num_samples:
            expected = f"the indices of '{part}' to be below num_samples={num_samples}"
            raise ValueError(f"Expected {expected} (got {int(indices[-1])})")
    unused = num_samples - split.num_samples
    return replace(split, report=f"{unused} of {num_samples} samples are in no part")
