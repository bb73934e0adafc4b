"""Along an adjacency the operator runs, and PyG's own way wherever somebody looks at single messages."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from tg_mlc.nn import AttentionConv, LabelToLabelConv

torch.manual_seed(0)
X = torch.randn(5, 8)
#: Sorted by target, with an isolated node.
EDGE_INDEX = torch.tensor([[1, 2, 0, 4, 1, 3], [0, 0, 1, 1, 2, 2]])


def adjacency() -> Tensor:
    return EdgeIndex(EDGE_INDEX, sparse_size=(5, 5), sort_order="col")


class Counted(AttentionConv):
    """Counts which way messages went."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(8, heads=2, **kwargs)
        self.fused = 0

    def message_and_aggregate(self, edge_index: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.fused += 1
        return super().message_and_aggregate(edge_index, query, key, value)


def gradients(conv: AttentionConv, edges: Any) -> list[Tensor]:
    out = conv(X, edges)
    conv.zero_grad()
    out.square().sum().backward()
    return [out, *(parameter.grad for parameter in conv.parameters())]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["EdgeIndex", "torch.sparse"])
def test_an_adjacency_takes_the_operator(form: str) -> None:
    conv = Counted()
    edges: Any = adjacency()
    if form == "torch.sparse":
        edges = torch.sparse_coo_tensor(EDGE_INDEX.flip(0), torch.ones(6), (5, 5)).to_sparse_csr()
    fused = gradients(conv, edges)
    assert conv.fused == 1
    torch.testing.assert_close(fused, gradients(conv, EDGE_INDEX))
    assert conv.fused == 1


def test_hooks_on_messages_see_them() -> None:
    conv, seen = Counted(), []
    conv.register_message_forward_hook(lambda module, inputs, out: seen.append(out.shape))
    torch.testing.assert_close(conv(X, adjacency()), conv(X, EDGE_INDEX))
    assert conv.fused == 0
    assert seen == [(6, 2, 4)] * 2


def test_attention_weights_come_from_messages() -> None:
    conv = Counted()
    _, (_, weights) = conv(X, adjacency(), return_attention_weights=True)
    assert conv.fused == 0
    assert weights.shape == (6, 2)


class Child(LabelToLabelConv):
    """A subclass with a propagate of its own, in front of its parent's compiled one."""

    def propagate(self, *args: Any, **kwargs: Any) -> Any:
        return super().propagate(*args, **kwargs)


@pytest.mark.parametrize("conv", [Counted(), Child(8, heads=2)], ids=["class", "subclass"])
def test_an_explainer_masks_the_edges_of_an_adjacency(conv: AttentionConv) -> None:
    LabelToLabelConv(8, heads=2)(X, EDGE_INDEX)  # which makes PyG compile the parent's propagate
    model = nn.ModuleList([conv])
    set_masks(model, torch.zeros(6), EDGE_INDEX, apply_sigmoid=False)
    without = conv(X, adjacency())
    clear_masks(model)
    torch.testing.assert_close(without, conv(X, EDGE_INDEX[:, :0]))
    assert not torch.allclose(without, conv(X, adjacency()))


def test_the_other_flow() -> None:
    conv = Counted(flow="target_to_source")
    by_row = EdgeIndex(EDGE_INDEX, sparse_size=(5, 5), sort_order="col")
    torch.testing.assert_close(conv(X, by_row), conv(X, EDGE_INDEX))
    torch.manual_seed(0)
    forward = Counted()
    forward.load_state_dict(conv.state_dict())
    torch.testing.assert_close(conv(X, EDGE_INDEX), forward(X, EDGE_INDEX.flip(0)))
    assert conv.fused == 0


def test_other_aggregations_are_no_attention() -> None:
    conv = Counted(aggr="max")
    torch.testing.assert_close(conv(X, adjacency()), conv(X, EDGE_INDEX))
    assert conv.fused == 0


def test_a_sorted_adjacency_compiles() -> None:
    conv = AttentionConv(8, heads=2)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(X, adjacency()), conv(X, EDGE_INDEX))


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["EdgeIndex", "torch.sparse"])
def test_an_adjacency_that_names_no_node_is_an_error(form: str) -> None:
    conv = AttentionConv(8, heads=2)
    edge_index = torch.tensor([[1, 2, 40], [0, 0, 1]])
    edges: Any = EdgeIndex(edge_index, sparse_size=(41, 5), sort_order="col")
    if form == "torch.sparse":
        edges = torch.sparse_coo_tensor(edge_index.flip(0), torch.ones(3), (5, 41)).to_sparse_csr()
    with pytest.raises((ValueError, IndexError)):
        conv((X, X), edges)


def test_an_adjacency_that_names_no_node_is_an_error_for_a_compiled_model_too() -> None:
    conv = torch.compile(AttentionConv(8, heads=2), backend="aot_eager")
    edges = EdgeIndex(torch.tensor([[1, 2, 40], [0, 0, 1]]), sparse_size=(41, 5), sort_order="col")
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        conv((X, X), edges)


def test_the_fused_path_does_not_aggregate_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    # PyG's aggregation ignores the pointers of a sorted adjacency, so that it would be no faster than a list of edges.
    conv, edges = AttentionConv(8, heads=2), EdgeIndex(EDGE_INDEX, sparse_size=(5, 5), sort_order="col")
    expected = conv((X, X), EDGE_INDEX)
    monkeypatch.setattr(conv.aggr_module, "forward", None)
    torch.testing.assert_close(conv((X, X), edges), expected)
    with pytest.raises(TypeError):
        conv((X, X), EDGE_INDEX)


@pytest.mark.parametrize("size", [{}, {"sparse_size": (5, 3)}])
def test_an_adjacency_without_its_last_nodes(size: dict[str, Any]) -> None:
    conv = Counted()
    edges = EdgeIndex(EDGE_INDEX, sort_order="col", **size)
    torch.testing.assert_close(conv((X, X), edges), conv((X, X), EDGE_INDEX))
    assert conv.fused == 1


def test_a_message_of_a_subclass_counts() -> None:
    class Silent(AttentionConv):
        def message(self, value_j: Tensor) -> Tensor:
            return value_j * 0

    conv = Silent(8, heads=2)
    torch.testing.assert_close(conv(X, adjacency()), conv(X, EDGE_INDEX))
