"""Drawing of a label graph as dots and arrows."""

from __future__ import annotations

import math
from textwrap import fill
from typing import Any

import networkx as nx
import numpy as np

from tg_mlc._optional import require
from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.graphs.networkx import to_networkx

FONT_SIZE, MIN_FONT_SIZE = 8.0, 4.0
LETTER_WIDTH = 0.55  # of its height, on average
INK, POSITIVE, NEGATIVE = "#1b2a41", (0.15, 0.35, 0.65), (0.75, 0.15, 0.15)
# A tree has one pair per label; with many more, the layout of trees is a ball of wool, a circle stays readable.
MAX_PAIRS_PER_LABEL = 1.2

Positions = dict[int, np.ndarray]


def draw_graph(graph: LabelGraph, ax: Any, wrap: int) -> None:
    """Draws nodes, arrows and names; on a circle where there are many edges, as a tree where there are few."""
    ax.set_axis_off()
    ax.set_aspect("equal")
    if not graph.num_labels:
        return
    graph = graph.remove_self_loops()
    network = to_networkx(graph)
    both_ways = graph.is_undirected()
    pairs = network.to_undirected().number_of_edges()
    names = [fill(name, wrap, max_lines=3, placeholder=" …", break_long_words=False) for name in _names(graph)]
    if pairs > MAX_PAIRS_PER_LABEL * graph.num_labels:
        positions = _circle(network)
        _name_around(ax, positions, names)
    else:
        positions = _tree_like(network.to_undirected())
        _name_above(ax, positions, names)
    _draw_dots(ax, network, positions)
    _draw_edges(ax, network.to_undirected() if both_ways else network, positions)


def _names(graph: LabelGraph) -> list[str]:
    return [str(i) for i in range(graph.num_labels)] if graph.label_names is None else graph.label_names


def _circle(network: nx.DiGraph[int]) -> Positions:
    # Labels of one community stand side by side, so that most arrows are short.
    strength = nx.Graph((j, i, {"weight": abs(w)}) for j, i, w in network.edges(data="weight", default=1.0))
    strength.add_nodes_from(network)
    groups = nx.community.greedy_modularity_communities(strength, weight="weight")
    order = [node for group in groups for node in sorted(group)]
    angles = np.linspace(0.0, 2.0 * math.pi, len(order), endpoint=False)
    return {node: np.array([math.cos(a), math.sin(a)]) for node, a in zip(order, angles, strict=True)}


def _tree_like(network: nx.Graph[int]) -> Positions:
    distance = dict(nx.all_pairs_shortest_path_length(network))
    longest = max(max(row.values()) for row in distance.values())
    # Labels that no path joins are kept somewhat farther apart than any that one does; by themselves they would
    # have no distance, and lie on top of each other.
    full = {j: {i: distance[j].get(i, longest + 1) for i in network} for j in network}
    return dict(nx.kamada_kawai_layout(network, dist=full))


def _name_around(ax: Any, positions: Positions, names: list[str]) -> None:
    size = _font_size(ax)
    longest = max(len(line) for name in names for line in name.split("\n"))
    _set_limits(ax, _reach(_half_width(ax), longest * LETTER_WIDTH * size / 72.0))
    for node, (x, y) in positions.items():
        angle = math.degrees(math.atan2(y, x))
        left = x < -1e-9
        ax.text(
            1.06 * x,
            1.06 * y,
            names[node],
            rotation=angle + 180.0 if left else angle,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            fontsize=size,
            color=INK,
            in_layout=False,  # the limits leave room for names; counted once more, they would shrink the axes
        )


def _name_above(ax: Any, positions: Positions, names: list[str]) -> None:
    effects = require("matplotlib.patheffects", extra="plot")
    _set_limits(ax, 1.15 * max(1e-3, *(float(np.abs(point).max()) for point in positions.values())))
    for node, (x, y) in positions.items():
        ax.annotate(
            names[node],
            (x, y),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=_font_size(ax) - 1.0,
            color=INK,
            zorder=4,
            path_effects=[effects.withStroke(linewidth=2.5, foreground="white", alpha=0.85)],
        )


def _half_width(ax: Any) -> float:
    extent = ax.get_window_extent()
    return min(float(extent.width), float(extent.height)) / float(ax.figure.dpi) / 2.0


def _font_size(ax: Any) -> float:
    return max(MIN_FONT_SIZE, FONT_SIZE * min(1.0, _half_width(ax) / 3.5))


def _reach(half_width: float, name_width: float) -> float:
    """Returns how far the axes must reach for names, in inches, to fit around a circle of radius one."""
    return 1.08 * half_width / max(half_width - name_width, 0.3 * half_width)


def _set_limits(ax: Any, reach: float) -> None:
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)


def _draw_dots(ax: Any, network: nx.DiGraph[int], positions: Positions) -> None:
    listeners = [network.out_degree(node) for node in network]
    most = max(1, *listeners)
    sizes = [25.0 + 120.0 * count / most for count in listeners]
    nx.draw_networkx_nodes(network, positions, ax=ax, node_size=sizes, node_color=INK, linewidths=0)


def _draw_edges(ax: Any, network: nx.Graph[int], positions: Positions) -> None:
    if not network.number_of_edges():
        return
    weights = np.array([w for _, _, w in network.edges(data="weight", default=1.0)])
    share = _share(np.abs(weights))
    colors = [(*(POSITIVE if w >= 0 else NEGATIVE), 0.25 + 0.65 * s) for w, s in zip(weights, share, strict=True)]
    arrows: dict[str, Any] = {}
    if network.is_directed():
        arrows = {"arrowsize": 9, "node_size": 90, "connectionstyle": "arc3,rad=0.12"}
    widths = (0.5 + 1.5 * share).tolist()
    nx.draw_networkx_edges(network, positions, ax=ax, width=widths, edge_color=colors, **arrows)


def _share(size: np.ndarray) -> np.ndarray:
    """Spreads sizes over 0 to 1, so that differences show even between numbers that are close."""
    low, high = float(size.min()), float(size.max())
    return (size - low) / (high - low) if high > low else np.full_like(size, 0.5)
