"""Random forests, a strong baseline on fingerprints and on features of different scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.baselines.baseline import (
    Features,
    Parts,
    Settings,
    TunableBaseline,
    float_tensor,
    label_frequency,
    read_array,
)
from tg_mlc.metrics._inputs import ArrayLike, FloatArray, Targets

#: Values that :meth:`ForestBaseline.tuned` compares. A larger fraction of features helps labels
#: that depend on few features.
DEFAULT_GRID: Mapping[str, Sequence[Any]] = {
    "min_samples_leaf": (1, 2, 5),
    "max_features": ("sqrt", "log2", 0.1),
}

#: Trees with more outputs need gigabytes.
MAX_OUTPUTS = 1000
_CHUNK = 2**24  # Largest number of entries of a dense matrix in memory.
_SETTINGS = ("n_estimators", "criterion", "min_samples_leaf", "max_features", "random_state")


@dataclass(eq=False, repr=False)
class ForestBaseline(TunableBaseline):
    """A random forest with an output for every label (:obj:`scikit-learn`).

    By default, trees regress to 0 and 1, which is equivalent to Gini impurity for two classes.
    Unknown labels (NaN) are replaced by label frequencies, so all labels share one forest. With
    :obj:`criterion="gini"`, trees classify. Labels then share one forest if all are observed;
    otherwise, each label has its own forest, fitted to samples in which it is observed. Labels with
    one class score their frequency.

    .. code-block:: python

        forest = ForestBaseline().fit(x_train, y_train)
        probabilities = forest.predict_proba(x_test)

    For molecules, use fingerprints as features: ``dataset.rows("morgan").numpy() > 0`` with the
    transform :class:`~tg_mlc.inputs.Fingerprint`.

    Args:
        n_estimators (int, optional): Number of trees. (default: :obj:`200`)
        criterion (str, optional): The criterion of splits. (default: :obj:`"squared_error"`)
        min_samples_leaf (int or float, optional): As in scikit-learn. (default: :obj:`1`)
        max_features (str, int or float, optional): As in scikit-learn. (default: :obj:`"sqrt"`)
        random_state (int, optional): Seed of the forest. (default: :obj:`0`)
        n_jobs (int, optional): Number of threads, -1 for all cores. (default: :obj:`1`)
        extra_trees (bool, optional): If set to :obj:`True`, every tree gets all samples, and nodes
            choose among random thresholds (Geurts et al. 2006, doi:10.1007/s10994-006-6226-1).
            This needs :obj:`"squared_error"`. (default: :obj:`False`)
        max_outputs (int, optional): With more labels, trees regress to this number of random
            combinations of labels, to save time and memory (Joly et al. 2014,
            doi:10.1007/978-3-662-44848-9_39). Leaves hold all labels. (default: :obj:`1000`)

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    n_estimators: int = 200
    _: KW_ONLY
    criterion: Literal["squared_error", "gini"] = "squared_error"
    min_samples_leaf: int | float = 1
    max_features: str | int | float = "sqrt"
    random_state: int | None = 0
    n_jobs: int | None = 1
    extra_trees: bool = False
    max_outputs: int = MAX_OUTPUTS

    @classmethod
    def _settings(cls, grid: Any, **options: Any) -> Settings:
        parameter_grid = require("sklearn.model_selection", extra="data").ParameterGrid
        settings = parameter_grid(DEFAULT_GRID if grid is None else grid)
        return [((setting,), setting) for setting in settings]

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits the forest, as :meth:`Baseline.fit`."""
        self._fit(x, y, oob_score=False)
        return self

    def held_out_scores(
        self, x: Features, y: ArrayLike, *, cv: Parts = 5, refit: bool = True
    ) -> FloatArray:
        """Returns out-of-bag scores :math:`(N, L)` of training samples (Breiman 2001,
        doi:10.1023/A:1010933404324), as :meth:`Baseline.held_out_scores`. Extra trees are
        cross-validated instead.
        """
        if self.extra_trees:
            return super().held_out_scores(x, y, cv=cv, refit=refit)
        x, targets, fitted = self._fit(x, y, oob_score=True)
        if self._projected is not None:
            trees, bags = self._projected
            is_out = np.stack(bags, axis=1) == 0
            total, count = (
                trees.sum_of(trees.leaves(_dense(x)), is_out),
                is_out.sum(axis=1)[:, None],
            )
            probabilities = np.where(count > 0, total / np.maximum(count, 1), self._frequency)
            return np.asarray(2 * probabilities - 1)
        if self.criterion == "squared_error":
            return np.asarray(2 * fitted[0][1].oob_prediction_.reshape(targets.observed.shape) - 1)
        scores = self.predict_proba(x)
        for labels, forest in fitted:
            observed = np.ix_(targets.observed[:, labels].all(axis=1), labels)
            votes = forest.oob_decision_function_.reshape(len(observed[0]), 2, -1)
            # A sample that is in the bags of all trees has no votes.
            has_votes = votes.sum(axis=1) > 0
            scores[observed] = np.where(has_votes, votes[:, 1], self._frequency[labels])
        return 2 * scores - 1

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns scores :math:`(N, L)` for features :math:`(N, F)`."""
        self._check_fitted("predict_proba")
        scores = np.tile(self._frequency, (x.shape[0], 1))
        for trees in self._forests:
            step = max(1, _CHUNK // max(x.shape[1], len(trees.roots)))
            for start in range(0, x.shape[0], step):
                rows = slice(start, start + step)
                scores[rows, trees.labels] = trees.predict(_dense(x[rows]))
        return scores

    def _make_module(self) -> nn.Module:
        return _ForestModule(self)

    def state_dict(self) -> dict[str, Any]:
        """Returns settings, frequencies and trees as arrays, numbers and strings."""
        self._check_fitted("state_dict")
        return {
            "settings": {name: getattr(self, name) for name in _SETTINGS},
            "search": [list(row) for row in self.search],
            "num_features": self.n_features_in_,
            "frequency": self._frequency,
            "forests": [trees.state_dict() for trees in self._forests],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads a state from :meth:`state_dict`."""
        vars(self).update(state["settings"])
        self.search = [(setting, value) for setting, value in state["search"]]
        self.n_features_in_ = state["num_features"]
        self._frequency = read_array(state, "frequency", None)
        sizes = self.n_features_in_, len(self._frequency)
        self._forests = [Trees.from_state(trees, *sizes) for trees in state["forests"]]
        self.classes_ = np.arange(len(self._frequency))
        return self

    def _fit(
        self, x: Features, y: ArrayLike, oob_score: bool
    ) -> tuple[Features, Targets, list[tuple[npt.NDArray[np.intp], Any]]]:
        """Grows the trees. Returns features, targets, and a forest for each group of labels."""
        check_choice("criterion", self.criterion, ("squared_error", "gini"))
        ensemble = require("sklearn.ensemble", extra="data")
        x, targets = self._read(x, y)
        positive, observed = targets
        self._frequency, self._projected = label_frequency(targets), None
        names = ("n_estimators", "min_samples_leaf", "max_features", "random_state", "n_jobs")
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        labels = np.arange(observed.shape[1])
        if self.criterion == "squared_error":
            label_means = positive.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
            # The default score, R^2, warns about labels with one class.
            options["oob_score"] = oob_score and (lambda *_: 0.0)
            name = "ExtraTreesRegressor" if self.extra_trees else "RandomForestRegressor"
            make_forest = getattr(ensemble, name)
            values: npt.NDArray[Any] = np.where(observed, positive, label_means)
            if len(labels) > self.max_outputs:
                generator = np.random.default_rng(self.random_state)
                projection = generator.normal(size=(len(labels), self.max_outputs))
                options["oob_score"] = False
                forest = make_forest(**options).fit(x, (values - label_means) @ projection)
                samples = forest.estimators_samples_
                bags = [np.bincount(rows, minlength=len(values)) for rows in samples]
                trees = Trees.of(forest, labels, (x, sp.csr_array(values), bags))
                self._forests, self._projected = [trees], (trees, bags)
                return x, targets, []
            groups, usable = [labels], np.ones_like(observed)
        else:
            make_forest, options["oob_score"] = ensemble.RandomForestClassifier, oob_score
            learnable = np.flatnonzero(positive.any(axis=0) & (observed & ~positive).any(axis=0))
            groups = [learnable] if observed.all() else np.split(learnable, len(learnable))
            values, usable = positive, observed
        fitted = []
        for group in groups:
            if group.size:
                rows = np.flatnonzero(usable[:, group].all(axis=1))
                target = values[np.ix_(rows, group)]
                group_x = x if len(rows) == x.shape[0] else x[rows]
                target = target[:, 0] if len(group) == 1 else target
                fitted.append((group, make_forest(**options).fit(group_x, target)))
        self._forests = []
        for group, forest in fitted:
            trees = Trees.of(forest, group)
            # In extra trees for hundreds of labels, each leaf has few labels.
            probability = sp.csr_array(trees.probability) if self.extra_trees else trees.probability
            self._forests.append(trees._replace(probability=probability))
        return x, targets, fitted


def _dense(x: Features) -> npt.NDArray[np.float32]:
    # scikit-learn compares thresholds with inputs in single precision.
    return (x.toarray() if sp.issparse(x) else np.asarray(x)).astype(np.float32)


class Trees(NamedTuple):
    """A fitted forest as arrays. Features above the threshold lead to the right child."""

    labels: npt.NDArray[np.int64]  #: [K], the indices of the labels
    roots: npt.NDArray[np.int32]  #: [T], the first node of every tree
    feature: npt.NDArray[np.int32]  #: [nodes], the index of the feature that a node compares
    threshold: npt.NDArray[np.float64]  #: [nodes]
    left: npt.NDArray[np.int32]  #: [nodes], -1 at a leaf
    right: npt.NDArray[np.int32]  #: [nodes], at a leaf the row of its probabilities
    probability: Any  #: [rows, K], the distinct probabilities of leaves, dense or sparse

    @classmethod
    def of(
        cls, forest: Any, labels: npt.NDArray[np.intp], grown: tuple[Any, Any, Any] | None = None
    ) -> Self:
        """Returns the trees of a forest. With ``grown`` (x, y, bags), leaves get mean targets."""
        trees = [estimator.tree_ for estimator in forest.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])

        def concatenate(name: str) -> npt.NDArray[Any]:
            pairs = zip((getattr(tree, name) for tree in trees), roots, strict=True)
            return np.concatenate([np.where(node >= 0, node + root, -1) for node, root in pairs])

        left, right = concatenate("children_left"), concatenate("children_right")
        is_leaf = left < 0
        num_leaves = int(is_leaf.sum())
        feature = np.concatenate([tree.feature for tree in trees]).astype(np.int32)
        threshold = np.concatenate([tree.threshold for tree in trees])
        roots, left = roots.astype(np.int32), left.astype(np.int32)
        arrays = labels.astype(np.int64), roots, feature, threshold, left
        if grown is not None:
            x, targets, bags = grown
            right[is_leaf] = np.arange(num_leaves)
            unlabelled = cls(*arrays, right.astype(np.int32), None)
            leaves, counts = unlabelled.leaves(_dense(x)), np.stack(bags, axis=1)
            sample, tree = np.nonzero(counts)
            entries = counts[sample, tree].astype(float), (leaves[sample, tree], sample)
            weights = sp.csr_array(entries, shape=(num_leaves, len(leaves)))
            weights = sp.diags_array(1 / weights.sum(axis=1)) @ weights
            return unlabelled._replace(probability=sp.csr_array(weights @ targets))
        # [leaves, K, 2 or 1]
        values = np.concatenate([tree.value[tree.children_left < 0] for tree in trees])
        fractions = values[..., 0] if values.shape[-1] == 1 else values[..., 1] / values.sum(-1)
        # Store distinct rows of probabilities; a dict is faster than 'numpy.unique'.
        rows: dict[bytes, int] = {}
        leaf_rows = (row.tobytes() for row in np.ascontiguousarray(fractions))
        right[is_leaf] = [rows.setdefault(row, len(rows)) for row in leaf_rows]
        probability = np.frombuffer(b"".join(rows)).reshape(len(rows), -1)
        return cls(*arrays, right.astype(np.int32), probability)

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], num_features: int | None, num_labels: int
    ) -> Self:
        """Restores trees from a state. Raises if an index is out of range or forms a cycle."""
        labels, roots, left = (read_array(state, key, None) for key in ("labels", "roots", "left"))
        names = ("feature", "threshold", "right")
        feature, threshold, right = (read_array(state, name, len(left)) for name in names)
        if "columns" in state:
            names = ("probability", "columns", "ptr")
            arrays = tuple(read_array(state, name, None) for name in names)
            probability: Any = sp.csr_array(arrays, shape=(len(arrays[2]) - 1, len(labels)))
            probability.check_format()  # Products do not check indices before they read memory.
        else:
            probability = read_array(state, "probability", None, len(labels))
        inner = left >= 0
        first_child = np.flatnonzero(inner) + 1
        num_entries = np.iinfo(np.int32).max if num_features is None else num_features
        for name, index, lowest, size in (
            ("labels", labels, 0, num_labels),
            ("roots", roots, 0, len(left)),
            ("feature", feature[inner], 0, num_entries),
            ("left", left[inner], first_child, len(left)),
            ("right", right[inner], first_child, len(left)),
            ("right", right[~inner], 0, probability.shape[0]),
        ):
            wrong = index[(index < lowest) | (index >= size)]
            if index.dtype.kind not in "iu" or wrong.size:
                expected = f"Expected '{name}' of trees to be indices below {size}, without cycles"
                raise ValueError(f"{expected} (got {wrong[0] if wrong.size else index.dtype})")
        return cls(labels, roots, feature, threshold, left, right, probability)

    def state_dict(self) -> dict[str, Any]:
        """Returns the arrays by name."""
        state = self._asdict()
        if sp.issparse(rows := self.probability):
            state |= {"probability": rows.data, "columns": rows.indices, "ptr": rows.indptr}
        return state

    def predict(self, x: npt.NDArray[Any]) -> FloatArray:
        """Returns the mean probabilities :math:`(N, K)` of all trees for inputs :math:`(N, F)`."""
        leaves, num_trees = self.leaves(x), len(self.roots)
        ones, ptr = np.ones(leaves.size), np.arange(0, leaves.size + 1, num_trees)
        shape = (len(x), self.probability.shape[0])
        selection = sp.csr_array((ones, leaves.ravel(), ptr), shape=shape)
        total = selection @ self.probability  # Trees are added in order.
        return np.asarray(total.toarray() if sp.issparse(total) else total) / num_trees

    def sum_of(self, leaves: npt.NDArray[Any], counted: npt.NDArray[Any]) -> FloatArray:
        """Returns sums of sparse probabilities :math:`(N, K)` over trees in a mask ``counted``."""
        sample, tree = np.nonzero(counted)
        entries = (np.ones(len(sample)), (sample, leaves[sample, tree]))
        selection = sp.csr_array(entries, shape=(len(leaves), self.probability.shape[0]))
        return np.asarray((selection @ self.probability).toarray())

    def leaves(self, x: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Returns the rows :math:`(N, T)` of ``probability`` that inputs reach in all trees."""
        node = np.tile(self.roots, len(x))  # [N * T]
        active, inner, left = np.arange(node.size), node, self.left[node]
        start = active // len(self.roots) * x.shape[1]  # the first entry of each input
        entries = x.ravel()
        while True:
            is_inner = left >= 0
            if not is_inner.all():
                node[active[~is_inner]] = inner[~is_inner]
                active, start = active[is_inner], start[is_inner]
                inner, left = inner[is_inner], left[is_inner]
            if not active.size:
                return self.right[node].reshape(len(x), len(self.roots))
            is_above = entries[start + self.feature[inner]] > self.threshold[inner]
            inner = np.where(is_above, self.right[inner], left)
            left = self.left[inner]

    def depth(self) -> int:
        """Returns the number of steps from a root to the deepest leaf."""
        steps, level = 0, self.roots
        while (inner := level[self.left[level] >= 0]).size:
            level = np.concatenate([self.left[inner], self.right[inner]])
            steps += 1
        return steps


class _ForestModule(nn.Module):
    frequency: Tensor

    def __init__(self, baseline: ForestBaseline) -> None:
        super().__init__()
        self.register_buffer("frequency", float_tensor(baseline._frequency))
        self.forests = nn.ModuleList(_TreesModule(trees) for trees in baseline._forests)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.frequency.expand(x.size(0), -1)
        for trees in self.forests:
            scores = scores.index_copy(1, trees.get_buffer("labels"), trees(x))
        return 2 * scores - 1


class _TreesModule(nn.Module):
    """Computes probabilities :math:`(N, K)` in as many steps as the deepest tree has."""

    labels: Tensor
    roots: Tensor
    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    row: Tensor
    probability: Tensor

    def __init__(self, trees: Trees) -> None:
        super().__init__()
        is_leaf, node = trees.left < 0, np.arange(len(trees.left))
        rows = trees.probability.toarray() if sp.issparse(trees.probability) else trees.probability
        integers: dict[str, npt.NDArray[Any]] = {
            "labels": trees.labels,
            "roots": trees.roots,
            "feature": np.where(is_leaf, 0, trees.feature),
            "left": np.where(is_leaf, node, trees.left),
            "right": np.where(is_leaf, node, trees.right),
            "row": np.where(is_leaf, trees.right, 0),
        }
        for name, values in integers.items():
            self.register_buffer(name, torch.from_numpy(values.astype(np.int64)))
        self.register_buffer("threshold", torch.from_numpy(_round_down(trees.threshold)))
        self.register_buffer("probability", float_tensor(rows))
        self.depth = trees.depth()

    def forward(self, x: Tensor) -> Tensor:
        node = self.roots.expand(x.size(0), -1)  # [N, T]
        for _ in range(self.depth):
            is_above = x.gather(1, self.feature[node]) > self.threshold[node]
            node = torch.where(is_above, self.right[node], self.left[node])
        return self.probability[self.row[node]].mean(dim=1)


def _round_down(threshold: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Returns the largest numbers of single precision that are at most the thresholds."""
    rounded = threshold.astype(np.float32)
    below = np.nextafter(rounded, np.float32(-np.inf))
    return np.where(rounded > threshold, below, rounded)
