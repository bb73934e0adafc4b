"""Linear classifiers, a strong baseline on text: one for each label, chains, and label trees."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc._options import check_choice, check_count, check_share
from tg_mlc.baselines.baseline import (
    Baseline,
    Features,
    Settings,
    TunableBaseline,
    check_positive,
    float_tensor,
    read_array,
)
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray

Loss = Literal["hinge", "logistic"]

#: Values of ``C`` that :meth:`LinearBaseline.tuned` compares, for documents of unit length.
DEFAULT_GRID: dict[Loss, tuple[float, ...]] = {
    "hinge": (0.1, 0.3, 1.0, 3.0, 10.0),
    "logistic": (3.0, 10.0, 30.0, 100.0, 300.0),
}

_CONSTANT = 10.0  # Absolute score of labels with one class, beyond all thresholds.


@dataclass(eq=False, repr=False)
class LinearBaseline(TunableBaseline):
    r"""A linear support vector machine (squared hinge loss), or a logistic regression, for each
    label (:obj:`scikit-learn`, liblinear).

    On bags of words, it fits in seconds and equals most published neural networks. Each label skips
    samples in which it is unknown (NaN). A label with one class gets a constant score.

    .. code-block:: python

        svm = LinearBaseline.tuned(x_train, y_train, x_val, y_val)
        probabilities = svm.predict_proba(x_test)

    Args:
        loss (str, optional): :obj:`"hinge"` or :obj:`"logistic"`. (default: :obj:`"hinge"`)
        C (float, optional): The inverse strength of regularisation. (default: :obj:`1.0`)
        n_jobs (int, optional): Number of processes. (default: :obj:`1`)

    Attributes:
        weight (numpy.ndarray): The weights :math:`(F, L)`, after :meth:`fit`.
        bias (numpy.ndarray): The intercepts :math:`(L)`, after :meth:`fit`.

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
        ValueError: On use, if :obj:`loss` is unknown, or :obj:`C` is not positive.
    """

    loss: Loss = "hinge"
    C: float = 1.0
    _: KW_ONLY
    n_jobs: int | None = 1

    @classmethod
    def _settings(cls, grid: Any, **options: Any) -> Settings:
        grid = DEFAULT_GRID[options.get("loss", "hinge")] if grid is None else grid
        return [((C,), {"C": C}) for C in grid]

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits the classifiers, as :meth:`Baseline.fit`."""
        check_choice("loss", self.loss, DEFAULT_GRID)
        check_positive("C", self.C)
        x, (positive, observed) = self._read(x, y)
        joblib = require("joblib", extra="data")
        columns = zip(positive.T, observed.T, strict=True)
        calls = (joblib.delayed(_fit_label)(self.loss, self.C, x, *column) for column in columns)
        weights, biases = zip(*joblib.Parallel(n_jobs=self.n_jobs)(calls), strict=True)
        self.weight, self.bias = np.stack(weights, axis=1), np.array(biases)
        return self

    def decision_function(self, x: Features) -> FloatArray:
        """Returns the signed distances :math:`(N, L)` for features :math:`(N, F)`."""
        self._check_fitted("decision_function")
        return np.asarray(x @ self.weight + self.bias)

    def predict_proba(self, x: Features) -> FloatArray:
        r"""Returns scores :math:`(N, L)` between 0 and 1 for features :math:`(N, F)`: the
        probabilities of logistic regression; or :math:`\sigma(2 s)` with the distances :math:`s` of
        a support vector machine, which rank samples but are no probabilities.
        """
        slope = 2.0 if self.loss == "hinge" else 1.0
        return 1 / (1 + np.exp(-slope * self.decision_function(x)))

    def _make_module(self) -> nn.Module:
        return _LinearModule(self)

    def state_dict(self) -> dict[str, Any]:
        """Returns settings, and coefficients in single precision."""
        self._check_fitted("state_dict")
        return {
            "loss": self.loss,
            "C": self.C,
            "weight": np.asarray(self.weight, dtype=np.float32),
            "bias": np.asarray(self.bias, dtype=np.float32),
            "search": [list(row) for row in self.search],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads a state from :meth:`state_dict`."""
        self.loss, self.C = state["loss"], state["C"]
        self.bias = read_array(state, "bias", None)
        self.weight = read_array(state, "weight", None, len(self.bias))
        self.search = [(C, value) for C, value in state["search"]]
        self.classes_ = np.arange(len(self.bias))
        return self


class _LinearModule(nn.Module):
    weight: Tensor
    bias: Tensor

    def __init__(self, baseline: LinearBaseline) -> None:
        super().__init__()
        self.register_buffer("weight", float_tensor(baseline.weight))
        self.register_buffer("bias", float_tensor(baseline.bias))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


def _fit_label(
    loss: Loss, C: float, x: Features, positive: BoolArray, observed: BoolArray
) -> tuple[FloatArray, float]:
    rows = np.flatnonzero(observed)
    target = positive[rows]
    if not target.any() or target.all():
        return np.zeros(x.shape[1]), _CONSTANT if target.any() else -_CONSTANT
    if loss == "hinge":
        model = require("sklearn.svm", extra="data").LinearSVC(C=C, random_state=0)
    else:
        linear_model = require("sklearn.linear_model", extra="data")
        model = linear_model.LogisticRegression(C=C, solver="liblinear", random_state=0)
    model.fit(x if len(rows) == x.shape[0] else x[rows], target)
    return model.coef_[0], float(model.intercept_[0])


@dataclass(eq=False, repr=False)
class ClassifierChain(Baseline):
    r"""A chain of linear classifiers, from the `"Classifier Chains for Multi-label Classification"
    <https://doi.org/10.1007/s10994-011-5256-5>`_ paper.

    .. math::
        s_{\pi(k)} = f_k(\mathbf{x}, y_{\pi(1)}, \ldots, y_{\pi(k - 1)})

    Inputs of a classifier include earlier labels: true labels in training, predicted labels in
    prediction. Each classifier skips samples with an unknown label (NaN). Its predictions replace
    unknown labels for later classifiers. :class:`sklearn.multioutput.ClassifierChain` supports
    neither unknown labels nor labels with one class.

    Args:
        loss, C (optional): As in :class:`LinearBaseline`.
            (default: :obj:`"logistic"` and :obj:`10.0`)
        order (str or Sequence[int], optional): The order :math:`\pi` of the labels:
            :obj:`"random"`, indices, or :obj:`None` for the order of columns.
            (default: :obj:`"random"`)
        random_state (int, optional): Seed of a random order. (default: :obj:`0`)

    Attributes:
        order_ (numpy.ndarray): The order, after :meth:`fit`.

    Raises:
        ValueError: On use, if an option is not allowed.
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    loss: Loss = "logistic"
    C: float = 10.0
    _: KW_ONLY
    order: Literal["random"] | Sequence[int] | None = "random"
    random_state: int | None = 0

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits one classifier after another, as :meth:`Baseline.fit`."""
        x, (positive, observed) = self._read(x, y)
        columns = np.arange(positive.shape[1])
        if isinstance(self.order, str):
            check_choice("order", self.order, ("random",))
            self.order_ = np.random.default_rng(self.random_state).permutation(columns)
        else:
            self.order_ = columns if self.order is None else np.asarray(self.order)
            if not np.array_equal(np.sort(self.order_), columns):
                expected = f"Expected 'order' to hold each of {len(columns)} labels once"
                raise ValueError(f"{expected} (got {shorten(self.order)})")
        self._links = []
        for label in self.order_:
            target = np.where(observed[:, label], positive[:, label], np.nan)
            if np.isnan(target).all():
                target[:] = 0.0  # A label without observations must not change other labels.
            link = LinearBaseline(self.loss, self.C).fit(x, target[:, None])
            unknown = np.flatnonzero(np.isnan(target))
            if unknown.size:
                target[unknown] = link.predict_proba(x[unknown])[:, 0] > 0.5
            x = _append_column(x, target)
            self._links.append(link)
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the scores :math:`(N, L)` along the chain."""
        self._check_fitted("predict_proba")
        scores = np.empty((x.shape[0], len(self._links)))
        for label, link in zip(self.order_, self._links, strict=True):
            scores[:, label] = link.predict_proba(x)[:, 0]
            x = _append_column(x, scores[:, label] > 0.5)
        return scores


@dataclass(eq=False, repr=False)
class ChainEnsemble(Baseline):
    """An ensemble of :class:`ClassifierChain`, each with its own order of labels and subset of
    samples, from the `"Classifier Chains for Multi-label Classification"
    <https://doi.org/10.1007/s10994-011-5256-5>`_ paper, with mean scores instead of votes.

    Args:
        n_estimators (int, optional): The number of chains. (default: :obj:`10`)
        max_samples (float, optional): The fraction of samples, drawn without replacement, for a
            chain. (default: :obj:`0.63`, about the :math:`1 - 1 / e` of a bootstrap sample)
        loss, C (optional): As in :class:`ClassifierChain`.
            (default: :obj:`"logistic"` and :obj:`10.0`)
        random_state (int, optional): Seed of orders and samples. (default: :obj:`0`)

    Attributes:
        estimators_ (list[ClassifierChain]): The chains, after :meth:`fit`.

    Raises:
        ValueError: On use, if an option is out of range.
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    n_estimators: int = 10
    max_samples: float = 0.63
    loss: Loss = "logistic"
    C: float = 10.0
    _: KW_ONLY
    random_state: int | None = 0

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits the chains, as :meth:`Baseline.fit`."""
        check_count("n_estimators", self.n_estimators)
        check_share("max_samples", self.max_samples)
        x, (positive, observed) = self._read(x, y)
        targets = np.where(observed, positive, np.nan)
        size = max(1, round(self.max_samples * len(targets)))
        rng = np.random.default_rng(self.random_state)
        self.estimators_: list[ClassifierChain] = []
        for seed in rng.integers(2**31, size=self.n_estimators).tolist():
            rows = np.sort(rng.permutation(len(targets))[:size])
            chain = ClassifierChain(self.loss, self.C, random_state=seed)
            self.estimators_.append(chain.fit(x[rows], targets[rows]))
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the mean scores :math:`(N, L)` of the chains."""
        self._check_fitted("predict_proba")
        return np.asarray(np.mean([chain.predict_proba(x) for chain in self.estimators_], axis=0))


@dataclass(eq=False, repr=False)
class LabelTrees(Baseline):
    """Trees over the labels with a linear classifier in every node, from the `"Probabilistic Label
    Trees for Extreme Multi-label Classification" <https://arxiv.org/abs/2009.11218>`_ paper, by
    :obj:`napkinxc`.

    The cost grows with the logarithm of the number of labels, as for `FastXML
    <https://doi.org/10.1145/2623330.2623651>`_, which has no maintained package. Each node divides
    its labels by clusters of their samples.

    Unknown labels (NaN) count as absent, with a warning. The solver ignores the seed, so scores of
    two fits differ slightly.

    Args:
        n_estimators (int, optional): The number of trees. (default: :obj:`3`)
        C (float, optional): The inverse strength of regularisation.
            (default: :obj:`10.0`, as in :obj:`napkinxc`)
        random_state (int, optional): Seed of the clusters. (default: :obj:`0`)
        n_jobs (int, optional): Number of threads. (default: :obj:`1`)

    Raises:
        ImportError: On use, if napkinxc is not installed (extra ``extreme``).
    """

    n_estimators: int = 3
    C: float = 10.0
    _: KW_ONLY
    random_state: int = 0
    n_jobs: int = 1

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Grows the trees, as :meth:`Baseline.fit`."""
        plt = require("napkinxc.models", extra="extreme").PLT
        x, (positive, observed) = self._read(x, y)
        if not observed.all():
            unknown = f"{(~observed).sum()} unknown labels (NaN)"
            warnings.warn(f"Label trees count {unknown} as absent", stacklevel=2)
        labels = [np.flatnonzero(row).tolist() for row in positive]
        rows = sp.csr_matrix(x, dtype=np.float32)  # The package does not support integers.
        self._trees = []
        for i in range(self.n_estimators):
            options = {"liblinear_c": self.C, "seed": self.random_state + i, "threads": self.n_jobs}
            # The package writes trees to a folder and loads them from it.
            with tempfile.TemporaryDirectory() as folder:
                tree = plt(folder, **options)
                tree.fit(rows, labels)
                tree.load()
            self._trees.append(tree)
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the probabilities :math:`(N, L)`."""
        self._check_fitted("predict_proba")
        rows, num_labels = sp.csr_matrix(x, dtype=np.float32), len(self.classes_)
        scores = np.zeros((x.shape[0], num_labels))
        for tree in self._trees:
            predicted = tree.predict_proba(rows, top_k=num_labels)
            for row, pairs in zip(scores, predicted, strict=True):
                for label, score in pairs:
                    row[label] += score / len(self._trees)
        return scores


def _append_column(x: Features, column: Any) -> Features:
    column = np.asarray(column, dtype=x.dtype)[:, None]
    return sp.hstack([x, column], format="csr") if sp.issparse(x) else np.hstack([x, column])
