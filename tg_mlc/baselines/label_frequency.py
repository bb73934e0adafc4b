"""Constant predictor: the frequencies of the labels, whatever the input."""

from __future__ import annotations

import numpy as np
from typing_extensions import Self

from tg_mlc.metrics._inputs import ArrayLike, FloatArray, read_targets


class LabelFrequency:
    r"""Gives every sample the same scores: the share of positives of each label in the training data.

    On data with frequent labels its F1 can equal that of published models (on SIDER it does), so it belongs next to
    every model, with thresholds tuned in the same way. Its macro ROC-AUC is 0.5 by construction. Unknown labels (NaN)
    are left out of the mean; a label never known in training gets the share of positives among all known entries.

    Attributes:
        frequency (numpy.ndarray): The scores :math:`(L)`, after :meth:`fit`.
    """

    def __init__(self) -> None:
        self.frequency: FloatArray | None = None

    def fit(self, y: ArrayLike) -> Self:
        """Counts the labels of training samples, targets :math:`(N, L)`: 0, 1, or NaN for unknown."""
        positive, known = read_targets(y, "y")
        overall = positive.sum() / known.sum()
        counts = known.sum(axis=0)
        self.frequency = np.where(counts > 0, positive.sum(axis=0) / np.maximum(counts, 1), overall)
        return self

    def predict_proba(self, num_samples: int) -> FloatArray:
        """Returns the constant scores :math:`(N, L)` of :math:`N` samples; a :obj:`RuntimeError` before :meth:`fit`."""
        if self.frequency is None:
            raise RuntimeError("Expected 'fit' to be called before 'predict_proba'")
        return np.tile(self.frequency, (num_samples, 1))

    def __repr__(self) -> str:
        num_labels = "" if self.frequency is None else f"num_labels={len(self.frequency)}"
        return f"{type(self).__name__}({num_labels})"
