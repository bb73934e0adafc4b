"""The baselines as estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from typing_extensions import Self

from tg_mlc import baselines
from tg_mlc.baselines.linear import Loss
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.sklearn.estimator import MultiLabelEstimator, draw_seed, log_odds
from tg_mlc.sklearn.inputs import RawInputEstimator


@dataclass(eq=False, repr=False)
class BaselineEstimator(MultiLabelEstimator):
    """Base of the baselines as estimators, which have the arguments of the baseline, with :obj:`random_state` for
    its seed, and a threshold.

    Args:
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)

    Attributes:
        baseline_ (Baseline): The fitted baseline.
    """

    baseline: ClassVar[type[Any]]
    _: KW_ONLY
    threshold: float = 0.5

    def fit(self, X: Any, y: Any) -> Self:
        """Fits the baseline.

        Args:
            X (Any): A matrix (dense or sparse) or a data frame.
            y (Any): Labels, as of :meth:`LaMPClassifier.fit`.
        """
        X = self._read_training_inputs(X)
        matrix = self._read_labels(X, y)
        self.baseline_ = self.baseline(**self._options())
        self._fit_baseline(X, matrix)
        return self._fix_threshold(self.threshold)

    def _fit_baseline(self, X: Any, matrix: FloatArray) -> None:
        self.baseline_.fit(X, matrix)

    def _logits(self, X: Any) -> FloatArray:
        return log_odds(self.baseline_.predict_proba(X))

    def _read_training_inputs(self, X: Any) -> Any:
        return self._read_matrix(X, reset=True)

    def _options(self) -> dict[str, Any]:
        options = self.get_params(deep=False)
        del options["threshold"]
        if "random_state" in options:
            options["seed"] = draw_seed(options.pop("random_state"))
        return dict(options)


@dataclass(eq=False, repr=False)
class LinearClassifier(BaselineEstimator):
    """Linear classifiers, one for each label: :class:`~tg_mlc.baselines.LinearBaseline`.

    Args:
        loss, C, n_jobs (optional): As there. (default: :obj:`"hinge"`, :obj:`1.0` and :obj:`1`)
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)
    """

    baseline = baselines.LinearBaseline
    loss: Loss = "hinge"
    C: float = 1.0
    _: KW_ONLY
    n_jobs: int = 1


@dataclass(eq=False, repr=False)
class KernelRidgeClassifier(BaselineEstimator):
    """Kernel ridge regression of all labels: :class:`~tg_mlc.baselines.KernelRidgeBaseline`.

    Args:
        gamma, alpha (optional): As there. (default: :obj:`1.0` each)
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)
    """

    baseline = baselines.KernelRidgeBaseline
    gamma: float = 1.0
    alpha: float = 1.0


@dataclass(eq=False, repr=False)
class ChainEnsembleClassifier(BaselineEstimator):
    """An ensemble of classifier chains: :class:`~tg_mlc.baselines.ChainEnsemble`.

    Args:
        num_chains, share, loss, C (optional): As there. (default: :obj:`10`, :obj:`0.63`, :obj:`"logistic"` and
            :obj:`10.0`)
        random_state (int or RandomState, optional): What decides orders and samples. (default: :obj:`None`)
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)
    """

    baseline = baselines.ChainEnsemble
    num_chains: int = 10
    share: float = 0.63
    loss: Loss = "logistic"
    C: float = 10.0
    _: KW_ONLY
    random_state: Any = None


@dataclass(eq=False, repr=False)
class MLkNNClassifier(BaselineEstimator):
    """ML-kNN, counts of the labels of nearest neighbours: :class:`~tg_mlc.baselines.MLkNN`.

    Args:
        n_neighbors, smoothing, metric (optional): As there. (default: :obj:`10`, :obj:`1.0` and :obj:`"euclidean"`)
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)
    """

    baseline = baselines.MLkNN
    n_neighbors: int = 10
    smoothing: float = 1.0
    _: KW_ONLY
    metric: str = "euclidean"


@dataclass(eq=False, repr=False)
class LabelTreesClassifier(BaselineEstimator):
    """Probabilistic label trees: :class:`~tg_mlc.baselines.LabelTrees`.

    Args:
        num_trees, C, n_jobs (optional): As there. (default: :obj:`3`, :obj:`10.0` and :obj:`1`)
        random_state (int or RandomState, optional): What decides the clusters. (default: :obj:`None`)
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)
    """

    baseline = baselines.LabelTrees
    num_trees: int = 3
    C: float = 10.0
    _: KW_ONLY
    n_jobs: int = 1
    random_state: Any = None


class LabelFrequencyClassifier(BaselineEstimator):
    """The frequencies of labels, whatever the input: :class:`~tg_mlc.baselines.LabelFrequency`.

    Args:
        threshold (float, optional): The frequency from which a label applies. (default: :obj:`0.5`)
    """

    baseline = baselines.LabelFrequency

    def _fit_baseline(self, X: Any, matrix: FloatArray) -> None:
        self.baseline_.fit(matrix)

    def _logits(self, X: Any) -> FloatArray:
        return super()._logits(X.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


@dataclass(eq=False, repr=False)
class ForestClassifier(BaselineEstimator):
    """A random forest of all labels at once: :class:`~tg_mlc.baselines.ForestBaseline`.

    Args:
        num_trees, min_samples_leaf, max_features, n_jobs (optional): As there. (default: :obj:`200`, :obj:`1`,
            :obj:`"sqrt"` and :obj:`1`)
        random_state (int or RandomState, optional): What decides the trees. (default: :obj:`None`)
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)
    """

    baseline = baselines.ForestBaseline
    num_trees: int = 200
    _: KW_ONLY
    min_samples_leaf: int = 1
    max_features: str | int | float = "sqrt"
    n_jobs: int = 1
    random_state: Any = None


@dataclass(eq=False, repr=False)
class MorganForestClassifier(RawInputEstimator, BaselineEstimator):
    """Random forests on Morgan fingerprints of molecules, given as SMILES: :class:`~tg_mlc.baselines.MorganForest`.

    Args:
        num_trees, radius, num_bits, min_samples_leaf, max_features, n_jobs (optional): As there, but for one process.
        random_state (int or RandomState, optional): What decides the trees. (default: :obj:`None`)
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)
    """

    baseline = baselines.MorganForest
    inputs = "smiles"
    num_trees: int = 500
    radius: int = 2
    num_bits: int = 2048
    _: KW_ONLY
    min_samples_leaf: int | float = 1
    max_features: str | float = "sqrt"
    n_jobs: int | None = 1
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        return tags
