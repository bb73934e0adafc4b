"""Readers of matrices, data frames and lists, and the base class of words and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from typing_extensions import Self

from tg_mlc._frames import in_order, take_by_name
from tg_mlc._names import check_names
from tg_mlc._numbers import as_array, check_real, to_numbers, to_scipy
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.inputs.cells import clean
from tg_mlc.inputs.kind import InputKind, num_rows
from tg_mlc.inputs.rows import ReadRows, read_rows
from tg_mlc.inputs.schema import Column, Schema, cells_of, hints_of, is_dense_frame

Document = Sequence[Any]


class TableKind(InputKind):
    """Base class of the kinds of input whose samples are words or vectors.

    It accepts the same inputs as :func:`~tg_mlc.data.from_arrays` with :obj:`like`.

    Raises:
        ValueError: If :meth:`fit` or :meth:`transform` gets samples of another kind, or samples
            whose words or columns differ from those of training.
    """

    kind: str  #: the kind of :class:`~tg_mlc.data.MultiLabelDataset`
    feature_names: list[str] | None  #: the vocabulary, or the names of columns
    num_inputs: int  #: the size of the vocabulary, or the number of columns
    #: dictionary of the training :class:`~tg_mlc.inputs.schema.Schema`
    schema: dict[str, Any] | None = None
    _schema_cache: tuple[dict[str, Any], Schema] | None = None

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        if not self.matches(dataset) or dataset.kind is None or dataset.num_inputs is None:
            expected = " or ".join(repr(form.kind) for form in self.forms.values())
            got = f"{dataset} of kind {dataset.kind!r}"
            raise ValueError(f"Expected samples of kind {expected} (got {got})")
        self.kind, self.num_inputs = dataset.kind, dataset.num_inputs
        self.feature_names = dataset.feature_names
        self.schema = None if dataset.schema is None else dataset.schema.to_dict()
        return super().fit(dataset, split)

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Makes samples of raw inputs; existing samples need the training words or columns."""
        samples = super().transform(raw)
        attributes = ("kind", "num_inputs", "feature_names")
        if any(getattr(samples, name) != getattr(self, name) for name in attributes):
            size = f"the {self.num_inputs} words or columns of the training samples"
            got = f"(got {samples} of kind {samples.kind!r})"
            hint = "pass raw inputs, or take 'from_arrays(..., like=...)'"
            raise ValueError(f"Expected samples of kind {self.kind!r} with {size} {got}; {hint}")
        return samples

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return {name: value for name, value in state.items() if name != "_schema_cache"}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        super().load_state_dict(state)
        self._training_schema()  # Raises ValueError if the schema cannot be read.
        return self

    def _training_schema(self) -> Schema | None:
        """Returns the schema of the training table, cached because a call may have one row."""
        if self.schema is None:
            return None
        if self._schema_cache is None or self._schema_cache[0] is not self.schema:
            self._schema_cache = self.schema, Schema.from_dict(self.schema)
        return self._schema_cache[1]

    def _schema_for(self, names: list[str]) -> Schema:
        """Returns the schema for rows with these columns; without old names, in this order."""
        if (schema := self._training_schema()) is not None:
            return schema
        if self.feature_names is not None:
            return Schema.of_names(self.feature_names, dict.fromkeys(names))
        return Schema([Column(name, "number") for name in names])

    def _read_rows(self, rows: list[Any]) -> ReadRows:
        ordered = self.schema is None and self.feature_names is None
        return read_rows(rows, self.num_inputs, self._schema_for, ordered=ordered)

    def _read_frame(self, frame: Any) -> ReadRows:
        """Reads the training columns of a data frame, which may have them in any order."""
        refused = dict[int, str]()
        names = [clean(str(name)) for name in frame.columns]
        matrix = self._schema_for(names).matrix(frame, refused=refused)
        if matrix.shape[1] != self.num_inputs:
            got = f"the columns {names[:20]}"
            raise ValueError(f"Expected rows of {self.num_inputs} columns (got {got})")
        return matrix, refused

    def _of_matrix(self, matrix: np.ndarray, refused: dict[int, str]) -> MultiLabelDataset:
        """Makes samples of a matrix. Raises ValueError if a row was refused."""
        for row, reason in refused.items():
            raise ValueError(f"{reason} in row {row}")
        return self._new_samples(matrix)

    def _new_samples(self, raw: Any) -> MultiLabelDataset:
        if is_dense_frame(raw):
            return self._of_matrix(*self._read_frame(raw))
        size: dict[str, Any] = {"feature_names": self.feature_names, "num_inputs": self.num_inputs}
        y = self._unknown(num_rows(raw) or 0)
        return self.samples(raw, y, self.label_names, self.kind, **size)

    def _column(self, raw: Any) -> Any:
        """Selects the training columns of a sparse data frame; other inputs stay unchanged."""
        if not hasattr(raw, "columns") or is_dense_frame(raw):
            return raw
        names = {*(self.feature_names or ())}
        columns = [column for column in raw.columns if str(column) in names]
        return raw[columns] if columns and len(columns) == len(names) else raw


def as_documents(X: Any) -> list[Document] | None:
    """Converts rows to lists of strings or whole numbers; :obj:`None` for other inputs."""
    if not isinstance(X, (list, tuple)) or not X:
        return None
    documents = [row.tolist() if isinstance(row, (np.ndarray, torch.Tensor)) else row for row in X]
    if not all(isinstance(row, (list, tuple)) for row in documents):
        return None
    types = set(map(type, chain.from_iterable(documents)))
    are_words = all(issubclass(t, (str, int, np.integer)) and t is not bool for t in types)
    return documents if are_words else None


def may_be_rows(documents: list[Document]) -> bool:
    """Tells whether documents may also be the rows of a matrix of numbers."""
    lengths = set(map(len, documents))
    if len(lengths) > 1 or 0 in lengths:
        return False
    return not any(isinstance(word, str) for word in chain.from_iterable(documents))


def read_frame(
    X: Any,
    feature_names: Sequence[str] | None,
    kind: str | None,
    *,
    is_old: bool,
    schema: Schema | None = None,
) -> tuple[Any, Sequence[str] | None, Schema | None]:
    """Converts a data frame to a matrix, column names and a schema, by the rules for files. Other
    inputs, and data frames of sparse columns, are returned unchanged.

    If :obj:`is_old`, the names and the schema come from an earlier data set.
    """
    if not is_dense_frame(X) or (is_old and schema is None and feature_names is None):
        return X, feature_names, None
    if is_old and schema is not None:
        return schema.matrix(X), feature_names, schema
    if is_old:
        old_schema = Schema.of_names(feature_names or (), dict.fromkeys(map(str, X.columns)))
        frame = in_order(X, [column.name for column in old_schema.columns], "X")
        return old_schema.matrix(frame), feature_names, None
    X = take_by_name(X, feature_names, "feature_names")
    cells = cells_of(X)
    if feature_names is not None:
        check_names(names := [str(name) for name in feature_names], len(cells), "feature_names")
        cells = dict(zip(names, cells.values(), strict=True))
    # Columns of bags are words, which the caller has chosen.
    is_chosen = feature_names is not None or kind == "bag"
    schema = Schema.infer(cells, {}, hints_of(X, cells), chosen=is_chosen)
    if not schema.inputs:
        got = "; ".join(schema.summary())
        raise ValueError(f"Expected a column of inputs in 'X' (got none: {got})")
    schema.announce()
    return schema.matrix(cells), schema.feature_names, schema


def read_matrix(
    X: Any, feature_names: Sequence[str] | None, num_inputs: int | None, *, sparse: bool
) -> tuple[sp.csr_array | np.ndarray, list[str] | None]:
    """Converts inputs to a sparse or dense matrix of single precision; also returns column names.

    If :obj:`num_inputs` is specified, columns and their names must be those of an earlier data set.
    """
    if num_inputs is not None:
        X = in_order(X, feature_names, "X")
    else:
        X = take_by_name(X, feature_names, "feature_names")
    matrix = sparse_matrix(X)
    if sparse:
        x = sp.csr_array(dense_matrix(X) if matrix is None else matrix).astype(np.float32)
        x.sum_duplicates()
        x.eliminate_zeros()  # A word of weight 0 is absent.
        not_finite = np.flatnonzero(~np.isfinite(x.data))
        if not_finite.size:
            row = int(np.searchsorted(x.indptr, not_finite[0], side="right")) - 1
            _raise_not_finite(x.data[not_finite[0]], row, int(x.indices[not_finite[0]]))
    else:
        with np.errstate(over="ignore"):
            x = (dense_matrix(X) if matrix is None else matrix.toarray()).astype(np.float32)
        infinite = np.argwhere(np.isinf(x))  # NaN is allowed, as a missing value.
        if infinite.size:
            _raise_not_finite(x[tuple(infinite[0])], *infinite[0])
    if num_inputs not in (None, x.shape[1]):
        raise ValueError(f"Expected 'X' of {num_inputs} columns, as 'like' has (got {x.shape[1]})")
    is_named = feature_names is not None or num_inputs is not None
    columns = feature_names if is_named else getattr(X, "columns", None)
    if columns is None:
        return x, None
    names = [str(name) for name in columns]
    check_names(names, x.shape[1], "feature_names")
    return x, names


def sparse_matrix(X: Any) -> sp.csr_array | None:
    """Converts sparse inputs to a SciPy array; returns :obj:`None` for other inputs."""
    X = to_scipy(X)
    if hasattr(X, "columns") and hasattr(X, "sparse"):  # a data frame of sparse columns
        X = X.sparse.to_coo()
    if not sp.issparse(X):
        return None
    check_real(X.dtype, "inputs")
    return sp.csr_array(X)


def dense_matrix(X: Any) -> np.ndarray:
    """Converts inputs that are not sparse to a matrix of numbers."""
    try:
        values = as_array(X)
    except ValueError as error:
        raise ValueError(f"Expected rows of one length in a matrix of inputs ({error})") from error
    if values.ndim != 2:
        expected = "inputs as a matrix of shape [num_samples, num_features] or as lists of words"
        got = f"an array of shape {list(values.shape)}" if values.ndim else f"a {type(X).__name__}"
        hint = "split texts into words first, or take 'from_csv' with 'text_column'"
        raise ValueError(f"Expected {expected} (got {got}); {hint}")
    return to_numbers(values, getattr(X, "columns", None), "inputs")


def _raise_not_finite(value: float, row: int, column: int) -> None:
    got = f"{value} in row {row}, column {column}"
    raise ValueError(f"Expected finite inputs that 32 bits can hold (got {got})")
