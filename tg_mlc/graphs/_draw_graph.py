"""Drawing of a label graph as dots and arrows."""

from __future__ import annotations

import math
from textwrap import fill
from typing import Any

import networkx as nx
import numpy as np

from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.graphs.networkx import to_networkx

INK, POSITIVE, NEGATIVE = "#1b2a41", (0.15, 0.35, 0.65), (0.75, 0.15, 0.15)
# A tree has one pair per label; with many more, the layout of trees is a ball of wool, a circle stays readable.
MAX_PAIRS_PER_LABEL = 1.2

Positions = dict[int, np.ndarray]


def draw_graph(graph: LabelGraph, ax: Any, wrap: int) -> None:
    """Draws nodes, arrows and names; on a circle where there are many edges, as a tree where there are few."""
    ax.set_axis_off()
    ax.set_aspect("equal")
    network = to_networkx(graph.remove_self_loops())
    undirected = network.to_undirected()
    names = graph.label_names or [str(i) for i in range(graph.num_labels)]
    names = [fill(name, wrap, max_lines=3, placeholder=" …", break_long_words=False) for name in names]
    on_circle = undirected.number_of_edges() > MAX_PAIRS_PER_LABEL * graph.num_labels
    positions = _circle(network) if on_circle else _tree_like(undirected)
    ax.margins(0.25 if on_circle else 0.1)  # leaves room for names of two dozen letters
    for node, point in positions.items():
        (_name_around if on_circle else _name_above)(ax, names[node], point)
    listeners = dict(network.out_degree)
    sizes = [25.0 + 120.0 * count / max(1, *listeners.values()) for count in listeners.values()]
    nx.draw_networkx_nodes(network, positions, ax=ax, node_size=sizes, node_color=INK, linewidths=0)
    _draw_edges(ax, undirected if graph.is_undirected() else network, positions)


def _circle(network: nx.DiGraph[int]) -> Positions:
    # Labels of one community stand side by side, so that most arrows are short.
    strength = nx.Graph((j, i, {"weight": abs(w)}) for j, i, w in network.edges(data="weight", default=1.0))
    strength.add_nodes_from(network)
    groups = nx.community.greedy_modularity_communities(strength, weight="weight")
    return dict(nx.circular_layout(nx.empty_graph([node for group in groups for node in sorted(group)])))


def _tree_like(network: nx.Graph[int]) -> Positions:
    distance = dict(nx.all_pairs_shortest_path_length(network))
    longest = max((max(row.values()) for row in distance.values()), default=0)
    # Labels that no path joins are kept somewhat farther apart than any that one does; by themselves they would
    # have no distance, and lie on top of each other.
    full = {j: {i: distance[j].get(i, longest + 1) for i in network} for j in network}
    return dict(nx.kamada_kawai_layout(network, dist=full))


def _name_around(ax: Any, name: str, point: np.ndarray) -> None:
    angle, left = math.degrees(math.atan2(point[1], point[0])), point[0] < -1e-9
    style = {"rotation_mode": "anchor", "va": "center", "ha": "right" if left else "left"}
    ax.text(*(1.06 * point), name, rotation=angle + 180.0 * left, fontsize=8.0, color=INK, **style)


def _name_above(ax: Any, name: str, point: np.ndarray) -> None:
    halo = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
    style = {"ha": "center", "fontsize": 7.0, "color": INK, "zorder": 4, "bbox": halo}
    ax.annotate(name, point, xytext=(0, 6), textcoords="offset points", **style)


def _draw_edges(ax: Any, network: nx.Graph[int], positions: Positions) -> None:
    weights = np.array([w for _, _, w in network.edges(data="weight", default=1.0)])
    if not len(weights):
        return
    size, spread = np.abs(weights), np.ptp(np.abs(weights))
    # Spread over 0 to 1, so that differences show even between numbers that are close.
    share = (size - size.min()) / spread if spread else np.full_like(size, 0.5)
    colors = [(*(POSITIVE if w >= 0 else NEGATIVE), 0.25 + 0.65 * s) for w, s in zip(weights, share, strict=True)]
    style: dict[str, Any] = {"width": (0.5 + 1.5 * share).tolist(), "edge_color": colors}
    if network.is_directed():
        style |= {"arrowsize": 9, "node_size": 90, "connectionstyle": "arc3,rad=0.12"}
    nx.draw_networkx_edges(network, positions, ax=ax, **style)
