"""Label graphs from co-occurrences of labels in training samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy import sparse

from tg_mlc._frames import as_frame, take_by_name
from tg_mlc._numbers import to_label_csr
from tg_mlc._options import check_choice, check_count
from tg_mlc.graphs.builders import check_selection, select, source_in_words
from tg_mlc.graphs.label_graph import LabelGraph, as_names, check_label_names

Weight = Literal["count", "conditional", "pmi", "correlation"]

# Above this fraction of non-zeros a dense product is faster than a sparse one.
DENSE_ABOVE = 0.1

# Up to this count, float32 is exact, and takes half the time of float64.
EXACT_IN_FLOAT32 = 2**24


def co_occurrence(
    y: Any,
    min_count: int = 1,
    weight: Weight = "count",
    threshold: float | None = None,
    top_k: int | None = None,
    self_loops: bool = True,
    label_names: Sequence[str] | None = None,
    split: Any = None,
) -> LabelGraph:
    r"""The label graph in which label :math:`i` attends to label :math:`j` if both occur together
    in training samples.

    The defaults give the prior graph of the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper: an edge wherever a pair occurs in
    any training sample. If labels are frequent, this graph is complete and carries no
    information; :obj:`weight` with :obj:`threshold` or :obj:`top_k` selects informative edges.

    Of :math:`n` samples, the source :math:`j` occurs in :math:`n_j`, the target :math:`i` in
    :math:`n_i`, and both labels in :math:`n_{ji}`. The weight of their edge is

    .. math::
        \textrm{count:} \quad & n_{ji} \\
        \textrm{conditional:} \quad & P(i \mid j) = n_{ji} / n_j \\
        \textrm{pmi:} \quad & \log \frac{n_{ji} \, n}{n_j \, n_i} \\
        \textrm{correlation:} \quad &
        \frac{n_{ji} \, n - n_j n_i}{\sqrt{n_j (n - n_j) \, n_i (n - n_i)}}

    The conditional probability with a threshold is the graph of the `"Multi-Label Image Recognition
    with Graph Convolutional Networks" <https://arxiv.org/abs/1904.03582>`_ paper; PMI is the
    pointwise mutual information of `"Word Association Norms, Mutual Information, and Lexicography"
    <https://aclanthology.org/J90-1003>`_, in nats; correlation is Pearson's, for two binary
    variables the phi coefficient. Among the sources of one target, counts favour frequent labels;
    conditional probability and PMI, which rank sources in the same order, favour rare labels;
    correlation favours neither. The four numbers of a pair only count samples in which both of its
    labels are known (not NaN).

    Args:
        y (Tensor, numpy.ndarray, scipy.sparse array or pandas.DataFrame): The training labels
            :math:`(N, L)`: 0, 1, or NaN for unknown; or, with :obj:`split`, a data set that has
            :obj:`y` or :obj:`sparse_y()`.
        min_count (int, optional): The least number of samples with both labels. (default: :obj:`1`)
        weight (str, optional): The weight of an edge (:obj:`"count"`, :obj:`"conditional"`,
            :obj:`"pmi"`, :obj:`"correlation"`). (default: :obj:`"count"`)
        threshold (float, optional): The least weight of an edge. (default: :obj:`None`, any)
        top_k (int, optional): The largest number of sources of a label besides itself, by weight
            and then by index. (default: :obj:`None`, all)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it
            has no other source. The formula also gives the weight of a loop, or zero where
            it is undefined. (default: :obj:`True`)
        label_names (list of str, optional): One name per label. Columns of a data frame are
            selected by these names. (default: :obj:`None`, the names of :obj:`y`)
        split (Split, optional): The :class:`tg_mlc.data.Split` of :obj:`y`. Only training samples
            are read. (default: :obj:`None`, all samples are training samples)

    Raises:
        ValueError: If :obj:`y` is not a matrix of 0, 1 and NaN, is a whole data set without a
            split, or an option is out of range.
    """
    check_count("min_count", min_count)
    check_choice("weight", weight, get_args(Weight))
    check_selection(threshold, top_k)
    if split is not None and not hasattr(split, "check_fits"):
        raise ValueError(f"Expected 'split' to be a tg_mlc.data.Split (got {type(split).__name__})")
    values, names = _read_labels(y, label_names, split)
    num_samples, num_labels = values.shape
    if not num_samples:
        raise ValueError("Expected 'y' to hold at least one training sample (got none)")
    names = None if names is None else check_label_names(names, num_labels)
    source, target, n_ji, n_j, n_i, n = _count_pairs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        match weight:
            case "count":
                strength = n_ji
            case "conditional":
                strength = n_ji / n_j
            case "pmi":
                strength = np.log(n_ji * n / (n_j * n_i))
            case "correlation":
                strength = (n_ji * n - n_j * n_i) / np.sqrt(n_j * (n - n_j) * n_i * (n - n_i))
    strength = np.where(np.isfinite(strength), strength, 0.0)
    ends, is_frequent = (source, target), n_ji >= min_count
    keep = select(*ends, strength, num_labels, threshold, top_k, self_loops, is_frequent)
    suffix = f" of split {name!r}" if (name := getattr(split, "name", "")) else ""
    options = {"weight": weight, "min_count": min_count, "threshold": threshold, "top_k": top_k}
    return LabelGraph(
        torch.from_numpy(np.stack([source[keep], target[keep]])),
        num_nodes=num_labels,
        edge_weight=torch.from_numpy(strength[keep]).float(),
        label_names=names,
        kind="co_occurrence",
        source=source_in_words(f"{num_samples} training samples{suffix}", **options),
    )


def _read_labels(
    y: Any, label_names: Sequence[str] | None, split: Any
) -> tuple[sparse.csr_array, Sequence[str] | None]:
    """Returns training labels as a sparse matrix of ones and NaNs, and their names."""
    label_names = None if label_names is None else as_names(label_names)
    y = as_frame(y)
    # Data frames are checked first, because their columns are attributes, perhaps "y".
    if hasattr(y, "columns"):
        y = take_by_name(y, label_names, "label_names")
        label_names = [str(column) for column in y.columns] if label_names is None else label_names
    else:
        labels = y.sparse_y() if hasattr(y, "sparse_y") else getattr(y, "y", None)
        if labels is not None and split is None:
            got = f"the data set {type(y).__name__} without 'split'"
            hint = "pass its 'split' too, or the labels alone, 'dataset[split.train].y'"
            raise ValueError(f"Expected the labels of training samples only (got {got}); {hint}")
        if labels is not None:
            label_names = getattr(y, "label_names", None) if label_names is None else label_names
            y = labels
    values = to_label_csr(y)
    if split is None:
        return values, label_names
    split.check_fits(values.shape[0], "'y'")
    return values[np.asarray(split.train)], label_names


def _count_pairs(y: sparse.csr_array) -> tuple[np.ndarray, ...]:
    r"""Counts samples of ordered pairs :math:`(j, i)` of labels that occur together at least once,
    and of all :math:`(i, i)`. The stored values of the matrix are 1, or NaN for unknown.

    For each pair, returns the source, the target, and four numbers of samples: both labels occur;
    the source occurs and the target is known; the target occurs and the source is known; both are
    known.
    """
    rows = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
    dtype = np.float32 if y.shape[0] <= EXACT_IN_FLOAT32 else np.float64

    def ones(mask: np.ndarray) -> sparse.csr_array:
        entries = np.ones(mask.sum(), dtype=dtype), (rows[mask], y.indices[mask])
        return sparse.csr_array(entries, shape=y.shape)

    unknown, positive = ones(np.isnan(y.data)), ones(~np.isnan(y.data))
    both_occur = _gram(positive, positive)
    pairs = sparse.coo_array(both_occur + sparse.csr_array(sparse.eye(y.shape[1])))
    target, source = pairs.row.astype(np.int64), pairs.col.astype(np.int64)
    num_known = np.full(len(source), float(y.shape[0]))
    num_source, num_target = _at(both_occur, source, source), _at(both_occur, target, target)
    if unknown.nnz:
        occurs_unknown = _gram(positive, unknown)  # [a, b]: a occurs, b is unknown
        both_unknown = _gram(unknown, unknown)
        num_source -= _at(occurs_unknown, source, target)
        num_target -= _at(occurs_unknown, target, source)
        num_known -= _at(both_unknown, source, source) + _at(both_unknown, target, target)
        num_known += _at(both_unknown, source, target)
    return source, target, _at(both_occur, source, target), num_source, num_target, num_known


def _gram(left: sparse.csr_array, right: sparse.csr_array) -> sparse.csr_array:
    if max(left.nnz, right.nnz) > DENSE_ABOVE * left.shape[0] * left.shape[1]:
        return sparse.csr_array(left.toarray().T @ right.toarray())
    return sparse.csr_array(left.T @ right)


def _at(matrix: sparse.csr_array, row: np.ndarray, col: np.ndarray) -> np.ndarray:
    return np.asarray(matrix[row, col], dtype=np.float64).ravel()
