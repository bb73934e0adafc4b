"""Formats of labels: predictions have the format of the training labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from tg_mlc._frames import as_frame
from tg_mlc._names import shorten
from tg_mlc._numbers import as_list, is_missing
from tg_mlc.data._label_values import are_names, names_in, numbers_as_names, read_labels
from tg_mlc.metrics._inputs import FloatArray

#: The smallest probability, chosen so that log odds are finite.
SMALLEST = 1e-12
_SETS = (set, frozenset, list, tuple)


@dataclass(frozen=True)
class LabelForm:
    """The format of the labels that an estimator was fitted to."""

    #: a matrix of 0, 1 and NaN, sets of names, or one class per sample
    form: Literal["matrix", "sets", "classes"]
    classes: npt.NDArray[Any]  #: the names or numbers of labels, or the classes
    dtype: npt.DTypeLike  #: the type of predictions

    @classmethod
    def read(cls, y: Any) -> tuple[LabelForm, FloatArray]:
        """Returns the format of labels, as in :meth:`LaMPClassifier.fit`, and their matrix."""
        y, numbers = numbers_as_names(_plain(y))
        if are_names(y):
            matrix, names = read_labels(y, numbers)
            originals = {str(name): name for row in y if isinstance(row, _SETS) for name in row}
            values = [originals[name] for name in names]  # The original names may be numbers.
            are_str = all(isinstance(value, str) for value in values)
            return cls("sets", np.array(values, dtype=None if are_str else object), object), matrix
        # A single column holds classes unless all its values are 0, 1 or missing.
        is_matrix = sp.issparse(y) or np.ndim(y) > 1
        if not sp.issparse(y) and np.ndim(y) == 2 and np.shape(y)[1] == 1:
            entries = np.asarray(y).flat
            is_matrix = all(is_missing(entry) or entry in (0, 1) for entry in entries)
        if is_matrix:
            matrix, names = read_labels(y, None)
            classes = np.array(names) if hasattr(y, "columns") else np.arange(len(names))
            dtype = y.dtype if sp.issparse(y) else np.asarray(y).dtype
            dtype = dtype if dtype.kind in "biuf" else np.dtype(float)
            return cls("matrix", classes, dtype), matrix
        y = _read_classes(y)
        classes = np.unique(y)
        if len(classes) < 2:
            got = f"1 class: {classes.tolist()}"
            raise ValueError(f"Expected labels of at least 2 classes (got {got})")
        form = cls("classes", classes, classes.dtype)
        return form, form._one_hot(y)

    @property
    def names(self) -> list[str]:
        """The name of each column of the matrix."""
        return [str(name) for name in (self.classes[1:] if self.is_binary else self.classes)]

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes; the matrix then only has a column for the second."""
        return self.form == "classes" and len(self.classes) == 2

    def state_dict(self) -> dict[str, Any]:
        """Returns the format as plain data."""
        types = {"classes": self.classes.dtype.str, "labels": np.dtype(self.dtype).str}
        return {"form": self.form, "classes": self.classes.tolist(), "types": types}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LabelForm:
        """Restores a format from its state."""
        types = {name: np.dtype(text) for name, text in state["types"].items()}
        return cls(state["form"], np.array(state["classes"], types["classes"]), types["labels"])

    def encode(self, y: Any, *, unseen: bool = False) -> FloatArray:
        """Returns the matrix :math:`(N, L)` of labels; ``unseen`` allows columns for new names."""
        y, _ = numbers_as_names(_plain(y))
        if self.form == "classes":
            y = _read_classes(y)
            if unknown := sorted({*y.tolist()} - {*self.classes.tolist()}):
                expected = f"Expected 'y' to hold classes among {shorten(self.classes.tolist())}"
                raise ValueError(f"{expected} (got {unknown[:5]})")
            return self._one_hot(y)
        has_names = self.form == "sets" or hasattr(y, "columns") or are_names(y)
        names = self.names if has_names else None
        if are_names(y):
            entries = (names_in(entry, lambda: "'y'") for entry in y if isinstance(entry, _SETS))
            new_names = sorted(set().union(*filter(None, entries)) - {*self.names})
            if new_names and not unseen:
                got = f"others: {new_names[:5]}"
                raise ValueError(f"Expected names of labels that training samples have (got {got})")
            names = [*self.names, *new_names]
        matrix, _ = read_labels(y, names, len(self.classes))
        return matrix

    def decide(self, margins: FloatArray) -> Any:
        """Returns the labels for margins :math:`(N, L)`, in this format."""
        if self.is_binary:
            return self.classes[(margins[:, 0] > 0).astype(int)]
        if self.form == "classes":
            return self.classes[margins.argmax(axis=1)]
        if self.form == "sets":
            return [set(self.classes[row].tolist()) for row in margins >= 0]
        return (margins >= 0).astype(self.dtype)

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Returns the scores :math:`(N, L)` of labels; scores of classes sum to one."""
        if self.is_binary:
            return np.hstack([1 - scores, scores])
        if self.form != "classes":
            return scores
        scores = np.maximum(scores, SMALLEST)  # The sum must not be zero.
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def _one_hot(self, y: npt.NDArray[Any]) -> FloatArray:
        classes = self.classes[1:] if self.is_binary else self.classes
        return np.asarray((y[:, None] == classes).astype(np.float32))


def _plain(y: Any) -> Any:
    """Returns labels as a list, a matrix or a data frame."""
    y = as_list(as_frame(y))
    return y if isinstance(y, (list, tuple)) or hasattr(y, "shape") else np.asarray(y)


def _read_classes(y: Any) -> npt.NDArray[Any]:
    classes = column_or_1d(y, warn=True)
    assert_all_finite(classes, input_name="y")
    check_classification_targets(classes)
    return np.asarray(classes)
