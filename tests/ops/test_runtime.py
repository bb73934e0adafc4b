from pathlib import Path

import pytest
import torch

from tg_mlc.ops import runtime
from tg_mlc.ops.runtime import has_onednn, onednn_linear, prefers_onednn


@pytest.mark.skipif(not has_onednn(), reason="PyTorch has been built without oneDNN")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_onednn_computes_a_linear_map(bias, transposed):
    x, weight = (torch.randn(size) for size in ((70, 33), (20, 33)))
    x, weight = (value.t().contiguous().t() if transposed else value for value in (x, weight))
    b = torch.randn(20) if bias else None
    actual = onednn_linear(x, weight, b)
    expected = x.double() @ weight.double().t() + (0 if b is None else b.double())
    torch.testing.assert_close(actual.double(), expected, atol=1e-5, rtol=1e-5)


def test_only_large_products_take_onednn_unless_onednn_is_disabled(monkeypatch):
    monkeypatch.setattr(runtime, "_onednn_is_faster", lambda: True)
    weight = torch.ones(64, 64)
    assert [prefers_onednn(num_rows, weight) for num_rows in (511, 512)] == [False, True]
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert not prefers_onednn(512, weight)


@pytest.mark.parametrize("vendor", ["vendor_id : GenuineIntel", ""])
def test_other_processors_keep_mkl(vendor, monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda path: vendor)
    assert not runtime._onednn_is_faster.__wrapped__()
