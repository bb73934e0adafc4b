"""PyG's explainers work on models with edges of every kind."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer
from torch_geometric.nn import GATConv, GINEConv, MessagePassing, global_mean_pool

from tests.nn.samples import path_graph, ragged
from tg_mlc.nn import AttentionConv, LabelHead, LabelMessagePassing

NUM_LABELS = 4
X, BATCH = ragged([3, 3], 8)
BONDS = torch.tensor([[0, 1, 1, 2, 3, 4, 4], [1, 0, 2, 1, 4, 3, 5]])
TO_LABELS = torch.tensor([[0, 1, 2, 3, 4, 5, 5, 0], [0, 1, 2, 3, 0, 1, 2, 3]])


class Attention(nn.Module):
    """A model of attention along the bonds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = AttentionConv(8, heads=2)
        self.lin = nn.Linear(8, NUM_LABELS)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.lin(global_mean_pool(self.conv(x, edge_index), batch))


class Net(nn.Module):
    """Label message passing, along given edges to labels or behind a GNN along the bonds."""

    def __init__(self, gnn: MessagePassing | None = None, to_labels: Tensor | None = None) -> None:
        super().__init__()
        self.gnn, self.to_labels = gnn, to_labels
        self.labels = LabelMessagePassing(8, path_graph(NUM_LABELS), heads=2)
        self.readout = LabelHead(self.labels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if self.gnn is None:
            return self.readout(self.labels(x, batch, edge_index=edge_index))
        has_attributes = isinstance(self.gnn, GINEConv)
        attributes = [torch.ones(edge_index.size(1), 8)] if has_attributes else []
        x = self.gnn(x, edge_index, *attributes)
        return self.readout(self.labels(x, batch, edge_index=self.to_labels))


def explain(model, algorithm, edge_index):
    config = {"mode": "regression", "task_level": "graph", "return_type": "raw"}
    options = {"explanation_type": "model", "edge_mask_type": "object", "model_config": config}
    options["node_mask_type"] = "attributes" if isinstance(algorithm, GNNExplainer) else None
    explainer = Explainer(model, algorithm, **options)
    expected = model(X, edge_index, batch=BATCH)
    explanation = explainer(X, edge_index, batch=BATCH)
    assert torch.equal(model(X, edge_index, batch=BATCH), expected)
    assert explanation.validate(raise_on_error=True)
    return explanation


MODELS = {
    "attention": (Attention, BONDS),
    "edges": (Net, TO_LABELS),
    "gat": (lambda: Net(GATConv(8, 8)), BONDS),
}


@pytest.mark.parametrize(
    ("model", "edge_index"),
    [*MODELS.values(), (lambda: Net(GINEConv(nn.Linear(8, 8))), BONDS)],
    ids=[*MODELS, "gine"],
)
def test_gnn_explainer_masks_edges_and_nodes(model, edge_index):
    explanation = explain(model(), GNNExplainer(epochs=5), edge_index)
    assert explanation.edge_mask.size() == (edge_index.size(1),)
    assert (explanation.edge_mask > 0).any()
    assert explanation.node_mask.size() == X.size()


@pytest.mark.parametrize(("model", "edge_index"), MODELS.values(), ids=MODELS)
def test_attention_explainer_masks_edges(model, edge_index):
    explanation = explain(model(), AttentionExplainer(), edge_index)
    assert explanation.edge_mask.size() == (edge_index.size(1),)
    assert (explanation.edge_mask > 0).all()


def test_attention_explainer_reports_the_attention():
    model = Attention()
    explanation = explain(model, AttentionExplainer(reduce="mean"), BONDS)
    _, (_, weights) = model.conv(X, BONDS, return_attention_weights=True)
    assert_close(explanation.edge_mask, weights.mean(dim=-1))


def test_edge_masks_reach_a_class_derived_from_one_in_use():
    AttentionConv(8, heads=2)  # PyG compiles 'propagate' when the first layer of a class is made.

    class Derived(AttentionConv):
        """A layer of a user."""

    conv = Derived(8, heads=2)
    conv.explain = True
    conv._edge_mask = torch.full((BONDS.size(1),), -1e4)  # The sigmoid is 0: no messages.
    conv._loop_mask = BONDS[0] != BONDS[1]
    assert_close(conv(X, BONDS), conv.feed_forward(conv.attention_norm(X)))
    conv.explain = None
    assert not torch.allclose(conv(X, BONDS), conv.feed_forward(conv.attention_norm(X)))


def test_a_derived_class_may_override_propagate():
    class Derived(AttentionConv):
        def propagate(self, edge_index: Tensor, size: Any = None, **kwargs: Any) -> Tensor:
            return torch.zeros_like(kwargs["value"])

    conv = Derived(8, heads=2)
    assert_close(conv(X, BONDS), conv.feed_forward(conv.attention_norm(X)))


@pytest.mark.parametrize("algorithm", [GNNExplainer(epochs=3), AttentionExplainer()])
def test_label_layers_with_other_edges_can_be_excluded(algorithm):
    model = Net(GATConv(8, 8), TO_LABELS)
    for conv in (*model.labels.feature_to_label, *model.labels.label_to_label):
        conv.explain = False
    assert explain(model, algorithm, BONDS).edge_mask.size() == (BONDS.size(1),)
