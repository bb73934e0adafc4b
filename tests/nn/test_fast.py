"""A block's fast paths equal PyTorch's operators, and are not taken where those are needed."""

from functools import partial
from importlib.util import find_spec

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.testing import assert_close
from torch_geometric.nn import Linear

import tg_mlc
from tests.requirements import FULL_GRAPH
from tg_mlc.nn import AttentionConv, FeatureToLabelConv, _fast, _plan
from tg_mlc.nn import attention as attention_module
from tg_mlc.nn._plan import no_kernels, not_fused, takes_onednn
from tg_mlc.ops import Blocks, runtime
from tg_mlc.ops.runtime import has_onednn

needs_onednn = pytest.mark.skipif(not has_onednn(), reason="PyTorch has been built without oneDNN")
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="Numba is not installed")
NUM_LABELS = 9


@pytest.fixture
def folded(monkeypatch):
    """Records each call that folds projections."""
    calls = []

    def spy(states, *args, **kwargs):
        calls.append(states.size(0))
        return _fast.folded_attention(states, *args, **kwargs)

    monkeypatch.setattr(attention_module, "folded_attention", spy)
    return calls


def conv_of(**options):
    torch.manual_seed(0)
    conv = FeatureToLabelConv((5, 16), **{"heads": 4, **options}).double()
    for parameter in conv.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return conv


def inputs(sizes, num_copies=1):
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    rows = len(sizes) * NUM_LABELS // num_copies
    x, u = torch.randn(sum(sizes), 5).double(), torch.randn(rows, 16).double()
    blocks = Blocks(torch.arange(len(sizes) + 1) * NUM_LABELS, ptr)
    return x.requires_grad_(), u.requires_grad_(), blocks


def folded_gradients(conv, x, u, pattern, num_copies):
    out = conv((x, u), pattern, num_copies=num_copies)
    return [out, *torch.autograd.grad(out.square().sum(), [x, u, *conv.parameters()])]


@pytest.mark.parametrize("sizes", [[2, 2, 2, 2], [1, 3, 0, 2], [0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("num_copies", [1, 4])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": True, "norm": "pre"},
        {"heads": 3, "head_channels": 6, "value_channels": 4, "scale": 0.7},
    ],
    ids=["plain", "bias", "sizes of heads"],
)
def test_folding_equals_the_reference_backend(sizes, num_copies, options, folded, monkeypatch):
    monkeypatch.setattr(_plan, "folding_ratio", lambda *args, **kwargs: 2.0)
    conv, arguments = conv_of(**options), inputs(sizes, num_copies)
    actual = folded_gradients(conv, *arguments, num_copies)
    assert folded
    with tg_mlc.set_backend("reference"):
        assert_close(actual, folded_gradients(conv, *arguments, num_copies))
    assert len(folded) == 1


def test_few_keys_are_folded_and_many_are_not(folded):
    conv = conv_of()
    for size, num_folded in ((2, 1), (30, 1)):
        x, u, pattern = inputs([size] * 4)
        conv((x, u), pattern)
        assert len(folded) == num_folded


def test_dropout_keeps_the_mean_of_folded_states(folded):
    conv = conv_of(attention_dropout=0.5, dropout=0.0)
    x, u, pattern = inputs([2] * 4)
    with torch.no_grad():
        states = torch.stack([conv._message(u, x, pattern, None, 1, False)[0] for _ in range(600)])
        assert states.std(dim=0).min() > 0
        conv.eval()
        expected = conv._message(u, x, pattern, None, 1, False)[0]
    assert len(folded) == 601
    error = states.std(dim=0).max() / 600**0.5
    assert_close(states.mean(dim=0), expected, atol=float(5 * error), rtol=0)


def test_folding_has_second_derivatives(folded):
    conv, (x, u, pattern) = conv_of(), inputs([2, 1])

    def message(x, u):
        return conv._message(u, x, pattern, None, 1, False)[0]

    assert torch.autograd.gradgradcheck(message, (x, u))
    assert folded


@pytest.mark.parametrize(
    "case", ["argument", "set_backend", "weights", "hook", "parametrised", "ragged"]
)
def test_nothing_is_folded_where_steps_are_observed_or_blocks_are_ragged(case, folded):
    conv = conv_of(backend="blocks" if case == "argument" else "auto")
    x, u, pattern = inputs([2] * 4)
    outputs = []
    if case == "hook":
        conv.lin_query.register_forward_hook(lambda module, args, out: outputs.append(out))
    if case == "parametrised":
        spectral_norm(conv.lin_out)
    if case == "ragged":
        x, u, pattern = x[:4], u[:20], Blocks(torch.tensor([0, 12, 20]), torch.tensor([0, 2, 4]))
    if case == "set_backend":
        with tg_mlc.set_backend("dense"):
            conv((x, u), pattern)
    else:
        conv((x, u), pattern, return_attention_weights=case == "weights")
    assert not folded
    assert len(outputs) == (case == "hook")


@pytest.fixture
def _always_onednn(monkeypatch):
    """Takes oneDNN on every processor, however small the matrices are."""
    monkeypatch.setattr(runtime, "_onednn_is_faster", lambda: True)
    monkeypatch.setattr(runtime, "LEAST", 0)


def with_onednn(test):
    """Runs a test with oneDNN, where PyTorch has been built with it."""
    return needs_onednn(pytest.mark.usefixtures("_always_onednn")(test))


def projected(x, layer):
    return _fast.projected(x, layer, no_kernels(x) is None and takes_onednn(x.size(0), layer))


@with_onednn
def test_hooks_of_a_layer_are_called():
    layer, calls = Linear(4, 4), []
    layer.register_forward_hook(lambda *_: calls.append(True))
    with torch.no_grad():
        projected(torch.ones(3, 4), layer)
        assert calls


@with_onednn
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "repeated"])
def test_outputs_and_gradients_equal_those_of_the_layer(layout, bias):
    layer, x = Linear(33, 20, bias=bias), _laid_out(torch.randn(70, 33), layout).requires_grad_()
    upstream = _laid_out(torch.randn(70, 20), layout)
    assert "_Projection" in str(projected(x, layer).grad_fn)
    inputs = (x, *layer.parameters())
    outs = (projected(x, layer), layer(x))
    results = ([out, *torch.autograd.grad(out, inputs, upstream)] for out in outs)
    assert_close(*results, atol=1e-5, rtol=1e-5)


def _laid_out(x, layout):
    if layout == "transposed":
        return x.t().contiguous().t()
    return x[:1].expand(x.shape) if layout == "repeated" else x


@with_onednn
def test_only_needed_gradients_are_computed():
    layer = Linear(4, 4).requires_grad_(False)
    x = torch.randn(3, 4, requires_grad=True)
    projected(x, layer).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None


@with_onednn
def test_gradients_can_be_differentiated_and_batched():
    layer, x, directions = Linear(6, 5), torch.randn(7, 6, requires_grad=True), torch.randn(3, 7, 5)
    actual = []
    for out in (projected(x, layer), layer(x)):
        (gradient,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        second = torch.autograd.grad(gradient.square().sum(), (x, layer.weight), retain_graph=True)
        batched = torch.autograd.grad(out, (x, layer.weight), directions, is_grads_batched=True)
        actual.append([*second, *batched])
    assert_close(*actual, atol=1e-5, rtol=1e-5)


@with_onednn
def test_double_precision_and_autocast_are_left_to_pytorch():
    layer, x = Linear(4, 3), torch.randn(5, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert projected(x, layer).dtype == torch.bfloat16
    layer.double()
    x = x.detach().double().requires_grad_()
    assert torch.autograd.gradcheck(lambda states: projected(states, layer), x)


@with_onednn
def test_sizes_of_layers_may_come_from_the_first_input():
    conv = AttentionConv((-1, 16), heads=2).eval()
    with torch.no_grad():
        out = conv((torch.randn(5, 3), torch.randn(4, 16)), torch.tensor([[0, 1], [2, 3]]))
    assert out.shape == (4, 16)


@with_onednn
@pytest.mark.parametrize("training", [False, True])
def test_a_block_compiles(training):
    conv, x = AttentionConv(16, heads=2).eval(), torch.randn(50, 16)
    ptr = torch.tensor([0, 20, 50])
    edges = Blocks(ptr, ptr.clone(), max_queries=30, max_keys=30)
    with torch.set_grad_enabled(training):
        compiled = torch.compile(conv, backend="eager", fullgraph=FULL_GRAPH)
        assert_close(compiled(x, edges), conv(x, edges), atol=1e-5, rtol=1e-5)


def make_layers(kind, channels):
    torch.manual_seed(0)
    if kind == "linear":
        return Linear(channels, channels, bias=False)
    return nn.Sequential(Linear(channels, 2 * channels), nn.ReLU(), Linear(2 * channels, channels))


def make_norm(channels):
    norm = nn.LayerNorm(channels)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


def normalised_branch(residual, x, layers, norm, p, training):
    fuses = no_kernels(residual) is None and not_fused(x.size(0), layers, norm) is None
    return _fast.normalised_branch(residual, x, layers, norm, p if training else 0.0, fuses)


def gradients(out, tensors):
    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return torch.autograd.grad((out * weight).sum(), tensors)


@needs_numba
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("channels", [7, 64])
@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_branches_equal_the_steps_one_by_one(kind, channels, copies, threads, monkeypatch):
    monkeypatch.setattr("tg_mlc.ops.kernels.threads.num_workers", lambda: threads)
    monkeypatch.setattr("tg_mlc.ops.kernels.residual_numba.MIN_ROWS", 100)
    monkeypatch.setattr("tg_mlc.ops.kernels.residual_numba.TILE", 0)
    layers, norm = make_layers(kind, channels), make_norm(channels)
    residual, x = torch.randn(411, channels), torch.randn(411 * copies, channels)
    states = [residual.requires_grad_(), x.requires_grad_()]
    tensors = [*states, *layers.parameters(), *norm.parameters()]
    out = normalised_branch(residual, x, layers, norm, 0.0, training=True)
    actual = gradients(out, tensors)
    exact = _fast.normalised_branch(residual, x, layers, norm, 0.0, False)
    assert_close(out, exact, rtol=1e-4, atol=1e-5)
    assert_close(actual, gradients(exact, tensors), rtol=1e-3, atol=1e-3)


@needs_numba
@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_fused_gradients_under_dropout_equal_differentiable_gradients(kind):
    layers, norm = make_layers(kind, 16), make_norm(16)
    x = torch.randn(60, 16, requires_grad=True)
    tensors = [x, *layers.parameters(), *norm.parameters()]
    out = normalised_branch(x, x, layers, norm, 0.4, training=True)
    assert type(out.grad_fn).__name__ == "_BranchBackward"
    fused = torch.autograd.grad(out.square().sum(), tensors, retain_graph=True)
    differentiable = torch.autograd.grad(out.square().sum(), tensors, create_graph=True)
    assert_close(fused, differentiable, rtol=1e-3, atol=1e-4)
    assert torch.autograd.grad(differentiable[0].square().sum(), x)[0].abs().sum() > 0


@needs_numba
def test_dropout_keeps_the_mean_and_follows_the_seed():
    layers, norm = make_layers("linear", 64), nn.LayerNorm(64)
    nn.init.eye_(layers.weight)  # type: ignore[arg-type]
    zero, x = torch.zeros(500, 64), torch.randn(500, 64)
    torch.manual_seed(1)
    first = normalised_branch(zero, x, layers, norm, 0.3, training=True)
    dropped = first == first.mode(dim=1, keepdim=True).values  # Dropped states of a row are equal.
    assert float(dropped.double().mean()) == pytest.approx(0.3, abs=0.02)
    torch.manual_seed(1)
    assert torch.equal(first, normalised_branch(zero, x, layers, norm, 0.3, training=True))
    assert not torch.equal(first, normalised_branch(zero, x, layers, norm, 0.3, training=True))
    assert_close(normalised_branch(zero, x, layers, norm, 0.3, training=False), norm(x))


@needs_numba
def test_branches_are_not_fused_for_hooks_other_dtypes_and_forward_mode():
    layers, norm, x = make_layers("mlp", 8), make_norm(8), torch.randn(5, 8, requires_grad=True)

    def is_fused(x):
        out = normalised_branch(x, x, layers, norm, 0.0, training=True)
        return type(out.grad_fn).__name__ == "_BranchBackward"

    assert is_fused(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert not is_fused(x)
    outputs = []
    assert isinstance(layers, nn.Sequential)
    handle = layers[0].register_forward_hook(lambda *args: outputs.append(args[2]))
    assert not is_fused(x)
    assert len(outputs) == 1
    handle.remove()
    branch = partial(normalised_branch, x, layers=layers, norm=norm, p=0.0, training=True)
    _, tangent = torch.func.jvp(branch, (x,), (x,))
    assert tangent.abs().sum() > 0
    layers.double(), norm.double()
    assert not is_fused(x.detach().double().requires_grad_())


@needs_numba
@pytest.mark.parametrize("shape", [(0, 8), (2, 3, 8)])
def test_branches_take_states_of_any_shape(shape):
    layers, norm, x = make_layers("mlp", 8), make_norm(8), torch.randn(shape)
    assert_close(normalised_branch(x, x, layers, norm, 0.0, training=True), norm(x + layers(x)))


@needs_numba
def test_gradients_of_a_branch_can_be_batched():
    x, residual = torch.randn(6, 8, requires_grad=True), torch.randn(6, 8)
    layers, norm = Linear(8, 8), nn.LayerNorm(8)
    out = normalised_branch(residual, x, layers, norm, 0.0, training=True)
    directions = torch.randn(3, 6, 8)
    (actual,) = torch.autograd.grad(out, x, directions, is_grads_batched=True, retain_graph=True)
    for direction, gradient in zip(directions, actual, strict=True):
        assert_close(torch.autograd.grad(out, x, direction, retain_graph=True)[0], gradient)


@needs_numba
def test_hooks_on_all_modules_see_the_layers():
    module_types = []
    register = torch.nn.modules.module.register_module_forward_hook
    handle = register(lambda module, *_: module_types.append(type(module)))
    try:
        x, residual = torch.randn(2, 6, 8)
        normalised_branch(residual, x, Linear(8, 8), nn.LayerNorm(8), 0.0, False)
    finally:
        handle.remove()
    assert {Linear, nn.LayerNorm} <= set(module_types)


@with_onednn
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_branches_equal_the_steps_with_products_of_onednn(kind, copies, monkeypatch):
    test_branches_equal_the_steps_one_by_one(kind, 64, copies, 2, monkeypatch)
