"""Pictures of label graphs: nodes and arrows for few labels, an adjacency matrix for many."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, get_args

from tg_mlc._files import replace_when_done
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.graphs._draw_graph import draw_graph
from tg_mlc.graphs._draw_matrix import draw_matrix
from tg_mlc.graphs.label_graph import LabelGraph

Style = Literal["auto", "graph", "matrix"]

# Beyond these, arrows and names lie on top of each other.
MAX_LABELS = 60
MAX_EDGES = 400


def plot_label_graph(
    graph: LabelGraph,
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
    style: Style = "auto",
    title: str | None = None,
    wrap: int = 26,
) -> Any:
    r"""Draws a label graph with :mod:`matplotlib`, without opening a window.

    As a graph, arrows run from source to target (lines if all run both ways alike), heavier edges are wider and
    darker, negative ones red, and a dot grows with the number of labels that attend to it; self-loops are not drawn.
    As a matrix, the row is the target, the column the source, and the colour the weight.

    Args:
        graph (LabelGraph): The label graph.
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: :obj:`None`, a new figure of fitting size)
        path (str, optional): A picture file to write, its type by its suffix. (default: :obj:`None`)
        style (str, optional): :obj:`"graph"`, :obj:`"matrix"`, or :obj:`"auto"`: a graph while it is readable.
            (default: :obj:`"auto"`)
        title (str, optional): A title. (default: :obj:`None`, the kind of the graph and its size)
        wrap (int, optional): After how many letters a name goes on in a new line. (default: :obj:`26`)

    Returns:
        The :class:`matplotlib.axes.Axes`; its :obj:`figure` can be saved, or shown in a notebook.

    Raises:
        ImportError: If :mod:`matplotlib` is not installed.
        ValueError: If :obj:`style` or the file type is unknown.
    """
    check_choice("style", style, get_args(Style))
    if style == "auto":
        is_small = graph.num_labels <= MAX_LABELS and graph.remove_self_loops().num_edges <= MAX_EDGES
        style = "graph" if is_small else "matrix"
    if ax is None:
        side = 8 + 0.08 * graph.num_labels if style == "graph" else 5 + min(0.23 * graph.num_labels, 15)
        ax = new_figure(side, side).add_subplot()
    ax.set_title(_title(graph) if title is None else title, pad=14)
    if style == "graph":
        draw_graph(graph, ax, wrap=wrap)
    else:
        draw_matrix(graph, ax)
    if path is not None:
        write_figure(ax.figure, Path(path))
    return ax


def new_figure(width: float, height: float) -> Any:
    """A figure of its own, outside of pyplot: nothing to close, and no display is needed."""
    return require("matplotlib.figure", extra="plot").Figure(figsize=(width, height), layout="constrained")


def _title(graph: LabelGraph) -> str:
    kind = graph.kind.replace("_", "-")
    title = f"{kind}: {graph.num_labels} labels, {graph.num_edges} edges, density {graph.density:.3f}"
    weight = graph.remove_self_loops().edge_weight
    if weight is None or not weight.numel():
        return title
    return f"{title}\nweight between labels {float(weight.min()):.4g} to {float(weight.max()):.4g}"


def write_figure(figure: Any, path: Path) -> None:
    """Writes a picture whose type is told by its suffix; all of it, or nothing.

    Raises:
        ValueError: If the suffix is of no type that the figure can be written as.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in figure.canvas.get_supported_filetypes():
        known = ", ".join(sorted(figure.canvas.get_supported_filetypes()))
        raise ValueError(f"Expected 'path' to end in a picture type (got '{path}'); known are {known}")
    with replace_when_done(path) as unfinished:
        figure.savefig(unfinished, format=suffix, dpi=150, bbox_inches="tight")
