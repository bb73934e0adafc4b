from __future__ import annotations

import pytest
import torch

from tests.models.samples import batch as molecules
from tests.training.conftest import make_module
from tg_mlc.losses import masked_bce
from tg_mlc.nn.encoders import MoleculeEncoder
from tg_mlc.papers import SPEN, InferenceNetworkObjective, InfNet, UnrolledObjective

NAN = float("nan")


@pytest.fixture
def samples():
    torch.manual_seed(0)
    data = molecules(6)
    data.y = torch.randint(0, 2, (6, 5)).float()
    data.y[0, 0] = NAN
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
    return torch.autograd.grad(loss, list(module.parameters()), retain_graph=True, allow_unused=True)


def test_later_steps_count_more(samples):
    model = SPEN(MoleculeEncoder(8), 5, num_steps=2).eval()
    torch.nn.init.normal_(model.energy.weight)
    output = model(samples, return_intermediate=True)
    first, second, last = (masked_bce(z, samples.y) for z in (*output.intermediate, output.logits))
    expected = (first / 3 + second / 2 + last) / (1 / 3 + 1 / 2 + 1)
    torch.testing.assert_close(UnrolledObjective().loss(model, samples), expected)


def test_scores_are_those_of_the_last_step(samples):
    model = SPEN(MoleculeEncoder(8), 5).eval()
    scores, loss = UnrolledObjective().validate(model, samples)
    torch.testing.assert_close(scores, model(samples).sigmoid())
    torch.testing.assert_close(loss, masked_bce(model(samples), samples.y))


def test_each_network_plays_its_own_part(infnet, samples):
    """The paper's game, restated: who minimises what, with everything else held fixed."""
    samples.y = samples.y.nan_to_num(1.0)
    objective = InferenceNetworkObjective(local_weight=0.0, entropy_weight=0.0)
    loss = objective.loss(infnet, samples)
    networks = infnet.networks(samples)
    a, right = networks.augmented.sigmoid(), networks.inference.sigmoid()

    def energy(y):
        return infnet.global_energy(y) - (networks.local * y).sum(dim=-1)

    augmented = (a - samples.y).square().sum(dim=-1) - energy(a)
    margin = (augmented + energy(samples.y)).relu()
    assert (margin > 0).float().mean() > 0
    size = samples.y.numel()
    for part, expected in (
        (infnet.global_energy, margin.sum()),
        (infnet.local, margin.sum()),
        (infnet.augmented, -augmented.sum()),
        (infnet.inference, energy(right).sum()),
    ):
        torch.testing.assert_close(gradients(loss, part), gradients(expected / size, part))


def test_cross_entropy_and_entropy_are_added(infnet, samples):
    plain = InferenceNetworkObjective(0.0, 0.0).loss(infnet, samples)
    networks = infnet.networks(samples)
    local = sum(masked_bce(z, samples.y) for z in networks)
    torch.testing.assert_close(InferenceNetworkObjective(0.5, 0.0).loss(infnet, samples), plain + 0.5 * local)
    entropy = sum(torch.distributions.Bernoulli(logits=z).entropy().mean() for z in networks[1:])
    torch.testing.assert_close(InferenceNetworkObjective(0.0, 2.0).loss(infnet, samples), plain - 2.0 * entropy)


def test_unknown_labels_are_what_the_network_says(infnet, samples):
    loss = InferenceNetworkObjective().loss(infnet, samples)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in infnet.parameters())
    filled = samples.clone()
    filled.y = torch.where(samples.y.isnan(), infnet.networks(samples).augmented.sigmoid().detach(), samples.y)
    plain = InferenceNetworkObjective(local_weight=0.0)
    torch.testing.assert_close(plain.loss(infnet, filled), plain.loss(infnet, samples))


@pytest.mark.parametrize("name", ["local_weight", "entropy_weight"])
def test_weights_below_zero_are_named(name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        InferenceNetworkObjective(**{name: -1.0})


@pytest.mark.parametrize(
    ("objective", "message"),
    [(UnrolledObjective(), "'return_intermediate', such as SPEN"), (InferenceNetworkObjective(), "an InfNet")],
)
def test_other_models_are_refused(objective, message):
    with pytest.raises(ValueError, match=message):
        make_module(objective=objective)
