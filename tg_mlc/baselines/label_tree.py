"""Probabilistic label trees, for very many labels."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import KW_ONLY, dataclass

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc.baselines.baseline import Baseline, Features
from tg_mlc.metrics._inputs import ArrayLike, FloatArray


@dataclass(eq=False, repr=False)
class LabelTrees(Baseline):
    """Trees over the labels with a linear classifier in every node, from the `"Probabilistic Label
    Trees for Extreme Multi-label Classification" <https://arxiv.org/abs/2009.11218>`_ paper, by
    :obj:`napkinxc`.

    As of `FastXML <https://doi.org/10.1145/2623330.2623651>`_, which has no maintained package, the
    cost grows with the logarithm of the number of labels. Nodes divide the labels, by clusters of
    their samples.

    Unknown labels (NaN) count as absent, with a warning. The solver starts at random whatever the
    seed, so that scores of two fits differ slightly.

    Args:
        n_estimators (int, optional): The number of trees. (default: :obj:`3`)
        C (float, optional): The inverse strength of regularisation, by default that of
            :obj:`napkinxc`. (default: :obj:`10.0`)
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
        rows = sp.csr_matrix(x, dtype=np.float32)  # The package takes no integers.
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
