from __future__ import annotations

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR

from tg_mlc.training.module import lr_factor


def rates(scheduler, optimizer, steps):
    values = []
    for _ in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return values


def to_zero(optimizer, steps):
    return LinearLR(optimizer, 1.0, 0.0, total_iters=steps)


@pytest.mark.parametrize("decay", ["cosine", "linear"])
def test_decay_is_that_of_torch(decay):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    expected = (CosineAnnealingLR if decay == "cosine" else to_zero)(optimizer, 20)
    factor = lr_factor(decay, 0.0, 20)
    assert [factor(step) for step in range(20)] == pytest.approx(rates(expected, optimizer, 20), abs=1e-6)


def test_warmup_rises_to_one_and_decay_falls_to_zero():
    factor = lr_factor("linear", 0.25, 20)
    assert [factor(step) for step in range(6)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])
    assert factor(19) == pytest.approx(1 / 15)
    assert factor(20) == factor(21) == 0.0
    assert lr_factor("none", 0.5, 4)(100) == 1.0
