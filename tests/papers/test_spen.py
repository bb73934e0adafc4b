from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from tests.models.samples import batch, molecules
from tests.papers.test_mlp import Y, loose, samples
from tg_mlc.graphs import edgeless
from tg_mlc.nn.encoders import MoleculeEncoder
from tg_mlc.papers import SPEN, InfNet, energy_network
from tg_mlc.papers.spen import GlobalEnergy


def awake(model):
    """Energies start at zero; this one says something."""
    energy = model.energy if isinstance(model, SPEN) else model.global_energy
    torch.nn.init.normal_(energy.weight, std=0.1)
    return model.eval()


def test_the_slope_is_the_gradient_of_the_energy():
    torch.manual_seed(0)
    energy = GlobalEnergy(5, 7).double()
    torch.nn.init.normal_(energy.weight)
    y = torch.rand(3, 5, dtype=torch.double, requires_grad=True)
    (expected,) = torch.autograd.grad(energy(y).sum(), y)
    torch.testing.assert_close(energy.slope(y), expected)


def test_it_starts_as_its_local_part():
    model, data = SPEN(MoleculeEncoder(8), 5).eval(), batch(4)
    output = model(data, return_intermediate=True)
    assert torch.equal(output.logits, model(data))
    assert len(output.intermediate) == 5
    for z in output.intermediate:
        loose(z, model.local(model.pooled(data)))


def test_inference_lowers_the_energy_until_nothing_is_left_to_gain():
    torch.manual_seed(0)
    model, data = awake(SPEN(MoleculeEncoder(8), 5, num_steps=60)), batch(4)
    output = model(data, return_intermediate=True)
    local = output.intermediate[0]

    def energy(z):
        p = z.sigmoid()
        entropy = torch.distributions.Bernoulli(logits=z).entropy().sum(dim=-1)
        return model.energy(p) - (local * p).sum(dim=-1) - entropy

    assert (energy(output.logits) < energy(local)).all()
    z = output.logits.detach().requires_grad_()
    (slope,) = torch.autograd.grad(energy(z).sum(), z)
    assert slope.abs().max() < 1e-4


def test_it_predicts_in_inference_mode():
    model, data = awake(SPEN(MoleculeEncoder(8), 5)), batch(4)
    with torch.inference_mode():
        logits = model(data)
    loose(logits, model(data))


@pytest.mark.parametrize("kind", [SPEN, InfNet])
def test_a_batch_gives_what_its_samples_give_one_by_one(kind):
    model, data = awake(kind(MoleculeEncoder(8), 5)), molecules(8)
    loose(model(Batch.from_data_list(data)), torch.cat([model(sample) for sample in data]))


@pytest.mark.parametrize("frozen", [False, True])
def test_a_frozen_energy_is_the_same_without_its_gradients(frozen):
    model = awake(InfNet(MoleculeEncoder(8), 5))
    local, y = torch.randn(3, 5, requires_grad=True), torch.rand(3, 5, requires_grad=True)
    energy = model.energy(y, local, frozen=frozen)
    loose(energy, model.global_energy(y) - (local * y).sum(dim=-1))
    energy.sum().backward()
    assert y.grad is not None
    assert (local.grad is None) == frozen
    assert (model.global_energy.weight.grad is None) == frozen


def test_networks_start_alike_and_go_their_own_ways():
    model, data = InfNet(MoleculeEncoder(8), 5).eval(), batch(4)
    networks = model.networks(data)
    assert torch.equal(networks.local, networks.augmented)
    assert torch.equal(networks.local, networks.inference)
    assert torch.equal(model(data), networks.inference)
    assert model.local.lins[0].weight is not model.inference.lins[0].weight


@pytest.mark.parametrize(("inference", "kind"), [("steps", SPEN), ("network", InfNet)])
def test_its_builder_starts_from_frequencies(inference, kind):
    model = energy_network(samples("bag"), edgeless(4), inference=inference, channels=8, frequency_strength=1.0)
    loose(model.local.lins[-1].bias.sigmoid(), torch.tensor(Y.mean(axis=0)))
    assert isinstance(model, kind)
    assert model.pooled.features is None
    assert energy_network(samples("bag"), edgeless(4), "fmp", channels=8).pooled.features is not None


@pytest.mark.parametrize("name", ["num_units", "num_steps"])
def test_numbers_below_one_are_named(name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        SPEN(MoleculeEncoder(8), 5, **{name: 0})
