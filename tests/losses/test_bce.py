from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from tg_mlc.losses import lamp_loss, masked_bce

NAN = float("nan")


@pytest.fixture
def y():
    return torch.tensor([[1.0, 0.0, NAN], [NAN, 1.0, 1.0], [NAN, NAN, NAN]])


@pytest.fixture
def logits():
    return torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()


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
    loss = lamp_loss(logits, y, [logits * 2], 0.5, pos_weight=2.0, label_smoothing=0.1)
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


def test_lamp_loss_adds_weighted_intermediate_terms(logits, y):
    others = [logits * 2, logits - 1]
    expected = masked_bce(logits, y) + 0.3 * (masked_bce(others[0], y) + masked_bce(others[1], y))
    torch.testing.assert_close(lamp_loss(logits, y, others, 0.3), expected)
    torch.testing.assert_close(lamp_loss(logits, y, others), masked_bce(logits, y))
    torch.testing.assert_close(lamp_loss(logits, y, (), 0.3), masked_bce(logits, y))


def test_lamp_loss_passes_its_options_to_every_term(logits, y):
    options = {"pos_weight": 2.0, "label_smoothing": 0.1}
    expected = masked_bce(logits, y, **options) + 0.2 * masked_bce(logits * 2, y, **options)
    torch.testing.assert_close(lamp_loss(logits, y, [logits * 2], 0.2, **options), expected)


def test_compiles_without_graph_breaks(logits, y):
    compiled = torch.compile(lamp_loss, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(logits, y, [logits], 0.2), lamp_loss(logits, y, [logits], 0.2))


def test_errors(logits, y):
    with pytest.raises(ValueError, match=r"one shape \(got \(3, 3\) and \(3, 2\)\)"):
        masked_bce(logits, y[:, :2])
    with pytest.raises(ValueError, match="one shape"):
        lamp_loss(logits, y, [logits[:1]], 0.1)
    with pytest.raises(ValueError, match="label_smoothing"):
        masked_bce(logits, y, label_smoothing=1.0)
    for weight in (-0.1, NAN, math.inf):
        with pytest.raises(ValueError, match="intermediate_weight"):
            lamp_loss(logits, y, [logits], weight)
