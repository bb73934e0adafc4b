from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.graphs import edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn.base_scores import BaseScores
from tg_mlc.nn.encoders import BagEncoder


def bags(**attributes):
    samples = [Data(x=torch.tensor([0, 3])), Data(x=torch.empty(0, dtype=torch.long)), Data(x=torch.tensor([4]))]
    for key, values in attributes.items():
        for sample, value in zip(samples, values, strict=True):
            sample[key] = value
    return Batch.from_data_list(samples)


@pytest.mark.parametrize("graph", [edgeless, fully_connected])
def test_messages_follow_the_graph_only(graph):
    torch.manual_seed(0)
    model = LaMP(BagEncoder(5, 8), graph(3), num_feature_layers=0, num_steps=1, base_scores=BaseScores()).eval()
    known = torch.zeros(3, 3)
    before = model(bags(base_scores=known.split(1)))
    known[0, 1] = 2.0
    after = model(bags(base_scores=known.split(1)))
    changed = (before != after).any(dim=0)
    assert changed[1]
    assert changed[0].item() == (graph is fully_connected)
    assert torch.equal(before[1:], after[1:])  # other samples are unaffected


def test_a_model_takes_scores_of_several_classifiers():
    torch.manual_seed(0)
    model = LaMP(
        BagEncoder(5, 8), fully_connected(3), num_feature_layers=0, num_steps=1, base_scores=BaseScores(2)
    ).eval()
    known = torch.zeros(3, 3, 2)
    before = model(bags(base_scores=known.split(1)))
    known[0, 1, 1] = 2.0
    after = model(bags(base_scores=known.split(1)))
    assert (before[0] != after[0]).all()
    assert torch.equal(before[1:], after[1:])


def test_evidence_may_skip_to_the_logits():
    torch.manual_seed(0)
    model = LaMP(
        BagEncoder(5, 8), edgeless(3), num_feature_layers=0, num_steps=1, base_scores=BaseScores(score_skip=True)
    ).eval()
    known = torch.randn(3, 3)
    batch = bags(base_scores=known.split(1))
    with_skip = model(batch)
    shared, model.score_skip = model.score_skip, None
    torch.testing.assert_close(with_skip, model(batch) + shared(known))


def test_evidence_of_a_wrong_shape_is_named():
    model = LaMP(BagEncoder(5, 8), fully_connected(3), num_feature_layers=0, num_steps=1)
    x, ptr = torch.randn(4, 8), torch.tensor([0, 2, 4])
    with pytest.raises(ValueError, match=r"'base_scores' of shape \[2, 3, 8\]"):
        model.labels(x, ptr=ptr, base_scores=torch.zeros(2, 3))


@pytest.mark.parametrize("key", ["base_scores", "opinions"])
def test_scores_are_those_that_samples_bring_along(key):
    known = torch.randn(3, 3)
    base_scores = BaseScores(key=key)
    assert torch.equal(base_scores(bags(**{key: known.split(1)})), known)
    with pytest.raises(ValueError, match=f"Expected samples with the attribute '{key}'.*preprocessor"):
        base_scores(bags())
