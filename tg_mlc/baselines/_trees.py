"""Fitted random forests as arrays, which are saved and evaluated without scikit-learn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from tg_mlc.metrics._inputs import FloatArray


class Trees(NamedTuple):
    """A fitted forest as arrays, with the nodes of all its trees one after another.

    An entry above the threshold of a node leads to the right, any other to the left.
    """

    labels: npt.NDArray[np.int64]  #: [K], which labels the forest knows
    roots: npt.NDArray[np.int32]  #: [T], the first node of every tree
    feature: npt.NDArray[np.int32]  #: [nodes], the entry that a node asks for
    threshold: npt.NDArray[np.float64]  #: [nodes]
    left: npt.NDArray[np.int32]  #: [nodes], -1 at a leaf
    right: npt.NDArray[np.int32]  #: [nodes], at a leaf the row of its probabilities
    probability: npt.NDArray[np.float64]  #: [rows, K], those of all leaves, each once

    @classmethod
    def of(cls, forest: Any, labels: npt.NDArray[np.intp]) -> Self:
        """The trees of scikit-learn's random forest, of classification or of regression to 0 and 1, and the labels
        :math:`(K)` that it was fitted to.
        """
        trees = [estimator.tree_ for estimator in forest.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
        left, right = (
            np.concatenate([np.where(part >= 0, part + root, -1) for part, root in zip(parts, roots, strict=True)])
            for parts in ([tree.children_left for tree in trees], [tree.children_right for tree in trees])
        )
        values = np.concatenate([tree.value[tree.children_left < 0] for tree in trees])  # [leaves, K, 2 or 1]
        rows: dict[bytes, int] = {}  # leaves are many times as many as rows of labels, and 'numpy.unique' is slow
        shares = values[..., 0] if values.shape[-1] == 1 else values[..., 1] / values.sum(axis=-1)
        leaves = np.ascontiguousarray(shares)
        right[left < 0] = [rows.setdefault(leaf.tobytes(), len(rows)) for leaf in leaves]
        return cls(
            labels=labels.astype(np.int64),
            roots=roots.astype(np.int32),
            feature=np.concatenate([tree.feature for tree in trees]).astype(np.int32),
            threshold=np.concatenate([tree.threshold for tree in trees]),
            left=left.astype(np.int32),
            right=right.astype(np.int32),
            probability=np.frombuffer(b"".join(rows)).reshape(len(rows), -1),
        )

    def predict(self, x: npt.NDArray[Any]) -> FloatArray:
        """Returns the mean over all trees of the probabilities :math:`(N, K)` for inputs :math:`(N, F)`."""
        node = np.tile(self.roots, (len(x), 1)).ravel()  # [N * T]
        active = np.arange(node.size)
        while active.size:
            active = active[self.left[node[active]] >= 0]
            at = node[active]
            above = x[active // len(self.roots), self.feature[at]] > self.threshold[at]
            node[active] = np.where(above, self.right[at], self.left[at])
        leaves = self.right[node].reshape(len(x), len(self.roots))
        total = np.zeros((len(x), self.probability.shape[1]))
        for tree in leaves.T:
            total += self.probability[tree]
        return total / len(self.roots)
