"""Data sets of samples with labels: the base class, and a data set in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.data.dataset import IndexType
from typing_extensions import Self

from tg_mlc._names import shorten
from tg_mlc.data.samples import Samples
from tg_mlc.data.splits import LabelMatrix, Split, stratified_split


class MultiLabelDataset(InMemoryDataset):
    """A PyG :class:`InMemoryDataset` whose samples carry ``y`` of shape ``[1, num_labels]``."""

    label_names: list[str]  #: Names of labels, in the order of ``y``.
    #: The kind of a sample's input, for tables of features: :obj:`"bag"` (word indices ``x`` of
    #: shape ``[n]`` and, unless all are 1, the values ``weight`` of words), :obj:`"vector"`
    #: (``x`` of shape ``[1, num_inputs]``), :obj:`"sequence"` (word indices in order, ``x`` of
    #: shape ``[n]``), :obj:`"embeddings"` (vectors ``x`` of shape ``[n, num_inputs]``) or
    #: :obj:`"mixed"` (several parts, as in :class:`~tg_mlc.data.parts.MixedData`).
    kind: str | None = None
    #: The words of the vocabulary, or the names of a vector's entries.
    feature_names: list[str] | None = None
    num_inputs: int | None = None  #: The size of the vocabulary, or of a vector.
    label_graph: Any = None  #: The hierarchy of the labels, if the data came with one.
    schema: Any = None  #: The roles of the columns of the table behind the samples.
    #: The tokenizer of the texts, as in :func:`~tg_mlc.data.tokenize`; :obj:`"other"` for a custom
    #: function.
    tokenizer: str = "words"
    preprocessor: Any = None  #: The preprocessor that made the samples.
    #: For samples of several parts, what each part is, by its name.
    parts: Mapping[str, Any] = MappingProxyType({})
    _official: tuple[Tensor, Tensor] | None = None
    # For a copy of a part: the indices of its samples in the whole data set.
    _copied: Sequence[int] | None = None

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return len(self.label_names)

    @property
    def y(self) -> Tensor:
        """The labels of all samples, ``[num_samples, num_labels]``, with NaN where unknown."""
        return self.rows("y")

    def rows(self, key: str) -> Tensor:
        """Returns the values of an attribute that has one row per sample.

        Args:
            key (str): The name of the attribute.

        Raises:
            KeyError: If samples lack the attribute.
            ValueError: If the attribute has several rows for a sample, or none.
        """
        values: Tensor = self._data[key]
        # PyG keeps no slices of a single sample.
        bounds: Tensor = (self.slices or {}).get(key, torch.tensor([0, values.size(0)]))
        if not torch.equal(bounds, torch.arange(bounds.numel())):
            expected = "'key' to name an attribute of one row for every sample"
            raise ValueError(f"Expected {expected} (got {key!r})")
        return values if self._indices is None else values[list(self._indices)]

    def copy(self, idx: IndexType | None = None) -> Self:
        """Copies all samples, or some of them. A copy of a part has no official split.

        Args:
            idx (slice, list or tensor, optional): The samples. (default: :obj:`None`, all)
        """
        part = self if idx is None else self.index_select(idx)
        copied: Self = super().copy(idx)
        if part._is_part():
            copied._copied, copied._official = part._places(), None
        return copied

    def official_split(self, val_fraction: float = 0.1, seed: int = 0) -> Split:
        """Returns the split with which the data set was published. A stratified fraction of its
        training samples becomes the validation part.

        Args:
            val_fraction (float, optional): The fraction of the published training samples.
                (default: :obj:`0.1`)
            seed (int, optional): Seed of the stratified split. (default: :obj:`0`)

        Raises:
            ValueError: If the data set was published without a split, or is only a part.
        """
        if self._official is None or self._is_part():
            got = "a part of a data set" if self._is_part() else f"{type(self).__name__} without it"
            hint = "take 'random_split' or 'stratified_split' of tg_mlc.data"
            expected = "a whole data set that was published with a split"
            raise ValueError(f"Expected {expected} (got {got}); {hint}")
        train, test = self._official
        fractions = (1 - val_fraction, val_fraction, 0.0)
        split = stratified_split(self._labels_of(train), fractions, seed, self.label_names)
        name = f"official, validation stratified(seed={seed})"
        return Split(train[split.train], train[split.val], test, name, split.report)

    def _labels_of(self, rows: Tensor) -> LabelMatrix:
        return self.y[rows]

    def _is_part(self) -> bool:
        return self._indices is not None or self._copied is not None

    def _places(self) -> Sequence[int]:
        """Returns the indices of all samples in the whole data set."""
        indices: Sequence[int] = self.indices()
        return indices if self._copied is None else [self._copied[index] for index in indices]

    def _adopt(self, samples: Samples) -> None:
        self.data, self.slices = samples.data, samples.slices
        self.label_names = samples.label_names
        self.kind = samples.kind
        self.feature_names, self.num_inputs = samples.feature_names, samples.num_features
        train, test = samples.train, samples.test
        self._official = None if train is None or test is None else (train, test)


class ArrayDataset(MultiLabelDataset):
    """A data set in memory, such as :func:`tg_mlc.data.from_arrays` returns."""

    def __init__(self, samples: Samples, transform: Callable[[Data], Data] | None = None) -> None:
        super().__init__(None, transform)
        self._adopt(samples)
        self._samples = samples

    def samples(self) -> Samples:
        """Returns all samples in PyG's collated format."""
        if self._indices is not None:
            return self.copy().samples()
        train, test = self._official or (None, None)
        changed = {"data": self._data, "slices": self.slices, "label_names": self.label_names}
        return self._samples._replace(**changed, train=train, test=test)


def joined(parts: Sequence[MultiLabelDataset]) -> MultiLabelDataset:
    """Concatenates data sets of one kind.

    Args:
        parts (Sequence[MultiLabelDataset]): Data sets with the same labels and features.

    Raises:
        ValueError: If samples differ in their attributes, or in the sizes of attributes.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if (collated := _concatenated(parts)) is None:
        collated = _collated(parts)
    names, num_inputs = first.feature_names, first.num_inputs
    collated = collated._replace(kind=first.kind, feature_names=names, num_features=num_inputs)
    dataset = ArrayDataset(collated)
    dataset.tokenizer, dataset.schema = first.tokenizer, first.schema
    dataset.parts = first.parts
    return dataset


def _concatenated(parts: Sequence[MultiLabelDataset]) -> Samples | None:
    """Returns concatenated samples, or :obj:`None` if parts or values need to be collated."""
    first, keys = parts[0], parts[0]._data.keys()
    data, slices = type(first._data)(), dict[str, Tensor]()
    if any(part._indices is not None or part.transform for part in parts):
        return None
    bounds = [part.slices or {} for part in parts]  # PyG keeps no slices of a single sample.
    if any(part._data.keys() != keys for part in parts):
        return None
    if any(slices_of_part.keys() != {*keys} for slices_of_part in bounds):
        return None
    for key in keys:
        values = [part._data[key] for part in parts]
        if not all(isinstance(value, Tensor) for value in values):
            return None
        data[key] = torch.cat(values, dim=first._data.__cat_dim__(key, values[0]))
        counts = torch.cat([ends[key].diff() for ends in bounds])
        slices[key] = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return Samples(data, slices, list(first.label_names), None)


def _collated(parts: Sequence[MultiLabelDataset]) -> Samples:
    samples = [sample for part in parts for sample in part]
    if any("weight" in part[0] for part in parts):
        for row, sample in enumerate(samples):
            if "weight" not in sample:  # Words of weight 1 are saved without it.
                samples[row] = copy(sample).update({"weight": torch.ones(sample.x.size(0))})
    attributes = list(dict.fromkeys(tuple(sample.keys()) for sample in samples))
    if len(set(map(frozenset, attributes))) > 1:
        got = shorten(" and ".join(map(str, attributes)))
        raise ValueError(f"Expected samples with the same attributes (got {got})")
    return Samples.collate(samples, parts[0].label_names, None)
