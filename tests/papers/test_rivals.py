"""Tests of all rivals without a decoder."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from tests.models.samples import batch, molecules
from tests.papers.test_mlp import assert_near, samples
from tg_mlc.graphs import edgeless
from tg_mlc.nn.encoders import BagEncoder, MoleculeEncoder
from tg_mlc.papers import GAML, SPEN, InfNet, binary_relevance, energy_network, gaml, pooled_mlp
from tg_mlc.papers.mlp import BinaryRelevance, PooledMLP

MODELS = {
    "mlp": lambda encoder: PooledMLP(encoder, 5, heads=2),
    "relevance": lambda encoder: BinaryRelevance(encoder, 5),
    "gaml": lambda encoder: GAML(encoder, 5, num_steps=3, heads=2),
    "spen": lambda encoder: SPEN(encoder, 5),
    "infnet": lambda encoder: InfNet(encoder, 5),
}


def awake(name, encoder):
    """Returns a model with random weights in place of those that start at zero."""
    model = MODELS[name](encoder).eval()
    for parameter in model.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.1)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_gives_the_logits_of_its_single_samples(name):
    model, data = awake(name, MoleculeEncoder(8)), molecules(8)
    assert_near(model(Batch.from_data_list(data)), torch.cat([model(sample) for sample in data]))


@pytest.mark.parametrize("name", MODELS)
def test_a_document_without_words_has_logits_of_its_own(name):
    model, empty = awake(name, BagEncoder(9, 8)), Data(x=torch.zeros(0, dtype=torch.long))
    empty.num_nodes = 0
    logits = model(Batch.from_data_list([Data(x=torch.tensor([3, 4])), empty]))
    logits.sum().backward()
    assert logits.isfinite().all()
    assert not torch.equal(logits[0], logits[1])
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    ("model", "unused"),
    [
        (PooledMLP(MoleculeEncoder(8), 5, heads=2), set()),
        (PooledMLP(MoleculeEncoder(8), 5, 2, 0), {"pooled.encoder.bonds.weight"}),
        (GAML(MoleculeEncoder(8), 5, heads=2), set()),
        (GAML(MoleculeEncoder(8), 5, among_features=False), {"encoder.bonds.weight"}),
    ],
)
def test_every_parameter_learns(model, unused):
    logits = model(batch(6))
    assert logits.size() == (6, 5)
    logits.square().sum().backward()
    assert {name for name, p in model.named_parameters() if p.grad is None} == unused


@pytest.mark.parametrize("build", [pooled_mlp, binary_relevance, gaml, energy_network])
def test_unknown_options_are_refused(build):
    with pytest.raises(TypeError, match="num_component"):
        build(samples("vector"), edgeless(4), num_component=3)
