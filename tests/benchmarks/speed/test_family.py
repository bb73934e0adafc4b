from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from benchmarks.accuracy.runs import Row
from benchmarks.speed.family import Contestant, _parts, compare
from tg_mlc.training import Objective


@dataclass(frozen=True)
class Squares(Objective):
    """A loss of plain tensors."""

    def loss(self, model, batch):
        return model(batch).square().mean()

    def scores(self, model, batch):
        return model(batch)


class Noise(nn.Linear):
    """Predicts something else each time."""

    def forward(self, x):
        return super().forward(x) + torch.rand(())


def contestant(name, model, batches=7):
    train, test = ([torch.randn(4, 3) for _ in range(count)] for count in (batches, 3))
    return Contestant(Row(name), model, Squares(), {"module": {"lr": 1e-3}}, train, test)


def test_times_of_an_epoch():
    slow = nn.Sequential(nn.Linear(3, 2000), nn.Linear(2000, 2000), nn.Linear(2000, 2))
    both = [contestant("lamp", nn.Linear(3, 2)), contestant("seq2seq", slow)]
    found = compare(both, 3, 2, 1, "cpu")
    for mode in ("training", "testing"):
        assert found["lamp"][mode]["rounds"] == 3
        assert found["lamp"][mode]["minutes_per_epoch"]["median"] > 0
        assert found["lamp"][mode]["speedup"]["median"] > 1
        assert found["seq2seq"][mode]["speedup"]["median"] == 1
    assert found["lamp"]["agrees"]


def test_no_times_of_a_model_whose_predictions_change():
    found = compare([contestant("lamp", Noise(3, 2))], 3, 2, 0, "cpu")
    assert not found["lamp"]["agrees"]


@pytest.mark.parametrize(("count", "size", "parts"), [(7, 2, 3), (3, 5, 1), (4, 4, 1)])
def test_parts_of_an_epoch_are_of_one_size(count, size, parts):
    found = _parts(list(range(count)), size)
    assert len(found) == parts
    assert {len(part) for part in found} == {min(size, count)}
