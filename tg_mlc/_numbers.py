"""Conversion of matrices of numbers from the types of other libraries."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_IS_NUMBER = re.compile(NUMBER)
#: The spellings of what is unknown, in lower case, in inputs and labels alike.
MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "nat", "null", "none", r"\n", "?"}
)  #: a minus sign is one, too, where all other cells are numbers or labels

#: The words of pairs that mean 0 and 1; a column of inputs is of one if both occur.
TRUTHS = (
    *(
        ("false", "true"),
        ("no", "yes"),
        ("f", "t"),
        ("n", "y"),
        ("off", "on"),
        (".false.", ".true."),
    ),
    *(("absent", "present"), ("neg", "pos"), ("negative", "positive"), ("irrelevant", "relevant")),
    *(
        ("nein", "ja"),
        ("nee", "ja"),
        ("nej", "ja"),
        ("non", "oui"),
        ("no", "sí"),
        ("no", "si"),
        ("não", "sim"),
    ),
    *(("нет", "да"), ("ні", "так"), ("否", "是"), ("いいえ", "はい")),
)


def parse_number(text: str) -> float | None:
    """The number that a text spells, or nothing; unlike :func:`float`, which also takes :obj:`"1_000"`, digits of other
    scripts, and infinity.
    """
    return float(text) if _IS_NUMBER.fullmatch(text) else None


def as_list(values: Any) -> Any:
    """A list of the rows of a Series, or array, of Python objects such as sets; anything else as it is."""
    values = values.to_numpy() if hasattr(values, "to_list") else values
    if getattr(values, "ndim", None) != 1 or getattr(values.dtype, "kind", None) != "O":
        return values
    # tables of Parquet hold arrays
    return [row.tolist() if isinstance(row, np.ndarray) else row for row in values]


def as_array(values: Any) -> np.ndarray:
    """A dense array of what may be a tensor, of which NumPy does not know all types, or a list of tensors."""
    if isinstance(values, Tensor):
        small = values.is_floating_point() and values.element_size() < 4
        return np.asarray((values.float() if small else values).to_dense().numpy(force=True))
    if isinstance(values, np.ma.MaskedArray):  # a masked entry is unknown
        masked: np.ndarray = values.astype(np.float64 if values.dtype.kind in "biuf" else object)
        return np.asarray(masked.filled(np.nan))  # type: ignore[attr-defined]
    if isinstance(values, (list, tuple)):
        values = [as_array(row) if isinstance(row, Tensor) else row for row in values]
    return np.asarray(values.toarray() if sp.issparse(values) else values)


def to_scipy(values: Any) -> Any:
    """A SciPy matrix of a sparse tensor; anything else as it is."""
    if not isinstance(values, Tensor) or values.layout == torch.strided:
        return values
    entries: Tensor = values.detach().cpu().to_sparse(layout=torch.sparse_coo).coalesce()
    return sp.coo_array(
        (as_array(entries.values()), entries.indices().numpy()), shape=tuple(entries.shape)
    )


def to_label_csr(y: Any) -> sp.csr_array:
    """Labels ``[N, L]``, dense or sparse, as a new sparse matrix that stores ones and NaNs alone."""
    y = to_scipy(y)
    if not sp.issparse(y):
        values = as_array(y)
        if values.ndim != 2:
            raise ValueError(
                f"Expected 'y' to be a matrix [num_samples, num_labels] (got {list(values.shape)})"
            )
        y = to_numbers(values, getattr(y, "columns", None), "'y'")
    check_real(y.dtype, "'y'")
    # A copy: what follows drops stored zeros in place, and a cast alone would still share the index arrays.
    labels = sp.csr_array(y, dtype=np.float32, copy=True)
    labels.sum_duplicates()
    labels.eliminate_zeros()
    strange = ~((labels.data == 1) | np.isnan(labels.data))
    if strange.any():
        raise ValueError(
            f"Expected 'y' to hold 0, 1, or NaN for unknown (got {labels.data[strange][0]:g})"
        )
    return labels


def to_numbers(values: np.ndarray, columns: Any, what: str) -> np.ndarray:
    """Makes numbers of a matrix of Python objects, where None and pandas' NA mean NaN; numbers stay as they are."""
    check_real(values.dtype, what)
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
            raise ValueError(
                f"Expected {what} to be numbers (got {value!r} in row {row}, column {name})"
            ) from None
    return numbers


def check_real(dtype: np.dtype[Any], what: str) -> None:
    """Refuses complex numbers, of which NumPy would drop the imaginary part."""
    if dtype.kind == "c":
        hint = "pass the real and imaginary parts as columns"
        raise ValueError(f"Expected {what} to be real numbers (got {dtype}); {hint}")


def is_missing(value: Any) -> bool:
    """Tells whether a Python object stands for what is not known: None, NaN, or pandas' NA or NaT."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan or value is None or type(value).__name__ in ("NAType", "NaTType")


def is_blank(cell: str) -> bool:
    """Tells whether a cell says that nothing is known."""
    return cell.strip().lower() in MISSING
