import sys

import numpy as np
import pandas as pd
import pytest
import torch

from tg_mlc.graphs import LabelGraph, co_occurrence, edgeless, fully_connected, tree

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

PNG, EDGES = b"\x89PNG\r\n", torch.tensor([[0, 1], [1, 2]])


def texts_of(ax):
    return [text.get_text().replace("\n", " ") for text in ax.texts]


@pytest.mark.parametrize(
    "graph",
    [
        fully_connected(["one", "two", "three"]),
        edgeless(5),
        tree([("a", "r"), ("b", "r"), ("y", "x")]),
        LabelGraph(EDGES, num_nodes=4, edge_weight=torch.tensor([-1.0, 0.5])),
        edgeless(1),
        edgeless(0),
    ],
    ids=["complete", "edgeless", "forest", "negative", "one", "none"],
)
@pytest.mark.parametrize("style", ["graph", "matrix"])
def test_every_graph_is_plotted_in_every_style(graph, style, tmp_path):
    graph.plot(path=tmp_path / "new" / "graph.png", style=style)
    assert (tmp_path / "new" / "graph.png").read_bytes().startswith(PNG)
    assert len(list((tmp_path / "new").iterdir())) == 1


def test_the_default_style_depends_on_size():
    assert not fully_connected(10).plot().images
    assert fully_connected(40).plot().images
    assert edgeless(61).plot().images


def test_names_axes_title_and_cells_are_drawn():
    ax, names = Figure().add_subplot(), ["left", "a name of several words that is wrapped"]
    assert fully_connected(names).plot(ax=ax, title="T") is ax
    assert set(names) <= set(texts_of(ax))
    assert ax.get_title() == "T"
    graph = LabelGraph(torch.tensor([[0], [1]]), num_nodes=2, edge_weight=torch.tensor([3.0]))
    cells = np.ma.filled(graph.plot(style="matrix").images[0].get_array(), np.nan)
    assert cells[1, 0] == 3.0
    assert np.isnan(cells[0, 1])
    title = fully_connected(3).plot().get_title()
    assert title == "fully-connected: 3 labels, 9 edges, density 1.000"


def test_names_do_not_cover_the_dots():
    names = ["a name of several words that is wrapped in lines", "b", "c"]
    ax = LabelGraph.from_edges([("b", names[0]), ("b", "c")], names).plot()
    ax.figure.draw_without_rendering()
    by_text = {text.get_text().replace("\n", " "): text for text in ax.texts}
    collections_of_three = [drawn for drawn in ax.collections if len(drawn.get_offsets()) == 3]
    dots = next(drawn for drawn in collections_of_three if len(drawn.get_sizes()) == 3)
    for name, point, size in zip(names, dots.get_offsets(), dots.get_sizes(), strict=True):
        top = ax.transData.transform(point)[1] + size**0.5 / 2 * ax.figure.dpi / 72
        assert by_text[name].get_window_extent().y0 >= top


def test_wrong_options_and_a_missing_extra_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="'style'"):
        edgeless(2).plot(style="tree")
    with pytest.raises(ValueError, match=r"'path'.*png"):
        edgeless(2).plot(path=tmp_path / "graph.doc")
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"tg_mlc\[plot\]"):
        edgeless(2).plot()


def test_names_of_sider_lie_inside_the_picture(real_file):
    y = pd.read_csv(real_file("sider/raw/sider.csv")).drop(columns="smiles")
    ax = co_occurrence(y, weight="correlation", top_k=3).plot()
    ax.figure.canvas.draw()
    picture = ax.figure.bbox
    assert texts_of(ax)
    for text in ax.texts:
        box = text.get_window_extent()
        assert picture.x0 <= box.x0 <= box.x1 <= picture.x1
        assert picture.y0 <= box.y0 <= box.y1 <= picture.y1
