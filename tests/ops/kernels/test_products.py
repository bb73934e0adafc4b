from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import Linear

from tg_mlc.nn import AttentionConv
from tg_mlc.nn._residual import projected
from tg_mlc.ops import Blocks
from tg_mlc.ops.kernels import products


@pytest.fixture(params=[False, True], ids=["MKL", "oneDNN"])
def one_dnn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Takes one library, however large the matrices are."""
    if request.param and not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("PyTorch has been built without oneDNN")
    monkeypatch.setattr(products, "_is_faster", lambda: request.param)
    monkeypatch.setattr(products, "LEAST", 0)
    return bool(request.param)


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
    assert [products.prefers_onednn(torch.ones(n, 128), torch.ones(128, 128)) for n in (511, 512)] == [False, True]


def test_it_can_be_switched_off(one_dnn: bool) -> None:
    assert products.prefers_onednn(torch.ones(2, 3), torch.ones(4, 3)) == one_dnn
    with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None, fp32_precision=None):
        assert not products.prefers_onednn(torch.ones(2, 3), torch.ones(4, 3))


@pytest.mark.parametrize("vendor", ["GenuineIntel", ""])
def test_other_processors_keep_mkl(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_vendor", lambda: vendor)
    assert not products._is_faster.__wrapped__()


def test_layers_in_inference_equal_those_in_training(one_dnn: bool) -> None:
    torch.manual_seed(0)
    conv, x = AttentionConv(16, heads=2).eval(), torch.randn(50, 16)
    edges = torch.randint(50, (2, 300))
    expected = conv(x, edges)
    with torch.inference_mode():
        torch.testing.assert_close(conv(x, edges), expected, atol=1e-5, rtol=1e-5)


def test_whoever_looks_into_a_layer_sees_it_called(one_dnn: bool) -> None:
    layer, seen = Linear(4, 4), []
    layer.register_forward_hook(lambda *_: seen.append(True))
    with torch.no_grad():
        projected(torch.ones(3, 4), layer)
        assert seen
        assert projected(torch.ones(3, 4, dtype=torch.double), Linear(4, 4).double()).dtype == torch.double


def test_gradients_are_recorded(one_dnn: bool) -> None:
    layer = Linear(4, 4)
    projected(torch.ones(3, 4), layer).sum().backward()
    assert layer.weight.grad is not None


def test_sizes_may_be_taken_from_the_first_input(one_dnn: bool) -> None:
    conv = AttentionConv((-1, 16), heads=2).eval()
    with torch.no_grad():
        out = conv((torch.randn(5, 3), torch.randn(4, 16)), torch.tensor([[0, 1], [2, 3]]))
    assert out.shape == (4, 16)


def test_it_compiles_in_inference(one_dnn: bool) -> None:
    conv, x = AttentionConv(16, heads=2).eval(), torch.randn(50, 16)
    edges = Blocks(torch.tensor([0, 20, 50]), torch.tensor([0, 20, 50]), max_queries=30, max_keys=30)
    with torch.no_grad():
        compiled = torch.compile(conv, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x, edges), conv(x, edges), atol=1e-5, rtol=1e-5)
