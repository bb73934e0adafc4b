"""Linear classifiers, one for each label: a strong baseline on text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc.baselines._tuning import best_of, check_rows
from tg_mlc.baselines.baseline import Baseline, Features
from tg_mlc.metrics import ThresholdTuner
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray, Targets, read_targets

Loss = Literal["hinge", "logistic"]

#: What :meth:`LinearBaseline.tuned` tries for documents of unit length.
DEFAULT_GRID: dict[Loss, tuple[float, ...]] = {
    "hinge": (0.1, 0.3, 1.0, 3.0, 10.0),
    "logistic": (3.0, 10.0, 30.0, 100.0, 300.0),
}

# A margin that no threshold reaches, for labels of one class only.
_NEVER = 10.0


class LinearBaseline(Baseline):
    r"""A linear support vector machine, or a logistic regression, for each label (:obj:`scikit-learn`, liblinear).

    On bags of words this is as good as most of what has been published with neural networks, in seconds. Unknown labels
    (NaN) are left out label by label. A label of one class only gets no weights and that class's side.

    .. code-block:: python

        svm = LinearBaseline.tuned(x[split.train], y[split.train], x[split.val], y[split.val])
        probabilities = svm.predict_proba(x[split.test])

    Args:
        loss (str, optional): :obj:`"hinge"` (squared) or :obj:`"logistic"`. (default: :obj:`"hinge"`)
        C (float, optional): The inverse of the strength of regularisation. (default: :obj:`1.0`)
        n_jobs (int, optional): Number of processes. (default: :obj:`1`)

    Attributes:
        weight (numpy.ndarray): The weights :math:`(F, L)`, after :meth:`fit`.
        bias (numpy.ndarray): The intercepts :math:`(L)`, after :meth:`fit`.

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
        RuntimeError: On use, if :meth:`fit` has not been called.
        ValueError: If :obj:`loss` is unknown, or :obj:`C` not positive.
    """

    def __init__(self, loss: Loss = "hinge", C: float = 1.0, *, n_jobs: int = 1) -> None:
        if loss not in DEFAULT_GRID:
            raise ValueError(f"Expected 'loss' to be one of {', '.join(DEFAULT_GRID)} (got {loss!r})")
        if not C > 0:
            raise ValueError(f"Expected 'C' to be above 0 (got {C})")
        self.loss: Loss = loss
        self.C = C
        self.n_jobs = n_jobs
        self.weight: FloatArray | None = None
        self.bias: FloatArray | None = None
        #: The settings that :meth:`tuned` tried, with the value of each on validation data.
        self.search: list[tuple[float, float]] = []

    @classmethod
    def tuned(
        cls,
        x: Features,
        y: ArrayLike,
        x_val: Features,
        y_val: ArrayLike,
        *,
        loss: Loss = "hinge",
        grid: Iterable[float] | None = None,
        metric: Callable[[ArrayLike, ArrayLike], float] | None = None,
        n_jobs: int = 1,
    ) -> Self:
        """Fits with every :obj:`C` of a grid and returns the best on validation data.

        Args:
            x, y, x_val, y_val: Training and validation samples, as in :meth:`fit`.
            grid (Iterable[float], optional): Values of :obj:`C`. (default: :obj:`DEFAULT_GRID`)
            metric (Callable, optional): What to maximise, from targets and probabilities. (default: :obj:`None`,
                micro-F1 at its best threshold)
            loss, n_jobs (optional): As in :class:`LinearBaseline`.

        Raises:
            ValueError: If the metric is undefined on the validation data.
        """
        score, grid = best_value if metric is None else metric, DEFAULT_GRID[loss] if grid is None else grid
        fitted = (((C,), cls(loss, C, n_jobs=n_jobs).fit(x, y)) for C in grid)
        return best_of(fitted, lambda model: score(y_val, model.predict_proba(x_val)))

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits the classifiers.

        Args:
            x (scipy.sparse matrix or numpy.ndarray): Features :math:`(N, F)`.
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.

        Raises:
            ValueError: If the numbers disagree, or :obj:`y` is not allowed.
        """
        x, targets = read_samples(x, y)
        self.weight, self.bias = self._fit(x, targets)
        return self

    def decision_function(self, x: Features) -> FloatArray:
        """Returns the signed distances :math:`(N, L)` for features :math:`(N, F)`.

        Raises:
            RuntimeError: If :meth:`fit` has not been called.
        """
        if self.weight is None or self.bias is None:
            raise RuntimeError("Expected 'fit' to be called before 'decision_function'")
        return np.asarray(x @ self.weight + self.bias)

    def predict_proba(self, x: Features) -> FloatArray:
        r"""Returns scores :math:`(N, L)` between 0 and 1 for features :math:`(N, F)`: the probabilities of logistic
        regression, and :math:`\sigma(2 s)` of the distances :math:`s` of a support vector machine, whose order is all
        that counts.
        """
        slope = 2.0 if self.loss == "hinge" else 1.0
        return 1 / (1 + np.exp(-slope * self.decision_function(x)))

    def cross_fit(self, x: Features, y: ArrayLike, num_folds: int = 5, seed: int = 0) -> FloatArray:
        """Returns distances :math:`(N, L)` of the samples from classifiers that were fitted without them.

        Args:
            x, y: As in :meth:`fit`.
            num_folds (int, optional): The number of parts, of which each is left out once. (default: :obj:`5`)
            seed (int, optional): Which samples belong to which part. (default: :obj:`0`)

        Raises:
            ValueError: If there are fewer than two parts, or more than samples.
        """
        x, (positive, known) = read_samples(x, y)
        if not 2 <= num_folds <= len(positive):
            raise ValueError(f"Expected 'num_folds' between 2 and the {len(positive)} samples (got {num_folds})")
        fold = np.random.default_rng(seed).permutation(len(positive)) % num_folds
        out = np.empty(positive.shape)
        for part in range(num_folds):
            rest = np.flatnonzero(fold != part)
            weight, bias = self._fit(x[rest], Targets(positive[rest], known[rest]))
            out[fold == part] = x[np.flatnonzero(fold == part)] @ weight + bias
        return out

    def state_dict(self) -> dict[str, Any]:
        """Returns settings and coefficients as arrays of single precision, numbers and strings."""
        if self.weight is None:
            raise RuntimeError("Expected 'fit' to be called before 'state_dict'")
        return {
            "loss": self.loss,
            "C": self.C,
            "weight": np.asarray(self.weight, dtype=np.float32),
            "bias": np.asarray(self.bias, dtype=np.float32),
            "search": [list(row) for row in self.search],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes settings and coefficients from :meth:`state_dict`, replacing those of this object."""
        self.loss, self.C = state["loss"], state["C"]
        self.weight, self.bias = np.asarray(state["weight"]), np.asarray(state["bias"])
        self.search = [(C, value) for C, value in state["search"]]
        return self

    def _fit(self, x: Features, targets: Targets) -> tuple[FloatArray, FloatArray]:
        positive, known = targets
        labels = range(positive.shape[1])
        joblib = require("joblib", extra="data")
        calls = (joblib.delayed(_fit_one)(self.loss, self.C, x, positive[:, i], known[:, i]) for i in labels)
        weights, biases = zip(*joblib.Parallel(n_jobs=self.n_jobs)(calls), strict=True)
        return np.stack(weights, axis=1), np.array(biases)


def read_samples(x: Features, y: ArrayLike) -> tuple[Features, Targets]:
    """Features as liblinear takes them and targets, with as many rows."""
    targets = read_targets(y, "y")
    x = _for_liblinear(x) if sp.issparse(x) else np.asarray(x)
    check_rows(x.shape[0], len(targets.known))
    return x, targets


def best_value(y: ArrayLike, scores: ArrayLike, metric: str = "f1_micro") -> float:
    """A metric of :class:`~tg_mlc.metrics.ThresholdTuner` at its best threshold, NaN if it is undefined."""
    best = ThresholdTuner(metric).fit(y, scores).best_value
    return float("nan") if best is None else best


def _for_liblinear(x: Features) -> sp.csr_matrix:
    # It takes neither arrays of scipy's new kind nor long indices.
    rows = sp.csr_matrix(x)
    return sp.csr_matrix((rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)), shape=rows.shape)


def _fit_one(loss: Loss, C: float, x: Features, positive: BoolArray, known: BoolArray) -> tuple[FloatArray, float]:
    rows = np.flatnonzero(known)
    target = positive[rows]
    if not target.any() or target.all():
        side = _NEVER if target.size and target.all() else -_NEVER
        return np.zeros(x.shape[1]), side
    if loss == "hinge":
        model = require("sklearn.svm", extra="data").LinearSVC(C=C, random_state=0)
    else:
        linear_model = require("sklearn.linear_model", extra="data")
        model = linear_model.LogisticRegression(C=C, solver="liblinear", random_state=0)
    model.fit(x if len(rows) == x.shape[0] else x[rows], target)
    return model.coef_[0], float(model.intercept_[0])
