"""Pictures of label graphs: nodes and arrows, an adjacency matrix, or two side by side."""

from __future__ import annotations

import math
import os
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from torch_geometric.data import Data

from tg_mlc._files import replace_when_done
from tg_mlc._names import check_same_names
from tg_mlc._optional import require
from tg_mlc._options import check_choice

if TYPE_CHECKING:
    import networkx as nx

Style = Literal["auto", "graph", "matrix"]
RowOrder = Literal["labels", "rcm", "tree"]

# With more labels or edges, arrows and names overlap.
MAX_LABELS, MAX_EDGES = 60, 400
# With more labels, a row is too low for letters.
MAX_NAMED = 120
# A tree has about one pair per label. With more pairs, the layout of trees is unreadable, but a
# circular layout is readable.
MAX_PAIRS_PER_LABEL = 1.2

INK, POSITIVE, NEGATIVE = "#1b2a41", (0.15, 0.35, 0.65), (0.75, 0.15, 0.15)
# The palette of Okabe and Ito can be told apart with any colour vision.
SHARED, ONLY_A, ONLY_B = (0.0, 0.45, 0.70), (0.84, 0.37, 0.0), (0.0, 0.62, 0.45)


def plot_label_graph(
    graph: Data,
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
    style: Style = "auto",
    title: str | None = None,
    wrap: int = 26,
) -> Any:
    """Draws a label graph with :mod:`matplotlib`, without opening a window.

    As a graph, arrows run from source to target (lines if undirected), heavier edges are wider and
    darker, negative ones red, and labels with more targets have larger dots. Loops are not drawn.
    As a matrix, the row is the target, the column the source, and the colour the weight.

    Args:
        graph (LabelGraph): The label graph.
        ax (matplotlib.axes.Axes, optional): The axes. (default: :obj:`None`, a new figure)
        path (str, optional): The image file; its suffix is the type. (default: :obj:`None`)
        style (str, optional): :obj:`"graph"`, :obj:`"matrix"`, or :obj:`"auto"`, by size.
            (default: :obj:`"auto"`)
        title (str, optional): A title. (default: :obj:`None`, the kind of the graph and its size)
        wrap (int, optional): The line width of names in letters. (default: :obj:`26`)

    Returns:
        The :class:`matplotlib.axes.Axes`, whose :obj:`figure` can be saved, or shown in a notebook.
    """
    check_choice("style", style, get_args(Style))
    size, loopless = graph.num_labels, graph.remove_self_loops()
    if style == "auto":
        is_small = size <= MAX_LABELS and loopless.num_edges <= MAX_EDGES
        style = "graph" if is_small else "matrix"
    if ax is None:
        inches = 8 + 0.08 * size if style == "graph" else 5 + min(0.23 * size, 15)
        ax = new_figure(inches, inches).add_subplot()
    if title is None:
        kind, weight = graph.kind.replace("_", "-"), loopless.edge_weight
        title = f"{kind}: {size} labels, {graph.num_edges} edges, density {graph.density:.3f}"
        if weight is not None and weight.numel():
            low, high = float(weight.min()), float(weight.max())
            title += f"\nweight between labels {low:.4g} to {high:.4g}"
    ax.set_title(title, pad=14)
    if style == "graph":
        _draw_nodes(loopless, ax, wrap)
    elif not graph.num_labels:
        ax.set_axis_off()
    else:
        cells = _cells(graph)
        heaviest = float(np.nanmax(np.abs(cells), initial=0.0)) or 1.0
        colors, lowest = ("RdBu", -heaviest) if (cells < 0).any() else ("viridis_r", 0.0)
        image = ax.imshow(cells, cmap=colors, vmin=lowest, vmax=heaviest, interpolation="nearest")
        ax.set(xlabel="source", ylabel="target")
        if graph.edge_weight is not None:
            ax.figure.colorbar(image, ax=ax, label="edge weight", shrink=0.6)
        _name_ticks(ax, graph)
    if path is not None:
        write_figure(ax.figure, path)
    return ax


def plot_comparison(
    a: Data,
    b: Data,
    path: str | os.PathLike[str] | None = None,
    order: RowOrder = "rcm",
    titles: tuple[str, str] | None = None,
) -> Any:
    """Draws two graphs of the same labels as adjacency matrices with :mod:`matplotlib`.

    The row is the target and the column the source. Edges in both graphs are blue, edges only
    in the first are orange, and edges only in the second are green. Loops are not drawn.

    Args:
        a, b (LabelGraph): Two label graphs of the same labels in the same order.
        path (str, optional): The image file; its suffix is the type. (default: :obj:`None`)
        order (str, optional): The order of rows and columns: :obj:`"labels"`, or an order with
            neighbours in :obj:`b` close together, see :meth:`.LabelGraph.locality_order`.
            (default: :obj:`"rcm"`)
        titles (tuple of str, optional): The two titles. (default: :obj:`None`, kind and edges)

    Returns:
        The :class:`matplotlib.figure.Figure`.
    """
    check_same_labels(a, b)
    check_choice("order", order, get_args(RowOrder))
    a, b = a.remove_self_loops(), b.remove_self_loops()
    if order != "labels" and a.num_labels:
        new_order = b.locality_order(order)
        a, b = a.permute(new_order), b.permute(new_order)
    has_edge = [~np.isnan(_cells(graph)) for graph in (a, b)]
    inches = 5 + min(0.12 * a.num_labels, 8)
    figure = new_figure(2 * inches, inches + 0.5)
    suffix = "" if order == "labels" else ", neighbours side by side"
    panels = zip(figure.subplots(1, 2), (a, b), (ONLY_A, ONLY_B), strict=True)
    for i, (ax, graph, only_color) in enumerate(panels):
        title = f"{graph.kind.replace('_', '-')}: {graph.num_edges} edges without self-loops"
        ax.set_title(title if titles is None else titles[i])
        if not graph.num_labels:
            ax.set_axis_off()
            continue
        colors = np.ones((*has_edge[i].shape, 3))
        colors[has_edge[i]], colors[has_edge[0] & has_edge[1]] = only_color, SHARED
        ax.imshow(colors, interpolation="nearest")
        ax.set(xlabel=f"source{suffix}", ylabel=f"target{suffix}")
        if not _name_ticks(ax, graph) and suffix:  # Row numbers would be taken for label indices.
            ax.set(xticks=[], yticks=[])
    patch = require("matplotlib.patches", extra="plot").Patch
    legend = {"in both": SHARED, "only left": ONLY_A, "only right": ONLY_B}
    handles = [patch(color=color, label=label) for label, color in legend.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    if path is not None:
        write_figure(figure, path)
    return figure


def check_same_labels(a: Data, b: Data) -> None:
    """Raises ValueError unless two graphs have the same labels in the same order."""
    if a.num_labels != b.num_labels:
        got = f"(got {a.num_labels} and {b.num_labels})"
        raise ValueError(f"Expected both graphs to have the same labels {got}")
    check_same_names(a.label_names, b.label_names, "'a'", "'b'")


def new_figure(width: float, height: float) -> Any:
    """Returns a figure outside of pyplot, which needs no display and no closing."""
    figures = require("matplotlib.figure", extra="plot")
    return figures.Figure(figsize=(width, height), layout="constrained")


def write_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes a picture, whose type is the suffix of the path, without partial files on failure."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in figure.canvas.get_supported_filetypes():
        known = ", ".join(sorted(figure.canvas.get_supported_filetypes()))
        raise ValueError(f"Expected 'path' to end in a picture type, {known} (got '{path}')")
    with replace_when_done(path) as unfinished:
        figure.savefig(unfinished, format=suffix, dpi=150, bbox_inches="tight")


def _cells(graph: Data) -> np.ndarray:
    """Returns the weights with targets in rows: 1 without weights, NaN where there is no edge."""
    cells = np.full((graph.num_labels, graph.num_labels), np.nan)
    source, target = graph.edge_index.cpu().numpy()
    weight = graph.edge_weight
    cells[target, source] = 1.0 if weight is None else weight.detach().cpu().numpy()
    return cells


def _name_ticks(ax: Any, graph: Data) -> bool:
    """Names rows and columns, and returns whether there are names and room for them."""
    if graph.label_names is None or graph.num_labels > MAX_NAMED:
        return False
    extent = ax.get_window_extent()
    inches = float(min(extent.width, extent.height)) / float(ax.figure.dpi)
    size = min(7.5, 0.8 * 72.0 * inches / graph.num_labels)
    names = [_fill(name, width=40, max_lines=1) for name in graph.label_names]
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
    ax.set_yticks(range(len(names)), names, fontsize=size)
    return True


def _fill(name: str, width: int, max_lines: int) -> str:
    return fill(name, width, max_lines=max_lines, placeholder=" …", break_long_words=False)


def _draw_nodes(graph: Data, ax: Any, wrap: int) -> None:
    """Draws nodes, arrows and names, as a tree or, if there are many edges, on a circle."""
    import networkx as nx

    ax.set_axis_off()
    ax.set_aspect("equal")
    network: nx.DiGraph[int] = graph.to_networkx()
    undirected = network.to_undirected()
    on_circle = undirected.number_of_edges() > MAX_PAIRS_PER_LABEL * graph.num_labels
    if on_circle:
        # Labels of one community stand side by side, so that most arrows are short.
        edges = network.edges(data="weight", default=1.0)
        weighted_graph = nx.Graph((j, i, {"weight": abs(w)}) for j, i, w in edges)
        weighted_graph.add_nodes_from(network)
        groups = nx.community.greedy_modularity_communities(weighted_graph, weight="weight")
        ordered = [node for group in groups for node in sorted(group)]
        positions = nx.circular_layout(nx.empty_graph(ordered))
    else:
        distance = dict(nx.all_pairs_shortest_path_length(undirected))
        longest = max((max(row.values()) for row in distance.values()), default=0)
        # Unconnected labels also get a distance here, because otherwise they would overlap.
        lengths = {j: {i: distance[j].get(i, longest + 1) for i in undirected} for j in undirected}
        positions = nx.kamada_kawai_layout(undirected, dist=lengths)
    ax.margins(0.25 if on_circle else 0.1)  # leaves room for names of two dozen letters
    degrees = dict(network.out_degree)
    sizes = [25.0 + 120.0 * degree / max(1, *degrees.values()) for degree in degrees.values()]
    names = graph.label_names or [str(i) for i in range(graph.num_labels)]
    halo = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
    for node, point in positions.items():
        name = _fill(names[node], wrap, max_lines=3)
        if on_circle:
            angle, is_left = math.degrees(math.atan2(point[1], point[0])), bool(point[0] < -1e-9)
            style: dict[str, Any] = {"rotation_mode": "anchor", "rotation": angle + 180.0 * is_left}
            style |= {"va": "center", "ha": "right" if is_left else "left", "fontsize": 8.0}
            ax.text(*(1.06 * point), name, color=INK, **style)
        else:
            style = {"ha": "center", "va": "bottom", "fontsize": 7.0, "zorder": 4, "bbox": halo}
            offset = (0, 2 + math.sqrt(sizes[node]) / 2)  # All lines of a name are above its dot.
            style |= {"xytext": offset, "textcoords": "offset points"}
            ax.annotate(name, point, color=INK, **style)
    nx.draw_networkx_nodes(
        network, positions, ax=ax, node_size=sizes, node_color=INK, linewidths=0
    ).set_zorder(5)
    drawn = undirected if graph.is_undirected() else network
    drawn_weights = np.array([weight for _, _, weight in drawn.edges(data="weight", default=1.0)])
    if not len(drawn_weights):
        return
    size = np.abs(drawn_weights)
    # Weights are scaled to 0 to 1, so that small differences are visible.
    scaled = (size - size.min()) / np.ptp(size) if np.ptp(size) else np.full_like(size, 0.5)
    hues = [POSITIVE if weight >= 0 else NEGATIVE for weight in drawn_weights]
    colors = [(*hue, 0.25 + 0.65 * alpha) for hue, alpha in zip(hues, scaled, strict=True)]
    style = {"width": (0.5 + 1.5 * scaled).tolist(), "edge_color": colors}
    if drawn.is_directed():
        style |= {"arrowsize": 9, "node_size": 90, "connectionstyle": "arc3,rad=0.12"}
    nx.draw_networkx_edges(drawn, positions, ax=ax, **style)
