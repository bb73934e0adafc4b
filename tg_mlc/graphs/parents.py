"""Hierarchies as pairs of child and parent, and the edges among labels that follow from them."""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    import networkx as nx

logger = logging.getLogger(__name__)

Node = str | int
Parents = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


class LabelEdges(NamedTuple):
    """The edges of a hierarchy among labels, named as the arguments of a :class:`LabelGraph`."""

    edge_index: Tensor  #: unique pairs of parent and child :math:`(2, P)`
    num_nodes: int
    label_names: list[str] | None
    source: str  #: the hierarchy, in words


def to_label_edges(
    parents: Parents,
    label_names: list[str] | None,
    root: Node | None = None,
    *,
    include_root: bool = False,
    ancestors: bool = False,
) -> LabelEdges:
    """Returns the edges from parents to children among the labels; the arguments are those of
    :func:`tg_mlc.graphs.tree`.
    """
    hierarchy = _hierarchy(parents)
    by_index = len(hierarchy) > 0 and all(isinstance(node, int) for node in hierarchy)
    labels = _labels(hierarchy, label_names, by_index, root)
    top = _top(hierarchy, labels, root)
    if include_root:
        if top is None:
            expected = "'parents' to have a root for 'include_root'"
            raise ValueError(f"Expected {expected} (got none); name it with 'root'")
        labels += [] if top in labels else [top]
    _warn_of_spellings([*labels, *hierarchy])

    positions = {node: index for index, node in enumerate(labels)}
    above = _labels_above(hierarchy, positions, ancestors)
    children = [node for node in hierarchy if node in positions]
    edges = [(positions[parent], positions[child]) for child in children for parent in above[child]]
    without_root = top is not None and top not in positions
    unknown = [node for node in hierarchy if node not in positions and node != top]
    relation = "ancestor-descendant" if ancestors else "parent-child"
    source = f"hierarchy of {len(edges)} {relation} pairs"
    source += f", without the root {top!r}" if without_root else ""
    source += f", past {len(unknown)} that are no labels" if unknown else ""
    if without_root and root is None and not edges:
        logger.warning(
            "The hierarchy joins no two labels, as %r is no label and was taken for its root; "
            "if it is one, write it as in 'label_names' (%s)",
            top,
            ", ".join(map(str, labels[:5])),
        )
    elif unknown:
        _warn_of_others(labels, hierarchy, unknown)

    names: list[str] | None = None
    if label_names is not None:
        names = [*label_names, *map(str, labels[len(label_names) :])]
    elif labels and not by_index:
        names = list(map(str, labels))
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous()
    return LabelEdges(edge_index, len(labels), names, source)


def _labels(
    hierarchy: nx.DiGraph[Node], label_names: list[str] | None, by_index: bool, root: Node | None
) -> list[Node]:
    """The labels in their order: as specified, or all nodes of the hierarchy but the root."""
    nodes = [node for node in hierarchy if node != root]
    if by_index:
        highest = max((node for node in nodes if isinstance(node, int)), default=-1)
        return list(range(highest + 1 if label_names is None else len(label_names)))
    return nodes if label_names is None else list(label_names)


def _labels_above(
    hierarchy: nx.DiGraph[Node], labels: Container[Node], ancestors: bool
) -> dict[Node, dict[Node, None]]:
    """The nearest labels above each node, or all of them, in order and each once."""
    import networkx as nx

    above: dict[Node, dict[Node, None]] = {}
    for node in nx.topological_sort(hierarchy):
        above[node] = {}
        for parent in hierarchy.predecessors(node):
            above[node] |= {parent: None} if parent in labels else above[parent]
            above[node] |= above[parent] if ancestors else {}
    return above


def _warn_of_others(
    labels: Sequence[Node],
    hierarchy: nx.DiGraph[Node],
    unknown: Sequence[Node],
) -> None:
    """Warns if labels are not in the hierarchy while names in it are no labels."""
    if alone := [label for label in labels if label not in hierarchy]:
        logger.warning(
            "%d of %d labels are not in the hierarchy and stay alone (%s); %d of its names are no labels (%s)",
            len(alone),
            len(labels),
            ", ".join(map(str, alone[:5])),
            len(unknown),
            ", ".join(map(str, unknown[:5])),
        )


def _warn_of_spellings(nodes: Iterable[Node]) -> None:
    """Warns of each name that differs from another one in case or space only."""
    spellings: dict[str, str] = {}
    for name in map(str, dict.fromkeys(nodes)):
        other = spellings.setdefault(" ".join(name.casefold().split()), name)
        if other != name:
            logger.warning(
                "The names %r and %r of the hierarchy differ in case or space only; are they one?",
                other,
                name,
            )


def _hierarchy(parents: Parents) -> nx.DiGraph[Node]:
    """The hierarchy as a graph from parents to children."""
    import networkx as nx

    hierarchy: nx.DiGraph[Node] = nx.DiGraph()
    for child, parent in _pairs(parents):
        hierarchy.add_node(child)
        if parent is not None:
            hierarchy.add_edge(parent, child)
    strange = [
        node for node in hierarchy if isinstance(node, bool) or not isinstance(node, str | int)
    ]
    if strange or len({type(node) for node in hierarchy}) > 1:
        raise ValueError(
            f"Expected 'parents' to hold either names or indices (got {list(hierarchy)[:6]})"
        )
    try:
        cycle = nx.find_cycle(hierarchy)
    except nx.NetworkXNoCycle:
        return hierarchy
    path = " -> ".join(str(edge[0]) for edge in [*cycle, cycle[0]])
    raise ValueError(
        f"Expected 'parents' to be without cycles (got {path}); take one of these pairs out"
    )


def _pairs(parents: Parents) -> Iterator[tuple[Any, Any]]:
    """Pairs of child and parent."""
    if isinstance(parents, str | os.PathLike) or not isinstance(parents, Iterable):
        hint = "read them from a file with tg_mlc.graphs.read_parents"
        raise ValueError(
            f"Expected 'parents' to be a dict or pairs (child, parent) (got {parents!r}); {hint}"
        )
    for item in parents.items() if isinstance(parents, Mapping) else parents:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
            raise ValueError(f"Expected 'parents' to hold pairs (child, parent) (got {item!r})")
        child, parent = item
        several = isinstance(parents, Mapping) and isinstance(
            parent, list | tuple | set | frozenset
        )
        yield from ((child, each) for each in (list(parent) if several else [parent]) or [None])


def _top(hierarchy: nx.DiGraph[Node], labels: Sequence[Node], root: Node | None) -> Node | None:
    """The node above the hierarchy: the specified one, or the only top node that is no label."""
    if root is not None and root not in hierarchy:
        raise ValueError(f"Expected 'root' to be in 'parents' (got {root!r})")
    known = {*labels, root}
    strange = [node for node in hierarchy if node not in known]
    tops = [
        node
        for node in strange
        if hierarchy.in_degree(node) == 0 and hierarchy.out_degree(node) > 0
    ]
    found = tops[0] if root is None and len(tops) == 1 else root
    if lost := [node for node in strange if isinstance(node, int) and node != found]:
        hint = "add names to 'label_names', or name the root with 'root'"
        raise ValueError(
            f"Expected every index in 'parents' to be a label or the root (got {lost[:5]}); {hint}"
        )
    return found
