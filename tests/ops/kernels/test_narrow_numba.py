"""Kernels of narrow heads are right for every width and size, with dropout and threads."""

import pytest
import torch
from torch.testing import assert_close

from tg_mlc.ops import Blocks, explain_choice, graph_attention

pytest.importorskip("numba", reason="Numba is not installed")
from tg_mlc.ops.kernels import narrow_numba

SIZES = [(3, 5), (8, 16), (17, 33), (0, 4), (5, 0), (1, 1)]


def blocks():
    ptrs = (torch.tensor([0, *(size[index] for size in SIZES)]).cumsum(0) for index in (0, 1))
    return Blocks(*ptrs)


def draw(pattern, channels, value_channels):
    torch.manual_seed(0)
    rows = (pattern.num_queries, pattern.num_keys, pattern.num_keys)
    widths = (channels, channels, value_channels)
    return [torch.randn(n, 3, c, requires_grad=True) for n, c in zip(rows, widths, strict=True)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("channels", "value_channels"), [(1, 3), (16, 16), (20, 7), (32, 32)])
def test_the_kernels_equal_the_oracle(channels, value_channels, threads, monkeypatch):
    monkeypatch.setattr("tg_mlc.ops.kernels.threads.num_workers", lambda: threads)
    calls = []
    backward = narrow_numba.backward
    monkeypatch.setattr(narrow_numba, "backward", lambda *args: calls.append(1) or backward(*args))
    pattern = blocks()
    tensors = draw(pattern, channels, value_channels)
    grad = torch.randn(pattern.num_queries, 3, value_channels)
    out = graph_attention(*tensors, pattern, backend="blocks")
    exact = [x.detach().double().requires_grad_() for x in tensors]
    expected = graph_attention(*exact, pattern, backend="reference")
    assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)
    actual = [x.double() for x in torch.autograd.grad(out, tensors, grad)]
    expected_grads = [*torch.autograd.grad(expected, exact, grad.double())]
    assert_close(actual, expected_grads, rtol=1e-4, atol=1e-5)
    assert calls == [1]
    assert not out[pattern.query_ptr[4] : pattern.query_ptr[5]].any()  # no neighbours


@pytest.mark.parametrize("scale", [0.25, 3.0])
def test_gradients_use_the_same_dropped_weights_as_the_output(scale):
    pattern = Blocks(torch.tensor([0, 9, 20]), torch.tensor([0, 21, 37]))
    query, key, _ = draw(pattern, 16, 16)
    # The value of each key is a unit vector, so that the output is the weights.
    value = torch.eye(21).unsqueeze(1).repeat(2, 3, 1)[:37].contiguous()
    value[21:] = torch.eye(21)[:16].unsqueeze(1)
    torch.manual_seed(5)
    options = {"scale": scale, "backend": "blocks"}
    weights = graph_attention(query, key, value, pattern, dropout_p=0.4, **options)
    doubles = [tensor.double() for tensor in (query, key, value)]
    all_weights = graph_attention(*doubles, pattern, scale=scale, backend="reference")
    exact = torch.where(weights != 0, all_weights / 0.6, 0.0)
    assert_close(weights.double(), exact, rtol=1e-3, atol=1e-6)
    grad = torch.randn_like(weights)
    leaves = (query, key)
    actual, expected = (torch.autograd.grad(x, leaves, grad.to(x.dtype)) for x in (weights, exact))
    assert_close(actual, expected, rtol=1e-3, atol=1e-4)


def test_dropout_has_the_given_rate_and_follows_the_seed():
    pattern = Blocks(torch.tensor([0, 400]), torch.tensor([0, 32]))
    value = torch.eye(32).unsqueeze(1)
    zero = torch.zeros(400, 1, 8), torch.zeros(32, 1, 8)

    def weights():
        return graph_attention(*zero, value, pattern, dropout_p=0.25, backend="blocks")

    torch.manual_seed(0)
    first = weights()
    assert float((first == 0).double().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(first.sum(dim=-1).mean()) == pytest.approx(1.0, abs=0.02)
    assert not torch.equal(first, weights())
    torch.manual_seed(0)
    assert torch.equal(first, weights())
    assert not graph_attention(*zero, value, pattern, dropout_p=1.0, backend="blocks").any()


def test_narrow_heads_are_taken_in_single_precision():
    pattern = Blocks(torch.arange(33) * 30, torch.arange(33) * 40)
    few = Blocks(torch.arange(3) * 3, torch.arange(3) * 4)

    def choice(pattern, channels, dtype=torch.float32, **options):
        rows = (pattern.num_queries, pattern.num_keys, pattern.num_keys)
        tensors = [torch.empty(n, 4, channels, dtype=dtype) for n in rows]
        return explain_choice(*tensors, pattern, **options)

    assert "narrow heads" in choice(pattern, 16)
    assert "narrow heads" in choice(few, 16, dropout_p=0.1)
    assert choice(few, 16).startswith("dense")
    assert choice(pattern, 64).startswith("dense")
    assert choice(pattern, 16, torch.float64).startswith("dense")
