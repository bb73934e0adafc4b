import pytest

from tg_mlc.graphs import edgeless, fully_connected


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
