"""Samples of several parts, such as a text and a molecule in one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.index import ptr2index
from torch_geometric.utils import cumsum

from tg_mlc.data.bags import shallow_copy
from tg_mlc.data.dataset import ArrayDataset, MultiLabelDataset
from tg_mlc.data.samples import Samples

KIND = "mixed"  #: the :obj:`kind` of data sets of such samples
MISSING = -1  #: the size of a part that is missing
_NOT_OWN = {"y", "num_nodes"}  # Attributes that a part shares with the sample, or PyG infers.


class Part(NamedTuple):
    """What a part of all samples is."""

    columns: list[str]  #: the columns of the table behind the samples
    # These are attributes of MultiLabelDataset.
    kind: str | None = None
    feature_names: list[str] | None = None
    num_inputs: int | None = None
    tokenizer: str = "words"
    schema: Any = None

    def of(self, dataset: MultiLabelDataset) -> Part:
        """Returns what the part is if it has the samples of a data set."""
        return Part(self.columns, *(getattr(dataset, name) for name in self._fields[1:]))


class Blank(NamedTuple):
    """What samples are if all of them lack a part: without rows, but with all its attributes."""

    kind: str | None
    num_inputs: int | None
    values: dict[str, Any]  #: tensors without rows, and empty strings

    @classmethod
    def of(cls, part: MultiLabelDataset) -> Blank:
        """Returns the blank of a part, of which there is at least one sample."""
        data, values = part._data, dict[str, Any]()
        for name in [name for name in data.keys() if name not in _NOT_OWN]:  # noqa: SIM118
            values[name] = ""
            if isinstance(data[name], Tensor):
                dim = data.__cat_dim__(name, data[name])
                values[name] = data[name].narrow(dim, 0, 0).clone()
        return cls(part.kind, part.num_inputs, values)


class MixedData(Data):
    """A sample of several parts, or a batch of such samples.

    The attribute :obj:`x` of a part :obj:`note` is saved as :obj:`"note.x"`. The attribute
    :obj:`part_sizes` :math:`(1, P)` has the number of nodes of each part, or -1 if the part is
    missing. A missing part has no row in any attribute.
    """

    def part(self, name: str, index: int) -> Data:
        """Returns a part of a sample; for a batch, a batch of the samples that have the part.

        Args:
            name (str): The name of the part.
            index (int): The column of the part in :obj:`part_sizes`.
        """
        values = attributes_of(self, name)
        if not isinstance(self, Batch):
            return Data(**values, y=self.get("y"))
        sizes = self.part_sizes[:, index]
        ptr = cumsum(sizes[sizes != MISSING])
        return Batch(**values, ptr=ptr, batch=ptr2index(ptr, output_size=int(ptr[-1])))

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        part, _, attribute = key.rpartition(".")
        if not part or "index" not in attribute:
            return super().__inc__(attribute, value, *args, **kwargs)
        return Data(**attributes_of(self, part)).num_nodes

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return super().__cat_dim__(key.rpartition(".")[-1], value, *args, **kwargs)


def attributes_of(data: Data, name: str) -> dict[str, Any]:
    """Returns the attributes of a part."""
    split_keys = [key.rpartition(".") for key in data.keys()]  # noqa: SIM118
    return {own: data[f"{part}.{own}"] for part, _, own in split_keys if part == name}


def has_part(dataset: MultiLabelDataset, name: str) -> Tensor:
    """Returns for each sample whether it has a part :math:`(N)`."""
    return dataset.rows("part_sizes")[:, list(dataset.parts).index(name)] != MISSING


def mixed_dataset(samples: Samples, parts: Mapping[str, Part], is_present: Tensor) -> ArrayDataset:
    """Returns samples with labels alone, to which :func:`with_part` adds their parts.

    Args:
        samples (Samples): The samples, with their labels.
        parts (dict): What each part is, by its name.
        is_present (torch.Tensor): Whether samples have each part :math:`(N, P)`.
    """
    sizes = torch.where(is_present, 0, MISSING)
    data = MixedData(y=samples.data.y, part_sizes=sizes)
    slices = dict.fromkeys(("y", "part_sizes"), torch.arange(len(sizes) + 1))
    dataset = ArrayDataset(samples._replace(data=data, slices=slices, kind=KIND))
    dataset.parts = dict(parts)
    return dataset


def part_of(dataset: MultiLabelDataset, name: str) -> MultiLabelDataset:
    """Returns a part of all samples that have it, as a data set with their labels."""
    stored, index = dataset._data, list(dataset.parts).index(name)
    is_present = stored.part_sizes[:, index] != MISSING
    data, slices = Data(), dict[str, Tensor]()
    for own, value in attributes_of(stored, name).items():
        data[own], counts = value, _counts(dataset, f"{name}.{own}")[is_present]
        if not isinstance(value, Tensor):
            data[own] = _as_stored(_entries(value, is_present))
        slices[own] = cumsum(counts)
    data.y, slices["y"] = stored.y[is_present], torch.arange(int(is_present.sum()) + 1)
    facts = dataset.parts[name]
    names = dataset.label_names, None, facts.kind, facts.feature_names, facts.num_inputs
    part = ArrayDataset(Samples(data, slices, *names))
    part.tokenizer, part.schema = facts.tokenizer, facts.schema
    if dataset._indices is None:
        return part
    position, rows = is_present.cumsum(0) - 1, torch.tensor(list(dataset._indices)).long()
    selected: MultiLabelDataset = part.index_select(position[rows[is_present[rows]]].tolist())
    return selected


def with_part(
    dataset: MultiLabelDataset, name: str, part: MultiLabelDataset, blank: Blank
) -> MultiLabelDataset:
    """Returns samples with another part.

    Args:
        dataset (MultiLabelDataset): The samples; :obj:`part_sizes` tells which have the part.
        name (str): The name of the part.
        part (MultiLabelDataset): The part of those samples, in their order.
        blank (Blank): The part where it is missing.
    """
    changed, part = shallow_copy(dataset), part if part._indices is None else part.copy()
    for own in attributes_of(changed._data, name):
        del changed._data[f"{name}.{own}"]
    is_present, data, slices = has_part(changed, name), changed._data, dict(changed.slices or {})
    slices = {key: bounds for key, bounds in slices.items() if key.rpartition(".")[0] != name}
    for own, value in blank.values.items():
        counts, values = torch.zeros(len(changed), dtype=torch.long), value
        if len(part):
            counts[is_present], values = _counts(part, own), part._data[own]
        if not isinstance(value, Tensor):
            entries = iter(_entries(values, torch.ones(len(part), dtype=torch.bool)))
            values = _as_stored([next(entries) if has else value for has in is_present.tolist()])
            counts = torch.ones_like(counts)
        data[f"{name}.{own}"], slices[f"{name}.{own}"] = values, cumsum(counts)
    sizes = [sample.num_nodes or 0 for sample in part] if "x" not in blank.values else None
    counts = slices[f"{name}.x"].diff()[is_present] if sizes is None else torch.tensor(sizes)
    data.part_sizes = data.part_sizes.clone()
    data.part_sizes[is_present, list(dataset.parts).index(name)] = counts.long()
    facts = dataset.parts[name]
    blank_facts = facts._replace(kind=blank.kind, num_inputs=blank.num_inputs)
    # PyG keeps no slices of a single sample.
    changed.slices = None if dataset.slices is None else slices
    changed.parts = {**dataset.parts, name: facts.of(part) if len(part) else blank_facts}
    return changed


def _counts(dataset: MultiLabelDataset, key: str) -> Tensor:
    """Returns the numbers of rows that an attribute has in all stored samples."""
    if dataset.slices is not None:
        counts: Tensor = dataset.slices[key].diff()
        return counts
    value = dataset._data[key]  # PyG keeps no slices of a single sample.
    is_tensor = isinstance(value, Tensor)
    return torch.tensor([value.size(dataset._data.__cat_dim__(key, value)) if is_tensor else 1])


def _entries(values: Any, is_kept: Tensor) -> list[Any]:
    """Returns some entries of an attribute that is no tensor; that of a single sample is bare."""
    entries = [values] if len(is_kept) == 1 else values
    return [entry for entry, is_kept in zip(entries, is_kept.tolist(), strict=False) if is_kept]


def _as_stored(entries: list[Any]) -> Any:
    return entries[0] if len(entries) == 1 else entries
