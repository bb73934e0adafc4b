"""Counts of how often labels occur together, where both are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

# Above this share of non-zeros a dense product is faster than a sparse one, by far when it grows.
DENSE_ABOVE = 0.1

# float32 counts up to here without error, in half the time of float64.
EXACT_IN_FLOAT32 = 2**24


class PairCounts(NamedTuple):
    r"""Counts for the ordered pairs :math:`(j, i)` of labels that ever occur together, and for all :math:`(i, i)`."""

    source: np.ndarray
    target: np.ndarray
    both: np.ndarray  # samples in which source and target occur
    of_source: np.ndarray  # samples in which the source occurs and the target is known
    of_target: np.ndarray  # samples in which the target occurs and the source is known
    known: np.ndarray  # samples in which both are known


def count_pairs(y: sparse.csr_array) -> PairCounts:
    """Counts pairs in a matrix whose stored values are one, or NaN for unknown."""
    unknown = _stored(y, np.isnan(y.data))
    positive = _stored(y, ~np.isnan(y.data))
    both = _gram(positive, positive)
    target, source = _pairs(both)
    both_known = np.full(len(source), float(y.shape[0]))
    of_source = _at(both, source, source)
    of_target = _at(both, target, target)
    if unknown.nnz:
        hidden = _gram(positive, unknown)  # [a, b]: a occurs, b is unknown
        neither = _gram(unknown, unknown)
        of_source -= _at(hidden, source, target)
        of_target -= _at(hidden, target, source)
        both_known -= _at(neither, source, source) + _at(neither, target, target) - _at(neither, source, target)
    return PairCounts(source, target, _at(both, source, target), of_source, of_target, both_known)


def _stored(y: sparse.csr_array, keep: np.ndarray) -> sparse.csr_array:
    rows = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
    dtype = np.float32 if y.shape[0] <= EXACT_IN_FLOAT32 else np.float64
    ones = np.ones(int(keep.sum()), dtype=dtype)
    return sparse.csr_array((ones, (rows[keep], y.indices[keep])), shape=y.shape)


def _gram(left: sparse.csr_array, right: sparse.csr_array) -> sparse.csr_array:
    filled = max(left.nnz, right.nnz) / max(left.shape[0] * left.shape[1], 1)
    if filled > DENSE_ABOVE:
        return sparse.csr_array(left.toarray().T @ right.toarray())
    return sparse.csr_array(left.T @ right)


def _pairs(both: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    with_diagonal = sparse.coo_array(both + sparse.csr_array(sparse.eye(both.shape[0])))
    return with_diagonal.row.astype(np.int64), with_diagonal.col.astype(np.int64)


def _at(matrix: sparse.csr_array, row: np.ndarray, col: np.ndarray) -> np.ndarray:
    return np.asarray(matrix[row, col], dtype=np.float64).ravel()
