"""Inputs of the estimators: what they are, and samples of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tg_mlc._options import check_choice
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import with_attribute
from tg_mlc.inputs import Chain, kind_of
from tg_mlc.inputs.kinds import KINDS, as_texts, infer_form, kind_of_form
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.sklearn.estimator import MultiLabelEstimator
from tg_mlc.stacking import StackingFeatures


class RawInputEstimator(MultiLabelEstimator):
    """Base of classifiers that take matrices, data frames, texts, SMILES and DNA.

    Attributes:
        inputs_ (str): The form of raw inputs, given or inferred.
    """

    inputs: str
    inputs_: str

    def _read_training_inputs(self, X: Any) -> Any:
        check_choice("inputs", self.inputs, ("auto", *(form for kind in KINDS for form in kind.forms)))
        self.inputs_ = infer_form(X) if self.inputs == "auto" else self.inputs
        return self._read(X, reset=True)

    def _read_inputs(self, X: Any) -> Any:
        return self._read(X, reset=False)

    def _read(self, X: Any, *, reset: bool) -> Any:
        if kind_of_form(self.inputs_).forms[self.inputs_].is_matrix:
            return self._read_matrix(X, reset=reset)
        texts = as_texts(X)
        if texts is None:
            raise ValueError(f"Expected a list or column of strings for inputs '{self.inputs_}' (got {X!r:.60})")
        return texts


def make_samples(
    inputs: str, X: Any, y: FloatArray, names: Sequence[str], train: npt.NDArray[np.intp]
) -> MultiLabelDataset:
    """Makes samples of inputs; the vocabulary of texts is that of training samples."""
    kind = kind_of_form(inputs)
    return kind.samples(kind.split(X), y, names, kind.forms[inputs].kind, train=train)


def samples_like(preprocessor: Chain, X: Any, y: FloatArray) -> MultiLabelDataset:
    """Makes samples of inputs with the words or columns of those before."""
    for step in preprocessor.steps:
        X = X if isinstance(X, MultiLabelDataset) else step.transform(X)
    samples: MultiLabelDataset = with_attribute(X, "y", torch.from_numpy(y))
    return samples


def preprocessor_of(samples: MultiLabelDataset, classifiers: Sequence[str], seed: int) -> Chain:
    """Makes the preprocessor of a model, not fitted yet."""
    steps = kind_of(samples).steps(scaled=not classifiers)
    return Chain(*steps, *([StackingFeatures(classifiers, seed=seed)] if classifiers else []))
