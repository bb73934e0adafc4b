from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from tg_mlc.losses import masked_bce

NAN = float("nan")


@pytest.mark.parametrize("pos_weight", [None, 3.0, torch.tensor([1.0, 2.0, 5.0])])
def test_equals_torch_on_the_known_entries(logits, y, pos_weight):
    known = ~y.isnan()
    weight = None if pos_weight is None else torch.as_tensor(pos_weight).double().expand(3, 3)[known]
    expected = F.binary_cross_entropy_with_logits(logits[known], y[known].double(), pos_weight=weight)
    torch.testing.assert_close(masked_bce(logits, y, pos_weight=pos_weight), expected)
    torch.testing.assert_close(
        torch.autograd.grad(masked_bce(logits, y, pos_weight=pos_weight), logits),
        torch.autograd.grad(expected, logits),
    )


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
def test_unknown_entries_get_no_gradient_whatever_their_logits(logits, y, bad):
    broken = torch.where(y.isnan(), bad, logits.detach()).requires_grad_()
    masked_bce(broken, y).backward()
    assert broken.grad.isfinite().all()
    assert (broken.grad[y.isnan()] == 0).all()
    assert (broken.grad[~y.isnan()] != 0).all()


def test_nothing_known_is_zero_with_zero_gradient(logits):
    y = torch.full((3, 3), NAN)
    loss = masked_bce(logits, y, pos_weight=2.0, label_smoothing=0.1)
    loss.backward()
    assert loss.item() == 0.0
    assert (logits.grad == 0).all()


def test_label_smoothing_moves_targets_towards_one_half(logits, y):
    known = ~y.isnan()
    expected = F.binary_cross_entropy_with_logits(logits[known], y[known].double() * 0.8 + 0.1)
    torch.testing.assert_close(masked_bce(logits, y, label_smoothing=0.2), expected)


def test_half_precision_is_summed_in_float32():
    logits, y = torch.full((300, 300), 0.5, dtype=torch.bfloat16), torch.zeros(300, 300)
    loss = masked_bce(logits, y)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, F.softplus(torch.tensor(0.5)))


def test_one_weight_per_label_may_be_a_list(logits, y):
    weights = [1.0, 2.0, 5.0]
    torch.testing.assert_close(
        masked_bce(logits, y, pos_weight=weights), masked_bce(logits, y, pos_weight=torch.tensor(weights))
    )


def test_errors(logits, y):
    with pytest.raises(ValueError, match=r"one shape \(got \(3, 3\) and \(3, 2\)\)"):
        masked_bce(logits, y[:, :2])
    with pytest.raises(ValueError, match="label_smoothing"):
        masked_bce(logits, y, label_smoothing=1.0)
    for bad in (-5.0, math.inf, NAN, [1.0, -1.0, 1.0], "x"):
        with pytest.raises(ValueError, match="'pos_weight' to be a finite number of at least 0"):
            masked_bce(logits, y, pos_weight=bad)
    for wrong in ([1.0, 2.0], torch.ones(2), torch.ones(3, 1)):
        with pytest.raises(ValueError, match="'pos_weight' to be one number or 3, one per label"):
            masked_bce(logits, y, pos_weight=wrong)
