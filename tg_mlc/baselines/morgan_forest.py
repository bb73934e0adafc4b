"""Random forests on Morgan fingerprints: a strong baseline on molecules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc.baselines._trees import Trees
from tg_mlc.baselines._tuning import best_of, check_rows
from tg_mlc.baselines.label_frequency import LabelFrequency
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.metrics._inputs import ArrayLike, BoolArray, FloatArray, Targets, read_targets

#: What :meth:`MorganForest.tuned` tries; the larger shares of features are for labels with few telling substructures.
DEFAULT_GRID: Mapping[str, Sequence[Any]] = {"min_samples_leaf": (1, 2, 5), "max_features": ("sqrt", "log2", 0.1)}

_SETTINGS = ("num_trees", "radius", "num_bits", "min_samples_leaf", "max_features", "seed")
_CHUNK = 4096  # molecules at a time, for memory


class MorganForest:
    """Random forests on the Morgan fingerprints of molecules.

    Labels known for every training molecule share one forest with several outputs; as soon as a label is unknown (NaN)
    somewhere, every label has a forest of its own, on the molecules for which it is known. A label with only one class
    among its known entries gets the constant score of :class:`LabelFrequency`.

    .. code-block:: python

        forest = MorganForest(seed=0).fit(smiles_train, y_train)
        scores = forest.predict_proba(smiles_test)

    Args:
        num_trees (int, optional): Number of trees in a forest. (default: :obj:`500`)
        radius (int, optional): Radius of the fingerprint, in bonds. (default: :obj:`2`)
        num_bits (int, optional): Length of the fingerprint. (default: :obj:`2048`)
        min_samples_leaf (int or float, optional): As in scikit-learn. (default: :obj:`1`)
        max_features (str, int or float, optional): As in scikit-learn. (default: :obj:`"sqrt"`)
        seed (int, optional): Seed of the forests. (default: :obj:`0`)
        n_jobs (int, optional): Number of CPU cores, -1 for all; it does not change the result. (default: :obj:`-1`)
        oob_score (bool, optional): If set to :obj:`True`, fitting also finds the scores of :meth:`out_of_bag`.
            (default: :obj:`False`)

    Raises:
        ImportError: On use, if RDKit or scikit-learn is not installed (extra ``molecules``).
        RuntimeError: On use, if :meth:`fit` has not been called.
        ValueError: On use, if a SMILES cannot be read, or there is not one row of targets for each.
    """

    def __init__(
        self,
        num_trees: int = 500,
        radius: int = 2,
        num_bits: int = 2048,
        *,
        min_samples_leaf: int | float = 1,
        max_features: str | float = "sqrt",
        seed: int = 0,
        n_jobs: int | None = -1,
        oob_score: bool = False,
    ) -> None:
        self.num_trees = num_trees
        self.radius = radius
        self.num_bits = num_bits
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.seed = seed
        self.n_jobs = n_jobs
        self.oob_score = oob_score
        #: The settings that :meth:`tuned` tried, with the value of each on validation data.
        self.search: list[tuple[dict[str, Any], float]] = []
        self._constant: LabelFrequency | None = None
        self._forests: list[Trees] = []
        self._out_of_bag: FloatArray | None = None

    @classmethod
    def tuned(
        cls,
        smiles: Iterable[str],
        y: ArrayLike,
        smiles_val: Iterable[str],
        y_val: ArrayLike,
        *,
        grid: Mapping[str, Sequence[Any]] = DEFAULT_GRID,
        metric: Callable[[ArrayLike, ArrayLike], float] = macro_roc_auc,
        **kwargs: Any,
    ) -> Self:
        """Fits a forest with every setting of a grid and returns the best one on validation data.

        Args:
            smiles, y, smiles_val, y_val: Training and validation samples, as in :meth:`fit`.
            grid (dict, optional): Values to try for :obj:`min_samples_leaf` and :obj:`max_features`.
            metric (Callable, optional): What to maximise, from targets and scores. (default: :func:`macro_roc_auc`)
            **kwargs (optional): Other arguments of :class:`MorganForest`.

        Raises:
            ValueError: If :obj:`grid` has another key, or the metric is undefined on the validation data.
        """
        if unknown := sorted(set(grid) - {"min_samples_leaf", "max_features"}):
            raise ValueError(f"Expected 'grid' to have keys 'min_samples_leaf' and 'max_features' (got {unknown})")
        settings = list(require("sklearn.model_selection", extra="molecules").ParameterGrid(grid))
        targets = read_targets(y, "y")
        bits, bits_val = (cls(**kwargs).fingerprints(molecules) for molecules in (smiles, smiles_val))
        fitted = (((setting,), cls(**kwargs, **setting)._fit(bits, targets)) for setting in settings)
        return best_of(fitted, lambda forest: metric(y_val, forest._predict_proba(bits_val)))

    def fit(self, smiles: Iterable[str], y: ArrayLike) -> Self:
        """Fits the forests to molecules and their targets :math:`(N, L)`: 0, 1, or NaN for unknown."""
        return self._fit(self.fingerprints(smiles), read_targets(y, "y"))

    def predict_proba(self, smiles: Iterable[str]) -> FloatArray:
        """Returns scores :math:`(N, L)` of molecules, given as SMILES."""
        return self._predict_proba(self.fingerprints(smiles))

    def out_of_bag(self) -> FloatArray:
        """Returns scores :math:`(N, L)` of the training molecules, each by the trees that were grown without it
        (Breiman 2001, doi:10.1023/A:1010933404324), if fitted with :obj:`oob_score`.

        Raises:
            RuntimeError: If :meth:`fit` has not been called with :obj:`oob_score`.
        """
        if self._out_of_bag is None:
            raise RuntimeError("Expected 'fit' to be called with 'oob_score=True' before 'out_of_bag'")
        return self._out_of_bag

    def fingerprints(self, smiles: Iterable[str]) -> npt.NDArray[np.uint8]:
        """Returns what the forests see of molecules, one bit for each substructure, :math:`(N, B)`.

        Raises:
            ImportError: If RDKit is not installed (extra ``molecules``).
            ValueError: If a SMILES cannot be read.
        """
        chem = require("rdkit.Chem", extra="molecules")
        generators = require("rdkit.Chem.rdFingerprintGenerator", extra="molecules")
        generator = generators.GetMorganGenerator(radius=self.radius, fpSize=self.num_bits)
        rows = []
        with require("rdkit.rdBase", extra="molecules").BlockLogs():
            for index, text in enumerate(smiles):
                molecule = chem.MolFromSmiles(text)
                if molecule is None:
                    raise ValueError(f"Expected valid SMILES (got {text!r} at index {index})")
                rows.append(generator.GetFingerprintAsNumPy(molecule))
        return np.stack(rows) if rows else np.zeros((0, self.num_bits), dtype=np.uint8)

    def state_dict(self) -> dict[str, Any]:
        """Returns settings, frequencies and trees as arrays, numbers and strings, without :meth:`out_of_bag`."""
        constant = self._fitted("state_dict")
        return {
            "settings": {name: getattr(self, name) for name in _SETTINGS},
            "search": [list(row) for row in self.search],
            "frequency": constant.frequency,
            "forests": [trees._asdict() for trees in self._forests],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes settings, frequencies and trees from :meth:`state_dict`, replacing those of this object."""
        vars(self).update(state["settings"])
        self.search = [(setting, value) for setting, value in state["search"]]
        self._constant, self._out_of_bag = LabelFrequency(), None
        self._constant.frequency = np.asarray(state["frequency"])
        self._forests = [Trees(**{name: np.asarray(v) for name, v in trees.items()}) for trees in state["forests"]]
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in _SETTINGS)})"

    def _fit(self, bits: npt.NDArray[np.uint8], targets: Targets) -> Self:
        positive, known = targets
        check_rows(len(bits), len(known), "molecule")
        self._constant = LabelFrequency().fit(np.where(known, positive, np.nan))
        learnable = np.flatnonzero(positive.any(axis=0) & (known & ~positive).any(axis=0))
        groups = [learnable] if known.all() else np.split(learnable, len(learnable))
        fitted = [(labels, self._fit_forest(bits, positive, known, labels)) for labels in groups if labels.size]
        self._forests = [Trees.of(forest, labels) for labels, forest in fitted]
        if self.oob_score:
            self._out_of_bag = self._predict_proba(bits)
            constant = self._constant.predict_proba(len(bits))
            for labels, forest in fitted:
                seen = np.ix_(known[:, labels].all(axis=1), labels)
                self._out_of_bag[seen] = _out_of_bag(forest, constant[seen])
        return self

    def _fit_forest(
        self, bits: npt.NDArray[np.uint8], positive: BoolArray, known: BoolArray, labels: npt.NDArray[np.intp]
    ) -> Any:
        rows = known[:, labels].all(axis=1)
        target = positive[np.ix_(rows, labels)]
        forest = require("sklearn.ensemble", extra="molecules").RandomForestClassifier(
            n_estimators=self.num_trees,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            random_state=self.seed,
            n_jobs=self.n_jobs,
            oob_score=self.oob_score,
        )
        return forest.fit(bits[rows], target[:, 0] if len(labels) == 1 else target)

    def _fitted(self, method: str) -> LabelFrequency:
        if self._constant is None:
            raise RuntimeError(f"Expected 'fit' to be called before '{method}'")
        return self._constant

    def _predict_proba(self, bits: npt.NDArray[np.uint8]) -> FloatArray:
        scores = self._fitted("predict_proba").predict_proba(len(bits))
        for trees in self._forests:
            for start in range(0, len(bits), _CHUNK):
                scores[start : start + _CHUNK, trees.labels] = trees.predict(bits[start : start + _CHUNK])
        return scores


def _out_of_bag(forest: Any, otherwise: FloatArray) -> FloatArray:
    """The probabilities of the molecules that a forest was fitted to; others where every tree has seen a molecule."""
    both = forest.oob_decision_function_.reshape(len(otherwise), 2, -1)
    known = both.sum(axis=1) > 0
    return np.where(known, both[:, 1], otherwise)
