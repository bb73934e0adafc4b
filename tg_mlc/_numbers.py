"""Numbers: parsing of texts and cells, and conversion of matrices of other libraries."""

from __future__ import annotations

import math
import re
from collections.abc import KeysView, Sequence, ValuesView
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_IS_NUMBER = re.compile(NUMBER)
_SEQUENCES = (Sequence, KeysView, ValuesView)
#: Spellings of unknown values in inputs and labels, in lower case. A minus sign also means unknown
#: if all other cells are numbers or labels.
MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "nat", "null", "none", r"\n", "?"}
)

_TRUTHS = """
false true  no yes  f t  n y  off on  .false. .true.  absent present  neg pos  negative positive
irrelevant relevant  nein ja  nee ja  nej ja  non oui  no sí  no si  não sim  нет да  ні так  否 是
いいえ はい
"""
#: Pairs of words for 0 and 1. A column of inputs is binary only if both words occur.
TRUTHS = tuple(zip(_TRUTHS.split()[::2], _TRUTHS.split()[1::2], strict=True))


def parse_number(text: str) -> float | None:
    """Parses a number. Returns None for other texts, also for some that :func:`float` accepts:
    :obj:`"1_000"`, digits of other scripts, and infinity.
    """
    return float(text) if _IS_NUMBER.fullmatch(text) else None


def as_list(values: Any) -> Any:
    """Converts a column of Python objects, or any sequence but a string, to a list. Matrices and
    columns of numbers are unchanged. Rows that are sequences become lists, too.
    """
    if isinstance(values, list) and {*map(type, values)} <= {str, list}:
        return values
    values = values.to_numpy() if hasattr(values, "to_list") else values
    if getattr(values, "ndim", None) == 1 and getattr(values.dtype, "kind", None) in ("O", "U"):
        # Cells of Parquet files may be arrays.
        return [row.tolist() if isinstance(row, np.ndarray) else _row(row) for row in values]
    is_text = isinstance(values, (str, bytes, bytearray))
    is_sequence = isinstance(values, _SEQUENCES) and not is_text and not hasattr(values, "shape")
    return list(map(_row, values)) if is_sequence else values


def _row(row: Any) -> Any:
    """Returns a row as a list if it is a sequence; arrays of numbers are unchanged."""
    if isinstance(row, (str, bytes, list, tuple, Tensor)):
        return row
    if hasattr(row, "to_pylist"):  # a row of pyarrow
        return row.to_pylist()
    if isinstance(row, np.ndarray):
        return row.tolist() if row.dtype.kind in "OU" else row
    return list(row) if isinstance(row, _SEQUENCES) else row


def as_array(values: Any) -> np.ndarray:
    """Converts any matrix to a dense array, also tensors of a dtype that NumPy lacks."""
    if isinstance(values, Tensor):
        is_half = values.is_floating_point() and values.element_size() < 4
        return np.asarray((values.float() if is_half else values).to_dense().numpy(force=True))
    if isinstance(values, np.ma.MaskedArray):  # A masked entry is unknown.
        masked: np.ndarray = values.astype(np.float64 if values.dtype.kind in "biuf" else object)
        return np.asarray(masked.filled(np.nan))  # type: ignore[attr-defined]
    if isinstance(values, (list, tuple)):
        values = [as_array(row) if isinstance(row, Tensor) else row for row in values]
    return np.asarray(values.toarray() if sp.issparse(values) else values)


def shape_of(array: np.ndarray, values: Any) -> str:
    """Returns the shape of an array for a message, or the type of values that are no array."""
    return f"a {type(values).__name__}; pass a list" if array.ndim == 0 else str(list(array.shape))


def to_scipy(values: Any) -> Any:
    """Converts a sparse tensor to a SciPy array. Returns other values unchanged."""
    if not isinstance(values, Tensor) or values.layout == torch.strided:
        return values
    entries: Tensor = values.detach().cpu().to_sparse(layout=torch.sparse_coo).coalesce()
    numbers = as_array(entries.values())
    return sp.coo_array((numbers, entries.indices().numpy()), shape=tuple(entries.shape))


def to_label_csr(y: Any) -> sp.csr_array:
    """Returns labels ``[N, L]``, dense or sparse, as a new sparse matrix of ones and NaNs."""
    y = to_scipy(y)
    if not sp.issparse(y):
        values = as_array(y)
        if values.ndim != 2:
            got = f"shape {list(values.shape)}"
            raise ValueError(f"Expected 'y' to be a matrix [num_samples, num_labels] (got {got})")
        y = to_numbers(values, getattr(y, "columns", None), "'y'")
    check_real(y.dtype, "'y'")
    # The copy protects the caller's index arrays, which are changed in place below.
    labels = sp.csr_array(y, dtype=np.float32, copy=True)
    labels.sum_duplicates()
    labels.eliminate_zeros()
    is_invalid = ~((labels.data == 1) | np.isnan(labels.data))
    if is_invalid.any():
        got = f"{labels.data[is_invalid][0]:g}"
        raise ValueError(f"Expected 'y' to hold 0, 1, or NaN for unknown (got {got})")
    return labels


def to_numbers(values: np.ndarray, columns: Any, noun: str) -> np.ndarray:
    """Converts a matrix of Python objects to numbers, with NaN for None and pandas' NA."""
    check_real(values.dtype, noun)
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind in "OU":
        with suppress(TypeError, ValueError):
            return values.astype(np.float64)
    numbers = np.empty(values.shape, dtype=np.float64)
    for (row, column), value in np.ndenumerate(values):
        try:
            numbers[row, column] = np.nan if is_missing(value) else float(value)
        except (TypeError, ValueError):
            name = column if columns is None else f"'{columns[column]}'"
            got = f"{str(value)[:80]!r} in row {row}, column {name}"
            raise ValueError(f"Expected {noun} to be numbers (got {got})") from None
    return numbers


def check_real(dtype: np.dtype[Any], noun: str) -> None:
    """Raises ValueError for complex numbers, because NumPy would drop imaginary parts."""
    if dtype.kind == "c":
        hint = "pass the real and imaginary parts as columns"
        raise ValueError(f"Expected {noun} to be real numbers (got {dtype}); {hint}")


def is_missing(value: Any) -> bool:
    """Tells whether a Python object is an unknown value: None, NaN, or pandas' NA or NaT."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan or value is None or type(value).__name__ in ("NAType", "NaTType")


def is_blank(cell: str) -> bool:
    """Tells whether a cell spells an unknown value."""
    return cell.strip().lower() in MISSING
