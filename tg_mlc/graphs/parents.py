"""Hierarchies as pairs of child and parent, and the edges among labels that follow from them."""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from tg_mlc._names import few, shorten

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
    alone = [label for label in labels if label not in hierarchy]
    if without_root and root is None and not edges:
        logger.warning(
            "The hierarchy joins no two labels, as %r is no label and was taken for its root; "
            "if it is one, write it as in 'label_names' (%s)",
            *(top, few([*map(str, labels)])),
        )
    elif unknown and alone:
        logger.warning(
            "%d of %d labels are not in the hierarchy and stay alone (%s); "
            "%d of its names are no labels (%s)",
            *(len(alone), len(labels), few([*map(str, alone)])),
            *(len(unknown), few([*map(str, unknown)])),
        )

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
    """Returns the labels in their order: as specified, or all nodes but the root."""
    nodes = [node for node in hierarchy if node != root]
    if by_index:
        highest = max((node for node in nodes if isinstance(node, int)), default=-1)
        return list(range(highest + 1 if label_names is None else len(label_names)))
    return nodes if label_names is None else list(label_names)


def _labels_above(
    hierarchy: nx.DiGraph[Node], labels: Container[Node], ancestors: bool
) -> dict[Node, dict[Node, None]]:
    """Returns the nearest labels above each node, or all of them, in order and each once."""
    import networkx as nx

    above: dict[Node, dict[Node, None]] = {}
    for node in nx.topological_sort(hierarchy):
        above[node] = {}
        for parent in hierarchy.predecessors(node):
            above[node] |= {parent: None} if parent in labels else above[parent]
            above[node] |= above[parent] if ancestors else {}
    return above


def _warn_of_spellings(nodes: Iterable[Node]) -> None:
    """Warns of each name that differs from another one in case or space only."""
    spellings: dict[str, str] = {}
    for name in map(str, dict.fromkeys(nodes)):
        first = spellings.setdefault(" ".join(name.casefold().split()), name)
        if first != name:
            message = "Names %r and %r of the hierarchy differ in case or space only; are they one?"
            logger.warning(message, first, name)


def _hierarchy(parents: Parents) -> nx.DiGraph[Node]:
    """Returns the hierarchy as a graph from parents to children."""
    import networkx as nx

    hierarchy: nx.DiGraph[Node] = nx.DiGraph()
    for child, parent in _pairs(parents):
        hierarchy.add_node(child)
        if parent is not None:
            hierarchy.add_edge(parent, child)
    types = {type(node) for node in hierarchy}
    are_nodes = all(issubclass(t, str | int) and t is not bool for t in types)
    if not are_nodes or len(types) > 1:
        got = shorten(list(hierarchy)[:6])
        raise ValueError(f"Expected 'parents' to hold either names or indices (got {got})")
    try:
        cycle = nx.find_cycle(hierarchy)
    except nx.NetworkXNoCycle:
        return hierarchy
    path = " -> ".join(str(edge[0]) for edge in [*cycle, cycle[0]])
    raise ValueError(f"Expected 'parents' to be without cycles (got {path}); drop one of the pairs")


def _pairs(parents: Parents) -> Iterator[tuple[Any, Any]]:
    """Yields pairs of child and parent."""
    if isinstance(parents, str | os.PathLike) or not isinstance(parents, Iterable):
        got = f"(got {shorten(repr(parents))})"
        hint = "read them from a file with tg_mlc.graphs.read_parents"
        raise ValueError(f"Expected 'parents' to be a dict or pairs (child, parent) {got}; {hint}")
    is_mapping = isinstance(parents, Mapping)
    for item in parents.items() if isinstance(parents, Mapping) else parents:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
            got = shorten(repr(item))
            raise ValueError(f"Expected 'parents' to hold pairs (child, parent) (got {got})")
        child, parent = item
        is_list = is_mapping and isinstance(parent, list | tuple | set | frozenset)
        yield from ((child, one) for one in (list(parent) if is_list else [parent]) or [None])


def _top(hierarchy: nx.DiGraph[Node], labels: Sequence[Node], root: Node | None) -> Node | None:
    """Returns the node above the hierarchy: the root, or the only top node that is no label."""
    if root is not None and root not in hierarchy:
        raise ValueError(f"Expected 'root' to be in 'parents' (got {root!r})")
    known = {*labels, root}
    unknown = [node for node in hierarchy if node not in known]
    inner = [node for node in unknown if hierarchy.out_degree(node) > 0]
    tops = [node for node in inner if hierarchy.in_degree(node) == 0]
    top = tops[0] if root is None and len(tops) == 1 else root
    if lost := [node for node in unknown if isinstance(node, int) and node != top]:
        hint = "add names to 'label_names', or name the root with 'root'"
        expected = "every index in 'parents' to be a label or the root"
        raise ValueError(f"Expected {expected} (got {lost[:5]}); {hint}")
    return top
