"""Arrays of bytes: mapped into memory from files, and labels that may be unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

UNKNOWN_LABEL = 2


class MappedRows:
    """The rows of a file of bytes, of which none is read before it is asked for; a copy in another process maps the
    file anew instead of taking its content along. A file of another shape is a :class:`ValueError`.
    """

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self._made_of = path, shape
        self.rows = np.memmap(path, dtype=np.uint8, mode="r").reshape(shape)

    def __reduce__(self) -> tuple[type[MappedRows], tuple[Path, tuple[int, int]]]:
        return MappedRows, self._made_of


def map_temporarily(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Writes bytes to a temporary file and maps it into memory; it is gone when nothing shows a part of it any more."""
    with TemporaryFile() as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
        if file.tell() == 0:  # which cannot be mapped
            return np.empty(0, dtype=np.uint8)
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="r+"))


def label_bytes(labels: np.ndarray) -> np.ndarray:
    """Labels of 0, 1 and NaN in uint8."""
    return np.where(np.isnan(labels), UNKNOWN_LABEL, labels).astype(np.uint8)


def label_floats(labels: Tensor) -> Tensor:
    """The labels that :func:`label_bytes` made, in float32."""
    return labels.to(torch.float32).masked_fill_(labels == UNKNOWN_LABEL, math.nan)


def label_csr(labels: np.ndarray) -> sparse.csr_array:
    """The labels that :func:`label_bytes` made, in float32, of which ones and NaNs are stored."""
    stored = sparse.csr_array(labels).astype(np.float32)
    stored.data[stored.data == UNKNOWN_LABEL] = math.nan
    return stored
