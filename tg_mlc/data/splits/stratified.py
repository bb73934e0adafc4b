"""Stratified splits: the positives of each label divided among the parts."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from tg_mlc.data.splits._fractions import DEFAULT_FRACTIONS, Fractions, part_sizes
from tg_mlc.data.splits._labels import LabelMatrix, coverage_report, sparse_labels
from tg_mlc.data.splits.split import Split


def stratified_split(
    y: LabelMatrix, fractions: Fractions = DEFAULT_FRACTIONS, seed: int = 0, label_names: list[str] | None = None
) -> Split:
    """Splits samples by iterative stratification from the `"On the Stratification of Multi-Label Data"
    <https://doi.org/10.1007/978-3-642-23808-6_10>`_ paper: the rarest label that has samples left is shared out first,
    each of its samples to the part that most lacks that label.

    Unlike the paper's, a part that is full gets no more samples, so the parts have the sizes of :func:`random_split`.
    Time and memory grow with the number of positive labels, not with the size of the matrix.

    Args:
        y (torch.Tensor, numpy.ndarray or scipy.sparse matrix): Labels ``[num_samples, num_labels]``, dense or sparse:
            0, 1 or NaN (unknown, not counted).
        fractions (tuple[float], optional): Shares of training, validation and test samples.
            (default: :obj:`(0.8, 0.1, 0.1)`)
        seed (int, optional): Determines the order of samples and how ties are broken. (default: :obj:`0`)
        label_names (list[str], optional): Names of the labels for the report. (default: :obj:`None`)

    Raises:
        ValueError: If labels are not 0, 1 or NaN, or if the fractions are no shares or leave a part empty that should
            not be.
    """
    labels = sparse_labels(y, label_names)
    sizes = part_sizes(labels.num_samples, fractions)
    part_of = _stratify(labels.positive, sizes, np.random.default_rng(seed))
    report = coverage_report(labels, part_of, label_names)
    return Split.from_assignment(part_of, name=f"stratified(seed={seed})", report=report)


def stratified_folds(y: LabelMatrix, num_folds: int = 5, seed: int = 0) -> np.ndarray:
    """Numbers the fold of every sample :math:`(N)`, with the positives of each label divided as by
    :func:`stratified_split`.

    Args:
        y (torch.Tensor, numpy.ndarray or scipy.sparse matrix): As in :func:`stratified_split`.
        num_folds (int, optional): The number of folds, whose sizes differ by one at most. (default: :obj:`5`)
        seed (int, optional): As in :func:`stratified_split`. (default: :obj:`0`)

    Raises:
        ValueError: If there are fewer than two folds, or more than samples, or labels are not 0, 1 or NaN.
    """
    labels = sparse_labels(y)
    if not 2 <= num_folds <= labels.num_samples:
        raise ValueError(f"Expected 'num_folds' between 2 and the {labels.num_samples} samples (got {num_folds})")
    sizes = np.bincount(np.arange(labels.num_samples) % num_folds)
    return _stratify(labels.positive, sizes, np.random.default_rng(seed))


def _stratify(positive: csr_array, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gives each sample the number of its part."""
    num_samples, _ = positive.shape
    order = rng.permutation(num_samples)
    by_sample = positive[order]
    by_label = by_sample.tocsc()
    left = np.diff(by_label.indptr).astype(np.int64)  # positives of each label not yet shared out
    room = sizes.astype(np.int64).copy()
    # Column by column in memory: the loop below reads the three numbers of one label at a time.
    wanted = np.outer(left, sizes / num_samples)
    part_of = np.full(num_samples, -1, dtype=np.int64)
    while left.any():
        label = int(np.where(left > 0, left, num_samples + 1).argmin())
        members = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        for sample in members[part_of[members] < 0]:
            part = _neediest(wanted[label], room)
            row = by_sample.indices[by_sample.indptr[sample] : by_sample.indptr[sample + 1]]
            part_of[sample] = part
            wanted[row, part] -= 1
            left[row] -= 1
            room[part] -= 1
    part_of[part_of < 0] = np.repeat(np.arange(len(sizes)), room)
    result = np.empty_like(part_of)
    result[order] = part_of
    return result


def _neediest(wanted: np.ndarray, room: np.ndarray) -> int:
    """The part with room that wants most of a label; among equals the one with most room."""
    best = -1
    for part in range(len(room)):
        if room[part] > 0 and (best < 0 or (wanted[part], room[part]) > (wanted[best], room[best])):
            best = part
    return best
