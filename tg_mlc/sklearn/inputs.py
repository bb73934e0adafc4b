"""Inputs of the estimators: what they are, and samples of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from tg_mlc._numbers import as_list
from tg_mlc._optional import is_installed, require
from tg_mlc._options import check_choice
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import with_attribute
from tg_mlc.inputs import Chain, MoleculeDataset, MoleculeInputs, from_arrays, tokenize
from tg_mlc.inputs.transforms import molecule_features
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.sklearn.estimator import MultiLabelEstimator
from tg_mlc.stacking import StackingFeatures, table_preprocessor
from tg_mlc.stacking.automatic import input_steps

Inputs = Literal["vectors", "bags", "texts", "smiles"]

_KINDS: dict[str, Any] = {"vectors": "vector", "bags": "bag", "texts": "sequence"}


class RawInputEstimator(MultiLabelEstimator):
    """Base of classifiers that take matrices, data frames, texts and SMILES.

    Attributes:
        inputs_ (str): What inputs were taken for.
    """

    inputs: Inputs | Literal["auto"]
    inputs_: Inputs

    def _read_training_inputs(self, X: Any) -> Any:
        check_choice("inputs", self.inputs, ("auto", "vectors", "bags", "texts", "smiles"))
        self.inputs_ = infer_inputs(X) if self.inputs == "auto" else self.inputs
        return self._read_matrix(X, reset=True) if self.inputs_ in ("vectors", "bags") else self._read_texts(X)

    def _read_inputs(self, X: Any) -> Any:
        return self._read_matrix(X, reset=False) if self.inputs_ in ("vectors", "bags") else self._read_texts(X)

    def _read_texts(self, X: Any) -> list[Any]:
        texts = as_texts(X)
        if texts is None:
            raise ValueError(f"Expected a list or column of strings for inputs '{self.inputs_}' (got {X!r:.60})")
        return texts


def infer_inputs(X: Any) -> Inputs:
    """What inputs are: a sparse matrix holds bags of words, a dense one vectors; strings are SMILES if all are
    molecules, and texts if at most half are.
    """
    texts = as_texts(X)
    if texts is None:
        return "bags" if sp.issparse(X) else "vectors"
    if not is_installed("rdkit"):
        return "texts"
    others = [row for row, text in enumerate(texts) if not _is_molecule(text)]
    if 0 < len(others) < len(texts) / 2:
        got = f"{len(others)} others, the first {texts[others[0]]!r} in row {others[0]}"
        raise ValueError(f"Expected SMILES alone (got {got}); leave these rows out, or pass inputs='texts'")
    return "texts" if others else "smiles"


def as_texts(X: Any) -> list[Any] | None:
    """A list of texts, or of lists of words, also in a data frame's only column, or nothing if inputs are none."""
    values = as_list(X[X.columns[0]] if len(getattr(X, "columns", ())) == 1 else X)
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind == "U":
        values = values.tolist()
    return values if isinstance(values, list) and values and all(map(_is_text, values)) else None


def make_samples(
    inputs: Inputs, X: Any, y: FloatArray, names: Sequence[str], train: npt.NDArray[np.intp]
) -> MultiLabelDataset:
    """Samples of inputs; the vocabulary of texts is that of training samples."""
    if inputs == "smiles":
        return MoleculeDataset.from_smiles(X, y, names, on_error="raise", pre_transform=molecule_features())
    X = [tokenize(text) if isinstance(text, str) else text for text in X] if inputs == "texts" else X
    return from_arrays(X, y, names, kind=_KINDS[inputs], train=train)


def samples_like(preprocessor: Chain, X: Any, y: FloatArray) -> MultiLabelDataset:
    """Samples of inputs with the words or columns of those before."""
    for step in preprocessor.steps:
        X = X if isinstance(X, MultiLabelDataset) else step.transform(X)
    samples: MultiLabelDataset = with_attribute(X, "y", torch.from_numpy(y))
    return samples


def preprocessor_of(samples: MultiLabelDataset, classifiers: Sequence[str], seed: int) -> Chain:
    """What is fitted to samples before a model."""
    if classifiers:
        return Chain(*input_steps(samples), StackingFeatures(classifiers, seed=seed))
    return Chain(MoleculeInputs()) if "smiles" in samples[0] else table_preprocessor(samples.kind, ())


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(word, str) for word in value)
    )


def _is_molecule(value: Any) -> bool:
    if not isinstance(value, str) or not value or any(letter.isspace() for letter in value):
        return False
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        return require("rdkit.Chem", extra="molecules").MolFromSmiles(value) is not None
