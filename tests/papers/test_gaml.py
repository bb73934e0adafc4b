from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from tests.models.samples import batch
from tests.papers.test_mlp import Y, assert_near, samples
from tg_mlc.graphs import edgeless
from tg_mlc.nn.encoders import BagEncoder, MoleculeEncoder
from tg_mlc.papers import GAML, gaml


def test_labels_reach_each_other_through_components_in_two_steps():
    for num_steps, expected in ((1, [True, False, False]), (2, [True, True, True])):
        model = GAML(BagEncoder(9, 8), 3, num_steps, heads=2).eval()
        data = Data(x=torch.tensor([3, 4]))
        logits = model(data)
        with torch.no_grad():
            model.embedding.weight[0] += torch.randn(8)
        assert ((model(data) - logits).abs() > 1e-6).squeeze(0).tolist() == expected


def test_permuted_labels_give_permuted_logits():
    model, data = GAML(MoleculeEncoder(8), 5, heads=2).eval(), batch(4)
    perm = torch.tensor([3, 1, 4, 0, 2])
    logits = model(data)
    with torch.no_grad():
        for parameter in (model.embedding.weight, model.weight, model.bias):
            parameter.copy_(parameter[perm].clone())
    assert_near(model(data), logits[:, perm])


@pytest.mark.parametrize("form", ["bag", "vector"])
def test_the_builder_starts_from_frequencies(form):
    model = gaml(samples(form), edgeless(4), False, channels=8, frequency_strength=1.0, heads=2)
    assert_near(model.bias.sigmoid(), torch.tensor(Y.mean(axis=0)))
    assert len(model.among_features) == 0


@pytest.mark.parametrize("options", [{"num_labels": 0}, {"num_labels": 2, "num_steps": 0}])
def test_numbers_below_one_are_named(options):
    with pytest.raises(ValueError, match=f"'{list(options)[-1]}'"):
        GAML(MoleculeEncoder(8), **options)
