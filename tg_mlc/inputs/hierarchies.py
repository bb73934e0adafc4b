"""Data sets whose labels form a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import torch

from tg_mlc.data import MultiLabelDataset
from tg_mlc.graphs import LabelGraph, tree
from tg_mlc.graphs.hierarchy import ROOTS, coherent, derive, pairs_of, propagate
from tg_mlc.graphs.parents import Parents, ancestors_of

DatasetT = TypeVar("DatasetT", bound=MultiLabelDataset)


def with_hierarchy(
    dataset: DatasetT,
    parents: Parents | LabelGraph,
    *,
    listed: bool = False,
    ancestors: bool = False,
) -> DatasetT:
    """Gives a data set the hierarchy of its labels as attribute :obj:`label_graph`, of kind
    :obj:`"hierarchy"`: models that are trained on it make coherent predictions.

    Unknown ancestors of labels that apply are set to 1, and unknown descendants of labels that do
    not apply are set to 0.

    .. code-block:: python

        dataset = with_hierarchy(from_csv("genes.csv", terms), read_parents("go-basic.obo"))

    Args:
        dataset (MultiLabelDataset): The data set, which is changed.
        parents (dict or list of tuple or LabelGraph): The parents, as in
            :func:`tg_mlc.graphs.tree`, or its result.
        listed (bool, optional): If set to :obj:`True`, ancestors of labels that apply are also
            set to 1 if they are 0, because lists of labels often omit ancestors.
            (default: :obj:`False`, such samples raise)
        ancestors (bool, optional): If set to :obj:`True`, ancestors of labels become labels, too,
            after all others, except the roots of the Gene Ontology. An ancestor applies where a
            label below it does, and does not apply where none does. (default: :obj:`False`)

    Raises:
        ValueError: If the hierarchy has a cycle, joins none of the labels, or a label contradicts
            its ancestor.
    """
    names, added = dataset.label_names, list[str]()
    if ancestors and not isinstance(parents, LabelGraph):
        parents = parents if isinstance(parents, Mapping) else list(parents)
        added = [name for name in ancestors_of(parents, names) if name not in ROOTS]
        names = dataset.label_names = [*names, *added]
    graph = parents if isinstance(parents, LabelGraph) else tree(parents, names)
    pairs = pairs_of(graph, names, "parents")
    if len(names) > 1 and not pairs.numel() and not isinstance(parents, LabelGraph):
        expected, got = "'parents' to join labels", ", ".join(map(repr, names[:3]))
        hint = "do they have other names there?"
        raise ValueError(f"Expected {expected} (got none of {got}); {hint}")
    y = dataset._data.y
    if added:
        y = torch.cat([y, y.new_full((len(y), len(added)), torch.nan)], dim=1)
        y = derive(y, pairs, torch.arange(len(names)) >= len(names) - len(added))
    dataset._data["y"] = coherent(y, pairs) if listed else propagate(y, pairs, names, "labels")
    dataset.label_graph = LabelGraph(**{**graph.to_dict(), "kind": "hierarchy"})
    return dataset


def pairs(parents: Mapping[str, Sequence[str]]) -> list[tuple[str, str | None]]:
    """Returns pairs of child and parent, where :obj:`None` stands for no parent."""
    return [(child, parent) for child, names in parents.items() for parent in names or (None,)]
