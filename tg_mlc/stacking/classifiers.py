"""Stacked classifiers: baselines whose held-out scores become base scores, how each is chosen, and
how it is read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc._options import check_choice
from tg_mlc.baselines import (
    Baseline,
    ForestBaseline,
    KernelRidgeBaseline,
    LabelFrequency,
    LinearBaseline,
    NetworkBaseline,
)
from tg_mlc.baselines.baseline import best_value, float_tensor, read_array
from tg_mlc.data import Split
from tg_mlc.data.splits import stratified_folds
from tg_mlc.metrics import ThresholdTuner, macro_average_precision, macro_roc_auc
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.stacking.combination import learnable_labels

#: How the decision function of a classifier becomes a base score: as it is (``"raw"``); as the
#: logit of a probability (``"probability"``), of which it is one already (``"logit"``) or twice the
#: distance to a margin (``"margin"``); or as a probability relative to the frequency of its label,
#: in units of its standard deviation (``"relative"``), which means the same for rare and for
#: frequent labels.
Reading = Literal["raw", "relative", "margin", "logit", "probability"]

# settings differ on them by more than by chance, and kernels take a tenth of a second
TUNED_ROWS = 1500
#: With more labels than this, or a hierarchy, the default takes classifiers that fit all labels at
#: once.
MANY_LABELS = 512
# of forests while they are tuned, and of the final one
NUM_TREES, MIN_TREES, MAX_TREES = 50, 30, 300
MAX_KERNEL_ROWS = 12_000  # for memory: two or three matrices of 1.2 GB
NETWORK_STEPS, NETWORK_EPOCHS = 1500, (40, 70)  # of networks, where there is time
_FOLDS = (3, 5)  # of linear classifiers while they are tuned, and afterwards
# Logits beyond this, or probabilities this close to 0 and 1, say no more: forests and regressions
# overstep both.
LARGEST, CLOSEST = 8.0, 0.01
#: Brings logits to where the steps of a ScoreEncoder lie.
SCORE_SCALE = 1 / 3

_BASELINES: dict[str, type[Any]] = {
    "linear": LinearBaseline,
    "kernel_ridge": KernelRidgeBaseline,
    "forest": ForestBaseline,
    "network": NetworkBaseline,
}


@dataclass(frozen=True)
class ClassifierSearch:
    """The settings that are tried of a classifier, the choice among them, and how the best is read.

    Args:
        title (str): The name in tables of results.
        baseline (str): :obj:`"linear"`, :obj:`"kernel_ridge"`, :obj:`"forest"` or :obj:`"network"`.
        settings (tuple): The settings to try, the most likely first: the loss and the inverse
            strength of regularisation of linear classifiers, ``gamma`` and ``alpha`` of kernels and
            whether labels are correlated, and of forests the least number of samples in a leaf and
            how many entries a node chooses from, in square roots of their number; of networks, of
            which the first is taken, the size of hidden layers and the rate of dropout.
        reading (str): How scores are read, one of :obj:`Reading`.
        view (str, optional): The view of samples that it takes, by the name under which it is
            registered. (default: :obj:`None`, the best of those that samples have, of forests the
            one that keeps most)
        metric (str, optional): The choice: the best :obj:`"f1_micro"` or :obj:`"subset_accuracy"`
            of validation samples, or the best :obj:`"roc_auc_macro"` of held-out scores of training
            samples. (default: :obj:`None`, the best :func:`ranks_and_decides` of held-out scores,
            as long as there is time)
        growth (float, optional): The power of the number of samples by which the time of a fit
            grows. (default: :obj:`1.0`)
        options (dict, optional): Further arguments of the baseline. (default: :obj:`{}`)
    """

    title: str
    baseline: Literal["linear", "kernel_ridge", "forest", "network"]
    settings: tuple[tuple[Any, ...], ...]
    reading: Reading
    view: str | None = None
    metric: str | None = None
    growth: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, setting: Sequence[Any], num_features: int, seed: int) -> Any:
        """The baseline with a setting, not fitted yet."""
        if self.baseline == "forest":
            leaf, roots = setting
            chosen_from = min(num_features, int(roots * num_features**0.5))
            options = {
                "min_samples_leaf": leaf,
                "max_features": chosen_from,
                "random_state": seed,
                **self.options,
            }
            return ForestBaseline(**{"n_estimators": NUM_TREES, **options})
        if self.baseline == "network":
            return NetworkBaseline(*setting, random_state=seed, **self.options)
        return _BASELINES[self.baseline](*setting, **self.options)

    def found(
        self, view: str, setting: Sequence[Any], classifier: Baseline, tried: list[list[Any]]
    ) -> StackedClassifier:
        """The result of the search."""
        return StackedClassifier(
            self.title, self.baseline, self.reading, view, list(setting), classifier, tried
        )


_HINGE, _LOGISTIC = (1.0, 0.1, 10.0, 0.3, 3.0, 0.03), (10.0, 1.0, 100.0, 3.0, 30.0, 0.3)
_KERNELS = tuple(product((0.5, 0.25, 1.0, 2.0), (0.3, 0.1, 1.0, 0.03)))
_FEW_KERNELS = ((0.5, 1.0), (1.0, 1.0), (0.5, 0.3), (1.0, 3.0))  # whose time many labels multiply
# With hundreds of labels, correlations stand out from chance. Each label then learns from more
# samples, so that kernels may be narrower and regularisation stronger.
_CORRELATED = ((3.0, 20.0, True), (1.0, 20.0, True), (3.0, 60.0, True), (1.0, 3.0, False))
_RIDGE = "kernel ridge regression"
#: The classifiers of the default, which are tuned within a time.
AUTOMATIC: dict[str, ClassifierSearch] = {
    "svm": ClassifierSearch(
        "linear SVM", "linear", tuple(product(["hinge"], _HINGE)), "margin", growth=1.3
    ),
    "logistic": ClassifierSearch(
        "logistic regression",
        "linear",
        tuple(product(["logistic"], _LOGISTIC)),
        "logit",
        growth=1.3,
    ),
    "ridge": ClassifierSearch(_RIDGE, "kernel_ridge", _KERNELS, "probability", growth=3.0),
    "forest": ClassifierSearch(
        "random forest", "forest", ((1, 1), (3, 1), (1, 3)), "probability", growth=1.2
    ),
}


def many_labels(label_graph: Any = None) -> dict[str, ClassifierSearch]:
    """The classifiers of the default for a hierarchy of labels, or more than :obj:`MANY_LABELS`
    labels: those that fit all of them at once.
    """
    kernels = _CORRELATED if label_graph is None else _FEW_KERNELS
    trees = {"extra_trees": True, "max_outputs": MANY_LABELS}
    network = {"label_graph": label_graph}
    return {
        "ridge": replace(AUTOMATIC["ridge"], settings=kernels),
        "trees": ClassifierSearch(
            "extremely randomised trees",
            "forest",
            ((5, 9), (2, 9)),
            "probability",
            growth=1.2,
            options=trees,
        ),
        "network": ClassifierSearch(
            "multilayer perceptron", "network", ((500, 0.7),), "logit", options=network
        ),
    }


@dataclass
class StackedClassifier:
    """A fitted baseline, the view of samples that it takes, and how its scores are read."""

    title: str  #: the name in tables of results
    baseline: str
    reading: Reading
    view: str
    setting: list[Any]
    classifier: Any  #: a :class:`~tg_mlc.baselines.Baseline` that can be saved
    #: views, settings and values of the search
    tried: list[list[Any]] = field(default_factory=list)
    frequency: FloatArray | None = None  #: of the labels :math:`(L)`, for relative scores
    #: scores :math:`(N, L)` of the samples of the search, those of training samples by fits without
    #: them
    held_out: FloatArray | None = None
    seconds: float = 0.0

    def scores(self, x: Any) -> FloatArray:
        """The scores :math:`(N, L)` of features."""
        return read_decisions(self.reading, self.classifier.decision_function(x), self.frequency)

    @property
    def scale(self) -> float:
        """The factor that makes base scores of scores."""
        return 1.0 if self.reading in ("raw", "relative") else SCORE_SCALE

    def module(self) -> nn.Module:
        """Returns the base scores, :meth:`scores` times :attr:`scale`, as a module of tensor
        operators, from features :math:`(N, F)`, a dense tensor of single precision, to :math:`(N,
        L)`.

        Raises:
            ValueError: If the baseline cannot be a module.
        """
        try:
            baseline: nn.Module = self.classifier.module()
        except ValueError as error:
            raise ValueError(
                f"{error}; pass base_scores='input' to export the network alone, which then takes the "
                f"scores of '{self.title}'"
            ) from error
        return nn.Sequential(baseline, _BaseScores(self.reading, self.scale, self.frequency))

    def state_dict(self, with_scores: bool = False) -> dict[str, Any]:
        """Returns all that :meth:`scores` needs as arrays and plain data, and on request the scores
        of the samples of the search, which no saved model has.
        """
        left_out = {"classifier"} if with_scores else {"classifier", "held_out", "seconds"}
        entries = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**entries, "state": self.classifier.state_dict()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Makes a classifier of its state."""
        check_choice("reading", state["reading"], get_args(Reading))
        classifier = _BASELINES[state["baseline"]]().load_state_dict(state["state"])
        shapes = {
            "frequency": (len(classifier.classes_),),
            "held_out": (None, len(classifier.classes_)),
        }
        arrays = {
            name: read_array(state, name, *shape)
            for name, shape in shapes.items()
            if state.get(name) is not None
        }
        entries = {name: value for name, value in state.items() if name != "state"}
        return cls(**{**entries, **arrays}, classifier=classifier)


def read_decisions(
    reading: Reading, decisions: FloatArray, frequency: FloatArray | None = None
) -> FloatArray:
    """Scores :math:`(N, L)` of the values of a decision function."""
    if reading == "raw":
        return decisions
    if reading in ("margin", "logit"):  # as LinearBaseline.predict_proba reads them
        return np.clip(decisions * (2.0 if reading == "margin" else 1.0), -LARGEST, LARGEST)
    p = (decisions + 1) / 2
    if frequency is not None:
        spread = np.sqrt(frequency * (1 - frequency))
        return np.where(spread > 0, (p - frequency) / np.where(spread > 0, spread, 1), 0)
    # The logit goes on as a rising function below 0 and above 1.
    return np.asarray(np.arcsinh(p / (2 * CLOSEST)) - np.arcsinh((1 - p) / (2 * CLOSEST)))


class _BaseScores(nn.Module):
    """Base scores of the values of a decision function: :func:`read_decisions` with tensors,
    scaled."""

    frequency: Tensor | None

    def __init__(self, reading: Reading, scale: float, frequency: FloatArray | None) -> None:
        super().__init__()
        self.reading, self.scale = reading, scale
        self.register_buffer("frequency", None if frequency is None else float_tensor(frequency))

    def forward(self, decisions: Tensor) -> Tensor:
        return self._read(decisions) * self.scale

    def _read(self, decisions: Tensor) -> Tensor:
        if self.reading == "raw":
            return decisions
        if self.reading in ("margin", "logit"):
            factor = 2.0 if self.reading == "margin" else 1.0
            return (decisions * factor).clamp(-LARGEST, LARGEST)
        p = (decisions + 1) / 2
        if self.frequency is not None:
            spread = (self.frequency * (1 - self.frequency)).sqrt()
            relative = (p - self.frequency) / spread.where(spread > 0, 1.0)
            return torch.where(spread > 0, relative, 0.0)
        return torch.asinh(p / (2 * CLOSEST)) - torch.asinh((1 - p) / (2 * CLOSEST))


def ranks_and_decides(y: FloatArray, scores: FloatArray) -> float:
    """Macro ROC-AUC, macro average precision and the best micro-F1 of probabilities together, each
    0 if undefined.

    Labels with few positives are left out, as their held-out scores mislead: a fold that takes one
    of three positives away leaves a classifier that hardly expects the label.
    """
    counted = learnable_labels(y)
    y, scores = y[:, counted], scores[:, counted]
    decided = ThresholdTuner("f1_micro").fit(y, scores).best_value
    return float(
        np.nan_to_num(
            [macro_roc_auc(y, scores), macro_average_precision(y, scores), decided or 0.0]
        ).sum()
    )


def find_classifier(
    search: ClassifierSearch,
    matrices: Mapping[str, Any],
    y: FloatArray,
    split: Split,
    seconds: float,
    seed: int,
) -> StackedClassifier:
    """The best classifier of a search, with the scores of all samples.

    Args:
        search (ClassifierSearch): The search.
        matrices (dict): Features :math:`(N, F)` of all samples, by view.
        y (numpy.ndarray): Their targets :math:`(N, L)`.
        split (Split): Which of them are training and validation samples.
        seconds (float): The time for a search without a metric, which fits a few samples in any
            case.
        seed (int): Seed of samples and trees.
    """
    start, train = time.monotonic(), split.train.numpy()
    if search.baseline == "network":
        found, rows, decisions = _train_in_time(search, matrices, y, train, seconds, seed)
    elif search.metric is None:
        found, rows, decisions = _find_in_time(search, matrices, y, train, seconds, seed)
    else:
        found, rows, decisions = _find_by_metric(
            search, matrices, y, train, split.val.numpy(), seed
        )
    found.classifier.load_state_dict(found.classifier.state_dict())  # as precise as what is saved
    if search.reading == "relative":
        found.frequency = LabelFrequency().fit(y[train], y[train]).frequency
    scores, others = np.empty(y.shape), np.setdiff1d(np.arange(len(y)), rows)
    scores[rows] = read_decisions(found.reading, decisions, found.frequency)
    if len(others):
        scores[others] = found.scores(matrices[found.view][others])
    found.held_out, found.seconds = scores, time.monotonic() - start
    return found


#: A fitted classifier, the rows that it was fitted to, and their held-out decisions.
_Found = tuple[StackedClassifier, np.ndarray, FloatArray]


def _find_in_time(
    search: ClassifierSearch,
    matrices: Mapping[str, Any],
    y: FloatArray,
    train: np.ndarray,
    seconds: float,
    seed: int,
) -> _Found:
    """The best setting and view on some of the samples, fitted to as many as the time allows."""
    start, order = time.monotonic(), np.random.default_rng(seed).permutation(len(train))
    few, is_forest = train[np.sort(order[:TUNED_ROWS])], search.baseline == "forest"
    tried, costs = list[list[Any]](), list[float]()
    for setting, view in product(search.settings, list(matrices)[-1:] if is_forest else matrices):
        cost = max(costs, default=0.0) * (setting[1] / search.settings[0][1] if is_forest else 1.0)
        if tried and time.monotonic() - start + cost > seconds / 2:
            break
        before, x = time.monotonic(), matrices[view][few]
        classifier = search.make(setting, x.shape[1], seed)
        decisions = classifier.held_out_scores(x, y[few], cv=_folds(y[few], _FOLDS[0]), refit=False)
        tried.append(
            [
                view,
                setting,
                ranks_and_decides(y[few], expit(read_decisions(search.reading, decisions))),
            ]
        )
        costs.append(time.monotonic() - before)
    best = max(range(len(tried)), key=lambda place: tried[place][-1])
    view, setting, _ = tried[best]
    x = matrices[view]
    classifier = search.make(setting, x.shape[1], seed)
    # The rest of the time in multiples of what the best took on a few samples.
    times = (seconds - time.monotonic() + start) / max(costs[best], 1e-3)
    if search.baseline == "linear" or "extra_trees" in search.options or setting[2:] == (True,):
        times *= _FOLDS[0] / (_FOLDS[1] + 1)
    if is_forest:
        growth = (len(train) / len(few)) ** search.growth
        num_trees = int(np.clip(NUM_TREES * times / growth, MIN_TREES, MAX_TREES))
        classifier.set_params(n_estimators=num_trees)
        times *= NUM_TREES / num_trees
    most = len(few) * max(1.0, times) ** (1 / search.growth)
    largest = MAX_KERNEL_ROWS if search.baseline == "kernel_ridge" else np.inf
    rows = train[np.sort(order[: int(min(most, largest, len(train)))])]
    decisions = classifier.held_out_scores(x[rows], y[rows], cv=_folds(y[rows], _FOLDS[1]))
    return search.found(view, setting, classifier, tried), rows, decisions


def _train_in_time(
    search: ClassifierSearch,
    matrices: Mapping[str, Any],
    y: FloatArray,
    train: np.ndarray,
    seconds: float,
    seed: int,
) -> _Found:
    """A network for each of a few folds, with as many epochs as the time allows."""
    view, setting = next(iter(matrices)), search.settings[0]
    x = matrices[view][train]
    network = search.make(setting, x.shape[1], seed)
    affordable = seconds / network.seconds_per_epoch(x, y[train])
    wanted = int(np.clip(NETWORK_STEPS * network.batch_size / len(train), *NETWORK_EPOCHS))
    num_folds = next((each for each in (5, 3) if affordable >= (each - 1) * wanted), 2)
    epochs = int(np.clip(affordable / (num_folds - 1), 1, wanted))
    network.set_params(epochs=epochs)
    decisions = network.held_out_scores(x, y[train], cv=_folds(y[train], num_folds))
    return search.found(view, setting, network, [[view, setting, epochs]]), train, decisions


def _find_by_metric(
    search: ClassifierSearch,
    matrices: Mapping[str, Any],
    y: FloatArray,
    train: np.ndarray,
    val: np.ndarray,
    seed: int,
) -> _Found:
    """The best setting by a metric of validation samples, or of held-out scores of training
    samples."""
    view = str(search.view)
    x, best, tried = matrices[view], None, list[list[Any]]()
    for setting in search.settings:
        classifier, decisions = search.make(setting, x.shape[1], seed), None
        if search.metric == "roc_auc_macro":
            decisions = classifier.held_out_scores(x[train], y[train])
            value = macro_roc_auc(y[train], decisions)
        else:
            scores = classifier.fit(x[train], y[train]).predict_proba(x[val])
            value = best_value(y[val], scores, metric=str(search.metric))
        if best is None or value > max(np.nan_to_num([each[-1] for each in tried], nan=-np.inf)):
            best = setting, classifier, decisions
        tried.append([view, setting, value])
    if best is None or (len(tried) > 1 and np.isnan([each[-1] for each in tried]).all()):
        raise ValueError(
            f"Expected '{search.metric}' to be defined on the samples (got NaN for all of {tried})"
        )
    setting, classifier, decisions = best
    if decisions is None:
        decisions = classifier.held_out_scores(x[train], y[train], refit=False)
    return search.found(view, setting, classifier, tried), train, decisions


def _folds(y: FloatArray, num_folds: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows to fit to, and those to score, of each fold."""
    fold = stratified_folds(y, min(num_folds, len(y)))
    for part in range(fold.max() + 1):
        yield np.flatnonzero(fold != part), np.flatnonzero(fold == part)
