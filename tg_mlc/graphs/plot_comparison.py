"""Picture of two label graphs side by side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from tg_mlc._names import check_same_names
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.graphs._draw_matrix import MAX_NAMED, name_ticks
from tg_mlc.graphs._order import Order, locality_order
from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.graphs.plot import new_figure, write_figure

RowOrder = Literal["labels"] | Order

# Of the palette of Okabe and Ito, which all eyes tell apart.
SHARED, ONLY_A, ONLY_B = (0.0, 0.45, 0.70), (0.84, 0.37, 0.0), (0.0, 0.62, 0.45)


def plot_comparison(
    a: LabelGraph,
    b: LabelGraph,
    path: str | os.PathLike[str] | None = None,
    order: RowOrder = "rcm",
    titles: tuple[str, str] | None = None,
) -> Any:
    r"""Draws two graphs of the same labels as adjacency matrices with :mod:`matplotlib`, without opening a window.

    The row is the target and the column the source. Edges that both have are blue, those of the first alone orange, and
    those of the second alone green. Loops are not drawn.

    Args:
        a (LabelGraph): A label graph.
        b (LabelGraph): Another one, with the same labels in the same order.
        path (str, optional): A picture file to write, its type by its suffix. (default: :obj:`None`)
        order (str, optional): The order of rows and columns in both: :obj:`"labels"` as they are, or one that
            puts neighbours in :obj:`b` side by side, see :meth:`~tg_mlc.graphs.LabelGraph.locality_order`.
            (default: :obj:`"rcm"`)
        titles (tuple of str, optional): The two titles. (default: :obj:`None`, kind and number of edges)

    Returns:
        The :class:`matplotlib.figure.Figure`.

    Raises:
        ImportError: If :mod:`matplotlib` is not installed.
        ValueError: If the labels differ, or :obj:`order` or the file type is unknown.
    """
    check_same_labels(a, b)
    check_choice("order", order, ("labels", *get_args(Order)))
    a, b = a.remove_self_loops(), b.remove_self_loops()
    if order != "labels" and a.num_labels:
        rows = locality_order(b.edge_index, b.num_labels, order)
        a, b = a.permute(rows), b.permute(rows)
    shared = _joined(a) & _joined(b)
    side = 5 + min(0.12 * a.num_labels, 8)
    figure = new_figure(2 * side, side + 0.5)
    titles = titles or (_title(a), _title(b))
    for ax, graph, alone, title in zip(figure.subplots(1, 2), (a, b), (ONLY_A, ONLY_B), titles, strict=True):
        ax.set_title(title)
        _draw(ax, graph, shared, alone, "" if order == "labels" else ", neighbours side by side")
    patch = require("matplotlib.patches", extra="plot").Patch
    colors = {"in both": SHARED, "only left": ONLY_A, "only right": ONLY_B}
    handles = [patch(color=color, label=label) for label, color in colors.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    if path is not None:
        write_figure(figure, Path(path))
    return figure


def check_same_labels(a: LabelGraph, b: LabelGraph) -> None:
    """Raises unless two graphs hold the same labels in one order, as far as they name them."""
    if a.num_labels != b.num_labels:
        raise ValueError(f"Expected both graphs to hold the same labels (got {a.num_labels} and {b.num_labels})")
    check_same_names(a.label_names, b.label_names, "'a'", "'b'")


def _title(graph: LabelGraph) -> str:
    return f"{graph.kind.replace('_', '-')}: {graph.num_edges} edges without self-loops"


def _joined(graph: LabelGraph) -> np.ndarray:
    cells = np.zeros((graph.num_labels, graph.num_labels), dtype=bool)
    source, target = graph.edge_index.cpu().numpy()
    cells[target, source] = True
    return cells


def _draw(ax: Any, graph: LabelGraph, shared: np.ndarray, alone: tuple[float, float, float], how: str) -> None:
    if not graph.num_labels:
        ax.set_axis_off()
        return
    cells = np.ones((*shared.shape, 3))
    cells[_joined(graph)], cells[shared] = alone, SHARED
    ax.imshow(cells, interpolation="nearest")
    ax.set(xlabel=f"source{how}", ylabel=f"target{how}")
    if graph.label_names is not None and graph.num_labels <= MAX_NAMED:
        name_ticks(ax, graph.label_names)
    elif how:  # numbers would be taken for those of labels
        ax.set(xticks=[], yticks=[])
