from __future__ import annotations

import math

import pytest
import torch

from tg_mlc.losses import listwise_loss, masked_bce

NAN = float("nan")


def test_the_order_is_the_cross_entropy_of_the_known_labels_of_each_sample():
    logits = torch.tensor([[1.0, 0.0, -1.0, 9.0], [0.5, 0.0, 0.0, 2.0], [3.0, 1.0, 0.0, 0.0]])
    y = torch.tensor([[1.0, 0.0, 1.0, NAN], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    first = math.log(math.e + 1 + 1 / math.e) - (1.0 - 1.0) / 2
    second = math.log(math.exp(0.5) + 2 + math.exp(2.0))
    expected = masked_bce(logits, y) + 3.0 * (first + second) / 12
    torch.testing.assert_close(listwise_loss(logits, y, weight=3.0), expected)


def test_without_weight_it_is_the_binary_cross_entropy(logits, y):
    expected = masked_bce(logits, y, label_smoothing=0.1)
    torch.testing.assert_close(listwise_loss(logits, y, weight=0.0, label_smoothing=0.1), expected)


def test_unknown_labels_get_no_gradient(logits):
    y = torch.tensor([[1.0, NAN, 0.0], [NAN, NAN, NAN], [0.0, NAN, 0.0]])
    listwise_loss(logits, y).backward()
    assert logits.grad.isfinite().all()
    assert not logits.grad[y.isnan()].any()
    assert logits.grad[~y.isnan()].all()


def test_nothing_known_is_zero(logits):
    assert listwise_loss(logits, torch.full((3, 3), NAN)).item() == 0.0


def test_gradients():
    logits = torch.randn(4, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0), requires_grad=True)
    y = (logits.detach() > 0.3).double()
    y[0, 1] = NAN
    assert torch.autograd.gradcheck(lambda z: listwise_loss(z, y), logits)


def test_half_precision_is_promoted():
    y = torch.tensor([[1.0, 0.0, NAN]])
    assert listwise_loss(torch.full((1, 3), 8.0, dtype=torch.float16), y).isfinite()


def test_options_are_checked(logits, y):
    with pytest.raises(ValueError, match="'weight'"):
        listwise_loss(logits, y, weight=-1.0)
