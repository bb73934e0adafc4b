"""Labels that may be unknown, in one byte each."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

UNKNOWN_LABEL = 2


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
