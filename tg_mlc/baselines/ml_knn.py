"""ML-kNN: a Bayesian classifier by label counts of nearest neighbours."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc._options import check_count
from tg_mlc.baselines.baseline import Baseline, Features, check_positive
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray, IntArray


@dataclass(eq=False, repr=False)
class MLkNN(Baseline):
    r"""The nearest-neighbour classifier from the `"ML-KNN: A Lazy Learning Approach to
    Multi-label Learning" <https://doi.org/10.1016/j.patcog.2006.12.019>`_ paper.

    .. math::
        p_i(\mathbf{x}) = \frac{P(y_i = 1) \, P(C_i \mid y_i = 1)}
        {\sum_{b \in \{0, 1\}} P(y_i = b) \, P(C_i \mid y_i = b)}

    where :math:`C_i` counts the samples with label :math:`i` among the :math:`k` nearest training
    samples. Probabilities are smoothed frequencies of training samples. Frequencies of a label skip
    samples in which it is unknown (NaN). Neighbours with an unknown label count as negative.

    Args:
        n_neighbors (int, optional): Number of neighbours, as in the paper. (default: :obj:`10`)
        smoothing (float, optional): The number :math:`s` that is added to all counts, as in the
            paper. (default: :obj:`1.0`)
        metric (str, optional): The distance of :class:`sklearn.neighbors.NearestNeighbors`.
            (default: :obj:`"euclidean"`)

    Raises:
        ValueError: On use, if an option is out of range, or there are no more training samples than
        neighbours.
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    n_neighbors: int = 10
    smoothing: float = 1.0
    _: KW_ONLY
    metric: str = "euclidean"

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Counts labels among neighbours of training samples, as :meth:`Baseline.fit`."""
        check_count("n_neighbors", self.n_neighbors)
        check_positive("smoothing", self.smoothing)
        x, targets = self._read(x, y)
        if len(targets.observed) <= self.n_neighbors:
            expected = f"Expected more than n_neighbors={self.n_neighbors} samples"
            raise ValueError(f"{expected} (got {len(targets.observed)})")
        neighbours = require("sklearn.neighbors", extra="data").NearestNeighbors
        self._index = neighbours(n_neighbors=self.n_neighbors, metric=self.metric).fit(x)
        self._y = sp.csr_array(targets.positive.astype(np.float64))
        counts, (positive, observed) = self._count_neighbours(None), targets
        present, absent = (self._joint(counts, observed & mask) for mask in (positive, ~positive))
        # [n_neighbors + 1, L], by the number of neighbours with the label.
        self._log_odds = np.asarray(np.log(present) - np.log(absent))
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the probabilities :math:`(N, L)`."""
        self._check_fitted("predict_proba")
        log_odds = np.take_along_axis(self._log_odds, self._count_neighbours(x), axis=0)
        return np.asarray(1 / (1 + np.exp(-log_odds)))

    def _count_neighbours(self, x: Features) -> IntArray:
        """Returns the number of neighbours with each label; :obj:`None` means training samples."""
        counts = self._index.kneighbors_graph(x) @ self._y
        return np.asarray(counts.toarray().round(), dtype=np.int64)

    def _joint(self, counts: IntArray, mask: BoolArray) -> FloatArray:
        """Returns joint probabilities of a label and its neighbour counts, up to a factor."""
        size = self.n_neighbors + 1
        num_samples = np.stack([((counts == count) & mask).sum(axis=0) for count in range(size)])
        total, s = num_samples.sum(axis=0), self.smoothing
        return np.asarray((s + total) * (s + num_samples) / (s * size + total))
