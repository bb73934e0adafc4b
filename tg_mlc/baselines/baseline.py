"""The base of all baselines: scikit-learn's contract without scikit-learn, and what they share."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from typing_extensions import Self

from tg_mlc.metrics._inputs import ArrayLike, FloatArray, read_targets

Features = Any  #: a scipy sparse matrix or a numpy array [N, F]; of molecules, their SMILES


class Baseline(ABC):
    """A classifier of many labels with the contract of scikit-learn's estimators, which does not need to be installed.

    Arguments of ``__init__`` are kept as attributes of the same names and checked in :meth:`fit`, so that
    :meth:`get_params`, :meth:`set_params` and :func:`sklearn.base.clone` work.
    """

    @abstractmethod
    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits all labels.

        Args:
            x (scipy.sparse matrix or numpy.ndarray): Features :math:`(N, F)`.
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        """

    @abstractmethod
    def predict_proba(self, x: Features) -> FloatArray:
        """Returns scores :math:`(N, L)` between 0 and 1."""

    def decision_function(self, x: Features) -> FloatArray:
        """Returns scores :math:`(N, L)`, of which those from 0 on say that a label applies: :math:`2 p - 1` of
        probabilities :math:`p`, unless a class says otherwise.
        """
        return 2 * self.predict_proba(x) - 1

    def held_out_scores(
        self, x: Features, y: ArrayLike, *, cv: int | Iterable[tuple[Any, Any]] = 5, refit: bool = True
    ) -> FloatArray:
        """Returns the :meth:`decision_function` :math:`(N, L)` of training samples by fits without them: for a model
        that takes these scores as inputs, or for a choice among settings.

        Kernel ridge regression leaves out one sample at a time and forests score out of bag, both with a single fit.
        Other baselines are fitted once for each part of the samples.

        Args:
            x, y: As in :meth:`fit`.
            cv (int or Iterable, optional): The number of random parts, or pairs of training and test rows that cover
                all samples, for those that are fitted once for each part. (default: :obj:`5`)
            refit (bool, optional): If set to :obj:`False`, this baseline may stay as it was; else it is fitted to all
                samples in the end. (default: :obj:`True`)

        Raises:
            ValueError: If there are fewer than two parts, or more than samples.
        """
        positive, known = read_targets(y, "y")
        targets, num_samples = np.where(known, positive, np.nan), len(known)
        if isinstance(cv, int):
            if not 2 <= cv <= num_samples:
                raise ValueError(f"Expected 'cv' between 2 and the {num_samples} samples (got {cv})")
            part = np.random.default_rng(0).permutation(num_samples) % cv
            cv = [(np.flatnonzero(part != each), np.flatnonzero(part == each)) for each in range(cv)]
        scores = np.full(targets.shape, np.nan)
        for rest, rows in cv:
            scores[rows] = type(self)(**self.get_params()).fit(x[rest], targets[rest]).decision_function(x[rows])
        if refit:
            self.fit(x, y)
        return scores

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the arguments of ``__init__`` by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Changes arguments of ``__init__``.

        Raises:
            ValueError: If a name is none of them.
        """
        if unknown := sorted(set(params) - set(self.get_params())):
            raise ValueError(f"Expected parameters among {list(self.get_params())} (got {unknown})")
        vars(self).update(params)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"
