from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import Linear

from tg_mlc.nn import AttentionConv, _fast
from tg_mlc.nn._plan import no_kernels, takes_onednn
from tg_mlc.ops import Blocks, runtime
from tg_mlc.ops.runtime import has_onednn

pytestmark = pytest.mark.skipif(not has_onednn(), reason="PyTorch has been built without oneDNN")


@pytest.fixture(autouse=True)
def _always_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes oneDNN on every processor, however small the matrices are."""
    monkeypatch.setattr(runtime, "_onednn_is_faster", lambda: True)
    monkeypatch.setattr(runtime, "LEAST", 0)


def projected(x: Tensor, layer: Linear) -> Tensor:
    return _fast.projected(x, layer, no_kernels(x) is None and takes_onednn(x.size(0), layer))


def test_whoever_looks_into_a_layer_sees_it_called() -> None:
    layer, seen = Linear(4, 4), []
    layer.register_forward_hook(lambda *_: seen.append(True))
    with torch.no_grad():
        projected(torch.ones(3, 4), layer)
        assert seen


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "repeated"])
def test_outputs_and_gradients_equal_those_of_the_layer(layout: str, bias: bool) -> None:
    torch.manual_seed(0)
    layer, x = Linear(33, 20, bias=bias), _laid_out(torch.randn(70, 33), layout).requires_grad_()
    upstream = _laid_out(torch.randn(70, 20), layout)
    assert "_Projection" in str(projected(x, layer).grad_fn)
    found, expected = (_gradients(out, upstream, (x, *layer.parameters())) for out in (projected(x, layer), layer(x)))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def _laid_out(x: Tensor, layout: str) -> Tensor:
    if layout == "transposed":
        return x.t().contiguous().t()
    return x[:1].expand(x.shape) if layout == "repeated" else x


def _gradients(out: Tensor, upstream: Tensor, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return out, *torch.autograd.grad(out, inputs, upstream)


def test_only_needed_gradients_are_computed() -> None:
    layer = Linear(4, 4).requires_grad_(False)
    x = torch.randn(3, 4, requires_grad=True)
    projected(x, layer).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None


def test_gradients_can_be_differentiated() -> None:
    torch.manual_seed(0)
    layer, x = Linear(6, 5), torch.randn(7, 6, requires_grad=True)
    found, expected = (_penalty_gradients(out, x, layer) for out in (projected(x, layer), layer(x)))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def _penalty_gradients(out: Tensor, x: Tensor, layer: Linear) -> tuple[Tensor, ...]:
    (of_x,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
    return torch.autograd.grad(of_x.square().sum(), (x, layer.weight))


def test_several_gradients_at_once() -> None:
    torch.manual_seed(0)
    layer, x, directions = Linear(6, 5), torch.randn(7, 6, requires_grad=True), torch.randn(3, 7, 5)
    found, expected = (
        torch.autograd.grad(out, (x, layer.weight), directions, is_grads_batched=True)
        for out in (projected(x, layer), layer(x))
    )
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_double_precision_and_autocast_are_left_to_pytorch() -> None:
    layer, x = Linear(4, 3), torch.randn(5, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert projected(x, layer).dtype == torch.bfloat16
    layer.double()
    assert torch.autograd.gradcheck(lambda states: projected(states, layer), x.detach().double().requires_grad_())


def test_sizes_may_be_taken_from_the_first_input() -> None:
    conv = AttentionConv((-1, 16), heads=2).eval()
    with torch.no_grad():
        out = conv((torch.randn(5, 3), torch.randn(4, 16)), torch.tensor([[0, 1], [2, 3]]))
    assert out.shape == (4, 16)


@pytest.mark.parametrize("training", [False, True])
def test_it_compiles(training: bool) -> None:
    conv, x = AttentionConv(16, heads=2).eval(), torch.randn(50, 16)
    edges = Blocks(torch.tensor([0, 20, 50]), torch.tensor([0, 20, 50]), max_queries=30, max_keys=30)
    with torch.set_grad_enabled(training):
        compiled = torch.compile(conv, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x, edges), conv(x, edges), atol=1e-5, rtol=1e-5)
