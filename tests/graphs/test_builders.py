from pathlib import Path

import networkx as nx
import pytest
import torch

from tests.graphs.helpers import both, edges_of, loops
from tg_mlc.graphs import LabelGraph, edgeless, from_networkx, fully_connected, read_parents, tree


@pytest.mark.parametrize(
    ("graph", "num_edges", "loops", "names", "kind"),
    [
        (fully_connected(3), 9, 3, None, "fully_connected"),
        (fully_connected(["a", "b"]), 4, 2, ["a", "b"], "fully_connected"),
        (fully_connected(4, self_loops=False), 12, 0, None, "fully_connected"),
        (edgeless(["a", "b", "c"]), 3, 3, ["a", "b", "c"], "edgeless"),
        *((builder(1), 1, 1, None, builder.__name__) for builder in (fully_connected, edgeless)),
        *((builder(0), 0, 0, None, builder.__name__) for builder in (fully_connected, edgeless)),
    ],
)
def test_builders_give_edges_names_and_kinds(graph, num_edges, loops, names, kind):
    source, target = graph.edge_index
    assert (graph.num_edges, (source == target).sum()) == (num_edges, loops)
    assert (graph.label_names, graph.kind) == (names, kind)
    assert graph.validate()


@pytest.mark.parametrize("builder", [fully_connected, edgeless])
@pytest.mark.parametrize("labels", [-1, "abc", True, 2.0, None])
def test_labels_must_be_a_number_or_names(builder, labels):
    with pytest.raises(ValueError, match="'labels'"):
        builder(labels)


@pytest.fixture
def graph():
    return LabelGraph(
        torch.tensor([[0, 1, 1], [1, 2, 1]]),
        edge_weight=torch.tensor([0.5, 0.25, 1.0]),
        label_names=["x", "y", "z"],
        kind="custom kind",
        source="somewhere",
    )


@pytest.mark.parametrize("by_name", [True, False])
def test_networkx_round_trip_keeps_the_graph(graph, by_name):
    restored = from_networkx(graph.to_networkx(by_name=by_name))
    assert torch.equal(restored.edge_index, graph.edge_index)
    assert torch.equal(restored.edge_weight, graph.edge_weight)
    for attribute in ("label_names", "kind", "source"):
        assert getattr(restored, attribute) == getattr(graph, attribute)


def test_to_networkx_can_name_nodes(graph):
    network = graph.to_networkx(by_name=True)
    assert network.edges["x", "y"]["weight"] == 0.5
    assert set(network) == {"x", "y", "z"}
    with pytest.raises(ValueError, match="label_names"):
        edgeless(2).to_networkx(by_name=True)


def test_nodes_of_networkx_may_be_indices_or_names():
    graph = from_networkx(nx.path_graph(3))
    assert graph.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]
    assert graph.edge_weight is None
    assert graph.kind == "networkx"
    network = nx.DiGraph([(2, 0), (0, 1)])
    for names in (None, ["a", "b", "c"]):
        assert from_networkx(network, names).edge_index.tolist() == [[2, 0], [0, 1]]
    graph = from_networkx(nx.DiGraph([("a", "b")]), label_names=["b", "a"])
    assert graph.label_names == ["b", "a"]
    assert graph.edge_index.tolist() == [[1], [0]]
    network = nx.MultiDiGraph()
    network.add_edge("a", "b", weight=1.0)
    network.add_edge("a", "b", weight=2.0)
    assert from_networkx(network).edge_weight.tolist() == [2.0]
    network = nx.Graph()
    network.add_nodes_from(["a", "b"])
    assert from_networkx(network).num_labels == 2
    assert from_networkx(nx.Graph()).num_labels == 0


AB = nx.DiGraph([("a", "b")])


@pytest.mark.parametrize(
    ("network", "label_names", "message"),
    [
        *((AB, names, "missing: .*unknown: ") for names in (["a"], ["a", "b", "c"], ["a", "c"])),
        ([1, 2], None, r"'graph' to be a networkx graph \(got list\)"),
        (AB.to_undirected(), "ab", "'label_names' to be a list of names"),
    ],
)
def test_other_types_and_names_are_refused(network, label_names, message):
    with pytest.raises(ValueError, match=message):
        from_networkx(network, label_names)


def test_names_and_weights_are_all_or_none():
    network = nx.Graph([(0, 1), (1, 2)])
    network.nodes[0]["name"] = "a"
    with pytest.raises(ValueError, match="got none at node 1"):
        from_networkx(network)
    network = nx.Graph([(0, 1), (1, 2)])
    network.edges[0, 1]["weight"] = 1.0
    with pytest.raises(ValueError, match="'weight'"):
        from_networkx(network)
    assert from_networkx(network, weight=None).edge_weight is None


#     r
#    / \
#   a   b
#   |
#   c
PAIRS = [("a", "r"), ("b", "r"), ("c", "a")]


def test_parents_and_children_attend_to_each_other():
    graph = tree(PAIRS)
    assert edges_of(graph) == both(("r", "a"), ("r", "b"), ("a", "c")) | loops("rabc")
    assert graph.label_names == ["a", "r", "b", "c"]  # Labels are in order of appearance.
    assert (graph.kind, graph.edge_weight) == ("tree", None)


@pytest.mark.parametrize(
    "parents",
    [dict(PAIRS), {"a": ["r"], "b": {"r"}, "c": ("a",)}, iter(PAIRS), {**dict(PAIRS), "r": None}],
)
def test_parents_in_other_formats_give_the_same_tree(parents):
    assert edges_of(tree(parents)) == edges_of(tree(PAIRS))


def test_options_choose_directions_labels_and_ancestors():
    assert edges_of(tree(PAIRS, undirected=False, self_loops=False)) == {
        ("r", "r"), ("r", "a"), ("r", "b"), ("a", "c"),
    }  # fmt: skip
    graph = tree(PAIRS, label_names=["c", "b", "a", "z"])
    assert graph.label_names == ["c", "b", "a", "z"]
    assert edges_of(graph) == both(("a", "c")) | loops("abcz")
    graph = tree([("c", "a"), ("c", "b")], self_loops=False)
    assert edges_of(graph) == both(("a", "c"), ("b", "c"))
    assert edges_of(tree([], label_names=["a"])) == {("a", "a")}
    assert tree([]).num_labels == 0
    graph = tree(PAIRS, ancestors=True, self_loops=False, undirected=False)
    assert edges_of(graph) == {("r", "r"), ("r", "a"), ("r", "b"), ("r", "c"), ("a", "c")}
    assert "4 ancestor-descendant pairs" in graph.source


def test_root_is_dropped_by_default():
    assert edges_of(tree(PAIRS, root="r")) == both(("a", "c")) | loops("abc")
    assert edges_of(tree(PAIRS, root="r", self_loops=False)) == both(("a", "c")) | loops("b")
    graph = tree(PAIRS, label_names=["c", "b", "a"], include_root=True)
    assert graph.label_names == ["c", "b", "a", "r"]
    assert edges_of(graph) == edges_of(tree(PAIRS))
    assert tree(PAIRS, root="r", include_root=True).num_labels == 4
    labelled = tree(PAIRS, label_names=list("rabc"), root="r", include_root=True)
    assert edges_of(labelled) == edges_of(tree(PAIRS))


def test_a_misspelt_parent_is_reported_if_no_pair_remains(caplog):
    pairs = [("a", "R"), ("b", "R")]
    graph = tree(pairs, ["r", "a", "b"])
    assert edges_of(graph) == loops("rab")
    assert graph.source == "hierarchy of 0 parent-child pairs, without the root 'R'"
    assert "joins no two labels, as 'R' is no label and was taken for its root" in caplog.text
    assert "(r, a, b)" in caplog.text
    caplog.clear()
    source = "hierarchy of 1 parent-child pairs, without the root 'r'"
    assert tree(PAIRS, ["a", "b", "c"]).source == source
    source = "hierarchy of 3 parent-child pairs"
    assert tree(PAIRS, ["a", "b", "c"], include_root=True).source == source
    tree(pairs, ["a", "b"], root="R")
    tree(pairs, ["a", "b"], include_root=True)
    tree([], ["a", "b"])
    assert not caplog.text


#     r    q
#    / \\   |
#   a   b  |
#    \\ / \\ |
#     c   d
#     |
#     e
WITH_ROOT = {"root": "r", "include_root": True}
TERMS = [("a", "r"), ("b", "r"), ("c", "a"), ("c", "b"), ("d", "b"), ("d", "q"), ("e", "c")]


@pytest.mark.parametrize(
    ("labels", "options", "edges"),
    [
        ("rabcdeq", {}, {(parent, child) for child, parent in TERMS}),
        ("rde", {}, {("r", "d"), ("r", "e")}),
        ("rae", {}, {("a", "e"), ("r", "e"), ("r", "a")}),  # No label lies on the path through b.
        ("qe", {}, set()),
        ("abe", {}, {("a", "e"), ("b", "e")}),
        ("abe", {"root": "r"}, {("a", "e"), ("b", "e")}),
        ("rce", {"ancestors": True}, {("r", "c"), ("r", "e"), ("c", "e")}),
        ("ade", WITH_ROOT, {("a", "e"), ("r", "a"), ("r", "d"), ("r", "e")}),
    ],
)
def test_labels_are_joined_across_other_names(labels, options, edges):
    graph = tree(TERMS, list(labels), undirected=False, **options).remove_self_loops()
    assert edges_of(graph) == edges
    assert ("no labels" in graph.source) == (len(labels) < 7)


def test_suspicious_names_are_reported(caplog):
    tree(TERMS, ["r", "a", "E"])
    assert "1 of 3 labels are not in the hierarchy and stay alone (E)" in caplog.text
    caplog.clear()
    tree(TERMS, ["r", "a", "e"])
    tree(PAIRS, ["r", "a", "b", "c", "z"])
    assert not caplog.text
    tree([("golf", "Sport"), ("judo", "sport")])
    assert "'Sport' and 'sport'" in caplog.text


def test_labels_of_trees_may_be_indices():
    graph = tree([(1, 0), (2, 0)])
    assert graph.label_names is None
    assert edges_of(graph) == both((0, 1), (0, 2)) | loops(range(3))
    named = tree({1: 0, 2: 0}, label_names=["x", "y", "z", "w"])
    assert edges_of(named) == both(("x", "y"), ("x", "z")) | loops("xyzw")
    assert tree([(0, -1), (1, 0)], root=-1).num_labels == 2


@pytest.mark.parametrize("pairs", [[("a", "b"), ("b", "c"), ("c", "a")], [("x", "y"), ("a", "a")]])
def test_a_cycle_is_named(pairs):
    with pytest.raises(ValueError, match=r"without cycles \(got .*a.* -> .*\)"):
        tree(pairs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parents": [(3, 0)], "label_names": ["a", "b"]}, r"label or the root \(got \[3\]\)"),
        ({"parents": PAIRS, "root": "q"}, "'root' to be in 'parents'"),
        ({"parents": PAIRS, "include_root": True}, "include_root"),
        ({"parents": [("a", 0)]}, "names or indices"),
        ({"parents": ["ab"]}, "pairs"),
        ({"parents": [("a", "b", "c")]}, "pairs"),
        ({"parents": "h.csv"}, r"dict or pairs .* \(got 'h.csv'\); .*read_parents"),
        ({"parents": Path("h.csv")}, "read_parents"),
        ({"parents": 5}, r"dict or pairs .* \(got 5\)"),
        ({"parents": [(0, 1)], "label_names": 4}, r"'label_names' to be a list of names \(got 4\)"),
        ({"parents": [(-1, 0)]}, "-1"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        tree(**arguments)


def test_the_topics_of_rcv1_make_a_tree(real_file):
    pairs = read_parents(real_file("rcv1v2/raw/rcv1.taxonomy"))
    for include_root, sizes, components in (
        (False, (103, 2 * 99 + 103), 4),
        (True, (104, 2 * 103 + 104), 1),
    ):
        topics = tree(pairs, root="Root", include_root=include_root)
        assert (topics.num_labels, topics.num_edges) == sizes
        assert nx.number_weakly_connected_components(topics.to_networkx()) == components
    assert (len(pairs), len({child for child, _ in pairs})) == (103, 103)
    parent_of, num_ancestors = dict(pairs), 0
    for topic in parent_of.values():
        while topic != "Root":
            topic, num_ancestors = parent_of[topic], num_ancestors + 1  # noqa: PLW2901
    graph = tree(pairs, root="Root", ancestors=True, self_loops=False)
    assert graph.num_edges == 2 * num_ancestors > 2 * 99


@pytest.mark.parametrize(
    "options", [{}, {"undirected": False}, {"self_loops": False}, {"root": "r"}]
)
def test_parents_do_not_depend_on_options_of_edges(options, tmp_path):
    graph = tree(PAIRS, list("abc"), **options)
    (pair,) = graph.parent_index.t().tolist()
    assert [graph.label_names[i] for i in pair] == ["a", "c"]
    permuted = graph.permute([2, 0, 1])
    assert permuted.parent_index.tolist() == [[1], [0]]
    permuted.remove_self_loops().to_undirected().save(tmp_path / "graph.safetensors")
    loaded = type(graph).load(tmp_path / "graph.safetensors")
    assert loaded.parent_index.tolist() == [[1], [0]]
    assert loaded.is_hierarchy
