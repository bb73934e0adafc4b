"""Label matrices of any kind, and a report of the classes that a part of a split lacks."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from tg_mlc._names import check_names
from tg_mlc._numbers import to_label_csr
from tg_mlc.data.splits.split import PARTS

LabelMatrix: TypeAlias = "Tensor | np.ndarray | sp.spmatrix | sp.sparray"
MISSING_NAMES_SHOWN = 40


class SparseLabels(NamedTuple):
    """Labels as two sparse 0/1 matrices ``[num_samples, num_labels]``: known positives, and unknowns."""

    positive: sp.csr_array
    unknown: sp.csr_array

    @property
    def num_samples(self) -> int:
        """The number of samples."""
        return int(self.positive.shape[0])

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return int(self.positive.shape[1])

    def class_counts(self, group_of: np.ndarray, num_groups: int) -> np.ndarray:
        """Counts the known negatives of all labels, and then the known positives, in groups of samples:
        ``[num_groups, 2 * num_labels]``.
        """
        num_samples = self.num_samples
        ones = np.ones(num_samples, dtype=np.int64)
        members = sp.csr_array((ones, (group_of, np.arange(num_samples))), shape=(num_groups, num_samples))
        positive = (members @ self.positive).toarray()
        unknown = (members @ self.unknown).toarray()
        sizes = np.bincount(group_of, minlength=num_groups)[:, None]
        return np.hstack([sizes - positive - unknown, positive])


def sparse_labels(y: LabelMatrix, label_names: list[str] | None = None) -> SparseLabels:
    """Reads labels of any kind: dense or sparse, of torch, numpy or scipy; what a sparse matrix does not store is 0."""
    if not hasattr(y, "ndim"):
        raise ValueError(f"Expected 'y' to be a matrix (got {type(y).__name__}); of a data set take 'dataset.y'")
    labels = to_label_csr(y)
    if label_names is not None:
        check_names(label_names, labels.shape[1], "label_names")
    unknown = np.isnan(labels.data)
    return SparseLabels(_where(labels, ~unknown), _where(labels, unknown))


def coverage_report(labels: SparseLabels, part_of: np.ndarray, label_names: list[str] | None) -> str:
    """A list of the labels that lack a class in a part, by their names, or their numbers if there are none."""
    num_labels = labels.num_labels
    names = label_names if label_names is not None else [str(i) for i in range(num_labels)]
    counts = labels.class_counts(part_of, len(PARTS))
    parts = [(i, part) for i, part in enumerate(PARTS) if (part_of == i).any()]
    lines = []
    for kind, of_kind in (("negative", counts[:, :num_labels]), ("positive", counts[:, num_labels:])):
        nowhere = (of_kind == 0).all(axis=0)
        lacking = [("anywhere", nowhere), *((f"in {part}", (of_kind[i] == 0) & ~nowhere) for i, part in parts)]
        for where, absent in lacking:
            if absent.any():
                absentees = _join([names[i] for i in np.flatnonzero(absent)])
                lines.append(f"no known {kind} {where} for {absent.sum()} of {num_labels} labels: {absentees}")
    return "\n".join(lines) or f"both classes of all {num_labels} labels in every part"


def _join(names: list[str]) -> str:
    more = len(names) - MISSING_NAMES_SHOWN
    return "; ".join(names[:MISSING_NAMES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _where(matrix: sp.csr_array, chosen: np.ndarray) -> sp.csr_array:
    coo = matrix.tocoo()
    ones = np.ones(int(chosen.sum()), dtype=np.int64)
    return sp.csr_array((ones, (coo.row[chosen], coo.col[chosen])), shape=matrix.shape)
