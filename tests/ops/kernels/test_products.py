from __future__ import annotations

import pytest
import torch

from tg_mlc.ops.kernels import products


@pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="PyTorch has been built without oneDNN")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_linear_map(bias: bool, transposed: bool) -> None:
    torch.manual_seed(0)
    x, weight = (torch.randn(size) for size in ((70, 33), (20, 33)))
    x, weight = (value.t().contiguous().t() if transposed else value for value in (x, weight))
    b = torch.randn(20) if bias else None
    found = products.onednn_linear(x, weight, b)
    expected = x.double() @ weight.double().t() + (0 if b is None else b.double())
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)


def test_small_matrices_are_left_to_mkl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_is_faster", lambda: True)
    assert [products.prefers_onednn(torch.ones(n, 64), torch.ones(64, 64)) for n in (511, 512)] == [False, True]


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_is_faster", lambda: True)
    x, weight = torch.ones(512, 64), torch.ones(64, 64)
    with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None, fp32_precision=None):
        assert not products.prefers_onednn(x, weight)
    assert products.prefers_onednn(x, weight)


@pytest.mark.parametrize("vendor", ["GenuineIntel", ""])
def test_other_processors_keep_mkl(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_vendor", lambda: vendor)
    assert not products._is_faster.__wrapped__()
