from __future__ import annotations

import pytest
import torch

from tests.models.samples import batch
from tests.papers.test_mlp import Y, assert_near, samples
from tests.training.conftest import make_module
from tg_mlc.graphs import edgeless
from tg_mlc.losses import masked_bce
from tg_mlc.nn.encoders import MoleculeEncoder
from tg_mlc.papers import SPEN, InferenceNetworkObjective, InfNet, UnrolledObjective, energy_network
from tg_mlc.papers.spen import GlobalEnergy


def awake(model):
    """Returns the model with random weights of its energy, which start at zero."""
    energy = model.energy if isinstance(model, SPEN) else model.global_energy
    torch.nn.init.normal_(energy.weight, std=0.1)
    return model.eval()


def test_the_slope_is_the_gradient_of_the_energy():
    energy = GlobalEnergy(5, 7).double()
    torch.nn.init.normal_(energy.weight)
    y = torch.rand(3, 5, dtype=torch.double, requires_grad=True)
    (expected,) = torch.autograd.grad(energy(y).sum(), y)
    torch.testing.assert_close(energy.slope(y), expected)


def test_an_energy_network_starts_as_its_local_network():
    model, data = SPEN(MoleculeEncoder(8), 5).eval(), batch(4)
    output = model(data, return_intermediate=True)
    assert torch.equal(output.logits, model(data))
    assert len(output.intermediate) == 5
    for z in output.intermediate:
        assert_near(z, model.local(model.pooled(data)))


def test_inference_lowers_the_energy_until_nothing_is_left_to_gain():
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


def test_an_energy_network_predicts_in_inference_mode():
    model, data = awake(SPEN(MoleculeEncoder(8), 5)), batch(4)
    with torch.inference_mode():
        logits = model(data)
    assert_near(logits, model(data))


@pytest.mark.parametrize("frozen", [False, True])
def test_a_frozen_energy_is_the_same_without_its_gradients(frozen):
    model = awake(InfNet(MoleculeEncoder(8), 5))
    local, y = torch.randn(3, 5, requires_grad=True), torch.rand(3, 5, requires_grad=True)
    energy = model.energy(y, local, frozen=frozen)
    assert_near(energy, model.global_energy(y) - (local * y).sum(dim=-1))
    energy.sum().backward()
    assert y.grad is not None
    assert (local.grad is None) == frozen
    assert (model.global_energy.weight.grad is None) == frozen


def test_networks_start_equal_but_share_no_weights():
    model, data = InfNet(MoleculeEncoder(8), 5).eval(), batch(4)
    networks = model.networks(data)
    assert torch.equal(networks.local, networks.augmented)
    assert torch.equal(networks.local, networks.inference)
    assert torch.equal(model(data), networks.inference)
    assert model.local.lins[0].weight is not model.inference.lins[0].weight


@pytest.mark.parametrize(("inference", "kind"), [("steps", SPEN), ("network", InfNet)])
def test_the_builder_starts_from_frequencies(inference, kind):
    options = {"inference": inference, "channels": 8, "frequency_strength": 1.0}
    model = energy_network(samples("bag"), edgeless(4), **options)
    assert_near(model.local.lins[-1].bias.sigmoid(), torch.tensor(Y.mean(axis=0)))
    assert isinstance(model, kind)
    assert model.pooled.features is None
    assert energy_network(samples("bag"), edgeless(4), True, channels=8).pooled.features is not None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SPEN(MoleculeEncoder(8), 5, num_units=0), "'num_units'"),
        (lambda: SPEN(MoleculeEncoder(8), 5, num_steps=0), "'num_steps'"),
        (lambda: InferenceNetworkObjective(local_weight=-1.0), "'local_weight'"),
        (lambda: InferenceNetworkObjective(entropy_weight=-1.0), "'entropy_weight'"),
        (lambda: make_module(objective=UnrolledObjective()), "'return_intermediate', such as SPEN"),
        (lambda: make_module(objective=InferenceNetworkObjective()), "an InfNet"),
    ],
)
def test_bad_options_and_models_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.fixture
def observed():
    torch.manual_seed(0)
    data = batch(6)
    data.y = torch.randint(0, 2, (6, 5)).float()
    data.y[0, 0] = torch.nan
    return data


@pytest.fixture
def infnet():
    torch.manual_seed(0)
    model = InfNet(MoleculeEncoder(8), 5).eval()
    torch.nn.init.normal_(model.global_energy.weight)
    for network in (model.augmented, model.inference):
        torch.nn.init.normal_(network.lins[-1].weight)
    return model


def gradients(loss, module):
    options = {"retain_graph": True, "allow_unused": True}
    return torch.autograd.grad(loss, list(module.parameters()), **options)


def test_later_steps_count_more(observed):
    model = SPEN(MoleculeEncoder(8), 5, num_steps=2).eval()
    torch.nn.init.normal_(model.energy.weight)
    output = model(observed, return_intermediate=True)
    first, second, last = (masked_bce(z, observed.y) for z in (*output.intermediate, output.logits))
    expected = (first / 3 + second / 2 + last) / (1 / 3 + 1 / 2 + 1)
    torch.testing.assert_close(UnrolledObjective().loss(model, observed), expected)


def test_scores_and_loss_are_those_of_the_last_step(observed):
    model = SPEN(MoleculeEncoder(8), 5).eval()
    scores, loss = UnrolledObjective().validate(model, observed)
    torch.testing.assert_close(scores, model(observed).sigmoid())
    torch.testing.assert_close(loss, masked_bce(model(observed), observed.y))


def test_each_network_minimises_its_own_part_of_the_loss(infnet, observed):
    """The paper's game, restated: each network minimises its part, the others held fixed."""
    observed.y = observed.y.nan_to_num(1.0)
    objective = InferenceNetworkObjective(local_weight=0.0, entropy_weight=0.0)
    loss = objective.loss(infnet, observed)
    networks = infnet.networks(observed)
    a, inferred = networks.augmented.sigmoid(), networks.inference.sigmoid()

    def energy(y):
        return infnet.global_energy(y) - (networks.local * y).sum(dim=-1)

    augmented = (a - observed.y).square().sum(dim=-1) - energy(a)
    margin = (augmented + energy(observed.y)).relu()
    assert (margin > 0).float().mean() > 0
    size = observed.y.numel()
    for network, expected in (
        (infnet.global_energy, margin.sum()),
        (infnet.local, margin.sum()),
        (infnet.augmented, -augmented.sum()),
        (infnet.inference, energy(inferred).sum()),
    ):
        torch.testing.assert_close(gradients(loss, network), gradients(expected / size, network))


def test_cross_entropy_and_entropy_are_added(infnet, observed):
    plain = InferenceNetworkObjective(0.0, 0.0).loss(infnet, observed)
    networks = infnet.networks(observed)
    local = sum(masked_bce(z, observed.y) for z in networks)
    loss = InferenceNetworkObjective(0.5, 0.0).loss(infnet, observed)
    torch.testing.assert_close(loss, plain + 0.5 * local)
    entropy = sum(torch.distributions.Bernoulli(logits=z).entropy().mean() for z in networks[1:])
    loss = InferenceNetworkObjective(0.0, 2.0).loss(infnet, observed)
    torch.testing.assert_close(loss, plain - 2.0 * entropy)


def test_unknown_labels_are_filled_in_by_the_network(infnet, observed):
    loss = InferenceNetworkObjective().loss(infnet, observed)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in infnet.parameters())
    filled, probs = observed.clone(), infnet.networks(observed).augmented.sigmoid().detach()
    filled.y = torch.where(observed.y.isnan(), probs, observed.y)
    plain = InferenceNetworkObjective(local_weight=0.0)
    torch.testing.assert_close(plain.loss(infnet, filled), plain.loss(infnet, observed))
