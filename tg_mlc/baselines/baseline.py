"""Base class of baselines, with the interface of scikit-learn's estimators."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Self

from tg_mlc._names import shorten
from tg_mlc.graphs.hierarchy import coherent as make_coherent
from tg_mlc.graphs.hierarchy import pairs_of
from tg_mlc.metrics import ThresholdTuner
from tg_mlc.metrics._inputs import ArrayLike, FloatArray, Targets, read_targets

Features = Any  #: a scipy sparse matrix or a numpy array [N, F]
Metric = Callable[[ArrayLike, ArrayLike], float]  #: a function of targets and scores
#: Pairs of a setting's cells in :attr:`TunableBaseline.search` and its arguments of the class.
Settings = Iterable[tuple[tuple[Any, ...], dict[str, Any]]]
#: Number of random parts, or pairs of training and test rows.
Parts = int | Iterable[tuple[Any, Any]]


class Baseline(ABC):
    """A multi-label classifier with the interface of scikit-learn's estimators. Scikit-learn need
    not be installed.

    For :meth:`get_params`, :meth:`set_params` and :func:`sklearn.base.clone`, arguments of
    ``__init__`` become attributes with the same names, and :meth:`fit` checks them. For labels as
    sets of names or classes, and for thresholds, see :mod:`tg_mlc.sklearn`.

    Attributes:
        classes_ (numpy.ndarray): The indices of the labels :math:`(L)`, after :meth:`fit`.
        n_features_in_ (int): The number of features, after :meth:`fit`.
    """

    classes_: Any
    n_features_in_: int | None

    @abstractmethod
    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits all labels.

        Args:
            x (scipy.sparse matrix or numpy.ndarray): Features :math:`(N, F)`.
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.

        Raises:
            ValueError: If a parameter or :obj:`y` has invalid values, or numbers of samples
            disagree.
            ImportError: If a required package is not installed.
        """

    @abstractmethod
    def predict_proba(self, x: Features) -> FloatArray:
        """Returns scores :math:`(N, L)` between 0 and 1.

        Raises:
            RuntimeError: If called before :meth:`fit`.
        """

    def decision_function(self, x: Features) -> FloatArray:
        """Returns scores :math:`(N, L)`, which are at least 0 for predicted labels: by default
        :math:`2 p - 1` with probabilities :math:`p`.
        """
        return 2 * self.predict_proba(x) - 1

    def module(self) -> nn.Module:
        """Returns the :meth:`decision_function` as a module of tensor operators, from features
        :math:`(N, F)` (dense, single precision) to scores :math:`(N, L)`. The module has
        copies of the parameters.

        Raises:
            RuntimeError: If called before :meth:`fit`.
            ValueError: If this baseline cannot be a module.
        """
        self._check_fitted("module")
        return self._make_module()

    def _make_module(self) -> nn.Module:
        expected = "Expected a baseline that can be computed with tensors alone"
        raise ValueError(f"{expected} (got a {type(self).__name__})")

    def predict(self, x: Features, *, coherent: Data | None = None) -> Any:
        """Returns decisions 0 and 1 :math:`(N, L)` by the sign of the :meth:`decision_function`.

        Args:
            x (scipy.sparse matrix or numpy.ndarray): Features :math:`(N, F)`.
            coherent (LabelGraph, optional): A hierarchy to respect, if any. (default: :obj:`None`)
        """
        scores = self.decision_function(x)
        if coherent is not None:
            pairs = pairs_of(coherent, name="coherent")
            scores = make_coherent(torch.from_numpy(scores), pairs).numpy()
        return (scores >= 0).astype(np.int64)

    def held_out_scores(
        self, x: Features, y: ArrayLike, *, cv: Parts = 5, refit: bool = True
    ) -> FloatArray:
        """Returns the :meth:`decision_function` :math:`(N, L)` of training samples, by models
        fitted without them. Use them as inputs of other models, or to compare settings.

        Kernel ridge regression leaves out one sample at a time, and forests score out of bag; both
        need only a single fit. Other baselines are fitted once for each part.

        Args:
            x, y: As in :meth:`fit`.
            cv (int or Iterable, optional): The number of random parts, or pairs of training and
                test rows that cover all samples. (default: :obj:`5`)
            refit (bool, optional): Whether to finally fit to all samples. (default: :obj:`True`)

        Raises:
            ValueError: If there are fewer than two parts, or more parts than samples.
        """
        positive, observed = read_targets(y, "y")
        targets = np.where(observed, positive, np.nan)
        scores = np.full(targets.shape, np.nan)
        for train_rows, test_rows in self._parts(len(targets), cv):
            fitted = type(self)(**self.get_params()).fit(x[train_rows], targets[train_rows])
            scores[test_rows] = fitted.decision_function(x[test_rows])
        if refit:
            self.fit(x, y)
        return scores

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the arguments of ``__init__`` by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Changes arguments of ``__init__``. Raises :obj:`ValueError` for unknown names."""
        if unknown := sorted(set(params) - set(self.get_params())):
            raise ValueError(f"Expected parameters among {list(self.get_params())} (got {unknown})")
        vars(self).update(params)
        return self

    def __repr__(self) -> str:
        params = (f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({', '.join(params)})"

    def _read(self, x: Features, y: ArrayLike) -> tuple[Features, Targets]:
        """Returns features, in the format that liblinear and trees need, and targets."""
        targets = read_targets(y, "y")
        if sp.issparse(x):
            # liblinear supports neither sparse arrays nor 64-bit indices.
            rows = sp.csr_matrix(x)
            indices, indptr = (array.astype(np.int32) for array in (rows.indices, rows.indptr))
            x = sp.csr_matrix((rows.data, indices, indptr), shape=rows.shape)
        else:
            x = np.asarray(x)
        if (got := len(targets.observed)) != x.shape[0]:
            raise ValueError(f"Expected one row of 'y' per row of 'x', {x.shape[0]} (got {got})")
        self.classes_, self.n_features_in_ = np.arange(targets.observed.shape[1]), x.shape[1]
        return x, targets

    @staticmethod
    def _parts(num_samples: int, cv: Parts) -> Iterable[tuple[Any, Any]]:
        """Returns training rows and held-out rows for each part of the samples."""
        if not isinstance(cv, int):
            return cv
        if not 2 <= cv <= num_samples:
            raise ValueError(f"Expected 'cv' between 2 and the {num_samples} samples (got {cv})")
        fold = np.random.default_rng(0).permutation(num_samples) % cv
        return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(cv)]

    def _check_fitted(self, method: str) -> None:
        if "classes_" not in vars(self):
            raise RuntimeError(f"Expected 'fit' to be called before '{method}'")


class TunableBaseline(Baseline):
    """A baseline with a search for settings and a state dict."""

    #: The settings that :meth:`tuned` compared, with values on validation data.
    search: Any = ()

    @classmethod
    def tuned(
        cls,
        x: Features,
        y: ArrayLike,
        x_val: Features,
        y_val: ArrayLike,
        *,
        grid: Any = None,
        metric: Metric | None = None,
        **options: Any,
    ) -> Self:
        """Fits with each setting of a grid, and returns the first best model on validation data.

        Args:
            x, y, x_val, y_val: Training and validation samples, as in :meth:`fit`.
            grid (optional): The settings, in the format of ``DEFAULT_GRID``. (default: that grid)
            metric (Callable, optional): The value to maximise, a function of targets and
                probabilities. (default: micro-F1 at its best threshold)
            **options (optional): Other arguments of the class.

        Raises:
            ValueError: If the metric is undefined on the validation data.
        """
        best, highest, search = None, -np.inf, []
        for row, setting in cls._settings(grid, **options):
            model = cls(**{**options, **setting}).fit(x, y)
            value = (metric or best_value)(y_val, model.predict_proba(x_val))
            search.append((*row, value))
            if value > highest:
                best, highest = model, value
        if best is None:
            got = f"NaN for all of {shorten(search)}"
            raise ValueError(f"Expected 'metric' to be defined on the validation data (got {got})")
        best.search = search
        return best

    @classmethod
    @abstractmethod
    def _settings(cls, grid: Any, **options: Any) -> Settings: ...

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Returns settings and learned values as arrays, numbers and strings."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads a state from :meth:`state_dict`."""


class LabelFrequency(Baseline):
    """Gives every sample the same scores: the frequency of each label in the training data.

    If labels are frequent, the F1 of this baseline can equal that of published models (as on
    SIDER). Compare models with it, with equally tuned thresholds. Its macro ROC-AUC is 0.5. Labels
    without observations get the mean of all observed entries. Feature values are ignored.

    Attributes:
        frequency (numpy.ndarray): The scores :math:`(L)`, after :meth:`fit`.
    """

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Computes the frequencies, as :meth:`Baseline.fit`."""
        self.frequency = label_frequency(read_targets(y, "y"))
        self.classes_ = np.arange(len(self.frequency))
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the constant scores :math:`(N, L)`."""
        self._check_fitted("predict_proba")
        return np.tile(self.frequency, (x.shape[0] if hasattr(x, "shape") else len(x), 1))


def label_frequency(targets: Targets) -> FloatArray:
    """Returns label frequencies :math:`(L)`; the overall frequency for unobserved labels."""
    counts, positives = targets.observed.sum(axis=0), targets.positive.sum(axis=0)
    overall = positives.sum() / counts.sum()
    return np.asarray(np.where(counts > 0, positives / np.maximum(counts, 1), overall))


def check_positive(name: str, value: float) -> None:
    """Raises if a parameter is not above zero."""
    if not value > 0:
        raise ValueError(f"Expected '{name}' to be above 0 (got {value})")


def read_array(state: Mapping[str, Any], name: str, *sizes: int | None) -> npt.NDArray[Any]:
    """Returns a numeric array of a state. Raises unless its shape is ``sizes`` (None: any size)."""
    array = np.asarray(state[name])
    fits = all(size in (None, actual) for size, actual in zip(sizes, array.shape, strict=False))
    if array.dtype.kind not in "biuf" or len(sizes) != array.ndim or not fits:
        shape = ["*" if size is None else size for size in sizes]
        got = f"{array.dtype}, {[*array.shape]}"
        raise ValueError(f"Expected '{name}' to hold numbers of shape {shape} (got {got})")
    return array


def float_tensor(values: npt.ArrayLike) -> Tensor:
    """Returns a copy of numbers as a tensor of single precision."""
    return torch.from_numpy(np.array(values, dtype=np.float32))


def best_value(y: ArrayLike, scores: ArrayLike, metric: str = "f1_micro") -> float:
    """Returns a metric at its best threshold, NaN if undefined."""
    best = ThresholdTuner(metric).fit(y, scores).best_value
    return float("nan") if best is None else best
