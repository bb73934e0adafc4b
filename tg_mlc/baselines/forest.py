"""Random forest of all labels at once: a strong baseline where entries of a vector differ in kind and scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc.baselines._trees import Trees
from tg_mlc.baselines._tuning import check_rows
from tg_mlc.baselines.baseline import Baseline, Features
from tg_mlc.metrics._inputs import ArrayLike, FloatArray, read_targets

_CHUNK = 2**24  # entries of a dense matrix at a time, for memory
_SETTINGS = ("num_trees", "min_samples_leaf", "max_features", "seed")


class ForestBaseline(Baseline):
    """A random forest with an output for every label (:obj:`scikit-learn`).

    Trees regress to 0 and 1: the squared error of two classes falls as their Gini impurity does, and an unknown label
    (NaN) can count as its frequency, so that labels that are unknown somewhere share the forest with all others.

    .. code-block:: python

        forest = ForestBaseline().fit(x_train, y_train)
        probabilities = forest.predict_proba(x_test)

    Args:
        num_trees (int, optional): Number of trees. (default: :obj:`200`)
        min_samples_leaf (int, optional): As in scikit-learn. (default: :obj:`1`)
        max_features (str, int or float, optional): As in scikit-learn. (default: :obj:`"sqrt"`)
        seed (int, optional): Seed of the forest. (default: :obj:`0`)
        n_jobs (int, optional): Number of threads, which do not change the result. (default: :obj:`1`)

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
        RuntimeError: On use, if :meth:`fit` has not been called.
    """

    def __init__(
        self,
        num_trees: int = 200,
        *,
        min_samples_leaf: int = 1,
        max_features: str | int | float = "sqrt",
        seed: int = 0,
        n_jobs: int = 1,
    ) -> None:
        self.num_trees = num_trees
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.seed = seed
        self.n_jobs = n_jobs
        self._trees: Trees | None = None
        self._out_of_bag: FloatArray | None = None

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits the forest.

        Args:
            x (scipy.sparse matrix or numpy.ndarray): Features :math:`(N, F)`.
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.

        Raises:
            ValueError: If the numbers of samples disagree, or :obj:`y` is not allowed.
        """
        positive, known = read_targets(y, "y")
        check_rows(x.shape[0], len(known))
        mean = positive.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        targets = np.where(known, positive, mean)
        forest = require("sklearn.ensemble", extra="data").RandomForestRegressor(
            n_estimators=self.num_trees,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            random_state=self.seed,
            n_jobs=self.n_jobs,
            bootstrap=True,
            oob_score=_no_score,
        )
        forest.fit(sp.csr_matrix(x) if sp.issparse(x) else x, targets[:, 0] if targets.shape[1] == 1 else targets)
        self._out_of_bag = np.asarray(forest.oob_prediction_).reshape(targets.shape)
        self._trees = Trees.of(forest, np.arange(targets.shape[1]))
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns scores :math:`(N, L)` for features :math:`(N, F)`."""
        trees = self._fitted(self._trees, "predict_proba")
        step = max(1, _CHUNK // max(x.shape[1], len(trees.roots)))
        parts = (x[start : start + step] for start in range(0, x.shape[0], step))
        # Single precision, as scikit-learn compares with thresholds.
        dense = ((part.toarray() if sp.issparse(part) else part).astype(np.float32) for part in parts)
        return np.concatenate([trees.predict(part) for part in dense])

    def held_out_scores(
        self, x: Features, y: ArrayLike, *, cv: int | Iterable[tuple[Any, Any]] = 5, refit: bool = True
    ) -> FloatArray:
        """Returns scores :math:`(N, L)` out of bag, as in :meth:`Baseline.held_out_scores`."""
        return 2 * self.fit(x, y).out_of_bag() - 1

    def out_of_bag(self) -> FloatArray:
        """Returns scores :math:`(N, L)` of the training samples, each by the trees that were grown without it
        (Breiman 2001, doi:10.1023/A:1010933404324).
        """
        scores: FloatArray = self._fitted(self._out_of_bag, "out_of_bag")
        return scores

    def state_dict(self) -> dict[str, Any]:
        """Returns settings and trees as arrays, numbers and strings, without :meth:`out_of_bag`."""
        trees = self._fitted(self._trees, "state_dict")
        return {"settings": {name: getattr(self, name) for name in _SETTINGS}, "trees": trees._asdict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes settings and trees from :meth:`state_dict`, replacing those of this object."""
        vars(self).update(state["settings"])
        self._trees = Trees(**{name: np.asarray(values) for name, values in state["trees"].items()})
        self._out_of_bag = None
        return self

    def _fitted(self, value: Any, method: str) -> Any:
        if value is None:
            raise RuntimeError(f"Expected 'fit' to be called before '{method}'")
        return value


def _no_score(y: Any, scores: Any) -> float:
    """In place of :math:`R^2`, which warns of labels of one class."""
    return 0.0
