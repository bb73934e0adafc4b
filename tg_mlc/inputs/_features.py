"""Tables of features: matrices and lists in any usual form, and the base of the kinds that are read from them."""

from __future__ import annotations

from collections.abc import Sequence
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
from tg_mlc.inputs.kind import InputKind, num_rows
from tg_mlc.inputs.rows import ReadRows, read_rows
from tg_mlc.inputs.schema import Column, Schema, cells_of, hints_of, is_dense_frame

Document = Sequence[Any]


class TableKind(InputKind):
    """Base of words and vectors, which a model receives by their numbers or places.

    It takes all that :func:`~tg_mlc.data.from_arrays` takes with :obj:`like`.

    Raises:
        ValueError: On use, if samples are of another kind, or have other words or columns than those that it was fitted
            to.
    """

    kind: str  #: of the samples, as of :class:`~tg_mlc.data.MultiLabelDataset`
    feature_names: list[str] | None  #: the vocabulary, or the names of columns
    num_inputs: int  #: the size of the vocabulary, or of a row
    #: what the columns were, as of :class:`~tg_mlc.inputs.schema.Schema`
    schema: dict[str, Any] | None = None
    _read_schema: tuple[dict[str, Any], Schema] | None = None

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        if not self.matches(dataset) or dataset.kind is None or dataset.num_inputs is None:
            expected = " or ".join(repr(form.kind) for form in self.forms.values())
            raise ValueError(
                f"Expected samples of kind {expected} (got {dataset} of kind {dataset.kind!r})"
            )
        self.kind, self.feature_names, self.num_inputs = (
            dataset.kind,
            dataset.feature_names,
            dataset.num_inputs,
        )
        self.schema = None if dataset.schema is None else dataset.schema.to_dict()
        return super().fit(dataset, split)

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Samples of raw inputs; samples as they are, if they have the same words or columns."""
        samples = super().transform(raw)
        if any(
            getattr(samples, name) != getattr(self, name)
            for name in ("kind", "num_inputs", "feature_names")
        ):
            expected = f"samples of kind {self.kind!r} with the {self.num_inputs} words or columns of those before"
            got = f"{samples} of kind {samples.kind!r}"
            raise ValueError(
                f"Expected {expected} (got {got}); pass raw inputs, or take 'from_arrays(..., like=...)'"
            )
        return samples

    def state_dict(self) -> dict[str, Any]:
        return {
            name: value for name, value in super().state_dict().items() if name != "_read_schema"
        }

    def _schema(self) -> Schema | None:
        """The schema of the training table, which is read once because rows may come one by one."""
        if self.schema is None:
            return None
        if self._read_schema is None or self._read_schema[0] is not self.schema:
            self._read_schema = self.schema, Schema.from_dict(self.schema)
        return self._read_schema[1]

    def _schema_of(self, names: list[str]) -> Schema:
        """The schema of rows by the names of their columns, which are in order if training had no names."""
        if (schema := self._schema()) is not None:
            return schema
        if self.feature_names is not None:
            return Schema.of_names(self.feature_names, dict.fromkeys(names))
        return Schema([Column(name, "number") for name in names])

    def _read_rows(self, rows: list[Any]) -> ReadRows:
        return read_rows(rows, self.num_inputs, self._schema_of)

    def _of_rows(self, rows: list[Any]) -> MultiLabelDataset:
        """Samples of rows of numbers, or by names of columns."""
        matrix, refused = self._read_rows(rows)
        for row, reason in refused.items():
            raise ValueError(f"{reason} in row {row}")
        return self._new_samples(matrix)

    def _new_samples(self, raw: Any) -> MultiLabelDataset:
        raw = read_frame(raw, self.feature_names, self.kind, is_old=True, schema=self._schema())[0]
        old: dict[str, Any] = {"feature_names": self.feature_names, "num_inputs": self.num_inputs}
        return self.samples(
            raw, self._unknown(num_rows(raw) or 0), self.label_names, self.kind, **old
        )

    def _column(self, raw: Any) -> Any:
        """A data frame's columns that training had, if all are there."""
        if not hasattr(raw, "columns") or self.schema is not None:
            return raw
        columns = [str(column) for column in raw.columns]
        wanted = {
            column.name for column in Schema.of_names(self.feature_names or (), columns).columns
        }
        if not wanted or not wanted.issubset(columns):
            return raw
        return raw[
            [own for own, column in zip(raw.columns, columns, strict=True) if column in wanted]
        ]


def as_documents(X: Any) -> list[Document] | None:
    """Lists of strings or whole numbers; :obj:`None` if the inputs are something else."""
    if not isinstance(X, (list, tuple)) or not X:
        return None
    documents = [row.tolist() if isinstance(row, (np.ndarray, torch.Tensor)) else row for row in X]
    if not all(isinstance(row, (list, tuple)) for row in documents):
        return None
    types = set(map(type, chain.from_iterable(documents)))
    if not all(issubclass(each, (str, int, np.integer)) and each is not bool for each in types):
        return None
    return documents


def may_be_rows(documents: list[Document]) -> bool:
    """Tells whether documents may as well be the rows of a matrix of numbers."""
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
    """A data frame as a matrix, the names of its columns, and its schema, by the rules of files; anything else, and a
    frame of sparse columns, as it is.

    With :obj:`is_old`, names are those of an old data set, as is the schema, if it had one.
    """
    if not is_dense_frame(X) or (is_old and schema is None and feature_names is None):
        return X, feature_names, None
    if is_old:
        if schema is None:
            old = Schema.of_names(feature_names or (), dict.fromkeys(map(str, X.columns)))
            return (
                old.matrix(cells_of(in_order(X, [column.name for column in old.columns], "X"))),
                feature_names,
                None,
            )
        return schema.matrix(cells_of(X)), feature_names, schema
    X = take_by_name(X, feature_names, "feature_names")
    cells = cells_of(X)
    if feature_names is not None:
        check_names(names := [str(name) for name in feature_names], len(cells), "feature_names")
        cells = dict(zip(names, cells.values(), strict=True))
    chosen = feature_names is not None or kind == "bag"  # whose columns are words
    schema = Schema.infer(cells, {}, hints_of(X, cells), chosen=chosen)
    if not schema.inputs:
        raise ValueError(
            f"Expected a column of inputs in 'X' (got none: {'; '.join(schema.summary())})"
        )
    schema.announce()
    return schema.matrix(cells), schema.feature_names, schema


def read_matrix(
    X: Any, feature_names: Sequence[str] | None, num_inputs: int | None, *, sparse: bool
) -> tuple[sp.csr_array | np.ndarray, list[str] | None]:
    """A sparse or dense matrix of single precision, and the names of its columns.

    With :obj:`num_inputs`, columns and their names are those of an old data set, and stay as they are.
    """
    X = (
        in_order(X, feature_names, "X")
        if num_inputs is not None
        else take_by_name(X, feature_names, "feature_names")
    )
    matrix = sparse_matrix(X)
    if sparse:
        x = sp.csr_array(dense_matrix(X) if matrix is None else matrix).astype(np.float32)
        x.sum_duplicates()
        x.eliminate_zeros()  # a word of weight 0 is absent
        wrong = np.flatnonzero(~np.isfinite(x.data))
        if wrong.size:
            row = int(np.searchsorted(x.indptr, wrong[0], side="right")) - 1
            _refuse(x.data[wrong[0]], row, int(x.indices[wrong[0]]))
    else:
        with np.errstate(over="ignore"):
            x = (dense_matrix(X) if matrix is None else matrix.toarray()).astype(np.float32)
        infinite = np.argwhere(np.isinf(x))  # NaN is a missing value, which scalers take
        if infinite.size:
            _refuse(x[tuple(infinite[0])], *infinite[0])
    if num_inputs not in (None, x.shape[1]):
        raise ValueError(f"Expected 'X' of {num_inputs} columns, as 'like' has (got {x.shape[1]})")
    given = (
        feature_names
        if feature_names is not None or num_inputs is not None
        else getattr(X, "columns", None)
    )
    if given is None:
        return x, None
    names = [str(name) for name in given]
    check_names(names, x.shape[1], "feature_names")
    return x, names


def sparse_matrix(X: Any) -> sp.csr_array | None:
    """A matrix that is stored sparsely; :obj:`None` for any other."""
    X = to_scipy(X)
    if hasattr(X, "columns") and hasattr(X, "sparse"):  # a data frame of sparse columns
        X = X.sparse.to_coo()
    if not sp.issparse(X):
        return None
    check_real(X.dtype, "inputs")
    return sp.csr_array(X)


def dense_matrix(X: Any) -> np.ndarray:
    """A matrix of numbers."""
    try:
        values = as_array(X)
    except ValueError as error:
        raise ValueError(f"Expected rows of one length in a matrix of inputs ({error})") from error
    if values.ndim != 2:
        expected = "inputs as a matrix of shape [num_samples, num_features] or as lists of words"
        hint = "split texts into words first, or take 'from_csv' with 'text_column'"
        raise ValueError(
            f"Expected {expected} (got an array of shape {list(values.shape)}); {hint}"
        )
    return to_numbers(values, getattr(X, "columns", None), "inputs")


def _refuse(value: float, row: int, column: int) -> None:
    raise ValueError(
        f"Expected finite inputs that 32 bits can hold (got {value} in row {row}, column {column})"
    )
