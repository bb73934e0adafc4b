from __future__ import annotations

import pytest
import torch

from tests.models.samples import batch
from tg_mlc.graphs import fully_connected
from tg_mlc.nn.encoders import MoleculeEncoder
from tg_mlc.papers.convert import ReleasedLaMP

GRAPH = fully_connected(5)


def outputs(model):
    return model(batch(4), return_intermediate=True, return_attention_weights=True)


def test_intermediate_readouts_send_no_gradient_to_the_weight():
    model = ReleasedLaMP(MoleculeEncoder(8), GRAPH, heads=2)
    sum(logits.sum() for logits in outputs(model).intermediate).backward()
    assert model.readout.weight.grad is None
    assert model.readout.bias.grad is None
    assert model.labels.embedding.weight.grad is not None


@pytest.mark.parametrize("discards", [True, False])
def test_the_attention_among_components_is_thrown_away(discards):
    model = ReleasedLaMP(MoleculeEncoder(8), GRAPH, heads=2).eval()
    assert {conv.dropout for conv in model.features.convs} == {0.1}
    for conv in model.features.convs:
        conv.discards = discards
    before, logits = outputs(model), model(batch(4))
    torch.testing.assert_close(before.logits, logits)
    assert len(before.feature_attention) == 2
    with torch.no_grad():
        model.features.convs[0].lin_value.weight.add_(1)
    assert torch.equal(model(batch(4)), logits) is discards


def test_labels_may_be_without_attention():
    model = ReleasedLaMP(MoleculeEncoder(8), GRAPH, heads=2, label_attention=False, dropout=0.0)
    out = outputs(model)
    assert len(out.intermediate) == 1  # A step hands out one state.
    assert all(step.label_to_label is None for step in out.attention)
    with torch.no_grad():
        model.labels.embedding.weight[2] += 1
    changed = (outputs(model).logits != out.logits).any(dim=0)
    assert changed.tolist() == [label == 2 for label in range(5)]


def test_components_may_be_pooled():
    options = {"num_feature_layers": 0, "heads": 2, "pool": "mean"}
    model = ReleasedLaMP(MoleculeEncoder(8), GRAPH, **options).eval()
    for step in outputs(model).attention:
        # one component for each sample
        torch.testing.assert_close(step.feature_to_label[1], torch.ones(20, 2))
