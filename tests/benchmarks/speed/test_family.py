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
    """Adds random noise to every prediction."""

    def forward(self, x):
        return super().forward(x) + torch.rand(())


def contestant(name, model, batches=7):
    train, test = ([torch.randn(4, 3) for _ in range(count)] for count in (batches, 3))
    return Contestant(Row(name), model, Squares(), {"module": {"lr": 1e-3}}, train, test)


def test_models_are_compared_by_minutes_per_epoch():
    slow = nn.Sequential(nn.Linear(3, 2000), nn.Linear(2000, 2000), nn.Linear(2000, 2))
    contestants = [contestant("lamp", nn.Linear(3, 2)), contestant("seq2seq", slow)]
    result = compare(contestants, 3, 2, 1, "cpu")
    for mode in ("training", "testing"):
        assert result["lamp"][mode]["rounds"] == 3
        assert result["lamp"][mode]["minutes_per_epoch"]["median"] > 0
        assert result["lamp"][mode]["speedup"]["median"] > 1
        assert result["seq2seq"][mode]["speedup"]["median"] == 1
    assert result["lamp"]["agrees"]


def test_a_model_of_varying_predictions_disagrees():
    result = compare([contestant("lamp", Noise(3, 2))], 3, 2, 0, "cpu")
    assert not result["lamp"]["agrees"]


@pytest.mark.parametrize(("count", "size", "num_chunks"), [(7, 2, 3), (3, 5, 1), (4, 4, 1)])
def test_parts_of_an_epoch_have_equal_sizes(count, size, num_chunks):
    chunks = _parts(list(range(count)), size)
    assert len(chunks) == num_chunks
    assert {len(chunk) for chunk in chunks} == {min(size, count)}
