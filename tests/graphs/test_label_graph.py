import copy
import io
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from tests.graphs.helpers import edges_of, error_of, weights_of
from tg_mlc.graphs import LabelGraph, fully_connected, tree


@pytest.fixture
def graph():
    """Returns the cycle a -> b -> c -> a. Its edges are passed in another order."""
    return LabelGraph(
        torch.tensor([[2, 0, 1], [0, 1, 2]]),
        edge_weight=torch.tensor([0.3, 0.1, 0.2]),
        label_names=["a", "b", "c"],
        kind="chain",
        source="a test",
    )


def test_label_graph_is_pyg_data_with_attributes(graph):
    assert isinstance(graph, Data)
    assert (graph.num_labels, graph.num_nodes, graph.num_edges) == (3, 3, 3)
    assert graph.density == pytest.approx(3 / 9)
    assert (graph.kind, graph.source, graph.label_names) == ("chain", "a test", ["a", "b", "c"])
    assert (graph.is_hierarchy, tree([("a", "b")]).is_hierarchy) == (False, True)
    assert graph.validate()


def test_edges_are_sorted_and_unique():
    edges = torch.tensor([[1, 2, 0, 2, 1], [2, 0, 2, 1, 0]])
    graph = LabelGraph(edges, num_nodes=3, edge_weight=torch.arange(5.0))
    assert graph.edge_index.tolist() == [[1, 2, 2, 0, 1], [0, 0, 1, 2, 2]]
    assert graph.edge_weight.tolist() == [4.0, 1.0, 3.0, 2.0, 0.0]
    edges = torch.tensor([[0, 0], [1, 1]])
    graph = LabelGraph(edges, num_nodes=2, edge_weight=torch.tensor([-3.0, -5.0]))
    assert weights_of(graph) == {(0, 1): -3.0}
    assert LabelGraph(edges, num_nodes=2).num_edges == 1


def test_edge_index_may_be_of_pyg_or_absent():
    graph = LabelGraph(EdgeIndex([[0, 1], [1, 2]], sparse_size=(3, 3)), num_nodes=3)
    assert type(graph.edge_index) is torch.Tensor
    graph = LabelGraph(label_names=["a", "b"])
    assert (graph.num_edges, graph.density, fully_connected(0).density) == (0, 0.0, 0.0)


EDGE = torch.tensor([[0], [1]])


@pytest.mark.parametrize(
    ("edges", "size", "names", "options", "message"),
    [
        (torch.zeros(2, 2), 3, None, {}, r"'edge_index' .*torch.float32"),
        ([[0], [1]], 3, None, {}, r"'edge_index' .*list\); .*LabelGraph.from_edges"),
        (EDGE * 3, 3, None, {}, r"target indices of 'edge_index' .* \[0, 3\)"),
        (-EDGE.flip(0), 3, None, {}, r"source indices of 'edge_index' .* \[0, 3\)"),
        (EDGE, None, None, {}, "'num_nodes' or 'label_names'"),
        (torch.zeros(3, 2, dtype=torch.long), 3, None, {}, r"shape \[2, num_edges\]"),
        (None, 2, ["a"], {}, r"each of the 2 labels \(got 1 names\)"),
        (None, None, ["a", "a"], {}, "unique.*'a'"),
        (None, None, ["a", 1], {}, "strings"),
        (None, None, 4, {}, r"'label_names' to be a list of names \(got 4\)"),
        (None, 2, "ab", {}, r"'label_names' to be a list of names \(got 'ab'\)"),
        (None, -1, None, {}, "'num_nodes'"),
        (None, 2, None, {"edge_attr": torch.ones(1)}, "edge_weight"),
        (EDGE, 2, None, {"edge_weight": torch.ones(2)}, r"shape \[1\]"),
        (EDGE, 2, None, {"edge_weight": torch.tensor([torch.nan])}, "finite"),
    ],
)
def test_wrong_arguments_are_named(edges, size, names, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LabelGraph(edges, num_nodes=size, label_names=names, **options)


def test_self_loops_are_added_and_removed(graph):
    looped = graph.add_self_loops(fill_value=9.0)
    loops = {("a", "a"): 9.0, ("b", "b"): 9.0, ("c", "c"): 9.0}
    assert weights_of(looped) == pytest.approx(weights_of(graph) | loops)
    assert looped.has_self_loops()
    assert not graph.has_self_loops()
    assert weights_of(looped.remove_self_loops()) == weights_of(graph)
    assert weights_of(looped.add_self_loops(fill_value=1.0)) == weights_of(looped)


@pytest.mark.parametrize("weighted", [True, False])
def test_self_loops_for_isolated_labels_only(weighted):
    weight = torch.tensor([0.5]) if weighted else None
    graph = LabelGraph(torch.tensor([[0], [1]]), num_nodes=3, edge_weight=weight)
    edges = edges_of(graph.add_self_loops(only_isolated=True))
    assert edges == {(0, 1), (0, 0), (2, 2)}  # Label 0 has no incoming edge.


def test_to_undirected_adds_reverse_edges(graph):
    symmetric = graph.add_self_loops(fill_value=7.0).to_undirected("add")
    assert weights_of(symmetric)["b", "a"] == weights_of(symmetric)["a", "b"] == pytest.approx(0.1)
    assert weights_of(symmetric)["a", "a"] == 7.0
    assert symmetric.is_undirected()
    assert fully_connected(3, self_loops=False).to_undirected().num_edges == 6


def test_permute_reorders_labels_and_keeps_edges(graph):
    graph.x = torch.tensor([[0.0], [1.0], [2.0]])
    permuted = graph.permute([2, 0, 1])
    assert permuted.label_names == ["c", "a", "b"]
    assert permuted.x.flatten().tolist() == [2.0, 0.0, 1.0]
    assert weights_of(permuted) == weights_of(graph)
    assert permuted.validate()
    restored = permuted.permute(torch.tensor([1, 2, 0]))
    assert torch.equal(restored.edge_index, graph.edge_index)
    assert torch.equal(restored.edge_weight, graph.edge_weight)


@pytest.mark.parametrize("perm", [[0, 1], [0, 1, 1], [0, 1, 3], [0.0, 1.0, 2.0]])
def test_perm_must_be_a_permutation(graph, perm):
    with pytest.raises(ValueError, match="'perm'"):
        graph.permute(perm)


def test_methods_return_new_graphs(graph):
    original = copy.deepcopy(graph)
    for result in (graph.add_self_loops(), graph.permute([1, 0, 2]), graph.to_undirected()):
        assert result is not graph
    assert weights_of(graph) == weights_of(original)
    assert graph.label_names == original.label_names


def test_validate_checks_attributes_assigned_later(graph):
    graph.edge_index = graph.edge_index.flip(1)
    assert not graph.validate(raise_on_error=False)
    with pytest.raises(ValueError, match="sorted by target"):
        graph.validate()
    graph.edge_index = graph.edge_index.float()
    assert not graph.validate(raise_on_error=False)


def test_repr_shows_sizes_kind_and_source(graph):
    assert repr(graph) == (
        "LabelGraph(num_labels=3, num_edges=3, density=0.333, kind='chain', source='a test', "
        "edge_weight=[3], label_names=[3])"
    )
    assert "LabelGraph" in repr(LabelGraph())


def test_graphs_batch_and_unbatch(graph):
    batch = Batch.from_data_list([graph, graph.permute([1, 2, 0])])
    assert batch.num_nodes == 6
    assert batch.edge_index.max() == 5
    assert "LabelGraphBatch" in repr(batch)
    assert isinstance(batch[1], LabelGraph)
    assert batch[1].label_names == ["b", "c", "a"]
    assert next(iter(DataLoader([graph, graph], batch_size=2))).num_graphs == 2
    assert pickle.loads(pickle.dumps(batch)).num_graphs == 2


def test_copies_and_moved_graphs_are_equal(graph):
    for duplicate in (copy.copy(graph), copy.deepcopy(graph), graph.clone(), graph.to("cpu")):
        assert isinstance(duplicate, LabelGraph)
        assert weights_of(duplicate) == weights_of(graph)
        assert duplicate.kind == "chain"
    assert graph.subgraph(torch.tensor([0, 2])).label_names == ["a", "c"]
    assert graph.clone().to("meta").edge_weight.device.type == "meta"
    assert weights_of(LabelGraph.from_dict(graph.to_dict())) == weights_of(graph)


def test_saved_graphs_are_loaded(graph, tmp_path):
    graph.x = torch.randn(3, 4)
    graph.save(tmp_path / "new" / "graph.safetensors")
    loaded = LabelGraph.load(tmp_path / "new" / "graph.safetensors")
    assert repr(loaded) == repr(graph)
    assert weights_of(loaded) == weights_of(graph)
    assert torch.equal(loaded.x, graph.x)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["graph.safetensors"]
    LabelGraph(num_nodes=4).save(tmp_path / "unnamed")
    assert LabelGraph.load(tmp_path / "unnamed").num_labels == 4
    graph.extra = object()
    with pytest.raises(ValueError, match="plain data"):
        graph.save(tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_load_refuses_other_files(tmp_path):
    (tmp_path / "text").write_text("no tensors here")
    save_file({"edge_index": torch.zeros(2, 0)}, tmp_path / "weights")
    for name, message in (("text", "safetensors"), ("weights", "format"), (".", "folder")):
        with pytest.raises(ValueError, match=message):
            LabelGraph.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        LabelGraph.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"attributes": '{"num_nodes": 2'},
        {"attributes": "[2]"},
        {"attributes": '{"num_nodes": 2, "edge_index": 3}'},
        {"attributes": '{"label_names": 2}'},
        {"attributes": '{"num_nodes": -1}'},
        {"attributes": "[" * 100_000},
    ],
)
def test_load_names_the_file_whose_metadata_is_damaged(header, tmp_path):
    header = {"format": "tg_mlc.LabelGraph/1", **header}
    tensors = {"edge_index": torch.zeros(2, 0, dtype=torch.long)}
    save_file(tensors, tmp_path / "graph", metadata=header)
    with pytest.raises(ValueError, match=r"^Expected '.*/graph' to hold a label graph .*damaged"):
        LabelGraph.load(tmp_path / "graph")


@given(data=st.data())
def test_mutated_files_give_a_graph_or_a_clear_error(data, tmp_path_factory):
    path: Path = tmp_path_factory.mktemp("mutated") / "graph"
    LabelGraph(EDGE, edge_weight=torch.ones(1), label_names=["a", "b"]).save(path)
    content, byte = bytearray(path.read_bytes()), st.sampled_from(b'"{}[]:,\\09a\x00\xff')
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(byte)
    path.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    message = error_of(lambda: repr(LabelGraph.load(path)))
    assert message is None or message.startswith(f"Expected '{path}' to ")


def test_torch_load_works_with_weights_only(graph):
    buffer = io.BytesIO()
    torch.save({"label_graph": graph}, buffer)
    buffer.seek(0)
    assert weights_of(torch.load(buffer, weights_only=True)["label_graph"]) == weights_of(graph)


def shuffled_tree(depth):
    """Returns a binary tree whose labels are numbered at random."""
    child = torch.arange(1, 2**depth - 1)
    edges = torch.stack([(child - 1) // 2, child])
    permutation = torch.randperm(2**depth - 1, generator=torch.Generator().manual_seed(0))
    return LabelGraph(permutation[edges], num_nodes=2**depth - 1).to_undirected()


def mean_distance(graph):
    return (graph.edge_index[0] - graph.edge_index[1]).abs().double().mean().item()


@pytest.mark.parametrize("method", ["rcm", "tree"])
def test_locality_order_brings_neighbours_close(method):
    graph = shuffled_tree(8)
    order = graph.locality_order(method)
    assert order.sort().values.tolist() == list(range(255))
    assert mean_distance(graph.permute(order)) < mean_distance(graph) / 2
    with_loops_and_isolated = LabelGraph(torch.tensor([[0, 4, 2], [4, 0, 2]]), num_nodes=6)
    assert with_loops_and_isolated.locality_order(method).sort().values.tolist() == list(range(6))
    with pytest.raises(ValueError, match=r"'method' .*'size'"):
        graph.locality_order("size")


SPORTS = {("sport", "golf"): 0.5, ("sport", "judo"): 0.25, ("law", "judo"): 1.0}


@pytest.mark.parametrize(
    "edges",
    [
        [(*edge, weight) for edge, weight in SPORTS.items()],
        "source,target,weight\nsport,golf,0.5\nsport,judo,0.25\nlaw,judo,1\n",
        "weight\ttarget_name\tnote\tsource_name\n"
        ".5\tgolf\tx\tsport\n0.25\tjudo\tx\tsport\n1\tjudo\tx\tlaw\n",
        "child;parent;count\ngolf;sport;0.5\njudo;sport;0.25\njudo;law;1\n",
        '# three\n"sport","golf",0.5\nsport,judo,0.25\nlaw,judo,1\n',
        '"from"|"to"|"value"\n"1"|sport|golf|0.5\n"2"|sport|judo|0.25\n"3"|law|judo|1\n',
    ],
)
@pytest.mark.parametrize("label_names", [None, ["law", "judo", "golf", "sport", "art"]])
def test_edges_may_join_names(edges, label_names, tmp_path):
    graph = LabelGraph.from_edges(edges, label_names)
    assert weights_of(graph) == SPORTS
    assert graph.kind == "edges"
    assert set(graph.label_names) == set(label_names or ["sport", "golf", "judo", "law"])
    if isinstance(edges, str):
        (tmp_path / "edges.csv").write_text(edges)
        loaded = LabelGraph.from_edges(tmp_path / "edges.csv", label_names)
        assert loaded.label_names == graph.label_names


GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="n" for="node" attr.name="name" attr.type="string"/>
<key id="w" for="edge" attr.name="weight" attr.type="double"/><graph edgedefault="directed">
<node id="1"><data key="n">sport</data></node><node id="2"><data key="n">golf</data></node>
<edge source="1" target="2"><data key="w">0.5</data></edge></graph></graphml>"""
OBO = "format-version: 1.2\n[Term]\nid: T:1\nname: sport\n[Term]\nid: T:2\nname: golf\nis_a: T:1\n"


@pytest.mark.parametrize(
    ("name", "content", "options", "weight"),
    [
        ("a.csv", "source,target,weight\nsport,golf,0.5\n", {}, 0.5),
        ("a.tsv", "from\tto\nsport\tgolf\n", {}, None),
        ("a.csv", "x,y,s\nsport,golf,500\n", {"columns": ("x", "y"), "weight": "s"}, 500.0),
        ("a.txt", "protein1 protein2 combined_score\nsport golf 500\n", {}, 0.5),
        ("a.tsv", "#node1\tnode2\tcoexpression\tcombined_score\nsport\tgolf\t0.1\t0.5\n", {}, 0.5),
        ("a.tsv", "node1\tnode2\tcount\tscore\nsport\tgolf\t7\t500\n", {"weight": "score"}, 0.5),
        ("a.graphml", GRAPHML, {}, 0.5),
        ("a.graphml", GRAPHML, {"weight": "none"}, None),
        ("a.obo", OBO, {}, None),
    ],
)
@pytest.mark.parametrize("label_names", [None, ["art", "golf", "sport"]])
def test_files_may_join_names(name, content, options, weight, label_names, tmp_path):
    (tmp_path / name).write_text(content)
    graph = LabelGraph.read(tmp_path / name, label_names, **options)
    assert weights_of(graph) == {("sport", "golf"): weight}
    assert set(graph.label_names) == set(label_names or ["sport", "golf"])


@pytest.mark.parametrize("options", [{"columns": ("a", "target")}, {"weight": "a"}])
def test_missing_columns_are_named(options, tmp_path):
    (tmp_path / "a.csv").write_text("source,target\nsport,golf\n")
    with pytest.raises(ValueError, match=r"line 1 of .*'a' .*'target'"):
        LabelGraph.read(tmp_path / "a.csv", **options)


def test_identifiers_of_terms_and_saved_graphs_are_read(tmp_path):
    (tmp_path / "a.obo").write_text(OBO)
    graph = LabelGraph.read(tmp_path / "a.obo", ["T:1", "T:2"])
    assert graph.edge_index.tolist() == [[0], [1]]
    graph.save(tmp_path / "a.safetensors")
    assert LabelGraph.read(tmp_path / "a.safetensors").label_names == ["T:1", "T:2"]
    with pytest.raises(ValueError, match="label_names"):
        LabelGraph.read(tmp_path / "a.safetensors", ["T:2", "T:1"])


def test_frames_and_edges_without_weights_are_read_back(tmp_path):
    edges = {("sport", "golf"): 0.5, ("law", "golf"): 0.25}
    rows = [(*edge, weight) for edge, weight in edges.items()]
    graph = LabelGraph.from_edges(rows, ["law", "golf", "sport", "art"])
    graph.to_frame().to_csv(tmp_path / "a.csv", index=False)
    loaded = LabelGraph.read(tmp_path / "a.csv", graph.label_names)
    assert weights_of(loaded) == weights_of(graph) == edges
    assert LabelGraph(num_nodes=2).to_frame().columns.tolist() == ["source", "target"]
    for edges in ([("a", "b"), ["b", "a"]], "source,target\na,b\nb,a\n", "a\tb\nb\ta\n"):
        assert weights_of(LabelGraph.from_edges(edges)) == {("a", "b"): None, ("b", "a"): None}
    assert LabelGraph.from_edges([], ["a"]).num_edges == 0


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("golf,is_a,sport\njudo,is_a,sport\n", "line 1 of the text to hold two labels"),
        ("source,target\ngolf,sprot\n", "line 2 .*'label_names'.*'sprot'.*mean 'sport'"),
        ("from_label,label\ngolf,sport\n", "line 1 of the text to name the two columns"),
        ("label,name\ngolf,sport\n", "line 1 of the text to name the two columns"),
        ("source,target,weight\ngolf,sport,\n", "line 2 .* to hold a number as the weight"),
        ("source,target,weight,score\ngolf,sport,1,1\n", "one column of weights"),
        ("source,target\ngolf\n", "line 2 of the text to hold 2 cells"),
        ("golf\nsport\n", "line 1 .*two labels"),
        ([("golf", "sport", "is_a")], "edge 0 to be"),
        ([("golf", "sport", True)], "edge 0 to be"),
        (["golf"], "edge 0 to be"),
        ({("golf", "sport"): 1.0}, "list of tuples .*got dict"),
        ([("golf", "sport", 1.0), ("sport", "golf")], "all edges or none"),
        ([("golf", "law")], "edge 0 .*'law'"),
    ],
)
def test_wrong_edges_are_named(edges, message):
    with pytest.raises(ValueError, match=message):
        LabelGraph.from_edges(edges, ["golf", "sport"])
