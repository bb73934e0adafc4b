"""Inputs in any usual form, as bags, vectors or sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp

from tg_mlc._frames import in_order, take_by_name
from tg_mlc._names import check_names
from tg_mlc._numbers import as_array, check_real, to_numbers, to_scipy
from tg_mlc._options import check_choice
from tg_mlc.data.records import Kind, Tokens
from tg_mlc.inputs._words import as_documents, from_documents, may_be_rows
from tg_mlc.inputs.tables import column_of, matrix_of, nominal_names


def infer_kind(X: Any) -> tuple[Kind, str]:
    """The kind of inputs, and the reason why they are of it."""
    documents = as_documents(X)
    if documents is not None:
        if may_be_rows(documents):
            hint = (
                "if they are rows of a matrix, pass kind='vector'; if numbers of words, pass kind='sequence' or 'bag'"
            )
            got = f"{len(documents)} of length {len(documents[0])}"
            raise ValueError(f"Expected 'kind' for lists of whole numbers all of one length (got {got}): {hint}")
        if any(isinstance(word, str) for document in documents for word in document):
            return "sequence", "they are lists of words"
        return "sequence", "they are lists of whole numbers, not all of one length, so that they are numbers of words"
    if _sparse(X) is not None:
        return "bag", "they are a sparse matrix"
    values = _dense(X)
    if values.dtype.kind in "biu" and values.size and values.min() >= 0 and values.max() <= 1:
        return "bag", "they are a matrix of the whole numbers 0 and 1"
    return "vector", "they are a dense matrix of numbers"


def announce_kind(kind: Kind, reason: str) -> Kind:
    """Prints the kind that inputs are taken for, where nobody told it, and returns it."""
    print(f"Taking the inputs as kind='{kind}' because {reason}; pass kind=... for another.")  # noqa: T201
    return kind


def num_rows(X: Any) -> int | None:
    """The number of inputs, told before they are read, or nothing if they are no inputs."""
    if isinstance(X, (list, tuple)):
        return len(X)
    shape = np.shape(X)
    return int(shape[0]) if shape else None


def without_nominal(X: Any, feature_names: Sequence[str] | None, is_old: bool) -> tuple[Any, Sequence[str] | None]:
    """A matrix in place of a data frame with nominal columns, and the names of its columns; all else as it is.

    With :obj:`is_old`, names are those of an old data set, which has columns for values of nominal ones.
    """
    if is_old:
        columns = [str(column) for column in getattr(X, "columns", ())]
        sources = list(dict.fromkeys(column_of(name, columns) for name in feature_names or ()))
        if not columns or sources == list(feature_names or ()):
            return X, feature_names
        return matrix_of(in_order(X, sources, "X"), list(feature_names or ())), feature_names
    if isinstance(feature_names, str):
        return X, feature_names  # which is refused below
    frame = take_by_name(X, feature_names, "feature_names")
    given = None if feature_names is None else [str(name) for name in feature_names]
    names = nominal_names(frame, given)
    return (X, feature_names) if names is None else (matrix_of(frame, names, given), names)


def read_inputs(
    X: Any, kind: Kind, feature_names: Sequence[str] | None, train: np.ndarray | None, num_inputs: int | None = None
) -> tuple[sp.csr_array | np.ndarray | Tokens, list[str] | None]:
    """The inputs in the form of their kind, and the names of their features.

    With :obj:`num_inputs`, features and their names are those of an old data set, and stay as they are.
    """
    check_choice("kind", kind, get_args(Kind))
    if isinstance(feature_names, str):
        raise ValueError(f"Expected 'feature_names' to be a list of names (got the string '{feature_names}')")
    documents = as_documents(X)
    if documents is not None and not (kind == "vector" and may_be_rows(documents)):
        return from_documents(documents, kind, feature_names, train, num_inputs)
    if kind == "sequence":
        raise ValueError("Expected lists of words for kind='sequence' (got a matrix); pass one list per sample")
    X = in_order(X, feature_names, "X") if num_inputs is not None else take_by_name(X, feature_names, "feature_names")
    x = _bags(X) if kind == "bag" else _vectors(X)
    if num_inputs not in (None, x.shape[1]):
        raise ValueError(f"Expected 'X' of {num_inputs} columns, as 'like' has (got {x.shape[1]})")
    given = feature_names if feature_names is not None else getattr(X, "columns", None)
    if given is None:
        return x, None
    names = [str(name) for name in given]
    check_names(names, x.shape[1], "feature_names")
    return x, names


def _bags(X: Any) -> sp.csr_array:
    matrix = _sparse(X)
    bags = sp.csr_array(_dense(X) if matrix is None else matrix).astype(np.float32)
    bags.sum_duplicates()
    bags.eliminate_zeros()  # a word of weight 0 is absent
    wrong = np.flatnonzero(~np.isfinite(bags.data))
    if wrong.size:
        row = int(np.searchsorted(bags.indptr, wrong[0], side="right")) - 1
        raise ValueError(_not_finite(bags.data[wrong[0]], row, int(bags.indices[wrong[0]])))
    return bags


def _vectors(X: Any) -> np.ndarray:
    matrix = _sparse(X)
    values = (_dense(X) if matrix is None else matrix.toarray()).astype(np.float32)
    wrong = np.argwhere(np.isinf(values))  # NaN is a value that is missing, which scalings know
    if wrong.size:
        raise ValueError(_not_finite(values[tuple(wrong[0])], *wrong[0]))
    return values


def _not_finite(value: float, row: int, column: int) -> str:
    return f"Expected finite inputs that 32 bits can hold (got {value} in row {row}, column {column})"


def _sparse(X: Any) -> sp.csr_array | None:
    """A matrix that is stored sparsely, or nothing."""
    X = to_scipy(X)
    if hasattr(X, "columns") and hasattr(X, "sparse"):  # a data frame of sparse columns
        X = X.sparse.to_coo()
    if not sp.issparse(X):
        return None
    check_real(X.dtype, "inputs")
    return sp.csr_array(X)


def _dense(X: Any) -> np.ndarray:
    """A matrix of numbers."""
    try:
        values = as_array(X)
    except ValueError as error:
        raise ValueError(f"Expected rows of one length in a matrix of inputs ({error})") from error
    if values.ndim != 2:
        expected = "inputs as a matrix of shape [num_samples, num_features] or as lists of words"
        hint = "split texts into words first, or take 'from_csv' with 'text_column'"
        raise ValueError(f"Expected {expected} (got an array of shape {list(values.shape)}); {hint}")
    return to_numbers(values, getattr(X, "columns", None), "inputs")
