from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.graphs import edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import BagEncoder, LinearEvidence, ScoreEncoder


@pytest.fixture
def linear():
    evidence = LinearEvidence(5, 3)
    evidence.weight.copy_(torch.randn(5, 3))
    evidence.bias.copy_(torch.randn(3))
    return evidence


def bags(**attributes):
    samples = [Data(x=torch.tensor([0, 3])), Data(x=torch.empty(0, dtype=torch.long)), Data(x=torch.tensor([4]))]
    for key, values in attributes.items():
        for sample, value in zip(samples, values, strict=True):
            sample[key] = value
    return Batch.from_data_list(samples)


def test_scores_of_words(linear):
    dense = torch.tensor([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1.0]])
    torch.testing.assert_close(linear(bags()), dense @ linear.weight + linear.bias)


def test_scores_of_weighted_words(linear):
    batch = bags(weight=[torch.tensor([0.5, 2.0]), torch.empty(0), torch.tensor([3.0])])
    dense = torch.tensor([[0.5, 0, 0, 2, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 3.0]])
    torch.testing.assert_close(linear(batch), dense @ linear.weight + linear.bias)


def test_scores_of_vectors(linear):
    x = torch.randn(4, 5)
    batch = Batch.from_data_list([Data(x=row.unsqueeze(0)) for row in x])
    torch.testing.assert_close(linear(batch), x @ linear.weight + linear.bias)


def test_known_scores_come_first(linear):
    known = torch.randn(3, 3)
    assert torch.equal(linear(bags(evidence=known.split(1))), known)


def test_the_linear_model_is_kept_but_not_trained(linear):
    assert list(linear.parameters()) == []
    assert set(linear.state_dict()) == {"weight", "bias"}


def test_scores_become_states():
    encoder = ScoreEncoder(6)
    scores = torch.tensor([[-3.0, 0.0, 2.0]])
    states = encoder(scores)
    assert states.shape == (1, 3, 6)
    torch.testing.assert_close(encoder(scores[:, 1:2]), states[:, 1:2])  # each label's score on its own
    torch.testing.assert_close(encoder(torch.full((1, 1), -40.0)), torch.zeros(1, 1, 6))


@pytest.mark.parametrize("graph", [edgeless, fully_connected])
def test_labels_hear_of_each_other_along_the_graph_only(linear, graph):
    torch.manual_seed(0)
    model = LaMP(BagEncoder(5, 8), graph(3), "emb", num_steps=1, evidence=linear).eval()
    known = torch.zeros(3, 3)
    before = model(bags(evidence=known.split(1)))
    known[0, 1] = 2.0
    after = model(bags(evidence=known.split(1)))
    changed = (before != after).any(dim=0)
    assert changed[1]
    assert changed[0].item() == (graph is fully_connected)
    assert torch.equal(before[1:], after[1:])  # other samples hear nothing


def test_evidence_of_a_wrong_shape_is_named():
    model = LaMP(BagEncoder(5, 8), fully_connected(3), "emb", num_steps=1)
    x, ptr = torch.randn(4, 8), torch.tensor([0, 2, 4])
    with pytest.raises(ValueError, match=r"'evidence' of shape \[2, 3, 8\]"):
        model.labels(x, ptr=ptr, evidence=torch.zeros(2, 3))
