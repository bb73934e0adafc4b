"""Data sets whose labels form a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tg_mlc.data import MultiLabelDataset
from tg_mlc.graphs import LabelGraph, tree
from tg_mlc.graphs.hierarchy import coherent, pairs_of, propagate
from tg_mlc.graphs.parents import Parents

DatasetT = TypeVar("DatasetT", bound=MultiLabelDataset)


def with_hierarchy(
    dataset: DatasetT, parents: Parents | LabelGraph, *, listed: bool = False
) -> DatasetT:
    """Gives a data set the hierarchy of its labels as attribute :obj:`label_graph`, of kind
    :obj:`"hierarchy"`: models that are trained on it make coherent predictions.

    Labels above one that applies apply where they are unknown, and those below one that does not
    apply do not.

    .. code-block:: python

        dataset = with_hierarchy(from_csv("genes.csv", terms), read_parents("go-basic.obo"))

    Args:
        dataset (MultiLabelDataset): The data set, which is changed.
        parents (dict or list of tuple or LabelGraph): As of :func:`tg_mlc.graphs.tree`, or what
            that returned.
        listed (bool, optional): If set to :obj:`True`, labels above one that applies apply where
            they are 0, too, as lists of labels often leave them out. (default: :obj:`False`, which
            refuses such samples)

    Raises:
        ValueError: If the hierarchy has a cycle, joins none of the labels, or a label contradicts
            one above it.
    """
    names = dataset.label_names
    graph = parents if isinstance(parents, LabelGraph) else tree(parents, names)
    pairs = pairs_of(graph, names, "parents")
    if len(names) > 1 and not pairs.numel() and not isinstance(parents, LabelGraph):
        expected, got = "'parents' to join labels", ", ".join(map(repr, names[:3]))
        hint = "do they have other names there?"
        raise ValueError(f"Expected {expected} (got none of {got}); {hint}")
    y = dataset._data.y
    dataset._data["y"] = coherent(y, pairs) if listed else propagate(y, pairs, names, "labels")
    dataset.label_graph = LabelGraph(**{**graph.to_dict(), "kind": "hierarchy"})
    return dataset


def pairs(parents: Mapping[str, Sequence[str]]) -> list[tuple[str, str | None]]:
    """Pairs of child and parent, :obj:`None` for those without one."""
    return [(child, parent) for child, above in parents.items() for parent in above or (None,)]
