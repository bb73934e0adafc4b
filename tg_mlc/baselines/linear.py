"""Linear classifiers, one for each label: a strong baseline on text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.baselines.baseline import Baseline, Features, Metric, best_of, best_value, check_positive
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray

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
        ValueError: On use, if :obj:`loss` is unknown, or :obj:`C` not positive.
    """

    weight: FloatArray
    bias: FloatArray

    def __init__(self, loss: Loss = "hinge", C: float = 1.0, *, n_jobs: int | None = 1) -> None:
        self.loss: Loss = loss
        self.C = C
        self.n_jobs = n_jobs

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
        metric: Metric = best_value,
        n_jobs: int | None = 1,
    ) -> Self:
        """Fits with every :obj:`C` of a grid and returns the best on validation data.

        Args:
            x, y, x_val, y_val: Training and validation samples, as in :meth:`fit`.
            grid (Iterable[float], optional): Values of :obj:`C`. (default: :obj:`DEFAULT_GRID`)
            metric (Callable, optional): What to maximise, from targets and probabilities. (default: micro-F1 at its
                best threshold)
            loss, n_jobs (optional): As in :class:`LinearBaseline`.

        Raises:
            ValueError: If the metric is undefined on the validation data.
        """
        grid = DEFAULT_GRID[loss] if grid is None else grid
        fitted = (((C,), cls(loss, C, n_jobs=n_jobs).fit(x, y)) for C in grid)
        return best_of(fitted, lambda model: metric(y_val, model.predict_proba(x_val)))

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits the classifiers; for the arguments and errors see :meth:`Baseline.fit`."""
        check_choice("loss", self.loss, DEFAULT_GRID)
        check_positive("C", self.C)
        x, (positive, observed) = self._read(x, y)
        joblib = require("joblib", extra="data")
        columns = zip(positive.T, observed.T, strict=True)
        calls = (joblib.delayed(_fit_one)(self.loss, self.C, x, *column) for column in columns)
        weights, biases = zip(*joblib.Parallel(n_jobs=self.n_jobs)(calls), strict=True)
        self.weight, self.bias = np.stack(weights, axis=1), np.array(biases)
        return self

    def decision_function(self, x: Features) -> FloatArray:
        """Returns the signed distances :math:`(N, L)` for features :math:`(N, F)`."""
        self._check_fitted("decision_function")
        return np.asarray(x @ self.weight + self.bias)

    def predict_proba(self, x: Features) -> FloatArray:
        r"""Returns scores :math:`(N, L)` between 0 and 1 for features :math:`(N, F)`: the probabilities of logistic
        regression, and :math:`\sigma(2 s)` of the distances :math:`s` of a support vector machine, whose order is all
        that counts.
        """
        slope = 2.0 if self.loss == "hinge" else 1.0
        return 1 / (1 + np.exp(-slope * self.decision_function(x)))

    def state_dict(self) -> dict[str, Any]:
        """Returns settings and coefficients as arrays of single precision, numbers and strings."""
        self._check_fitted("state_dict")
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
        self.classes_ = np.arange(len(self.bias))
        return self


def _fit_one(loss: Loss, C: float, x: Features, positive: BoolArray, observed: BoolArray) -> tuple[FloatArray, float]:
    rows = np.flatnonzero(observed)
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
