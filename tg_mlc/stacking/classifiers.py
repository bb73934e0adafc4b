"""Stacked classifiers: baselines, the search for their settings, and their base scores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc import baselines
from tg_mlc._names import shorten
from tg_mlc._options import check_choice
from tg_mlc.baselines.baseline import Baseline, best_value, float_tensor, read_array
from tg_mlc.data.splits import stratified_folds
from tg_mlc.metrics import ThresholdTuner, macro_average_precision, macro_roc_auc
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.stacking.combination import learnable_labels

#: Conversion of decision values to base scores: none (``"raw"``), clipping (``"logit"``), doubling
#: and clipping (``"margin"``), the logit of a probability (``"probability"``), or a probability
#: minus the frequency of its label, in standard deviations (``"relative"``), which is comparable
#: between rare and frequent labels.
Reading = Literal["raw", "relative", "margin", "logit", "probability"]

# Number of rows to compare settings on: enough to tell settings apart, and few enough for speed.
TUNED_ROWS = 1500
#: Above this number of labels, or for a hierarchy, classifiers fit all labels at once.
MANY_LABELS = 512
# Number of trees while forests are tuned; smallest and largest number in the final forest.
NUM_TREES, MIN_TREES, MAX_TREES = 50, 30, 300
MAX_KERNEL_ROWS = 12_000  # A fit takes two or three matrices of 1.2 GB.
NETWORK_STEPS, NETWORK_EPOCHS = 1500, (40, 70)  # The range of epochs; fewer if time is short.
_FOLDS = (3, 5)  # Numbers of folds for tuning and for final scores; not for networks.
# Largest logit, and width of the smoothing near 0 and 1, because regressions exceed [0, 1].
LARGEST, CLOSEST = 8.0, 0.01
#: Factor that scales logits to the range of the steps of a ScoreEncoder.
SCORE_SCALE = 1 / 3

_BASELINES: dict[str, type[Any]] = {
    "linear": baselines.LinearBaseline,
    "kernel_ridge": baselines.KernelRidgeBaseline,
    "forest": baselines.ForestBaseline,
    "network": baselines.NetworkBaseline,
}


@dataclass(frozen=True)
class ClassifierSearch:
    """A search over settings of a classifier: candidates, criterion, and conversion of scores.

    Args:
        title (str): The name in tables of results.
        baseline (str): :obj:`"linear"`, :obj:`"kernel_ridge"`, :obj:`"forest"` or :obj:`"network"`.
        settings (tuple): The settings, the most likely first: ``(loss, C)`` of linear classifiers;
            ``(gamma, alpha, correlated)`` of kernels; ``(leaf, roots)`` of forests, with at least
            ``leaf`` samples per leaf and ``roots`` times the square root of the number of features
            per node; ``(hidden, dropout)`` of networks, which use only the first setting.
        reading (str): The conversion of decision values to scores, one of :obj:`Reading`.
        view (str, optional): The registered name of the view of samples. (default: :obj:`None`, the
            best view; the last one for forests)
        metric (str, optional): The metric to maximise: :obj:`"f1_micro"` or
            :obj:`"subset_accuracy"` of validation samples, or :obj:`"roc_auc_macro"` of held-out
            scores. (default: :obj:`None`, :func:`ranks_and_decides` of held-out scores)
        growth (float, optional): Exponent of the sample count in fit time. (default: :obj:`1.0`)
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
        """Returns an unfitted baseline with a setting."""
        options = dict(self.options)
        if self.baseline in ("forest", "network"):
            options.setdefault("random_state", seed)
        if self.baseline == "forest":
            leaf, roots = setting
            max_features = min(num_features, int(roots * num_features**0.5))
            sizes = {"n_estimators": NUM_TREES, "max_features": max_features}
            setting, options = (), {"min_samples_leaf": leaf, **sizes, **options}
        return _BASELINES[self.baseline](*setting, **options)

    def result(
        self, view: str, setting: Sequence[Any], classifier: Baseline, tried: list[list[Any]]
    ) -> StackedClassifier:
        """Returns the fitted classifier of a search, with its view, setting and tried settings."""
        names = self.title, self.baseline, self.reading, view
        return StackedClassifier(*names, list(setting), classifier, tried)


_HINGE, _LOGISTIC = (1.0, 0.1, 10.0, 0.3, 3.0, 0.03), (10.0, 1.0, 100.0, 3.0, 30.0, 0.3)  # C
_SVM, _REGRESSION = tuple(product(["hinge"], _HINGE)), tuple(product(["logistic"], _LOGISTIC))
_KERNELS = tuple(product((0.5, 0.25, 1.0, 2.0), (0.3, 0.1, 1.0, 0.03)))
# With many labels, each kernel setting takes long; only a few are tried.
_FEW_KERNELS = ((0.5, 1.0), (1.0, 1.0), (0.5, 0.3), (1.0, 3.0))
# With hundreds of labels, correlations are reliable, and each label learns from more samples.
# Kernels may then be narrower and regularisation stronger.
_CORRELATED = ((3.0, 20.0, True), (1.0, 20.0, True), (3.0, 60.0, True), (1.0, 3.0, False))
_RIDGE = "kernel ridge regression"
_TREES = ((1, 1), (3, 1), (1, 3))
#: The default classifiers, which are tuned within a time limit.
AUTOMATIC: dict[str, ClassifierSearch] = {
    "svm": ClassifierSearch("linear SVM", "linear", _SVM, "margin", growth=1.3),
    "logistic": ClassifierSearch("logistic regression", "linear", _REGRESSION, "logit", growth=1.3),
    "ridge": ClassifierSearch(_RIDGE, "kernel_ridge", _KERNELS, "probability", growth=3.0),
    "forest": ClassifierSearch("random forest", "forest", _TREES, "probability", growth=1.2),
}


def many_labels(label_graph: Any = None) -> dict[str, ClassifierSearch]:
    """Returns the default classifiers for a hierarchy or many labels. They fit labels jointly."""
    kernels = _CORRELATED if label_graph is None else _FEW_KERNELS
    title, options = "extremely randomised trees", {"extra_trees": True, "max_outputs": MANY_LABELS}
    trees = replace(AUTOMATIC["forest"], title=title, settings=((5, 9), (2, 9)), options=options)
    title, options = "multilayer perceptron", {"label_graph": label_graph}
    network = ClassifierSearch(title, "network", ((500, 0.7),), "logit", options=options)
    ridge = replace(AUTOMATIC["ridge"], settings=kernels)
    return {"ridge": ridge, "trees": trees, "network": network}


@dataclass
class StackedClassifier:
    """A fitted baseline, its view of the samples, and the conversion of its scores."""

    title: str  #: the name in tables of results
    baseline: str
    reading: Reading
    view: str
    setting: list[Any]
    classifier: Any  #: a :class:`~tg_mlc.baselines.Baseline` that can be saved
    tried: list[list[Any]] = field(default_factory=list)  #: views, settings and values
    frequency: FloatArray | None = None  #: label frequencies :math:`(L)`, for relative scores
    held_out: FloatArray | None = None  #: scores :math:`(N, L)` of the samples of the search
    seconds: float = 0.0

    def scores(self, x: Any) -> FloatArray:
        """Returns the scores :math:`(N, L)` of features."""
        return read_decisions(self.reading, self.classifier.decision_function(x), self.frequency)

    @property
    def scale(self) -> float:
        """Scale applied to :meth:`scores` to give base scores."""
        return 1.0 if self.reading in ("raw", "relative") else SCORE_SCALE

    def module(self) -> nn.Module:
        """Returns the scaled :meth:`scores` as a module of tensor operators, or raises."""
        try:
            baseline: nn.Module = self.classifier.module()
        except ValueError as error:
            hint = "pass base_scores='input' to export a network that takes the scores of"
            raise ValueError(f"{error}; {hint} '{self.title}'") from error
        return nn.Sequential(baseline, _BaseScores(self.reading, self.scale, self.frequency))

    def state_dict(self) -> dict[str, Any]:
        """Returns arrays and plain data from which :meth:`from_state` restores the classifier."""
        skipped = {"classifier", "held_out", "seconds"}
        entries = {name: value for name, value in vars(self).items() if name not in skipped}
        return {**entries, "state": self.classifier.state_dict()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restores a classifier from its :meth:`state_dict`."""
        check_choice("reading", state["reading"], get_args(Reading))
        classifier = _BASELINES[state["baseline"]]().load_state_dict(state["state"])
        entries = {name: value for name, value in state.items() if name != "state"}
        if state.get("frequency") is not None:
            entries["frequency"] = read_array(state, "frequency", len(classifier.classes_))
        return cls(**entries, classifier=classifier)


def read_decisions(
    reading: Reading, decisions: FloatArray, frequency: FloatArray | None = None
) -> FloatArray:
    """Converts decision values to scores :math:`(N, L)`."""
    if reading == "raw":
        return decisions
    if reading in ("margin", "logit"):
        # LinearBaseline.predict_proba uses the same factors.
        return np.clip(decisions * (2.0 if reading == "margin" else 1.0), -LARGEST, LARGEST)
    p = (decisions + 1) / 2
    if frequency is not None:
        spread = np.sqrt(frequency * (1 - frequency))
        return np.where(spread > 0, (p - frequency) / np.where(spread > 0, spread, 1), 0)
    # This is close to the logit, but also defined and increasing below 0 and above 1.
    return np.asarray(np.arcsinh(p / (2 * CLOSEST)) - np.arcsinh((1 - p) / (2 * CLOSEST)))


class _BaseScores(nn.Module):
    """Converts decision values to base scores: :func:`read_decisions` with tensors, scaled."""

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
    """Returns the sum of macro ROC-AUC, macro average precision and the best micro-F1."""
    # Labels with few positives mislead: a fold that lacks one of three positives underrates them.
    learnable = learnable_labels(y)
    y, scores = y[:, learnable], scores[:, learnable]
    best_f1 = ThresholdTuner("f1_micro").fit(y, scores).best_value or 0.0
    values = [macro_roc_auc(y, scores), macro_average_precision(y, scores), best_f1]
    return float(np.nan_to_num(values).sum())


class SearchData(NamedTuple):
    """The samples of a search."""

    matrices: Mapping[str, Any]  #: features :math:`(N, F)` by view
    y: FloatArray  #: targets :math:`(N, L)`
    train: np.ndarray  #: indices of training rows
    val: np.ndarray  #: indices of validation rows


def find_classifier(
    search: ClassifierSearch, samples: SearchData, seconds: float, seed: int
) -> StackedClassifier:
    """Returns the best classifier of a search, with its scores of all samples."""
    start, (matrices, y, train, _) = time.monotonic(), samples
    if search.baseline == "network":
        stacked, rows, decisions = _train_in_time(search, samples, seconds, seed)
    elif search.metric is None:
        stacked, rows, decisions = _find_in_time(search, samples, seconds, seed)
    else:
        stacked, rows, decisions = _find_by_metric(search, samples, seed)
    # Rounding to the precision of saved states gives the same scores before and after saving.
    stacked.classifier.load_state_dict(stacked.classifier.state_dict())
    if search.reading == "relative":
        stacked.frequency = baselines.LabelFrequency().fit(y[train], y[train]).frequency
    scores, other_rows = np.empty(y.shape), np.setdiff1d(np.arange(len(y)), rows)
    scores[rows] = read_decisions(stacked.reading, decisions, stacked.frequency)
    if len(other_rows):
        scores[other_rows] = stacked.scores(matrices[stacked.view][other_rows])
    stacked.held_out, stacked.seconds = scores, time.monotonic() - start
    return stacked


# A fitted classifier, the indices of its training rows, and their held-out decision values.
_Fit = tuple[StackedClassifier, np.ndarray, FloatArray]


def _find_in_time(search: ClassifierSearch, samples: SearchData, seconds: float, seed: int) -> _Fit:
    """Finds the best setting and view on a few rows, and fits it to as many as time allows."""
    matrices, y, train, _ = samples
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
        probabilities = expit(read_decisions(search.reading, decisions))
        tried.append([view, setting, ranks_and_decides(y[few], probabilities)])
        costs.append(time.monotonic() - before)
    best = max(range(len(tried)), key=lambda index: tried[index][-1])
    view, setting, _ = tried[best]
    x = matrices[view]
    classifier = search.make(setting, x.shape[1], seed)
    # Number of fits of the best setting to the subsample that the remaining time allows.
    num_fits = (seconds - time.monotonic() + start) / max(costs[best], 1e-3)
    if search.baseline == "linear" or "extra_trees" in search.options or setting[2:] == (True,):
        num_fits *= _FOLDS[0] / (_FOLDS[1] + 1)  # One fit per fold, and the final fit.
    if is_forest:
        growth = (len(train) / len(few)) ** search.growth
        num_trees = int(np.clip(NUM_TREES * num_fits / growth, MIN_TREES, MAX_TREES))
        classifier.set_params(n_estimators=num_trees)
        num_fits *= NUM_TREES / num_trees
    affordable = len(few) * max(1.0, num_fits) ** (1 / search.growth)
    limit = MAX_KERNEL_ROWS if search.baseline == "kernel_ridge" else np.inf
    rows = train[np.sort(order[: int(min(affordable, limit, len(train)))])]
    decisions = classifier.held_out_scores(x[rows], y[rows], cv=_folds(y[rows], _FOLDS[1]))
    return search.result(view, setting, classifier, tried), rows, decisions


def _train_in_time(
    search: ClassifierSearch, samples: SearchData, seconds: float, seed: int
) -> _Fit:
    """Trains one network per fold, with as many epochs as the time allows."""
    view, setting, train = next(iter(samples.matrices)), search.settings[0], samples.train
    x, y = samples.matrices[view][train], samples.y[train]
    network = search.make(setting, x.shape[1], seed)
    affordable = seconds / network.seconds_per_epoch(x, y)  # An epoch on k folds costs k - 1.
    target_epochs = int(np.clip(NETWORK_STEPS * network.batch_size / len(train), *NETWORK_EPOCHS))
    num_folds = next((number for number in (5, 3) if affordable >= (number - 1) * target_epochs), 2)
    epochs = int(np.clip(affordable / (num_folds - 1), 1, target_epochs))
    network.set_params(epochs=epochs)
    decisions = network.held_out_scores(x, y, cv=_folds(y, num_folds))
    return search.result(view, setting, network, [[view, setting, epochs]]), train, decisions


def _find_by_metric(search: ClassifierSearch, samples: SearchData, seed: int) -> _Fit:
    """Finds the best setting by a metric on validation samples or on held-out training scores."""
    matrices, y, train, val = samples
    view, metric = str(search.view), str(search.metric)
    x, best, tried = matrices[view], None, list[list[Any]]()
    for setting in search.settings:
        classifier, decisions = search.make(setting, x.shape[1], seed), None
        if metric == "roc_auc_macro":
            decisions = classifier.held_out_scores(x[train], y[train])
            value = macro_roc_auc(y[train], decisions)
        else:
            scores = classifier.fit(x[train], y[train]).predict_proba(x[val])
            value = best_value(y[val], scores, metric=metric)
        if best is None or value > max(np.nan_to_num([row[-1] for row in tried], nan=-np.inf)):
            best = setting, classifier, decisions
        tried.append([view, setting, value])
    if best is None or (len(tried) > 1 and np.isnan([row[-1] for row in tried]).all()):
        got = f"NaN for all of {shorten(tried)}"
        raise ValueError(f"Expected '{metric}' to be defined on the samples (got {got})")
    setting, classifier, decisions = best
    if decisions is None:
        decisions = classifier.held_out_scores(x[train], y[train], refit=False)
    return search.result(view, setting, classifier, tried), train, decisions


def _folds(y: FloatArray, num_folds: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the training rows and the held-out rows of each fold."""
    fold = stratified_folds(y, min(num_folds, len(y)))
    for index in range(fold.max() + 1):
        yield np.flatnonzero(fold != index), np.flatnonzero(fold == index)
