"""Label graphs from NetworkX; :meth:`LabelGraph.to_networkx` is the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from tg_mlc.graphs.label_graph import LabelGraph, as_names

if TYPE_CHECKING:
    import networkx as nx


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

    Labels are named by the attribute :obj:`name` of nodes, or else by nodes that are all strings.
    Unnamed nodes :obj:`0` to :obj:`L - 1` are the labels of that index.

    Args:
        graph (networkx.Graph): A graph, directed or not; parallel edges merge to the heaviest.
        label_names (list of str, optional): The labels of the graph in another order.
            (default: :obj:`None`, the order of the nodes)
        name (str, optional): The node attribute of a label's name. (default: :obj:`"name"`)
        weight (str, optional): The edge attribute of weights, which all edges have or none;
            :obj:`None` reads no weights. (default: :obj:`"weight"`)
        kind, source (str, optional): As in :class:`LabelGraph`.
            (default: :obj:`None`, the graph's own attributes)

    Raises:
        ValueError: If only some nodes have a name or some edges a weight, or the graph's labels are
            not :obj:`label_names`.
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        raise ValueError(f"Expected 'graph' to be a networkx graph (got {type(graph).__name__})")
    by_node = all(isinstance(node, str) for node in graph)
    named = nx.get_node_attributes(graph, name) or {node: node for node in graph if by_node}
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
        strange = sorted(node_of.keys() - set(names))
        if missing or strange:
            got = f"(missing: {missing[:5]}, unknown: {strange[:5]}); add or drop nodes"
            raise ValueError(f"Expected the graph to hold just the labels of 'label_names' {got}")
        nodes = [node_of[label] for label in names]
    position = {node: index for index, node in enumerate(nodes)}
    edges = list(graph.to_directed().edges(data=True))
    pairs = [[position[j], position[i]] for j, i, _ in edges]
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
