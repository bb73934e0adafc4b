"""Scores of classifiers that are tuned to a data set within a time, as base scores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from tqdm import tqdm
from typing_extensions import Self

from tg_mlc._options import check_number
from tg_mlc.baselines import ForestBaseline, KernelRidgeBaseline, LinearBaseline
from tg_mlc.data import ArrayDataset, MultiLabelDataset, Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.data.samples import Samples
from tg_mlc.data.splits import stratified_folds
from tg_mlc.inputs import Preprocessor
from tg_mlc.inputs.kind import View
from tg_mlc.inputs.kinds import kind_of, make_view, views_of
from tg_mlc.metrics import ThresholdTuner, macro_average_precision, macro_roc_auc
from tg_mlc.stacking.combination import learnable_labels
from tg_mlc.stacking.resumable import ResumableParts

#: What is tried of each classifier, the most likely first, as time may end the search: the loss and the inverse
#: strength of regularisation of linear ones, ``gamma`` and ``alpha`` of kernels, and of forests the least number of
#: samples in a leaf and how many entries a node chooses from, in square roots of their number.
GRIDS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "svm": (("hinge", 1.0), ("hinge", 0.1), ("hinge", 10.0), ("hinge", 0.3), ("hinge", 3.0), ("hinge", 0.03)),
    "logistic": tuple(("logistic", C) for C in (10.0, 1.0, 100.0, 3.0, 30.0, 0.3)),
    "ridge": tuple(product((0.5, 0.25, 1.0, 2.0), (0.3, 0.1, 1.0, 0.03))),
    "forest": ((1, 1), (3, 1), (1, 3)),
}

#: What tables of results call them.
TITLES = {
    "svm": "linear SVM",
    "logistic": "logistic regression",
    "ridge": "kernel ridge regression",
    "forest": "random forest",
}

TUNED_ROWS = 1500  # of which settings differ by more than by chance, and kernels take a tenth of a second
NUM_TREES, MIN_TREES, MAX_TREES = 50, 30, 300  # of forests while they are tuned, and of the one that is kept
MAX_KERNEL_ROWS = 12_000  # for memory: two matrices of 1.2 GB
_FOLDS = (3, 5)  # of linear classifiers while they are tuned, and afterwards
# How fast the time of a fit grows with its samples.
_GROWTH = {"svm": 1.3, "logistic": 1.3, "ridge": 3.0, "forest": 1.2}
# Logits beyond this, or probabilities this close to 0 and 1, say no more: forests and regressions overstep both.
_LARGEST, _CLOSEST = 8.0, 0.01
#: Brings logits to where the steps of a ScoreEncoder lie.
SCORE_SCALE = 1 / 3


@dataclass
class Tuned:
    """A classifier, and the view of samples that it takes."""

    kind: str
    view: str
    setting: tuple[Any, ...]
    classifier: Any
    held_out: np.ndarray | None = None  #: logits :math:`(N, L)` of training samples by fits without them
    seconds: float = 0.0

    def logits(self, x: Any) -> np.ndarray:
        """The logits :math:`(N, L)` of features."""
        return _logits(self.kind, self.classifier.decision_function(x))


class StackingFeatures(Preprocessor):
    """Logits of linear, kernel and tree classifiers as the attribute :obj:`base_scores` of samples, :math:`(1, L, C)`.

    Every classifier chooses its settings and the scale of its inputs by how well it ranks and decides training samples
    that it was fitted without: macro ROC-AUC, macro average precision and the best micro-F1 together. Settings are
    compared on at most 1,500 samples, and the best is then fitted to as many as its share of the time allows.
    :meth:`fit_transform` gives training samples the logits of fits without them; of vectors, it also scales :obj:`x` as
    the best view does.

    Args:
        kinds (Sequence[str], optional): The classifiers: :obj:`"svm"` and :obj:`"logistic"` (linear), :obj:`"ridge"`
            (kernel ridge regression) and :obj:`"forest"`. (default: all)
        seconds (float, optional): The time for all of them together, of which each has an equal share of what is left;
            it is exceeded where even the smallest fits take longer. (default: :obj:`120`)
        seed (int, optional): Seed of samples and folds. (default: :obj:`0`)
        kept (ResumableParts, optional): Keeps each classifier once it is tuned. (default: :obj:`None`, nowhere)

    Attributes:
        tuned (dict): The classifiers by kind, after :meth:`fit`.

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
        ValueError: If a classifier is not known, or :obj:`seconds` is negative.
    """

    tuned: dict[str, Tuned]
    views: dict[str, View]

    def __init__(
        self,
        kinds: Sequence[str] = tuple(GRIDS),
        seconds: float = 120.0,
        seed: int = 0,
        kept: ResumableParts | None = None,
    ) -> None:
        if unknown := [kind for kind in kinds if kind not in GRIDS]:
            raise ValueError(f"Expected 'kinds' among {list(GRIDS)} (got {unknown})")
        check_number("seconds", seconds)
        self.kinds = list(kinds)
        self.seconds = seconds
        self.seed = seed
        self.kept = kept or ResumableParts()

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Tunes the classifiers to training samples."""
        self.fit_transform(dataset, split)
        return self

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """Tunes the classifiers, and gives training samples the logits of fits without them."""
        train, end = dataset[split.train], self.kept.clock() + self.seconds
        self.views = {name: view.fit(train) for name, view in views_of(dataset).items()}
        matrices = {name: view.matrix(train) for name, view in self.views.items()}
        self.tuned = {}
        for place, kind in enumerate(tqdm(self.kinds, desc="Classifiers", disable=None, leave=False)):
            share = max(0.0, end - self.kept.clock()) / (len(self.kinds) - place)
            tune = partial(_tune, kind, matrices, train.y.numpy(), share, self.seed)
            self.tuned[kind] = self.kept.part(kind, tune, _packed, partial(_restore, kind))
        base_scores = torch.empty(*dataset.y.shape, len(self.tuned))
        base_scores[split.train] = _stack([each.held_out for each in self.tuned.values()])
        others = np.setdiff1d(np.arange(len(dataset)), split.train)
        if len(others):
            base_scores[others] = self._base_scores(dataset[others])
        return self._samples(dataset, base_scores)

    def transform(self, raw: MultiLabelDataset) -> MultiLabelDataset:
        """Samples with the logits of all classifiers."""
        return self._samples(raw, self._base_scores(raw))

    def _base_scores(self, raw: MultiLabelDataset) -> torch.Tensor:
        matrices = {each.view: self.views[each.view].matrix(raw) for each in self.tuned.values()}
        return _stack([each.logits(matrices[each.view]) for each in self.tuned.values()])

    def _samples(self, raw: MultiLabelDataset, base_scores: torch.Tensor) -> MultiLabelDataset:
        samples = with_attribute(_in_memory(raw), "base_scores", base_scores)
        if not kind_of(raw).takes_view:
            return samples
        scaled = torch.from_numpy(self.views[self.scaling].matrix(raw))
        return with_attribute(samples, "x", scaled)

    @property
    def scaling(self) -> str:
        """The view that most classifiers chose, of forests none: any scale is alike to them."""
        chosen = [each.view for kind, each in self.tuned.items() if kind != "forest"] or list(self.views)
        return max(dict.fromkeys(chosen), key=chosen.count)

    def state_dict(self) -> dict[str, Any]:
        """The classifiers, and the views that they take."""
        needed = {self.scaling, *(each.view for each in self.tuned.values())}
        return {
            "views": {name: view.state_dict() for name, view in self.views.items() if name in needed},
            "tuned": {kind: _state(each) for kind, each in self.tuned.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes the classifiers of another one."""
        self.views = {name: make_view(name).load_state_dict(each) for name, each in state["views"].items()}
        self.tuned = {kind: _restore(kind, each) for kind, each in state["tuned"].items()}
        self.kinds = list(self.tuned)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kinds})"


def _tune(kind: str, matrices: Mapping[str, Any], y: np.ndarray, seconds: float, seed: int) -> Tuned:
    """The best setting and view of a classifier, fitted to as many samples as the time allows."""
    start, order = time.monotonic(), np.random.default_rng(seed).permutation(len(y))
    few = np.sort(order[:TUNED_ROWS])
    tried: list[tuple[float, float, str, tuple[Any, ...]]] = []
    for view, setting in _candidates(kind, matrices):
        cost = max((each[1] for each in tried), default=0.0) * (setting[1] if kind == "forest" else 1.0)
        if tried and time.monotonic() - start + cost > seconds / 2:
            break
        before, x = time.monotonic(), matrices[view][few]
        held_out = _held_out(kind, _make(kind, setting, x.shape[1], seed), x, y[few], _FOLDS[0])
        tried.append((ranks_and_decides(y[few], expit(held_out)), time.monotonic() - before, view, setting))
    _, cost, view, setting = max(tried, key=lambda each: each[0])
    found = Tuned(kind, view, setting, _make(kind, setting, matrices[view].shape[1], seed))
    _fit(found, matrices[view], y, order, (seconds - time.monotonic() + start) / max(cost, 1e-3), len(few))
    found.seconds = time.monotonic() - start
    return found


def _candidates(kind: str, matrices: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    views = list(matrices)[-1:] if kind == "forest" else list(matrices)
    return ((view, setting) for setting, view in product(GRIDS[kind], views))


def _fit(found: Tuned, x: Any, y: np.ndarray, order: np.ndarray, times: float, num_few: int) -> None:
    """Fits to the samples that can be afforded, in multiples of the time that a few of them took."""
    kind = found.kind
    if kind in ("svm", "logistic"):
        times *= _FOLDS[0] / (_FOLDS[1] + 1)
    if kind == "forest":
        growth = (len(y) / num_few) ** _GROWTH[kind]
        found.classifier.n_estimators = int(np.clip(NUM_TREES * times / growth, MIN_TREES, MAX_TREES))
        times *= NUM_TREES / found.classifier.n_estimators
    most = num_few * max(1.0, times) ** (1 / _GROWTH[kind])
    rows = np.sort(order[: int(min(most, MAX_KERNEL_ROWS if kind == "ridge" else np.inf, len(y)))])
    held_out = _held_out(kind, found.classifier, x[rows], y[rows], _FOLDS[1])
    if kind in ("svm", "logistic"):
        found.classifier.fit(x[rows], y[rows])
    found.classifier.load_state_dict(found.classifier.state_dict())  # as precise as what is saved
    found.held_out = held_out if len(rows) == len(y) else found.logits(x)
    found.held_out[rows] = held_out


def _held_out(kind: str, classifier: Any, x: Any, y: np.ndarray, num_folds: int) -> np.ndarray:
    """Logits of samples by a classifier that is fitted without each."""

    def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        fold = stratified_folds(y, min(num_folds, len(y)))
        yield from ((np.flatnonzero(fold != part), np.flatnonzero(fold == part)) for part in range(fold.max() + 1))

    return _logits(kind, classifier.held_out_scores(x, y, cv=parts(), refit=False))


def _logits(kind: str, scores: np.ndarray) -> np.ndarray:
    """The logits of what classifiers' decision functions return."""
    if kind in ("ridge", "forest"):
        return _soft_logit((scores + 1) / 2)
    # As predict_proba of LinearBaseline reads distances.
    return np.clip(scores * (2.0 if kind == "svm" else 1.0), -_LARGEST, _LARGEST)


def _soft_logit(p: np.ndarray) -> np.ndarray:
    """The logit of probabilities, which goes on as a rising function below 0 and above 1."""
    logits: np.ndarray = np.arcsinh(p / (2 * _CLOSEST)) - np.arcsinh((1 - p) / (2 * _CLOSEST))
    return logits


def ranks_and_decides(y: np.ndarray, scores: np.ndarray) -> float:
    """Macro ROC-AUC, macro average precision and the best micro-F1 of probabilities together, each 0 if undefined.

    Labels with few positives are left out, as their held-out scores mislead: a fold that takes one of three positives
    away leaves a classifier that hardly expects the label.
    """
    counted = learnable_labels(y)
    y, scores = y[:, counted], scores[:, counted]
    decided = ThresholdTuner("f1_micro").fit(y, scores).best_value
    return float(np.nan_to_num([macro_roc_auc(y, scores), macro_average_precision(y, scores), decided or 0.0]).sum())


def _make(kind: str, setting: Sequence[Any], num_features: int = 1, seed: int = 0) -> Any:
    if kind == "ridge":
        return KernelRidgeBaseline(*setting)
    if kind == "forest":
        chosen_from = min(num_features, int(setting[1] * num_features**0.5))
        return ForestBaseline(NUM_TREES, min_samples_leaf=setting[0], max_features=chosen_from, random_state=seed)
    return LinearBaseline(*setting)


def _stack(logits: Sequence[Any]) -> torch.Tensor:
    return torch.from_numpy(np.stack(logits, axis=-1) * SCORE_SCALE).float()


def _state(each: Tuned) -> dict[str, Any]:
    return {"view": each.view, "setting": list(each.setting), "state": each.classifier.state_dict()}


def _packed(each: Tuned) -> dict[str, Any]:
    """The state with what is known of training samples, which no saved model has."""
    return {**_state(each), "held_out": each.held_out, "seconds": each.seconds}


def _restore(kind: str, state: Mapping[str, Any]) -> Tuned:
    classifier = _make(kind, state["setting"]).load_state_dict(state["state"])
    held_out = state["held_out"].numpy() if "held_out" in state else None
    return Tuned(kind, state["view"], tuple(state["setting"]), classifier, held_out, state.get("seconds", 0.0))


def _in_memory(dataset: MultiLabelDataset) -> MultiLabelDataset:
    """Samples that keep more attributes than those of large files do."""
    if type(dataset).get is MultiLabelDataset.get:
        return dataset
    samples = Samples.collate(list(dataset), dataset.label_names, None)
    return ArrayDataset(samples._replace(kind=dataset.kind, feature_names=dataset.feature_names))
