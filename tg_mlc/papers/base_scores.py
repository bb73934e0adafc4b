"""Base scores for recipes of published data sets, by classifiers tuned on validation samples.

This module is not part of :mod:`tg_mlc.papers.recipes`, because recipes need Lightning, and loading
a model with its classifiers does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from typing_extensions import Self

from tg_mlc._names import register
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import inputs_of
from tg_mlc.inputs import Chain
from tg_mlc.inputs.kind import View
from tg_mlc.inputs.kinds import kind_named
from tg_mlc.stacking.classifiers import ClassifierSearch
from tg_mlc.stacking.features import StackingFeatures

_RIDGE = "kernel ridge regression"
_HINGE = tuple(product(["hinge"], (0.1, 0.3, 1.0, 3.0, 10.0)))  # (loss, C)
_KERNELS = tuple(product((0.25, 0.5, 1.0), (0.03, 0.1, 0.3, 1.0)))  # (gamma, alpha)
# Weakly regularised regression memorises training samples, and thus label sets of duplicates.
_EXACT = tuple(product((1.0,), (0.01, 0.03, 0.1, 0.3)))
# Settings for molecules, whose concatenated vectors have unit length.
_UNIT_LENGTH = tuple(product((1.0, 2.0, 4.0), (0.3, 1.0, 3.0)))
_GINI = {"n_estimators": 500, "criterion": "gini", "n_jobs": -1}

_TABLE: dict[str, Any] = {"reading": "raw", "view": "inputs"}
_MOLECULE: dict[str, Any] = {"reading": "relative", "metric": "roc_auc_macro"}
#: The classifiers of published data sets: support vector machines and kernel ridge regression on
#: raw words and vectors; a forest and kernel ridge regression on molecules.
PUBLISHED: dict[str, ClassifierSearch] = {
    "svm": ClassifierSearch(
        "linear SVM, tuned", "linear", settings=_HINGE, metric="f1_micro", **_TABLE
    ),
    "ridge": ClassifierSearch(
        f"{_RIDGE}, tuned", "kernel_ridge", settings=_KERNELS, metric="f1_micro", **_TABLE
    ),
    "exact": ClassifierSearch(
        title=f"{_RIDGE}, tuned for subset accuracy",
        baseline="kernel_ridge",
        settings=_EXACT,
        metric="subset_accuracy",
        **_TABLE,
    ),
    "forest": ClassifierSearch(
        title="random forest on Morgan fingerprints",
        baseline="forest",
        settings=((1, 1),),
        view="morgan_bits",
        options=_GINI,
        **_MOLECULE,
    ),
    "molecule_ridge": ClassifierSearch(
        title=f"{_RIDGE} on fingerprints and descriptors",
        baseline="kernel_ridge",
        settings=_UNIT_LENGTH,
        view="vectors",
        **_MOLECULE,
    ),
}


class InputMatrix(View):
    """The words or vectors of a data set, unchanged."""

    def matrix(self, dataset: MultiLabelDataset) -> Any:
        return inputs_of(dataset)


class MorganBits(View):
    """The presence of Morgan substructures, folded to the number of bits in the fitted samples."""

    num_bits: int

    def fit(self, dataset: MultiLabelDataset) -> Self:
        self.num_bits = dataset.rows("morgan").size(1)
        return self

    def matrix(self, dataset: MultiLabelDataset) -> np.ndarray:
        bits: np.ndarray = dataset.rows("morgan").numpy() > 0
        folded = bits.reshape(len(bits), -1, self.num_bits).any(axis=1)
        return np.asarray(folded, dtype=np.float32)

    def state_dict(self) -> dict[str, Any]:
        return {"num_bits": self.num_bits}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.num_bits = state["num_bits"]
        return self


register("view", InputMatrix, "inputs")
register("view", MorganBits, "morgan_bits")


def table_preprocessor(kind: str | None, classifiers: Sequence[str] = ("svm", "ridge")) -> Chain:
    """Returns steps that scale inputs, and add scores of classifiers tuned on validation samples.

    Args:
        kind (str): The :obj:`kind` of a data set.
        classifiers (Sequence[str], optional): Among :obj:`"svm"`, :obj:`"ridge"` (kernel ridge
            regression) and :obj:`"exact"` (kernel ridge regression, tuned for subset accuracy).
            (default: :obj:`("svm", "ridge")`)
    """
    features = [published_features(classifiers)] if classifiers else []
    return Chain(*kind_named(kind).steps(scaled=True), *features)


def published_features(classifiers: Sequence[str] = ("svm", "ridge")) -> StackingFeatures:
    """Returns stacking features of classifiers, as in recipes of published data sets.

    Args:
        classifiers (Sequence[str], optional): Keys of :obj:`PUBLISHED`.
            (default: :obj:`("svm", "ridge")`)
    """
    return StackingFeatures(classifiers, PUBLISHED)
