from __future__ import annotations

import pytest
import torch
from sklearn.metrics import f1_score

from tg_mlc.losses import asymmetric_loss, focal_loss, masked_bce, soft_f1_loss

NAN = float("nan")
AVERAGES = ["macro", "micro"]


def released_asymmetric(z, y, gamma_neg, gamma_pos, clip):
    """As the authors' released code computes it, one step after another, without its limit of logarithms."""
    p, q = z.sigmoid(), (1 - z.sigmoid() + clip).clamp(max=1)
    losses = y * p.log() + (1 - y) * q.log()
    pt = p * y + q * (1 - y)
    return -(losses * (1 - pt) ** (gamma_pos * y + gamma_neg * (1 - y)))


def torchvision_focal(z, y, alpha, gamma):
    """As torchvision.ops.sigmoid_focal_loss computes it."""
    p = z.sigmoid()
    ce = torch.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="none")
    loss = ce * (1 - (p * y + (1 - p) * (1 - y))) ** gamma
    return (alpha * y + (1 - alpha) * (1 - y)) * loss


@pytest.mark.parametrize(("alpha", "gamma"), [(0.25, 2.0), (0.7, 0.5), (0.5, 0.0)])
def test_focal_equals_torchvision_on_the_observed_entries(logits, y, alpha, gamma):
    observed = ~y.isnan()
    expected = torchvision_focal(logits[observed], y[observed].double(), alpha, gamma).mean()
    actual = focal_loss(logits, y, alpha=alpha, gamma=gamma)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits) for loss in (actual, expected)))


@pytest.mark.parametrize("options", [(4.0, 0.0, 0.05), (4.0, 1.0, 0.3), (2.0, 1.0, 0.0)])
def test_asymmetric_equals_the_released_code_on_the_observed_entries(logits, y, options):
    observed = ~y.isnan()
    expected = released_asymmetric(logits[observed], y[observed].double(), *options).mean()
    actual = asymmetric_loss(logits, y, gamma_neg=options[0], gamma_pos=options[1], margin=options[2])
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits) for loss in (actual, expected)))


def test_without_exponents_both_are_cross_entropy(logits, y):
    expected = masked_bce(logits, y, label_smoothing=0.2)
    torch.testing.assert_close(focal_loss(logits, y, gamma=0.0, alpha=None, label_smoothing=0.2), expected)
    plain = {"gamma_neg": 0.0, "gamma_pos": 0.0, "margin": 0.0}
    torch.testing.assert_close(asymmetric_loss(logits, y, **plain, label_smoothing=0.2), expected)


@pytest.mark.parametrize("size", [30.0, 1000.0])
@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (focal_loss, {"gamma": 0.5}),
        (asymmetric_loss, {"gamma_neg": 0.5, "gamma_pos": 0.5}),
        (asymmetric_loss, {"gamma_neg": 0.5, "margin": 0.0}),
    ],
)
def test_extreme_logits_have_finite_gradients(loss, options, size):
    z = torch.tensor([[-size, -size, size, size]], requires_grad=True)
    loss(z, torch.tensor([[0.0, 1.0, 0.0, 1.0]]), **options).backward()
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("average", AVERAGES)
def test_certain_scores_give_the_f1_of_decisions(average):
    generator = torch.Generator().manual_seed(0)
    y, decisions = (torch.randint(0, 2, (30, 4), generator=generator) for _ in range(2))
    loss = soft_f1_loss((decisions * 2.0 - 1.0) * 100.0, y.float(), average=average)
    assert loss.item() == pytest.approx(1 - f1_score(y, decisions, average=average))


@pytest.mark.parametrize("average", AVERAGES)
def test_unknown_entries_change_nothing(logits, y, average):
    y[:, 2] = NAN
    loss = soft_f1_loss(logits, y, average=average)
    loss.backward()
    p = logits.detach().sigmoid()
    macro = [1 - 2 * p[0, 0] / (1 + p[0, 0]), 1 - 2 * p[1, 1] / (1 + p[0, 1] + p[1, 1])]
    micro = 1 - 2 * (p[0, 0] + p[1, 1]) / (2 + p[0, 0] + p[0, 1] + p[1, 1])
    torch.testing.assert_close(loss.detach(), sum(macro) / 2 if average == "macro" else micro)
    assert (logits.grad[y.isnan()] == 0).all()
