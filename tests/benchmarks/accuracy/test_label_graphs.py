import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from benchmarks.accuracy.label_graphs import co_occurrence_scores, mean_label_attention, recovery
from tg_mlc.graphs import co_occurrence, edgeless, fully_connected, tree
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import VectorEncoder


def test_scores_recover_a_known_graph():
    graph = tree([("b", "a"), ("c", "a")], ["a", "b", "c", "d"])
    scores = torch.zeros(4, 4)
    scores[graph.edge_index[0], graph.edge_index[1]] = 1
    perfect = {"ROC-AUC": 1.0, "average precision": 1.0}
    assert recovery(scores, graph) == {**perfect, "share of pairs joined": pytest.approx(2 / 6)}
    assert recovery(-scores, graph)["ROC-AUC"] == 0.0
    # A graph that joins all pairs cannot be recovered.
    metrics = recovery(torch.rand(4, 4), fully_connected(4))
    assert metrics == {"ROC-AUC": None, "average precision": None, "share of pairs joined": 1.0}


def test_co_occurrence_scores_of_three_labels():
    y = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 1, 1.0]])
    assert co_occurrence_scores(y, "count").tolist() == [[2, 2, 0], [2, 3, 1], [0, 1, 1]]
    # The second row holds the probability of the second label, given each label.
    assert co_occurrence_scores(y, "conditional")[1].tolist() == [1, 1, 1]
    correlation = co_occurrence_scores(y, "correlation")
    assert correlation[0, 2].item() == pytest.approx(-1)
    assert correlation[1].abs().sum() == 0  # The second label is never absent.


@pytest.mark.parametrize("weight", ["count", "conditional", "correlation"])
@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_co_occurrence_scores_equal_edge_weights_of_the_library(weight, unknown):
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(60, 8, generator=generator) < 0.2).float()
    y[torch.rand(60, 8, generator=generator) < unknown] = torch.nan
    graph, scores = co_occurrence(y, weight=weight), co_occurrence_scores(y, weight)
    assert graph.num_edges < 64
    torch.testing.assert_close(scores[graph.edge_index[1], graph.edge_index[0]], graph.edge_weight)
    mask = torch.ones(8, 8, dtype=torch.bool)
    mask[graph.edge_index[1], graph.edge_index[0]] = False
    assert (scores[mask] < 0).all() if weight == "correlation" else (scores[mask] == 0).all()


def test_correlation_uses_samples_in_which_both_labels_are_known():
    y = torch.tensor([[1, 0], [0, 1], [0, 0], [1, torch.nan], [torch.nan, 1]])
    scores, expected = co_occurrence_scores(y, "correlation"), torch.corrcoef(y[:3].t())
    torch.testing.assert_close(scores[0, 1], expected[0, 1])


def test_left_out_labels_do_not_count_in_recovery():
    graph = tree([("b", "a"), ("d", "c")], ["a", "b", "c", "d"])
    scores = torch.zeros(4, 4)
    scores[0, 1] = scores[1, 0] = 1.0
    assert recovery(scores, graph)["ROC-AUC"] < 1
    assert recovery(scores, graph, torch.tensor([True, True, True, False]))["ROC-AUC"] == 1.0


@pytest.mark.parametrize("graph", [edgeless(4), fully_connected(4)], ids=["edgeless", "complete"])
def test_mean_attention_is_a_distribution_along_the_graph(graph):
    loader = DataLoader([Data(x=torch.randn(1, 3)) for _ in range(5)], batch_size=2)
    model = LaMP(VectorEncoder(3, 8), graph, num_feature_layers=0, num_steps=1).eval()
    attention = mean_label_attention(model, loader)
    torch.testing.assert_close(attention.sum(dim=1), torch.ones(4))
    if graph.num_edges == 4:
        torch.testing.assert_close(attention, torch.eye(4))
