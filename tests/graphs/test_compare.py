import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_mlc.graphs import LabelGraph, co_occurrence, edgeless, fully_connected
from tg_mlc.graphs.compare import compare

METRICS = ["jaccard", "precision", "recall", "roc_auc_a_to_b", "average_precision_a_to_b"]
METRICS += ["roc_auc_b_to_a", "average_precision_b_to_a", "rank_correlation"]


def make_graph(edges, num_labels=4, weights=None, names=None):
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    weights = None if weights is None else torch.tensor(weights)
    return LabelGraph(edge_index, num_nodes=num_labels, edge_weight=weights, label_names=names)


@st.composite
def graphs(draw, size):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    edge_index = torch.from_numpy(np.argwhere(rng.random((size, size)) < rng.random()).T)
    weight, names = None, [f"l{i}" for i in range(size)]
    if draw(st.booleans()):
        weight = torch.from_numpy(rng.integers(-3, 4, edge_index.size(1)) / 2)
    graph = LabelGraph(edge_index, num_nodes=size, edge_weight=weight, label_names=names)
    return graph.to_undirected() if draw(st.booleans()) else graph


two_graphs = st.integers(0, 7).flatmap(lambda size: st.tuples(graphs(size), graphs(size)))


def test_shared_and_other_edges_are_counted():
    a = make_graph([(0, 1), (1, 0), (1, 2), (0, 0)])
    b = make_graph([(0, 1), (2, 1), (3, 2), (3, 3)])
    directed = compare(a, b)
    assert (directed.directed, directed.num_pairs) == (True, 12)
    assert (directed.num_shared, directed.num_only_a, directed.num_only_b) == (1, 2, 2)
    assert (directed.jaccard, directed.precision, directed.recall) == (1 / 5, 1 / 3, 1 / 3)
    assert (directed.density_a, directed.density_b) == (3 / 12, 3 / 12)
    pairs = compare(a, b, directed=False)
    assert (pairs.num_pairs, pairs.num_shared, pairs.num_only_a, pairs.num_only_b) == (6, 2, 0, 1)
    assert not compare(a.to_undirected(), b).directed


def test_rankings_equal_scikit_learn_and_scipy():
    metrics, stats = pytest.importorskip("sklearn.metrics"), pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    y = (rng.random((60, 9)) < 0.35).astype(float)
    a, b = co_occurrence(y, weight="correlation", top_k=4), co_occurrence(y[:20], min_count=3)
    comparison = compare(a, b, directed=True)
    cells_a, cells_b = np.full((9, 9), -9.0), np.zeros((9, 9))
    cells_a[a.edge_index[1], a.edge_index[0]] = a.edge_weight
    cells_b[b.edge_index[1], b.edge_index[0]] = b.edge_weight
    off_diagonal = ~np.eye(9, dtype=bool)
    x, z = cells_a[off_diagonal], cells_b[off_diagonal]
    for direction, truth, scores in (("a_to_b", z > 0, x), ("b_to_a", x > -9, z)):
        expected = metrics.roc_auc_score(truth, scores)
        assert getattr(comparison, f"roc_auc_{direction}") == pytest.approx(expected)
        expected = metrics.average_precision_score(truth, scores)
        assert getattr(comparison, f"average_precision_{direction}") == pytest.approx(expected)
    assert comparison.rank_correlation == pytest.approx(stats.spearmanr(x, z).statistic)
    assert comparison.undefined == {}


def test_rankings_use_the_mean_of_both_directions():
    a = make_graph([(0, 1), (1, 0), (2, 3), (0, 2)], weights=[1.0, 3.0, 2.5, 0.5])
    b = make_graph([(2, 3), (3, 2)])
    assert compare(a, b).roc_auc_a_to_b == 1.0  # Weight 2.5 ranks above the mean weight 2.
    c = make_graph([(0, 1), (1, 0)])
    assert compare(a, c).roc_auc_a_to_b == pytest.approx(4 / 5)
    negative = make_graph([(0, 1)], weights=[-2.0])  # Edges rank above missing edges.
    assert compare(negative, make_graph([(0, 1)])).average_precision_a_to_b == 1.0


def test_labels_with_different_neighbours_come_first():
    names = ["a", "b", "c", "d"]
    a = make_graph([(0, 3), (1, 3), (2, 3), (0, 1)], names=names)
    b = make_graph([(0, 1), (2, 3), (3, 2)], names=names)
    first, second = compare(a, b).differing
    assert (first.label, first.only_a, first.only_b, first.num_shared) == ("d", ["a", "b"], [], 1)
    assert (second.label, second.only_a, second.only_b) == ("c", [], ["d"])
    assert [difference.label for difference in compare(a, b, top=1).differing] == ["d"]
    assert compare(a, b, top=0).differing == []
    assert "d: only a: a, b; only b: none; shared: 1" in str(compare(a, b))
    with pytest.raises(ValueError, match="'top'"):
        compare(a, b, top=-1)


def test_undefined_numbers_are_nan_with_a_reason():
    result = compare(fully_connected(3), edgeless(3))
    assert result.undefined["recall"] == result.undefined["roc_auc_a_to_b"] == "b has no edge"
    assert result.undefined["average_precision_b_to_a"] == "a has all edges"
    assert result.undefined["rank_correlation"] == "all pairs weigh the same in a"
    assert all(math.isnan(getattr(result, name)) for name in result.undefined)
    assert "recall is undefined: b has no edge" in str(result)
    empty = compare(edgeless(1), edgeless(1))
    assert set(empty.undefined) == {"density_a", "density_b", *METRICS}


def test_to_dict_returns_plain_data():
    a = make_graph([(0, 1), (1, 2)])
    values = compare(a, make_graph([(1, 2)])).to_dict()
    assert (values["num_only_a"], values["differing"][0]["only_a"]) == (1, ["0"])
    assert json.loads(json.dumps(values)) == values


@settings(max_examples=50)
@given(two_graphs, st.sampled_from([None, True, False]), st.randoms())
def test_metrics_of_same_swapped_and_permuted_graphs_agree(pair, directed, random):
    base, swapped = (compare(*arguments, directed, 99) for arguments in (pair, pair[::-1]))
    values = [getattr(base, name) for name in METRICS]
    assert list(map(math.isnan, values)) == [name in base.undefined for name in METRICS]
    assert str(base)
    names = ["jaccard", "recall", "precision", *METRICS[5:7], *METRICS[3:5], "rank_correlation"]
    assert values == pytest.approx([getattr(swapped, name) for name in names], nan_ok=True)
    counts = swapped.num_shared, swapped.num_only_b, swapped.density_b
    assert (base.num_shared, base.num_only_a, base.density_a) == pytest.approx(counts, nan_ok=True)
    order = list(range(pair[0].num_labels))
    random.shuffle(order)
    permuted = compare(*(graph.permute(order) for graph in pair), directed, 99)
    assert values == pytest.approx([getattr(permuted, name) for name in METRICS], nan_ok=True)
    results = base, permuted
    first, second = ({d.label: set(d.only_a) for d in result.differing} for result in results)
    assert first == second
    identical = compare(pair[0], pair[0])
    assert (identical.num_only_a, identical.num_only_b, identical.differing) == (0, 0, [])
    defined = [name for name in METRICS if name not in identical.undefined]
    assert [getattr(identical, name) for name in defined] == pytest.approx([1.0] * len(defined))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (edgeless(2), edgeless(3), "2 and 3"),
        (edgeless(["x", "y"]), edgeless(["x", "z"]), "label 1 is 'y' there and 'z' here"),
        (edgeless(["x", "y"]), edgeless(["y", "x"]), "same order.*reorder"),
        (fully_connected(3), "complete", r"'b' to be a LabelGraph \(got 'complete'\)"),
        (None, fully_connected(3), r"'a' to be a LabelGraph \(got None\)"),
    ],
)
def test_other_labels_are_refused(a, b, message):
    with pytest.raises(ValueError, match=message):
        compare(a, b)


def test_names_of_one_graph_are_enough():
    assert compare(fully_connected(["x", "y"]), edgeless(2)).differing[0].label == "x"


@pytest.fixture
def pair():
    pytest.importorskip("matplotlib")
    edges, names = [(0, 1), (1, 0), (2, 3), (0, 0)], list("wxyz")
    a = make_graph(edges, weights=[1.0, 0.5, 0.25, 9.0], names=names)
    return a, make_graph([(0, 1), (3, 2)], names=names)


def test_the_plot_shows_both_graphs_in_one_order(pair, tmp_path):
    path = tmp_path / "new" / "pair.png"
    figure = compare(*pair).plot(path, order="labels", titles=("left", "right"))
    assert path.read_bytes().startswith(b"\x89PNG")
    left, right = figure.axes
    assert (left.get_title(), right.get_title()) == ("left", "right")
    a, b = left.images[0].get_array(), right.images[0].get_array()
    assert a[1, 0].tolist() == b[1, 0].tolist()  # Both graphs have this edge.
    assert a[0, 1].tolist() != a[1, 0].tolist()
    assert a[0, 0].tolist() == [1.0, 1.0, 1.0]  # Loops are not drawn.
    assert b[0, 1].tolist() == [1.0, 1.0, 1.0]
    assert [(image != 1.0).any(axis=-1).sum() for image in (a, b)] == [3, 2]
    ticks = [[text.get_text() for text in ax.get_yticklabels()] for ax in figure.axes]
    assert ticks == [list("wxyz")] * 2


@pytest.mark.parametrize("order", ["labels", "rcm", "tree"])
def test_graphs_are_plotted_in_every_order_and_without_edges(pair, order):
    figure = compare(*pair).plot(order=order)
    ticks = [[text.get_text() for text in ax.get_yticklabels()] for ax in figure.axes]
    assert ticks[0] == ticks[1]
    assert sorted(ticks[0]) == list("wxyz")
    for size in (0, 1):
        compare(edgeless(size), edgeless(size)).plot(order=order)
    without_names = compare(fully_connected(40), fully_connected(40)).plot(order=order).axes[0]
    # Row numbers equal label numbers in this order only.
    assert (len(without_names.get_yticks()) > 0) == (order == "labels")
    assert ("side by side" in without_names.get_ylabel()) == (order != "labels")
    with pytest.raises(ValueError, match="'order'"):
        compare(*pair).plot(order="size")
