"""Raters: classifiers of words, vectors or molecules whose scores become base scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc.baselines import ForestBaseline, KernelRidgeBaseline, LabelFrequency, LinearBaseline, kernel_ridge, linear
from tg_mlc.baselines.baseline import best_value
from tg_mlc.baselines.linear import Loss
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import inputs_of
from tg_mlc.inputs import Fingerprint
from tg_mlc.inputs.molecules import VECTORS, MoleculeVectors
from tg_mlc.metrics import macro_roc_auc

NUM_FOLDS = 5
NUM_BITS = 2048  #: of fingerprints
#: With less regularisation a regression remembers its samples, which tells the labels of duplicates.
EXACT_GRID = tuple(product((1.0,), (0.01, 0.03, 0.1, 0.3)))
#: Pairs of ``gamma`` and ``alpha`` for vectors of molecules, of unit length.
MOLECULE_GRID = tuple(product((1.0, 2.0, 4.0), (0.3, 1.0, 3.0)))


class StackedClassifier(ABC):
    """A classifier that scores how likely a sample has each label."""

    name: str  #: what tables of results call it
    settings: Any  #: what a fit depends on beside the samples
    classifier: LinearBaseline | KernelRidgeBaseline | ForestBaseline

    @abstractmethod
    def fit(self, dataset: MultiLabelDataset, split: Split) -> np.ndarray:
        """Fits to training samples, and returns their scores :math:`(N, L)` by classifiers fitted without them.

        Args:
            dataset (MultiLabelDataset): All samples.
            split (Split): Which of them are training samples.
        """

    def scores(self, dataset: MultiLabelDataset) -> np.ndarray:
        """The scores :math:`(N, L)` of any samples."""
        return cast(LinearBaseline | KernelRidgeBaseline, self.classifier).decision_function(inputs_of(dataset))

    def samples(self, dataset: MultiLabelDataset) -> list[Any]:
        """The inputs and labels that a fit depends on."""
        return [inputs_of(dataset), dataset.y]

    def state_dict(self) -> dict[str, Any]:
        """The state of the classifier."""
        return self.classifier.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the state of another one."""
        self.classifier.load_state_dict(state)


class _SVM(StackedClassifier):
    name = "linear SVM, tuned"
    settings = (NUM_FOLDS, linear.DEFAULT_GRID["hinge"])

    def __init__(self) -> None:
        self.classifier: LinearBaseline = LinearBaseline()

    def fit(self, dataset: MultiLabelDataset, split: Split) -> np.ndarray:
        x, y, train = inputs_of(dataset), dataset.y, split.train.numpy()
        self.classifier = tuned_linear(x, y, split)
        return self.classifier.held_out_scores(x[train], y[train], cv=NUM_FOLDS, refit=False)


class _Ridge(StackedClassifier):
    name = "kernel ridge regression, tuned"
    settings: Any = kernel_ridge.DEFAULT_GRID
    metric = "f1_micro"

    def __init__(self) -> None:
        self.classifier: KernelRidgeBaseline = KernelRidgeBaseline()

    def fit(self, dataset: MultiLabelDataset, split: Split) -> np.ndarray:
        x, y = inputs_of(dataset), dataset.y
        parts = (values[rows] for rows in (split.train.numpy(), split.val.numpy()) for values in (x, y))
        metric = partial(best_value, metric=self.metric)
        self.classifier = KernelRidgeBaseline.tuned(*parts, grid=self.settings, metric=metric)
        return self.classifier.held_out_scores(x[split.train.numpy()], y[split.train])


class _ExactRidge(_Ridge):
    name = "kernel ridge regression, tuned for subset accuracy"
    settings = EXACT_GRID
    metric = "subset_accuracy"


class _Relative(StackedClassifier):
    r"""Probabilities relative to the frequency :math:`\pi` of their label, in units of :math:`\sqrt{\pi (1 - \pi)}`,
    which mean the same for rare and for frequent labels.
    """

    def __init__(self) -> None:
        self.frequency = LabelFrequency()

    @abstractmethod
    def fit_probabilities(self, train: MultiLabelDataset) -> np.ndarray:
        """Fits to training samples, and returns probabilities of them by classifiers fitted without them."""

    @abstractmethod
    def probabilities(self, dataset: MultiLabelDataset) -> np.ndarray:
        """The probabilities :math:`(N, L)` of any samples."""

    def fit(self, dataset: MultiLabelDataset, split: Split) -> np.ndarray:
        train = dataset[split.train]
        self.frequency.fit(train, train.y)
        return self._relative(self.fit_probabilities(train))

    def scores(self, dataset: MultiLabelDataset) -> np.ndarray:
        return self._relative(self.probabilities(dataset))

    def state_dict(self) -> dict[str, Any]:
        return {"classifier": self.classifier.state_dict(), "frequency": self.frequency.frequency}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.classifier.load_state_dict(state["classifier"])
        self.frequency.frequency = np.asarray(state["frequency"])

    def _relative(self, probability: np.ndarray) -> np.ndarray:
        frequency = self.frequency.frequency
        spread = np.sqrt(frequency * (1 - frequency))
        return np.where(spread > 0, (probability - frequency) / np.where(spread > 0, spread, 1), 0)


class _Forest(_Relative):
    name = "random forest on Morgan fingerprints"

    def __init__(self) -> None:
        super().__init__()
        self.classifier: ForestBaseline = ForestBaseline(500, criterion="gini", n_jobs=-1)
        self.settings = ("out of bag", self.classifier.get_params())

    def fit_probabilities(self, train: MultiLabelDataset) -> np.ndarray:
        return (self.classifier.held_out_scores(substructures(train), train.y) + 1) / 2

    def probabilities(self, dataset: MultiLabelDataset) -> np.ndarray:
        return self.classifier.predict_proba(substructures(dataset, self.classifier.n_features_in_ or NUM_BITS))

    def samples(self, dataset: MultiLabelDataset) -> list[Any]:
        return [substructures(dataset), dataset.y]


class _MoleculeRidge(_Relative):
    """Of the regressions of a grid the one whose scores of left-out samples rank best, on all vectors of molecules."""

    name = "kernel ridge regression on fingerprints and descriptors"
    settings = MOLECULE_GRID

    def __init__(self) -> None:
        super().__init__()
        self.classifier: KernelRidgeBaseline = KernelRidgeBaseline()
        self.vectors = MoleculeVectors()

    def fit_probabilities(self, train: MultiLabelDataset) -> np.ndarray:
        x, y = self.vectors.fit(train).matrix(train), train.y.numpy()
        fitted = [KernelRidgeBaseline(gamma, alpha) for gamma, alpha in MOLECULE_GRID]
        held_out = [ridge.held_out_scores(x, y) for ridge in fitted]
        best = int(np.nanargmax([macro_roc_auc(y, scores) for scores in held_out]))
        self.classifier = fitted[best]
        return (held_out[best] + 1) / 2

    def probabilities(self, dataset: MultiLabelDataset) -> np.ndarray:
        return (self.classifier.decision_function(self.vectors.matrix(dataset)) + 1) / 2

    def samples(self, dataset: MultiLabelDataset) -> list[Any]:
        return [*(dataset.rows(key) for key in VECTORS if key in dataset[0]), dataset.y]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "scalers": self.vectors.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.vectors.load_state_dict(state["scalers"])


#: The classifiers by kind: for words and vectors support vector machines, kernel ridge regression with the best
#: micro-F1, and the same with the best subset accuracy; for molecules a forest and kernel ridge regression.
RATERS: dict[str, type[StackedClassifier]] = {
    "svm": _SVM,
    "ridge": _Ridge,
    "exact": _ExactRidge,
    "forest": _Forest,
    "molecule_ridge": _MoleculeRidge,
}

#: What tables of results call them, by kind.
NAMES = {kind: rater.name for kind, rater in RATERS.items()}


def tuned_linear(x: Any, y: Tensor, split: Split, loss: Loss = "hinge", n_jobs: int = 1) -> LinearBaseline:
    """Classifiers fitted on training samples, of the regularisation with the best micro-F1 on validation samples.

    Args:
        x (scipy.sparse matrix or numpy.ndarray): Features of all samples :math:`(N, F)`.
        y (torch.Tensor): Their targets :math:`(N, L)`.
        split (Split): Which of them to train and to validate with.
        loss (str, optional): As of :class:`~tg_mlc.baselines.LinearBaseline`. (default: :obj:`"hinge"`)
        n_jobs (int, optional): Number of processes. (default: :obj:`1`)
    """
    train, val = split.train.numpy(), split.val.numpy()
    return LinearBaseline.tuned(x[train], y[train], x[val], y[val], loss=loss, n_jobs=n_jobs)


def substructures(dataset: MultiLabelDataset, num_bits: int = NUM_BITS) -> np.ndarray:
    """The circular substructures that molecules have, :math:`(N, F)`: Morgan fingerprints of radius 2."""
    if "morgan" in dataset[0] and dataset[0].morgan.size(1) == num_bits:
        counts = dataset.rows("morgan")
    else:
        add = Fingerprint("morgan", num_bits)
        counts = torch.cat([add(Data(smiles=data.smiles)).morgan for data in dataset])
    return counts.numpy() > 0
