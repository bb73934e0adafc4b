from __future__ import annotations

import pytest
import torch

from tg_mlc.ops.torch_internals import has_onednn, onednn_linear


@pytest.mark.skipif(not has_onednn(), reason="PyTorch has been built without oneDNN")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_linear_map(bias: bool, transposed: bool) -> None:
    torch.manual_seed(0)
    x, weight = (torch.randn(size) for size in ((70, 33), (20, 33)))
    x, weight = (value.t().contiguous().t() if transposed else value for value in (x, weight))
    b = torch.randn(20) if bias else None
    found = onednn_linear(x, weight, b)
    expected = x.double() @ weight.double().t() + (0 if b is None else b.double())
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
