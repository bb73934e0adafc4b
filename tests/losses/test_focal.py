from __future__ import annotations

import pytest
import torch

from tg_mlc.losses import asymmetric_loss, focal_loss, masked_bce

NAN = float("nan")
LOSSES = [focal_loss, asymmetric_loss]


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
def test_focal_equals_torchvision_on_the_known_entries(logits, y, alpha, gamma):
    known = ~y.isnan()
    expected = torchvision_focal(logits[known], y[known].double(), alpha, gamma).mean()
    actual = focal_loss(logits, y, alpha=alpha, gamma=gamma)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits) for loss in (actual, expected)))


@pytest.mark.parametrize("options", [(4.0, 0.0, 0.05), (4.0, 1.0, 0.3), (2.0, 1.0, 0.0)])
def test_asymmetric_equals_the_released_code_on_the_known_entries(logits, y, options):
    known = ~y.isnan()
    expected = released_asymmetric(logits[known], y[known].double(), *options).mean()
    actual = asymmetric_loss(logits, y, gamma_neg=options[0], gamma_pos=options[1], margin=options[2])
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits) for loss in (actual, expected)))


def test_without_exponents_both_are_cross_entropy(logits, y):
    expected = masked_bce(logits, y, label_smoothing=0.2)
    torch.testing.assert_close(focal_loss(logits, y, gamma=0.0, alpha=None, label_smoothing=0.2), expected)
    plain = {"gamma_neg": 0.0, "gamma_pos": 0.0, "margin": 0.0}
    torch.testing.assert_close(asymmetric_loss(logits, y, **plain, label_smoothing=0.2), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_unknown_entries_get_no_gradient_whatever_their_logits(logits, y, loss):
    broken = torch.where(y.isnan(), NAN, logits.detach()).requires_grad_()
    value = loss(broken, y)
    value.backward()
    torch.testing.assert_close(value, loss(logits, y))
    assert (broken.grad[y.isnan()] == 0).all()
    assert (broken.grad[~y.isnan()] != 0).any()


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


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_differences(logits, y, loss):
    assert torch.autograd.gradcheck(lambda z: loss(z, y), logits)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (focal_loss, {"gamma": -1.0}),
        (focal_loss, {"alpha": 2.0}),
        (asymmetric_loss, {"gamma_neg": -1.0}),
        (asymmetric_loss, {"gamma_pos": NAN}),
        (asymmetric_loss, {"margin": 1.0}),
    ],
)
def test_options_out_of_range_are_named(logits, y, loss, options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}'"):
        loss(logits, y, **options)
