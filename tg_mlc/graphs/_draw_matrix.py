"""Drawing of a label graph as an adjacency matrix."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from tg_mlc.graphs.label_graph import LabelGraph

# With more, a row is too low for letters.
MAX_NAMED = 120


def draw_matrix(graph: LabelGraph, ax: Any) -> None:
    """Draws the weights, or the edges where there are none; white is no edge."""
    if not graph.num_labels:
        ax.set_axis_off()
        return
    cells = np.full((graph.num_labels, graph.num_labels), np.nan)
    source, target = graph.edge_index.cpu().numpy()
    cells[target, source] = 1.0 if graph.edge_weight is None else graph.edge_weight.detach().cpu().numpy()
    heaviest = float(np.nanmax(np.abs(cells), initial=0.0)) or 1.0
    colors, least = ("RdBu", -heaviest) if (cells < 0).any() else ("viridis_r", 0.0)
    image = ax.imshow(cells, cmap=colors, vmin=least, vmax=heaviest, interpolation="nearest")
    ax.set(xlabel="source", ylabel="target")
    if graph.edge_weight is not None:
        ax.figure.colorbar(image, ax=ax, label="edge weight", shrink=0.6)
    if graph.label_names is not None and graph.num_labels <= MAX_NAMED:
        name_ticks(ax, graph.label_names)


def name_ticks(ax: Any, names: list[str]) -> None:
    """Names rows and columns, in letters that fit."""
    extent = ax.get_window_extent()
    row_points = 72.0 * float(min(extent.width, extent.height)) / float(ax.figure.dpi) / len(names)
    short = [fill(name, width=40, max_lines=1, placeholder=" …", break_long_words=False) for name in names]
    ax.set_xticks(range(len(short)), short, rotation=90, fontsize=min(7.5, 0.8 * row_points))
    ax.set_yticks(range(len(short)), short, fontsize=min(7.5, 0.8 * row_points))
