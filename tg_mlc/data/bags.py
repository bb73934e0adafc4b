"""Converts samples to matrices of words and back, and changes attributes of samples."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from tg_mlc.data.dataset import ArrayDataset, MultiLabelDataset
from tg_mlc.data.records import Records

if TYPE_CHECKING:
    DatasetT = TypeVar("DatasetT", bound=MultiLabelDataset)


def bag_of_words(dataset: MultiLabelDataset) -> sp.csr_array:
    """Returns word counts :math:`(N, V)` of documents, which are bags or sequences, or the weights
    of their words if the data set has weights.
    """
    data = dataset._data
    if data.x.dim() != 1 or data.x.is_floating_point() or dataset.num_inputs is None:
        expected = "samples of the numbers of words"
        raise ValueError(f"Expected {expected} (got {dataset} of kind {dataset.kind!r})")
    # PyG keeps no slices of a single sample.
    ptr = np.array([0, data.x.numel()]) if dataset.slices is None else dataset.slices["x"].numpy()
    weight: Tensor | None = data.get("weight")
    values = np.ones(data.x.numel(), dtype=np.float32) if weight is None else weight.numpy()
    shape = (len(ptr) - 1, dataset.num_inputs)
    # The matrix is copied because duplicate words are summed in place.
    counts = sp.csr_array((values, data.x.numpy(), ptr), shape=shape, copy=True)
    counts.sum_duplicates()
    return counts if dataset._indices is None else counts[list(dataset._indices)]


def inputs_of(dataset: MultiLabelDataset) -> Any:
    """Returns the matrix :math:`(N, F)` of words or vectors for linear and kernel classifiers."""
    return dataset.rows("x").numpy() if dataset._data.x.dim() == 2 else bag_of_words(dataset)


def with_words(dataset: MultiLabelDataset, words: sp.csr_array) -> ArrayDataset:
    """Returns the samples as bags of words. The matrix :math:`(N, V)` holds the weights of words.
    Descriptions and parents of labels are kept.
    """
    # An official split refers to rows of the whole data set, so a subset has no official split.
    official_parts = (dataset._official or ()) if dataset._indices is None else ()
    official = [rows.numpy() for rows in official_parts]
    words, y = words.sorted_indices(), dataset.y.numpy()
    records = Records(words, y, dataset.label_names, dataset.feature_names, *official)
    samples = records.to_samples()
    # Weights are stored even if all are 1, because weights of later samples may differ from 1.
    samples.data.weight = torch.from_numpy(words.data.astype(np.float32))
    slices = {**(samples.slices or {}), "weight": torch.from_numpy(words.indptr.astype(np.int64))}
    bags = ArrayDataset(samples._replace(slices=slices), dataset.transform)
    for name in ("label_descriptions", "label_parents"):
        if hasattr(dataset, name):
            setattr(bags, name, getattr(dataset, name))
    return bags


def with_attribute(dataset: DatasetT, key: str, values: Tensor) -> DatasetT:
    """Returns the samples with a new attribute; values :math:`(N, *)` have a row per sample."""
    if values.size(0) != len(dataset):
        expected = f"'{key}' to have a row for each of {len(dataset)} samples"
        raise ValueError(f"Expected {expected} (got {values.size(0)})")
    changed = shallow_copy(dataset)
    changed._data[key] = values
    if changed.slices is not None:  # PyG keeps no slices of a single sample.
        changed.slices = {**changed.slices, key: torch.arange(len(dataset) + 1)}
    return changed


def without_attribute(dataset: DatasetT, key: str) -> DatasetT:
    """Returns the samples without an attribute."""
    changed = shallow_copy(dataset)
    del changed._data[key]
    if changed.slices is not None:
        changed.slices = {name: bounds for name, bounds in changed.slices.items() if name != key}
    return changed


def shallow_copy(dataset: DatasetT) -> DatasetT:
    """Returns a copy that shares tensors, but has its own dictionary of attributes."""
    changed = copy(dataset) if dataset._indices is None else dataset.copy()
    changed._data, changed._data_list = copy(changed._data), None
    return changed
