import pytest
import torch

from tg_mlc.graphs import edgeless, fully_connected


def test_fully_connected_by_number_and_by_names():
    graph = fully_connected(3)
    assert (graph.num_labels, graph.num_edges, graph.density, graph.label_names) == (3, 9, 1.0, None)
    assert fully_connected(["a", "b"]).label_names == ["a", "b"]
    assert graph.kind == "fully_connected"
    assert graph.validate()


def test_fully_connected_without_self_loops():
    graph = fully_connected(4, self_loops=False)
    assert graph.num_edges == 12
    assert not graph.has_self_loops()


def test_edgeless_leaves_each_label_to_itself():
    graph = edgeless(["a", "b", "c"])
    assert torch.equal(graph.edge_index, torch.arange(3).expand(2, -1))
    assert (graph.label_names, graph.kind) == (["a", "b", "c"], "edgeless")


@pytest.mark.parametrize("builder", [fully_connected, edgeless])
@pytest.mark.parametrize("labels", [-1, "abc", True, 2.0, None])
def test_labels_must_be_a_number_or_names(builder, labels):
    with pytest.raises(ValueError, match="'labels'"):
        builder(labels)


@pytest.mark.parametrize("builder", [fully_connected, edgeless])
def test_one_label_and_none(builder):
    assert builder(1).edge_index.tolist() == [[0], [0]]
    assert builder(0).num_edges == 0
