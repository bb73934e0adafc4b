"""The interface of baselines."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from typing_extensions import Self

from tg_mlc.metrics._inputs import ArrayLike, FloatArray

Features = Any  #: a scipy sparse matrix or a numpy array [N, F]; of molecules, their SMILES


@runtime_checkable
class Baseline(Protocol):
    """A classifier of many labels: fitted to the inputs of samples and to labels, some of which may be unknown."""

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits all labels.

        Args:
            x (scipy.sparse matrix or numpy.ndarray): Features :math:`(N, F)`; of molecules, their SMILES.
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        """

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns scores :math:`(N, L)` between 0 and 1."""
