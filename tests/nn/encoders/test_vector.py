from __future__ import annotations

import copy
import re

import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.nn.encoders import JointEncoder, LogCounts, QuantileScaler, VectorEncoder


def batch() -> Batch:
    return Batch.from_data_list([Data(x=torch.randn(1, 5), counts=torch.rand(1, 3)) for _ in range(4)])


@pytest.mark.parametrize("in_channels", [5, -1])
def test_one_component(in_channels: int) -> None:
    encoder = VectorEncoder(in_channels, 8)
    data = batch()
    x, ptr, edge_index, *_ = encoder(data)
    torch.testing.assert_close(x, encoder.lin(data.x))
    assert ptr.tolist() == [0, 1, 2, 3, 4]
    assert edge_index is None


def test_several_components_of_another_key() -> None:
    encoder = VectorEncoder(3, 8, num_components=2, key="counts", scaling=LogCounts())
    data = batch()
    x, ptr, *_ = encoder(data)
    assert ptr.tolist() == [0, 2, 4, 6, 8]
    torch.testing.assert_close(x.view(4, 16), encoder.lin(LogCounts()(data.counts)))


def test_log_counts() -> None:
    scaled = LogCounts()(torch.tensor([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]))
    torch.testing.assert_close(scaled[0], torch.tensor([0.0, 1.0, 2.0]) * (3 / 5) ** 0.5 * 0.5)
    assert (scaled[1] == 0).all()


def test_quantile_scaler() -> None:
    torch.manual_seed(0)
    x = torch.cat([torch.randn(1000, 1).exp() * 1e4, torch.ones(1000, 1)], dim=1)
    scaler = QuantileScaler(2).fit(x)
    scaled = scaler(x)
    assert scaled[:, 0].mean().item() == pytest.approx(0, abs=0.05)
    assert scaled[:, 0].std().item() == pytest.approx(1, abs=0.05)
    assert (scaled[:, 1] == 0).all()  # did not vary
    assert torch.equal(scaled[:, 0].argsort(), x[:, 0].argsort()) or (scaled[x[:, 0].argsort(), 0].diff() >= 0).all()
    assert scaler(torch.tensor([[torch.nan, 1.0], [torch.inf, 1.0], [-1e9, 1.0]])).isfinite().all()
    other = QuantileScaler(2)
    with pytest.raises(ValueError, match="a scaler that knows quantiles"):
        other(x)
    other.load_state_dict(scaler.state_dict())
    assert torch.equal(other(x), scaled)
    with pytest.raises(ValueError, match=r"training vectors of shape \[N, 2\] \(got \[4, 3\]\)"):
        scaler.fit(torch.zeros(4, 3))


def test_joint_components_stay_with_their_sample() -> None:
    one, two = VectorEncoder(5, 8), VectorEncoder(3, 8, num_components=2, key="counts")
    joint = JointEncoder([one, two])
    data = batch()
    x, ptr, *_ = joint(data)
    assert ptr.tolist() == [0, 3, 6, 9, 12]
    expected = torch.cat([one(data).x.view(4, 1, 8), two(data).x.view(4, 2, 8)], dim=1)
    torch.testing.assert_close(x.view(4, 3, 8), copy.deepcopy(joint.norm)(expected))
    with pytest.raises(ValueError, match=r"'encoders' to share their 'channels' \(got \[4, 8\]\)"):
        JointEncoder([one, VectorEncoder(3, 4)])


def test_numbers_of_words_are_no_vectors() -> None:
    with pytest.raises(ValueError, match=r"vectors 'x' of floating-point numbers \(got torch.int64\)"):
        VectorEncoder(3, 8)(Data(x=torch.ones(2, 3, dtype=torch.long)))


@pytest.mark.parametrize("shape", [(2, 4), (3,)])
def test_vectors_of_another_size_are_refused(shape: tuple[int, ...]) -> None:
    data = Data(x=torch.randn(shape))
    lazy = VectorEncoder(-1, 8)
    lazy(Data(x=torch.randn(2, 3)))
    for encoder in (VectorEncoder(3, 8), lazy):
        with pytest.raises(ValueError, match=rf"vectors 'x' of shape \[N, 3\] \(got {re.escape(str(list(shape)))}\)"):
            encoder(data)
    with pytest.raises(ValueError, match=r"vectors to scale of shape \[N, 3\]"):
        QuantileScaler(3).fit(torch.randn(9, 3))(data.x)


def test_scaling_may_change_the_size() -> None:
    assert VectorEncoder(3, 8, scaling=torch.nn.Linear(5, 3))(Data(x=torch.randn(2, 5))).x.shape == (2, 8)
