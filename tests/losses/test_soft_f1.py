from __future__ import annotations

import pytest
import torch
from sklearn.metrics import f1_score

from tg_mlc.losses import soft_f1_loss

NAN = float("nan")
AVERAGES = ["macro", "micro"]


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


@pytest.mark.parametrize("average", AVERAGES)
def test_nothing_known_is_zero_with_zero_gradient(logits, average):
    loss = soft_f1_loss(logits, torch.full((3, 3), NAN), average=average)
    loss.backward()
    assert loss.item() == 0.0
    assert (logits.grad == 0).all()


@pytest.mark.parametrize("average", AVERAGES)
def test_gradients_are_those_of_differences(logits, y, average):
    assert torch.autograd.gradcheck(lambda z: soft_f1_loss(z, y, average=average), logits)


def test_errors(logits, y):
    with pytest.raises(ValueError, match=r"'average' to be one of macro, micro \(got 'samples'\)"):
        soft_f1_loss(logits, y, average="samples")
