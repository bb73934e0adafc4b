import networkx as nx
import pytest
import torch

from tg_mlc.graphs import LabelGraph, edgeless, from_networkx, fully_connected


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
def test_edges_names_and_kinds(graph, num_edges, loops, names, kind):
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
def test_round_trip(graph, by_name):
    back = from_networkx(graph.to_networkx(by_name=by_name))
    assert torch.equal(back.edge_index, graph.edge_index)
    assert torch.equal(back.edge_weight, graph.edge_weight)
    for attribute in ("label_names", "kind", "source"):
        assert getattr(back, attribute) == getattr(graph, attribute)


def test_to_networkx_by_name(graph):
    network = graph.to_networkx(by_name=True)
    assert network.edges["x", "y"]["weight"] == 0.5
    assert set(network) == {"x", "y", "z"}
    with pytest.raises(ValueError, match="label_names"):
        edgeless(2).to_networkx(by_name=True)


def test_edges_of_indices_and_names():
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


@pytest.mark.parametrize("label_names", [["a"], ["a", "b", "c"], ["a", "c"]])
def test_label_names_must_be_those_of_the_graph(label_names):
    with pytest.raises(ValueError, match=r"missing: .*unknown: "):
        from_networkx(nx.DiGraph([("a", "b")]), label_names=label_names)


def test_other_things_are_no_networkx_graphs():
    with pytest.raises(ValueError, match=r"'graph' to be a networkx graph \(got list\)"):
        from_networkx([1, 2])
    with pytest.raises(ValueError, match="'label_names' to be a list of names"):
        from_networkx(nx.Graph([("a", "b")]), "ab")


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
