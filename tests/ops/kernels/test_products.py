from __future__ import annotations

import pytest
import torch

from tg_mlc.ops.kernels import products


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
