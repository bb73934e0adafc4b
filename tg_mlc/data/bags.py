"""Documents as a matrix of words, and back."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import scipy.sparse as sp
import torch

from tg_mlc._optional import require
from tg_mlc.data.tf_idf import TfIdf, are_counts

if TYPE_CHECKING:
    from torch import Tensor

    from tg_mlc.data.splits import Split
    from tg_mlc.datasets import MultiLabelDataset
    from tg_mlc.datasets.base import ArrayDataset

    DatasetT = TypeVar("DatasetT", bound=MultiLabelDataset)


def bag_of_words(dataset: MultiLabelDataset) -> sp.csr_array:
    """The number of times that each word occurs in each document, or the words' weights where a data set has them.

    Args:
        dataset (MultiLabelDataset): Bags or sequences.

    Shapes:
        - **output:** :math:`(N, V)` for a vocabulary of :math:`V` words

    Raises:
        ValueError: If the samples are neither bags nor sequences.
    """
    if dataset.kind not in ("bag", "sequence"):
        raise ValueError(f"Expected a data set of kind 'bag' or 'sequence' (got {dataset.kind!r})")
    data, ptr = dataset._data, cast("dict[str, Tensor]", dataset.slices)["x"].numpy()
    weight: Tensor | None = data.get("weight")
    values = np.ones(data.x.numel(), dtype=np.float32) if weight is None else weight.numpy()
    shape = (len(ptr) - 1, cast(int, dataset.num_inputs))
    # A copy: words are summed in place.
    counts = sp.csr_array((values, data.x.numpy(), ptr), shape=shape, copy=True)
    counts.sum_duplicates()
    return counts if dataset._indices is None else counts[list(dataset._indices)]


def tf_idf(dataset: MultiLabelDataset, split: Split) -> sp.csr_array:
    r"""Weighs the words of documents as :class:`~tg_mlc.data.TfIdf` does that was fitted to the training documents.

    Words that have weights already, which are no whole numbers, keep them; these are scaled to unit length. Words of no
    training document are left out in either case.

    Args:
        dataset (MultiLabelDataset): Bags or sequences.
        split (Split): Which samples are training documents.

    Shapes:
        - **output:** :math:`(N, V)`
    """
    words = bag_of_words(dataset)
    train = words[split.train.numpy()]
    if are_counts(train):
        return TfIdf.fit(train).transform(words)
    known = sp.csr_array(words * (abs(train).sum(axis=0) > 0))
    known.eliminate_zeros()
    return sp.csr_array(require("sklearn.preprocessing", extra="data").normalize(known), dtype=np.float32)


def with_words(dataset: MultiLabelDataset, words: sp.csr_array) -> ArrayDataset:
    """The same samples as bags of the words of a matrix, with its values as their weights.

    Args:
        dataset (MultiLabelDataset): A data set, or a part of one, which has no official split.
        words (scipy.sparse.csr_array): The matrix :math:`(N, V)`.
    """
    from tg_mlc.datasets._records import Records
    from tg_mlc.datasets.base import ArrayDataset

    # The rows of an official split are those of the whole data set.
    whole = dataset._indices is None
    official: tuple[Tensor | None, Tensor | None] = (dataset._official if whole else None) or (None, None)
    train, test = (None if rows is None else rows.numpy() for rows in official)
    records = Records(words, dataset.y.numpy(), dataset.label_names, dataset.feature_names, train, test)
    return ArrayDataset(records.to_samples())


def with_attribute(dataset: DatasetT, key: str, values: Tensor) -> DatasetT:
    """The same samples with one more attribute, of which each has its row.

    Args:
        dataset (MultiLabelDataset): A whole data set.
        key (str): The name of the attribute.
        values (torch.Tensor): Values :math:`(N, *)`.
    """
    if values.size(0) != len(dataset) or dataset._indices is not None:
        raise ValueError(f"Expected 'values' to have a row for each of {len(dataset)} samples (got {values.size(0)})")
    changed = copy(dataset)
    changed._data, changed._data_list = copy(dataset._data), None
    changed._data[key] = values
    changed.slices = {**(dataset.slices or {}), key: torch.arange(len(dataset) + 1)}
    return changed
