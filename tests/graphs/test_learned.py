from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from tg_mlc.graphs import LabelGraph, fully_connected, tree
from tg_mlc.graphs.learned import learned
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders.components import Components
from tg_mlc.ops import Edges, Shared, to_dense_weights
from tg_mlc.papers.convert import ReleasedLaMP

NAMES = ["a", "b", "c", "d"]


class Vectors(nn.Module):
    channels, edge_dim = 8, None

    def forward(self, data):
        return Components(data.x, data.ptr, None, None)


def make_model(graph, **kwargs):
    torch.manual_seed(0)
    return LaMP(Vectors(), graph, num_feature_layers=0, heads=2, dropout=0.3, **kwargs)


def without_label_attention():
    options = {"num_feature_layers": 0, "label_attention": False, "heads": 2}
    return ReleasedLaMP(Vectors(), fully_connected(4), **options)


def make_loader(sizes=(3, 2)):
    torch.manual_seed(1)
    samples = [[Data(x=torch.randn(3, 8)) for _ in range(size)] for size in sizes]
    return [Batch.from_data_list(data_list) for data_list in samples]


def dense_weights(graph):
    matrix = torch.zeros(graph.num_labels, graph.num_labels)
    matrix[graph.edge_index[1], graph.edge_index[0]] = graph.edge_weight
    return matrix


def mean_by_hand(model, loader, steps=(0, 1)):
    model.eval()
    means = []
    for batch in loader:
        attention = model(batch, return_attention_weights=True).attention
        weights = [to_dense_weights(*attention[step].label_to_label) for step in steps]
        means.append(torch.stack(weights).mean(dim=(0, 2)))
    return torch.cat(means).mean(dim=0).detach()


@pytest.mark.parametrize(
    "graph", [fully_connected(NAMES), tree([("b", "a"), ("c", "a"), ("d", "c")])]
)
def test_weights_are_the_mean_attention(graph):
    model, loader = make_model(graph), make_loader()
    learned_graph = learned(model, loader)
    assert torch.allclose(dense_weights(learned_graph), mean_by_hand(model, loader), atol=1e-6)
    assert torch.equal(learned_graph.edge_index, graph.edge_index)
    assert torch.allclose(dense_weights(learned_graph).sum(dim=1), torch.ones(4))
    assert (learned_graph.kind, learned_graph.label_names) == ("learned", graph.label_names)
    assert learned_graph.source == "attention of LaMP on 5 samples"
    assert learned_graph.validate()


@pytest.mark.parametrize("step", [0, 1, -1])
def test_step_selects_the_attention_of_one_step(step):
    model, loader = make_model(fully_connected(4)), make_loader()
    expected = mean_by_hand(model, loader, [step])
    assert torch.allclose(dense_weights(learned(model, loader, step=step)), expected, atol=1e-6)


def test_top_k_threshold_and_names_are_applied():
    model, loader = make_model(fully_connected(NAMES)), make_loader()
    full = dense_weights(learned(model, loader)).fill_diagonal_(-1.0)
    strongest = learned(model, loader, top_k=1, self_loops=False)
    assert strongest.edge_index.tolist() == [full.argmax(dim=1).tolist(), list(range(4))]
    assert learned(model, loader, top_k=1).num_edges == 8
    largest = float(full.max())
    assert learned(model, loader, threshold=largest - 1e-6).remove_self_loops().num_edges == 1
    isolated = learned(model, loader, threshold=2.0, self_loops=False)
    assert isolated.edge_index.tolist() == [[0, 1, 2, 3]] * 2
    graph = learned(make_model(fully_connected(4)), make_loader(), top_k=2, label_names=NAMES)
    assert isinstance(graph, LabelGraph)
    assert graph.label_names == NAMES
    assert make_model(graph)(make_loader()[0]).shape == (3, 4)


def test_modules_keep_their_training_modes():
    model = make_model(fully_connected(4))
    model.train()
    model.labels.eval()
    modes = [module.training for module in model.modules()]
    first = learned(model, make_loader())  # Dropout is switched off.
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(first.edge_weight, learned(model, make_loader()).edge_weight)
    assert not first.edge_weight.requires_grad
    with pytest.raises(RuntimeError, match="broken"):
        learned(model, broken_loader())
    assert [module.training for module in model.modules()] == modes


def broken_loader():
    yield from make_loader()
    raise RuntimeError("broken")


class Explicit(nn.Module):
    """Returns the attention of a model along an edge list, in a custom type of output."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batch, return_attention_weights=False):
        out = self.model(batch, return_attention_weights=True)
        steps = []
        for step in out.attention:
            pattern, weights = step.label_to_label
            edge_index, weights = pattern.to_edge_list(weights)
            edges = Edges(edge_index, pattern.num_queries, pattern.num_keys)
            steps.append(SimpleNamespace(label_to_label=(edges, weights)))
        return SimpleNamespace(logits=out.logits, attention=steps)


def test_any_model_and_any_pattern_are_accepted():
    model, loader = make_model(fully_connected(NAMES)), make_loader()
    graph, explicit = learned(model, loader), learned(Explicit(model), loader)
    assert torch.equal(graph.edge_index, explicit.edge_index)
    assert torch.allclose(graph.edge_weight, explicit.edge_weight)
    attention = model(loader[0], return_attention_weights=True).attention
    assert isinstance(attention[0].label_to_label[0], Shared)


class TensorModel(nn.Module):
    def forward(self, batch, return_attention_weights=False):
        return torch.zeros(1, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loader": []}, "at least one sample"),
        ({"step": 2}, "'step' to be one of the 2 steps"),
        ({"top_k": 0}, "'top_k'"),
        ({"threshold": float("inf")}, "'threshold'"),
        ({"model": without_label_attention()}, "'model' to have label attention"),
        ({"model": TensorModel()}, "'attention'.*Tensor"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    arguments = {"model": make_model(fully_connected(4)), "loader": make_loader(), **arguments}
    with pytest.raises((TypeError, ValueError), match=message):
        learned(**arguments)
