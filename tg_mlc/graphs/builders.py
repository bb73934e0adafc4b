"""Complete, edgeless, hierarchical and NetworkX label graphs, and the selection of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tg_mlc._options import check_count
from tg_mlc.graphs.label_graph import LabelGraph, as_names, check_label_names
from tg_mlc.graphs.parents import Node, Parents, label_edges

if TYPE_CHECKING:
    import networkx as nx


def fully_connected(labels: int | Sequence[str], self_loops: bool = True) -> LabelGraph:
    r"""The complete label graph, the "fc" graph of the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper: every label attends to every label.

    Args:
        labels (int or list of str): The number of labels, or their names.
        self_loops (bool, optional): If set to :obj:`False`, a label does not attend to itself.
            (default: :obj:`True`)
    """
    options: dict[str, Any] = {**edgeless(labels).to_dict(), "kind": "fully_connected"}
    index = torch.arange(options["num_nodes"])
    graph = LabelGraph(**{**options, "edge_index": torch.cartesian_prod(index, index).t()})
    return graph if self_loops else graph.remove_self_loops()


def edgeless(labels: int | Sequence[str]) -> LabelGraph:
    r"""The label graph without messages between different labels, the "el" graph of the `"Neural
    Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper: each
    label attends to itself only.

    Args:
        labels (int or list of str): The number of labels, or their names.
    """
    names = None
    if isinstance(labels, Sequence) and not isinstance(labels, str):
        names = check_label_names(labels)
    num_labels = labels if names is None else len(names)
    if not isinstance(num_labels, int) or isinstance(num_labels, bool) or num_labels < 0:
        expected = "'labels' to be a non-negative number of labels or a list of names"
        raise ValueError(f"Expected {expected} (got {labels!r})")
    loops = torch.arange(num_labels).expand(2, -1)
    return LabelGraph(loops, num_nodes=num_labels, label_names=names, kind="edgeless")


def tree(
    parents: Parents,
    label_names: Sequence[str] | None = None,
    undirected: bool = True,
    root: Node | None = None,
    self_loops: bool = True,
    include_root: bool = False,
    ancestors: bool = False,
) -> LabelGraph:
    """The label graph of a hierarchy: a label attends to its parents and its children, as the RCV1
    topics do in the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper.

    A label may have several parents. If only some names of the hierarchy are labels, each label is
    joined to its nearest ancestors that are labels.

    Args:
        parents (dict or list of tuple): The parent, or list of parents, of each child; or pairs
            :obj:`(child, parent)`, as from :func:`~tg_mlc.graphs.read_parents`. All nodes are
            names, or all are indices of labels. The parent :obj:`None` means that there is none.
        label_names (list of str, optional): The labels in their order; labels outside the hierarchy
            stay isolated. (default: :obj:`None`, names in order of appearance, or indices)
        undirected (bool, optional): Whether messages go from children to parents, too.
            (default: :obj:`True`)
        root (str or int, optional): The node above the hierarchy that is no label. It is removed
            with its edges. (default: :obj:`None`, the only top node that is not in
            :obj:`label_names`)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it
            has no other source. (default: :obj:`True`)
        include_root (bool, optional): Whether to keep the root, as the last label.
            (default: :obj:`False`)
        ancestors (bool, optional): Whether all ancestors count as parents. (default: :obj:`False`)

    Raises:
        ValueError: If the hierarchy has a cycle, or an index that is neither a label nor the root.
    """
    names = None if label_names is None else as_names(label_names)
    options = {"include_root": include_root, "ancestors": ancestors}
    graph = LabelGraph(**label_edges(parents, names, root, **options))
    graph = graph.to_undirected() if undirected else graph
    return graph.add_self_loops(only_isolated=not self_loops)


def from_networkx(
    graph: nx.Graph[Any],
    label_names: Sequence[str] | None = None,
    *,
    name: str = "name",
    weight: str | None = "weight",
    kind: str | None = None,
    source: str | None = None,
) -> LabelGraph:
    """Reads a :mod:`networkx` graph; an undirected edge becomes one edge in each direction.

    The names of labels are the node attribute :obj:`name` or, without it, the nodes if all are
    strings. Unnamed nodes :obj:`0` to :obj:`L - 1` are label indices.

    Args:
        graph (networkx.Graph): The graph. Of parallel edges, the largest weight is kept.
        label_names (list of str, optional): The labels in their order, or names for label indices.
            (default: :obj:`None`, the order of the nodes)
        name (str, optional): The node attribute of a label's name. (default: :obj:`"name"`)
        weight (str, optional): The edge attribute of weights, on all edges or none. If
            set to :obj:`None`, no weights are read. (default: :obj:`"weight"`)
        kind, source (str, optional): As in :class:`LabelGraph`.
            (default: :obj:`None`, the graph's own attributes)

    Raises:
        ValueError: If only some nodes have a name or some edges a weight, or the graph's labels are
            not :obj:`label_names`.
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        raise ValueError(f"Expected 'graph' to be a networkx graph (got {type(graph).__name__})")
    nodes_are_names = all(isinstance(node, str) for node in graph)
    named = nx.get_node_attributes(graph, name) or {node: node for node in graph if nodes_are_names}
    if named and len(named) < len(graph):
        got = f"(got none at node {next(node for node in graph if node not in named)!r})"
        raise ValueError(f"Expected all nodes or none to have the attribute {name!r} {got}")
    by_index = not named and set(graph) == set(range(len(graph)))
    nodes = sorted(graph) if by_index else list(graph)
    names = None if label_names is None else as_names(label_names)
    if names is None:
        names = [named[node] for node in nodes] if named else None
    elif not by_index or len(nodes) != len(names):
        node_of = {named.get(node, str(node)): node for node in nodes}
        missing = [label for label in names if label not in node_of]
        unknown = sorted(node_of.keys() - set(names))
        if missing or unknown:
            got = f"(missing: {missing[:5]}, unknown: {unknown[:5]}); add or drop nodes"
            raise ValueError(f"Expected the graph to hold just the labels of 'label_names' {got}")
        nodes = [node_of[label] for label in names]
    index_of = {node: index for index, node in enumerate(nodes)}
    edges = list(graph.to_directed().edges(data=True))
    pairs = [[index_of[j], index_of[i]] for j, i, _ in edges]
    values = [] if weight is None else [data.get(weight) for _, _, data in edges]
    weights = [float(value) for value in values if value is not None]
    if weights and len(weights) < len(edges):
        expected = f"all edges or none to have the attribute {weight!r}"
        raise ValueError(f"Expected {expected} (got some); or set weight=None")
    return LabelGraph(
        torch.tensor(pairs, dtype=torch.long).view(-1, 2).t(),
        num_nodes=len(nodes),
        edge_weight=torch.tensor(weights) if weights else None,
        label_names=names,
        kind=str(graph.graph.get("kind", "networkx")) if kind is None else kind,
        source=str(graph.graph.get("source", "")) if source is None else source,
    )


def check_selection(threshold: float | None, top_k: int | None) -> None:
    """Raises ValueError for options that :func:`select` cannot use."""
    if threshold is not None and not np.isfinite(threshold):
        raise ValueError(f"Expected 'threshold' to be a finite number or None (got {threshold!r})")
    check_count("top_k", top_k, or_none=True)


def select(
    source: np.ndarray,
    target: np.ndarray,
    strength: np.ndarray,
    num_labels: int,
    threshold: float | None,
    top_k: int | None,
    self_loops: bool,
    eligible: np.ndarray | None = None,
) -> np.ndarray:
    """Returns the mask of pairs that become edges. Pairs of two labels must be eligible, reach
    :obj:`threshold`, and be among the :obj:`top_k` strongest of their target (ties: lowest source
    first). Loops become edges; without :obj:`self_loops`, only for labels without other sources.
    """
    is_loop = source == target
    keep = ~is_loop if eligible is None else ~is_loop & eligible
    if threshold is not None:
        keep &= strength >= threshold
    if top_k is not None:
        pairs = np.flatnonzero(keep)
        pairs = pairs[np.lexsort((source[pairs], -strength[pairs], target[pairs]))]
        # Pairs are sorted by target: a pair's rank is its offset from its target's first pair.
        rank = np.arange(len(pairs)) - np.searchsorted(target[pairs], target[pairs])
        keep[pairs[rank >= top_k]] = False
    needs_loop = np.ones(num_labels, dtype=bool)
    if not self_loops:
        needs_loop[target[keep]] = False
    chosen: np.ndarray = keep | (is_loop & needs_loop[target])
    return chosen


def source_in_words(origin: str, **options: Any) -> str:
    """Returns the source of a graph in words: its origin, then the options that are set."""
    specified = [f"{key}={value}" for key, value in options.items() if value is not None]
    return ", ".join([origin, *specified])
