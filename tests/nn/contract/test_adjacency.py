"""Edges may have any form of PyG. Adjacencies use the fused operator unless messages are needed."""

from typing import Any

import pytest
import torch
import torch_geometric.typing
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import HeteroConv, to_hetero
from torch_geometric.typing import SparseTensor

from tests.nn.samples import path_graph, ragged
from tests.requirements import FULL_GRAPH
from tg_mlc.graphs import LabelGraph
from tg_mlc.nn import AttentionConv, LabelMessagePassing, LabelToLabelConv
from tg_mlc.ops import Shared

HAS_TORCH_SPARSE = torch_geometric.typing.WITH_TORCH_SPARSE
needs_torch_sparse = pytest.mark.skipif(not HAS_TORCH_SPARSE, reason="needs torch-sparse")
SPARSE_TENSOR = pytest.param("SparseTensor", marks=needs_torch_sparse)
# 3 sources, 4 targets; no edge enters the last target.
EDGE_INDEX = torch.tensor([[0, 1, 2, 2, 0], [1, 0, 1, 2, 2]])
X = (torch.randn(3, 5), torch.randn(4, 8))


def in_form(form, edges, size, value=None):
    """Converts edges to an EdgeIndex, sorted if the form names an order, or to an adjacency."""
    if form == "SparseTensor":
        return SparseTensor.from_edge_index(edges, value, sparse_sizes=size).t()
    if form.startswith("torch.sparse"):
        value = torch.ones(edges.size(1)) if value is None else value
        matrix = torch.sparse_coo_tensor(edges.flip(0), value, size[::-1]).coalesce()
        return matrix if form == "torch.sparse coo" else matrix.to_sparse_csr()
    edge_index = EdgeIndex(edges, sparse_size=size)
    return edge_index if form == "EdgeIndex" else edge_index.sort_by(form)[0]


def assert_same_weights(edges, weights, expected):
    """Compares weights edge by edge with expected weights in the order of EDGE_INDEX."""
    index = {edge: i for i, edge in enumerate(map(tuple, EDGE_INDEX.t().tolist()))}
    assert_close(weights, expected[[index[edge] for edge in map(tuple, edges.t().tolist())]])


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["EdgeIndex", "row", "col", "torch.sparse", SPARSE_TENSOR])
def test_edges_of_every_form_give_the_same_output(form):
    conv = AttentionConv((5, 8), heads=2)
    edges = in_form(form, EDGE_INDEX, (3, 4))
    expected, (_, expected_weights) = conv(X, EDGE_INDEX, return_attention_weights=True)
    assert_close(conv(X, edges), expected)
    out, attention = conv(X, edges, return_attention_weights=True)
    assert_close(out, expected)
    if form == "SparseTensor":
        row, col, weights = attention.coo()
        edge_index = torch.stack([col, row])
    else:
        returned, weights = attention
        assert returned is edges
        is_sparse = form == "torch.sparse"
        edge_index = edges.to_sparse_coo().indices().flip(0) if is_sparse else edges.as_tensor()
    assert_same_weights(edge_index, weights, expected_weights)


@pytest.mark.parametrize("form", ["EdgeIndex", "row", "col"])
def test_an_edge_index_may_have_the_other_flow(form):
    conv = AttentionConv(8, heads=2, flow="target_to_source")
    x = torch.randn(4, 8)
    assert_close(conv(x, in_form(form, EDGE_INDEX, (4, 4))), conv(x, EDGE_INDEX))


@needs_torch_sparse
@pytest.mark.parametrize("size", [(5,), (5, 2), (5, 4)])
def test_values_of_a_sparse_tensor_are_no_edge_features(size):
    conv = AttentionConv((5, 8), heads=2)
    adjacency = in_form("SparseTensor", EDGE_INDEX, (3, 4), torch.randn(size))
    assert_close(conv(X, adjacency), conv(X, EDGE_INDEX))


@needs_torch_sparse
def test_values_of_a_sparse_tensor_are_edge_features_if_edge_dim_is_given():
    conv = AttentionConv((5, 8), heads=2, edge_dim=3)
    edge_attr = torch.randn(5, 3)
    adjacency = in_form("SparseTensor", EDGE_INDEX, (3, 4), edge_attr)
    assert_close(conv(X, adjacency), conv(X, EDGE_INDEX, edge_attr))
    with pytest.raises(ValueError, match=r"'edge_attr' exactly .* \(got None, edge_dim=3\)"):
        conv(X, adjacency.set_value(None))


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["EdgeIndex", "torch.sparse", SPARSE_TENSOR])
def test_label_message_passing_takes_edges_of_every_form(form):
    labels = LabelMessagePassing(5, path_graph(4), heads=1)
    x, batch = ragged([2, 1], 5)
    edges = in_form(form, EDGE_INDEX, (3, 4))
    states = labels(x, batch, edge_index=edges, return_attention_weights=True)
    assert_close(states.states, labels(x, batch, edge_index=EDGE_INDEX))
    assert type(states.attention[0].feature_to_label[0]) is Tensor


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["torch.sparse", "torch.sparse coo", SPARSE_TENSOR])
def test_label_graphs_of_every_form_are_the_same(form):
    edge_index = torch.tensor([[0, 1, 3, 2], [1, 2, 2, 3]])
    weight = torch.tensor([0.1, 0.2, 0.3, 0.4])
    adjacency = in_form(form, edge_index, (4, 4), weight)
    graph = LabelGraph(edge_index, num_nodes=4, edge_weight=weight)
    same = LabelGraph(adjacency, num_nodes=4)
    assert torch.equal(same.edge_index, graph.edge_index)
    assert torch.equal(same.edge_weight, graph.edge_weight)
    masks = [Shared(edges, 2, num_nodes=4).graph.mask() for edges in (adjacency, edge_index)]
    assert torch.equal(*masks)

    labels = LabelMessagePassing(5, graph, heads=1)
    x, batch = ragged([2, 1], 5)
    expected = labels(x, batch)
    for label_graph in (adjacency, Data(adj_t=adjacency, num_nodes=4)):
        labels.label_graph = label_graph
        assert_close(labels(x, batch), expected)


STATES = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
#: Edges sorted by target. Nodes 3 and 4 have no incoming edges.
BY_TARGET = torch.tensor([[1, 2, 0, 4, 1, 3], [0, 0, 1, 1, 2, 2]])
ADJACENCY = EdgeIndex(BY_TARGET, sparse_size=(5, 5), sort_order="col")


class CountingConv(AttentionConv):
    """Counts the calls of the fused operator."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(8, heads=2, **kwargs)
        self.fused = 0

    def message_and_aggregate(
        self, edge_index: Any, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        self.fused += 1
        return super().message_and_aggregate(edge_index, query, key, value)


def gradients(conv, edges):
    out = conv(STATES, edges)
    conv.zero_grad()
    out.square().sum().backward()
    return [out, *(parameter.grad for parameter in conv.parameters())]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["col", "torch.sparse"])
def test_an_adjacency_uses_the_operator(form):
    conv = CountingConv()
    fused = gradients(conv, in_form(form, BY_TARGET, (5, 5)))
    assert conv.fused == 1
    assert_close(fused, gradients(conv, BY_TARGET))
    assert conv.fused == 1


def test_hooks_on_messages_and_weights_need_messages():
    conv, calls = CountingConv(), []
    _, (_, weights) = conv(STATES, ADJACENCY, return_attention_weights=True)
    assert weights.shape == (6, 2)
    conv.register_message_forward_hook(lambda module, inputs, out: calls.append(out.shape))
    assert_close(conv(STATES, ADJACENCY), conv(STATES, BY_TARGET))
    assert calls == [(6, 2, 4)] * 2
    assert conv.fused == 0


class Child(LabelToLabelConv):
    """A subclass that overrides the compiled propagate of its parent."""

    def propagate(self, *args: Any, **kwargs: Any) -> Any:
        return super().propagate(*args, **kwargs)


@pytest.mark.parametrize("conv", [CountingConv(), Child(8, heads=2)], ids=["class", "subclass"])
def test_an_explainer_masks_the_edges_of_an_adjacency(conv):
    # PyG compiles the parent's propagate at the parent's first call.
    LabelToLabelConv(8, heads=2)(STATES, BY_TARGET)
    model = nn.ModuleList([conv])
    set_masks(model, torch.zeros(6), BY_TARGET, apply_sigmoid=False)
    masked = conv(STATES, ADJACENCY)
    clear_masks(model)
    assert_close(masked, conv(STATES, BY_TARGET[:, :0]))
    assert not torch.allclose(masked, conv(STATES, ADJACENCY))


@pytest.mark.parametrize("options", [{"flow": "target_to_source"}, {"aggr": "max"}], ids=str)
def test_other_flows_and_aggregations_need_messages(options):
    conv = CountingConv(**options)
    assert_close(conv(STATES, ADJACENCY), conv(STATES, BY_TARGET))
    assert conv.fused == 0


def test_a_sorted_adjacency_compiles():
    conv = AttentionConv(8, heads=2)
    compiled = torch.compile(conv, fullgraph=True, backend="eager")
    assert_close(compiled(STATES, ADJACENCY), conv(STATES, BY_TARGET))


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["col", "torch.sparse", "compiled"])
def test_an_adjacency_with_unknown_nodes_is_an_error(form):
    edge_index = torch.tensor([[1, 2, 40], [0, 0, 1]])
    edges = in_form("col" if form == "compiled" else form, edge_index, (41, 5))
    conv = AttentionConv(8, heads=2)
    conv = torch.compile(conv, backend="eager") if form == "compiled" else conv
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        conv((STATES, STATES), edges)


@pytest.mark.parametrize("size", [{}, {"sparse_size": (5, 3)}])
def test_an_adjacency_may_lack_its_last_nodes(size):
    conv = CountingConv()
    edges = EdgeIndex(BY_TARGET, sort_order="col", **size)
    assert_close(conv((STATES, STATES), edges), conv((STATES, STATES), BY_TARGET))
    assert conv.fused == 1


def test_an_overridden_message_is_used():
    class Silent(AttentionConv):
        def message(self, value_j: Tensor) -> Tensor:
            return value_j * 0

    conv = Silent(8, heads=2)
    assert_close(conv(STATES, ADJACENCY), conv(STATES, BY_TARGET))


BY_TYPE = {"word": torch.randn(3, 5), "label": torch.randn(4, 8)}
EDGES = {
    ("word", "in", "label"): torch.tensor([[0, 1, 2], [0, 1, 3]]),
    ("label", "to", "label"): torch.tensor([[0, 1, 2, 3], [1, 0, 3, 3]]),
}


@pytest.mark.filterwarnings("ignore:There exist node types")
def test_hetero_conv_takes_the_layer():
    convs = {
        ("word", "in", "label"): AttentionConv((-1, 8), heads=2),
        ("label", "to", "label"): AttentionConv(8, heads=2),
    }
    out = HeteroConv(convs, aggr="sum")(BY_TYPE, EDGES)
    assert list(out) == ["label"]
    label = BY_TYPE["label"]
    outputs = [convs[kind]((BY_TYPE[kind[0]], label), edges) for kind, edges in EDGES.items()]
    assert_close(out["label"], outputs[0] + outputs[1])


class Homogeneous(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = AttentionConv((-1, 8), heads=2)
        self.conv2 = AttentionConv(8, heads=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


@pytest.mark.skipif(not FULL_GRAPH, reason="PyTorch 2.6 does not trace annotations that are texts")
def test_to_hetero_takes_the_layer():
    edges = {**EDGES, ("label", "of", "word"): EDGES["word", "in", "label"].flip(0)}
    x = {"word": torch.randn(3, 8), "label": torch.randn(4, 8)}
    out = to_hetero(Homogeneous(), (list(x), list(edges)))(x, edges)
    shapes = {name: tuple(states.shape) for name, states in out.items()}
    assert shapes == {"word": (3, 8), "label": (4, 8)}
    assert all(states.isfinite().all() for states in out.values())
