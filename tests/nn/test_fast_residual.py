"""Fused residual branches equal PyTorch's operators, and step aside where these are wanted."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import Linear

from tg_mlc.nn import _fast
from tg_mlc.nn._plan import no_kernels, not_fused
from tg_mlc.ops.runtime import has_onednn

pytest.importorskip("numba", reason="Numba is not installed")


def make_layers(kind: str, channels: int) -> nn.Module:
    torch.manual_seed(0)
    if kind == "linear":
        return Linear(channels, channels, bias=False)
    return nn.Sequential(Linear(channels, 2 * channels), nn.ReLU(), Linear(2 * channels, channels))


def make_norm(channels: int) -> nn.LayerNorm:
    norm = nn.LayerNorm(channels)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


def normalised_branch(
    residual: Tensor, x: Tensor, layers: nn.Module, norm: nn.LayerNorm, p: float, training: bool
) -> Tensor:
    fuses = no_kernels(residual) is None and not_fused(x.size(0), layers, norm) is None
    return _fast.normalised_branch(residual, x, layers, norm, p if training else 0.0, fuses)


def gradients(out: Tensor, tensors: list[Tensor]) -> tuple[Tensor, ...]:
    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return torch.autograd.grad((out * weight).sum(), tensors)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("channels", [7, 64])
@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_equals_the_steps_one_by_one(
    kind: str, channels: int, copies: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tg_mlc.ops.kernels.threads.num_workers", lambda: threads)
    monkeypatch.setattr("tg_mlc.ops.kernels.residual_numba.MIN_ROWS", 100)
    monkeypatch.setattr("tg_mlc.ops.kernels.residual_numba.TILE", 0)
    layers, norm = make_layers(kind, channels), make_norm(channels)
    residual, x = torch.randn(411, channels), torch.randn(411 * copies, channels)
    tensors = [residual.requires_grad_(), x.requires_grad_(), *layers.parameters(), *norm.parameters()]
    out = normalised_branch(residual, x, layers, norm, 0.0, training=True)
    found = gradients(out, tensors)
    exact = _fast.normalised_branch(residual, x, layers, norm, 0.0, False)
    torch.testing.assert_close(out, exact, rtol=1e-4, atol=1e-5)
    for one, other in zip(found, gradients(exact, tensors), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_an_input_that_is_its_own_residual() -> None:
    layers, norm, x = make_layers("mlp", 16), make_norm(16), torch.randn(50, 16, requires_grad=True)
    out = normalised_branch(x, x, layers, norm, 0.0, training=True)
    exact = _fast.normalised_branch(x, x, layers, norm, 0.0, False)
    torch.testing.assert_close(gradients(out, [x]), gradients(exact, [x]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_gradients_after_dropout_are_those_that_can_be_differentiated_again(kind: str) -> None:
    layers, norm = make_layers(kind, 16), make_norm(16)
    x = torch.randn(60, 16, requires_grad=True)
    tensors = [x, *layers.parameters(), *norm.parameters()]
    out = normalised_branch(x, x, layers, norm, 0.4, training=True)
    assert type(out.grad_fn).__name__ == "_BranchBackward"
    once = torch.autograd.grad(out.square().sum(), tensors, retain_graph=True)
    again = torch.autograd.grad(out.square().sum(), tensors, create_graph=True)
    for one, other in zip(once, again, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    assert torch.autograd.grad(again[0].square().sum(), x)[0].abs().sum() > 0


def test_dropout_keeps_the_mean_and_follows_the_seed() -> None:
    layers, norm = make_layers("linear", 64), nn.LayerNorm(64)
    nn.init.eye_(layers.weight)  # type: ignore[arg-type]
    zero, x = torch.zeros(500, 64), torch.randn(500, 64)
    torch.manual_seed(1)
    first = normalised_branch(zero, x, layers, norm, 0.3, training=True)
    dropped = first == first.mode(dim=1, keepdim=True).values  # what was zero before the norm
    assert float(dropped.double().mean()) == pytest.approx(0.3, abs=0.02)
    torch.manual_seed(1)
    assert torch.equal(first, normalised_branch(zero, x, layers, norm, 0.3, training=True))
    assert not torch.equal(first, normalised_branch(zero, x, layers, norm, 0.3, training=True))
    whole = normalised_branch(zero, x, layers, norm, 0.3, training=False)
    torch.testing.assert_close(whole, norm(x))


def test_steps_aside_for_listeners_other_types_and_other_derivatives() -> None:
    layers, norm, x = make_layers("mlp", 8), make_norm(8), torch.randn(5, 8, requires_grad=True)

    def is_fused(x: Tensor) -> bool:
        return type(normalised_branch(x, x, layers, norm, 0.0, training=True).grad_fn).__name__ == "_BranchBackward"

    assert is_fused(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert not is_fused(x)
    seen: list[Tensor] = []
    assert isinstance(layers, nn.Sequential)
    handle = layers[0].register_forward_hook(lambda *args: seen.append(args[2]))
    assert not is_fused(x)
    assert len(seen) == 1
    handle.remove()
    _, tangent = torch.func.jvp(lambda x: normalised_branch(x, x, layers, norm, 0.0, True), (x,), (x,))
    assert tangent.abs().sum() > 0
    layers.double(), norm.double()
    assert not is_fused(x.detach().double().requires_grad_())


@pytest.mark.parametrize("shape", [(0, 8), (2, 3, 8)])
def test_states_of_any_shape(shape: tuple[int, ...]) -> None:
    layers, norm, x = make_layers("mlp", 8), make_norm(8), torch.randn(shape)
    out = normalised_branch(x, x, layers, norm, 0.0, training=True)
    torch.testing.assert_close(out, norm(x + layers(x)))


def test_layers_of_a_wrong_width_are_left_to_pytorch() -> None:
    x, residual = torch.randn(6, 8), torch.randn(6, 8)
    for layers, norm in ((Linear(16, 8), 8), (Linear(8, 6), 8), (Linear(8, 8), 4)):
        with pytest.raises(RuntimeError):
            normalised_branch(residual, x, layers, nn.LayerNorm(norm), 0.0, training=False)


def test_several_gradients_at_once() -> None:
    x, residual = torch.randn(6, 8, requires_grad=True), torch.randn(6, 8)
    layers, norm = Linear(8, 8), nn.LayerNorm(8)
    out = normalised_branch(residual, x, layers, norm, 0.0, training=True)
    directions = torch.randn(3, 6, 8)
    (found,) = torch.autograd.grad(out, x, directions, is_grads_batched=True, retain_graph=True)
    for direction, gradient in zip(directions, found, strict=True):
        torch.testing.assert_close(torch.autograd.grad(out, x, direction, retain_graph=True)[0], gradient)


def test_hooks_on_all_modules_see_the_layers() -> None:
    seen: list[type] = []
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(type(module)))
    try:
        normalised_branch(torch.randn(6, 8), torch.randn(6, 8), Linear(8, 8), nn.LayerNorm(8), 0.0, False)
    finally:
        handle.remove()
    assert {Linear, nn.LayerNorm} <= set(seen)


@pytest.mark.skipif(not has_onednn(), reason="PyTorch has been built without oneDNN")
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_equals_the_steps_with_products_of_onednn(kind: str, copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tg_mlc.ops.runtime._onednn_is_faster", lambda: True)
    monkeypatch.setattr("tg_mlc.ops.runtime.LEAST", 0)
    test_equals_the_steps_one_by_one(kind, 64, copies, 2, monkeypatch)
