from __future__ import annotations

import pytest
import torch

from tg_mlc.inputs import QuantileScaler, Scale
from tg_mlc.inputs.scalers import LogCounts


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
    assert (scaled[:, 1] == 0).all()  # A column that does not vary is 0.
    assert (scaled[x[:, 0].argsort(), 0].diff() >= 0).all()
    assert scaler(torch.tensor([[torch.nan, 1.0], [torch.inf, 1.0], [-1e9, 1.0]])).isfinite().all()
    other = QuantileScaler(2)
    with pytest.raises(ValueError, match="a scaler that knows quantiles"):
        other(x)
    other.load_state_dict(scaler.state_dict())
    assert torch.equal(other(x), scaled)
    with pytest.raises(ValueError, match=r"training vectors of shape \[N, 2\] \(got \[4, 3\]\)"):
        scaler.fit(torch.zeros(4, 3))


@pytest.mark.parametrize("shape", [(2, 4), (3,)])
def test_vectors_of_another_size_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"vectors to scale of shape \[N, 3\]"):
        QuantileScaler(3).fit(torch.randn(9, 3))(torch.randn(shape))


def test_other_methods_are_refused() -> None:
    with pytest.raises(ValueError, match=r"to be one of standard, quantile \(got 'centred'\)"):
        Scale("centred")
