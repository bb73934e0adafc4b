"""Label graphs from a hierarchy."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import networkx as nx
import torch

from tg_mlc.graphs.label_graph import LabelGraph, as_names

logger = logging.getLogger(__name__)

Node = str | int
Parents = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


def tree(
    parents: Parents,
    label_names: Sequence[str] | None = None,
    undirected: bool = True,
    root: Node | None = None,
    self_loops: bool = True,
    include_root: bool = False,
    ancestors: bool = False,
) -> LabelGraph:
    r"""The label graph of a hierarchy: a label attends to its parents and its children, as the RCV1 topics do in the
    `"Neural Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    A label may have several parents, so any hierarchy without cycles will do.

    Args:
        parents (dict or list of tuple): The parent, or list of parents, of each child; or pairs
            :obj:`(child, parent)`, as :func:`~tg_mlc.graphs.read_parents` reads them from a file. Children and
            parents are names, or indices of labels. A parent of :obj:`None` stands for none.
        label_names (list of str, optional): The labels in their order; those outside the hierarchy stay alone.
            (default: :obj:`None`, names in the order in which they appear, or indices :obj:`0` to :obj:`L - 1`)
        undirected (bool, optional): If set to :obj:`False`, messages go from parents to children only.
            (default: :obj:`True`)
        root (str or int, optional): A node above the hierarchy that is no label of its own, and is dropped with its
            edges. (default: :obj:`None`, the one top node that is not in :obj:`label_names`, if there is one;
            :obj:`source` names it)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it would receive
            nothing otherwise. (default: :obj:`True`)
        include_root (bool, optional): If set to :obj:`True`, the root stays, as one more label after all others.
            (default: :obj:`False`)
        ancestors (bool, optional): If set to :obj:`True`, parents of parents count as parents, and so on up.
            (default: :obj:`False`)

    Raises:
        ValueError: If the hierarchy has a cycle, or a node that is neither a label nor the root.
    """
    label_names = None if label_names is None else as_names(label_names)
    hierarchy = _hierarchy(parents)
    labels = _labels(hierarchy, label_names, root)
    top = _top(hierarchy, labels, root)
    if include_root:
        if top is None:
            raise ValueError("Expected 'parents' to have a root for 'include_root' (got none); name it with 'root'")
        labels += [] if top in labels else [top]
    position = {node: index for index, node in enumerate(labels)}
    related = nx.transitive_closure_dag(hierarchy) if ancestors else hierarchy
    edges = [(position[j], position[i]) for j, i in related.edges if j in position and i in position]
    dropped = "" if top is None or top in position else f", without the root {top!r}"
    if dropped and root is None and not edges:
        logger.warning(
            "The hierarchy joins no two labels, as %r is no label and was taken for its root; if it is one, write it "
            "as in 'label_names' (%s)", top, ", ".join(map(str, labels[:5])),
        )  # fmt: skip
    graph = LabelGraph(
        torch.tensor(edges, dtype=torch.long).view(-1, 2).t(),
        num_nodes=len(labels),
        label_names=_names(labels, label_names),
        kind="tree",
        source=f"hierarchy of {len(edges)} {'ancestor-descendant' if ancestors else 'parent-child'} pairs{dropped}",
    )
    graph = graph.to_undirected() if undirected else graph
    return graph.add_self_loops(only_isolated=not self_loops)


def _hierarchy(parents: Parents) -> nx.DiGraph[Node]:
    hierarchy: nx.DiGraph[Node] = nx.DiGraph()
    for child, parent in _pairs(parents):
        hierarchy.add_node(child)
        if parent is not None:
            hierarchy.add_edge(parent, child)
    strange = [node for node in hierarchy if isinstance(node, bool) or not isinstance(node, str | int)]
    if strange or len({type(node) for node in hierarchy}) > 1:
        raise ValueError(f"Expected 'parents' to hold either names or indices (got {list(hierarchy)[:6]})")
    try:
        cycle = nx.find_cycle(hierarchy)
    except nx.NetworkXNoCycle:
        return hierarchy
    path = " -> ".join(str(edge[0]) for edge in [*cycle, cycle[0]])
    raise ValueError(f"Expected 'parents' to be without cycles (got {path}); take one of these pairs out")


def _pairs(parents: Parents) -> Iterator[tuple[Any, Any]]:
    if isinstance(parents, str | os.PathLike) or not isinstance(parents, Iterable):
        hint = "read them from a file with tg_mlc.graphs.read_parents"
        raise ValueError(f"Expected 'parents' to be a dict or pairs (child, parent) (got {parents!r}); {hint}")
    for item in parents.items() if isinstance(parents, Mapping) else parents:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
            raise ValueError(f"Expected 'parents' to hold pairs (child, parent) (got {item!r})")
        child, parent = item
        several = isinstance(parents, Mapping) and isinstance(parent, list | tuple | set | frozenset)
        yield from ((child, each) for each in (list(parent) if several else [parent]) or [None])


def _labels(hierarchy: nx.DiGraph[Node], label_names: Sequence[str] | None, root: Node | None) -> list[Node]:
    if len(hierarchy) and all(isinstance(node, int) for node in hierarchy):
        last = max((int(node) for node in hierarchy if node != root), default=-1)
        return list(range(last + 1 if label_names is None else len(label_names)))
    return [node for node in hierarchy if node != root] if label_names is None else list(label_names)


def _top(hierarchy: nx.DiGraph[Node], labels: Sequence[Node], root: Node | None) -> Node | None:
    if root is not None and root not in hierarchy:
        raise ValueError(f"Expected 'root' to be in 'parents' (got {root!r})")
    known = {*labels, root}
    strange = [node for node in hierarchy if node not in known]
    if root is None and len(strange) == 1 and hierarchy.in_degree(strange[0]) == 0:
        return strange[0]
    if strange:
        hint = "add them to 'label_names', or name the root with 'root'"
        raise ValueError(f"Expected every node of 'parents' to be a label or the root (got {strange[:5]}); {hint}")
    return root


def _names(labels: Sequence[Node], label_names: Sequence[str] | None) -> list[str] | None:
    if label_names is not None:
        return [*label_names, *(str(node) for node in labels[len(label_names) :])]
    return [str(node) for node in labels] if labels and isinstance(labels[0], str) else None
