"""Base of the estimators that take texts and molecules too."""

from __future__ import annotations

from typing import Any, Literal

from tg_mlc._options import check_choice
from tg_mlc.sklearn.estimator import MultiLabelEstimator
from tg_mlc.sklearn.inputs import Inputs, as_texts, infer_inputs


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
