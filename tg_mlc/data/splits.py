"""Splits into training, validation and test samples: random, stratified or predefined."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from tg_mlc._names import check_names
from tg_mlc._numbers import to_label_csr

Fractions = tuple[float, float, float]
DEFAULT_FRACTIONS: Fractions = (0.8, 0.1, 0.1)
NUM_PARTS = 3


def part_sizes(num_samples: int, fractions: Sequence[float]) -> np.ndarray:
    """Returns the sizes of three parts, rounded down or, for the largest remainders, up."""
    try:
        num_samples = index(num_samples)
    except TypeError:
        got = f"{type(num_samples).__name__}); of a data set take 'len(dataset)'"
        raise ValueError(f"Expected 'num_samples' to be a whole number (got {got}") from None
    try:
        is_valid = len(fractions) == NUM_PARTS and min(fractions) >= 0
        is_valid = is_valid and math.isclose(sum(fractions), 1, abs_tol=1e-6)
    except TypeError:
        is_valid = False
    if not is_valid:
        expected = "three numbers of at least 0 that sum to 1: train, val, test"
        raise ValueError(f"Expected 'fractions' to be {expected} (got {fractions})")
    exact = np.asarray(fractions, dtype=float) * num_samples
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    by_remainder = np.argsort(-(exact - sizes).round(9), kind="stable")
    sizes[by_remainder[: num_samples - sizes.sum()]] += 1
    if any(size == 0 and fraction > 0 for size, fraction in zip(sizes, fractions, strict=True)):
        got = f"{num_samples} samples for {fractions}, so parts of {sizes.tolist()}"
        expected = "enough samples for each part with a fraction above 0"
        raise ValueError(f"Expected {expected} (got {got})")
    return sizes


LabelMatrix: TypeAlias = "Tensor | np.ndarray | sp.spmatrix | sp.sparray"
MISSING_NAMES_SHOWN = 40


class SparseLabels(NamedTuple):
    """Sparse 0/1 matrices ``[num_samples, num_labels]`` of known positives and of unknowns."""

    positive: sp.csr_array
    unknown: sp.csr_array

    def class_counts(self, group_of: np.ndarray, num_groups: int) -> np.ndarray:
        """Counts known negatives, then positives, in groups: ``[num_groups, 2 * num_labels]``."""
        num_samples = self.positive.shape[0]
        ones = np.ones(num_samples, dtype=np.int64)
        indices, shape = (group_of, np.arange(num_samples)), (num_groups, num_samples)
        members = sp.csr_array((ones, indices), shape=shape)
        positive, unknown = ((members @ matrix).toarray() for matrix in self)
        sizes = np.bincount(group_of, minlength=num_groups)[:, None]
        return np.hstack([sizes - positive - unknown, positive])


def sparse_labels(y: LabelMatrix, label_names: list[str] | None = None) -> SparseLabels:
    """Reads dense or sparse labels of any library. Entries that are not stored are 0."""
    if not hasattr(y, "ndim"):
        got, hint = type(y).__name__, "of a data set take 'dataset.y'"
        raise ValueError(f"Expected 'y' to be a matrix (got {got}); {hint}")
    labels = to_label_csr(y)
    if label_names is not None:
        check_names(label_names, labels.shape[1], "label_names")
    matrices = []
    for is_chosen in (labels.data == 1, np.isnan(labels.data)):
        stored = is_chosen.astype(np.int64), labels.indices, labels.indptr
        matrix = sp.csr_array(stored, shape=labels.shape, copy=True)
        matrix.eliminate_zeros()
        matrices.append(matrix)
    return SparseLabels(*matrices)


def coverage_report(
    labels: SparseLabels, part_of: np.ndarray, label_names: list[str] | None
) -> str:
    """Lists the labels that lack a class in a part, by name, or by index if names are unknown."""
    num_labels = labels.positive.shape[1]
    names = label_names if label_names is not None else [str(i) for i in range(num_labels)]
    counts = labels.class_counts(part_of, len(PARTS))
    parts = [(i, part) for i, part in enumerate(PARTS) if (part_of == i).any()]
    lines = []
    for value, in_parts in zip(("negative", "positive"), np.hsplit(counts, 2), strict=True):
        nowhere = (in_parts == 0).all(axis=0)
        lacking = {f"in {part}": (in_parts[i] == 0) & ~nowhere for i, part in parts}
        for where, is_absent in {"anywhere": nowhere, **lacking}.items():
            absent = [names[i] for i in np.flatnonzero(is_absent)]
            if absent:
                count = f"no known {value} {where} for {len(absent)} of {num_labels} labels"
                if len(absent) > MISSING_NAMES_SHOWN:
                    absent[MISSING_NAMES_SHOWN:] = [f"and {len(absent) - MISSING_NAMES_SHOWN} more"]
                lines.append(f"{count}: {'; '.join(absent)}")
    return "\n".join(lines) or f"both classes of all {num_labels} labels in every part"


PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """The indices of training, validation and test samples, sorted and disjoint.

    Args:
        train, val, test (torch.Tensor): Indices of the samples of each part, ``long``.
        name (str): How the split was made.
        report (str, optional): Remarks, *e.g.* which labels lack a class in which part.

    Raises:
        ValueError: If an index is negative or occurs twice, or if a part is not a one-dimensional
            ``long`` tensor.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    name: str
    report: str | None = None

    def __post_init__(self) -> None:
        for part in PARTS:
            object.__setattr__(self, part, _as_indices(getattr(self, part), part))
        indices = torch.cat(self.parts).sort().values
        repeated = indices[1:][indices[1:] == indices[:-1]]
        if repeated.numel() > 0:
            row = int(repeated[0])
            parts = zip(PARTS, self.parts, strict=True)
            got = f"sample {row} more than once, in {[name for name, part in parts if row in part]}"
            raise ValueError(f"Expected every sample once, in one part (got {got})")

    @classmethod
    def from_assignment(cls, part_of: np.ndarray, name: str, report: str | None = None) -> Split:
        """Makes a split from the part of each sample.

        Args:
            part_of (numpy.ndarray): 0, 1 or 2 for each sample, or another number for no part.
            name (str): How the split was made.
            report (str, optional): Remarks on the split. (default: :obj:`None`)
        """
        train, val, test = (torch.from_numpy(np.flatnonzero(part_of == i)) for i in range(3))
        return cls(train, val, test, name, report)

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """The indices of the three parts in the order training, validation, test."""
        return self.train, self.val, self.test

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The number of samples of the three parts."""
        return self.train.numel(), self.val.numel(), self.test.numel()

    @property
    def num_samples(self) -> int:
        """The number of samples of all parts."""
        return sum(self.sizes)

    def check_fits(self, num_samples: int, of: str = "'dataset'") -> None:
        """Warns if samples are in no part, because the split may belong to another data set.

        Args:
            num_samples (int): The number of samples of the data set.
            of (str, optional): The data set's name in messages. (default: :obj:`"'dataset'"`)

        Raises:
            ValueError: If the split contains an index that is out of range.
        """
        highest = max((int(part[-1]) for part in self.parts if part.numel() > 0), default=-1)
        if highest >= num_samples:
            got = f"{num_samples} samples, and sample {highest} in the split"
            expected = f"{of} to hold all samples that 'split' divides"
            raise ValueError(f"Expected {expected} (got {got}); pass all samples")
        if self.num_samples < num_samples:
            left_out = num_samples - self.num_samples
            message = f"The split leaves out {left_out} of {num_samples} samples of {of}"
            hint = "if this is not intended, make the split from all samples"
            # The warning shows the line that calls 'co_occurrence', three calls above this one.
            warnings.warn(f"{message}; {hint}", stacklevel=4)

    @property
    def hash(self) -> str:
        """The SHA-256 of the three sets of indices. The name of the split does not affect it."""
        digest = hashlib.sha256()
        for part in self.parts:
            digest.update(part.numel().to_bytes(8, "little"))
            digest.update(part.numpy().astype("<i8").tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        train, val, test = self.sizes
        sizes = f"train={train}, val={val}, test={test}"
        return f"Split(name='{self.name}', {sizes}, hash='{self.hash[:12]}')"


def _as_indices(indices: Tensor | Sequence[int], part: str) -> Tensor:
    indices = torch.as_tensor(indices).cpu()
    integers = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    if indices.numel() == 0:
        return torch.empty(0, dtype=torch.long)
    if indices.dtype not in integers or indices.dim() != 1:
        got = f"shape {list(indices.shape)}, {indices.dtype}"
        expected = f"'{part}' to be a one-dimensional tensor of integers"
        raise ValueError(f"Expected {expected} (got {got})")
    if indices.min() < 0:
        expected = f"'{part}' to hold indices of at least 0"
        raise ValueError(f"Expected {expected} (got {int(indices.min())})")
    return indices.long().sort().values


def random_split(
    num_samples: int, fractions: Fractions = DEFAULT_FRACTIONS, seed: int = 0
) -> Split:
    """Splits samples at random.

    Args:
        num_samples (int): Number of samples.
        fractions (tuple[float], optional): Fractions of training, validation and test samples.
            (default: :obj:`(0.8, 0.1, 0.1)`)
        seed (int, optional): Determines the split. (default: :obj:`0`)

    Raises:
        ValueError: If fractions are invalid, or a part of nonzero fraction would be empty.
    """
    sizes = part_sizes(num_samples, fractions)
    shuffled = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    return Split.from_assignment(shuffled, name=f"random(seed={seed})")


def predefined_split(
    train: Tensor | np.ndarray | Sequence[int],
    val: Tensor | np.ndarray | Sequence[int],
    test: Tensor | np.ndarray | Sequence[int],
    num_samples: int,
) -> Split:
    """Makes a split from specified indices, *e.g.* the indices published with a data set.

    Args:
        train, val, test (torch.Tensor, numpy.ndarray or list[int]): Indices of samples.
        num_samples (int): Number of samples of the data set; not all of them need to be used.

    Raises:
        ValueError: If an index is out of range or occurs twice.
    """
    split = Split(torch.as_tensor(train), torch.as_tensor(val), torch.as_tensor(test), "predefined")
    for part, indices in zip(PARTS, split.parts, strict=True):
        if indices.numel() > 0 and indices[-1] >= num_samples:
            expected = f"the indices of '{part}' to be below num_samples={num_samples}"
            raise ValueError(f"Expected {expected} (got {int(indices[-1])})")
    unused = num_samples - split.num_samples
    return replace(split, report=f"{unused} of {num_samples} samples are in no part")


def stratified_split(
    y: LabelMatrix,
    fractions: Fractions = DEFAULT_FRACTIONS,
    seed: int = 0,
    label_names: list[str] | None = None,
) -> Split:
    """Splits samples by iterative stratification from the `"On the Stratification of Multi-Label
    Data" <https://doi.org/10.1007/978-3-642-23808-6_10>`_ paper: the label with the fewest samples
    left is next, and each of its samples goes to the part that most lacks the label.

    Unlike in the paper, a full part gets no more samples, so the parts have the sizes of
    :func:`random_split`. Time and memory depend on the number of positive labels only.

    Args:
        y (torch.Tensor, numpy.ndarray or scipy.sparse matrix): Labels ``[num_samples,
            num_labels]``, dense or sparse: 0, 1 or NaN (unknown, not counted).
        fractions, seed (optional): As in :func:`random_split`.
        label_names (list[str], optional): Names in the report. (default: :obj:`None`, indices)

    Raises:
        ValueError: If labels are not 0, 1 or NaN, if the fractions are invalid, or if a part of
            nonzero fraction would be empty.
    """
    labels = sparse_labels(y, label_names)
    sizes = part_sizes(labels.positive.shape[0], fractions)
    part_of = _stratify(labels.positive, sizes, np.random.default_rng(seed))
    report = coverage_report(labels, part_of, label_names)
    return Split.from_assignment(part_of, name=f"stratified(seed={seed})", report=report)


def stratified_folds(y: LabelMatrix, num_folds: int = 5, seed: int = 0) -> np.ndarray:
    """Returns the index of each sample's stratified fold. Sizes of folds differ by at most 1."""
    labels = sparse_labels(y)
    num_samples = labels.positive.shape[0]
    if not 2 <= num_folds <= num_samples:
        expected = f"'num_folds' between 2 and the {num_samples} samples"
        raise ValueError(f"Expected {expected} (got {num_folds})")
    sizes = np.bincount(np.arange(num_samples) % num_folds)
    return _stratify(labels.positive, sizes, np.random.default_rng(seed))


def _stratify(positive: sp.csr_array, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns the index of each sample's part."""
    num_samples = positive.shape[0]
    order = rng.permutation(num_samples)
    by_sample = positive[order]
    by_label = by_sample.tocsc()
    num_left = np.diff(by_label.indptr).astype(np.int64)  # Unassigned positive samples per label.
    room = sizes.astype(np.int64).copy()
    # Positives that parts lack, [num_labels, num_parts]: the loop below reads one row at a time.
    lacking = np.outer(num_left, sizes / num_samples)
    part_of = np.full(num_samples, -1, dtype=np.int64)
    while num_left.any():
        label = int(np.where(num_left > 0, num_left, num_samples + 1).argmin())
        members = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        for sample in members[part_of[members] < 0]:
            # The part that most lacks the label; ties go to the part with the most room.
            parts = (part for part in range(len(room)) if room[part] > 0)
            part = max(parts, key=lambda part: (lacking[label, part], room[part]))
            row = by_sample.indices[by_sample.indptr[sample] : by_sample.indptr[sample + 1]]
            part_of[sample] = part
            lacking[row, part] -= 1
            num_left[row] -= 1
            room[part] -= 1
    part_of[part_of < 0] = np.repeat(np.arange(len(sizes)), room)
    result = np.empty_like(part_of)
    result[order] = part_of
    return result
