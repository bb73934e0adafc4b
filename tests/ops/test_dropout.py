"""Tests of the rate, the independence, the gradients and the seeds of dropout."""

import pytest
import torch

from tg_mlc.ops import dropout as module
from tg_mlc.ops.dropout import dropout


@pytest.fixture(autouse=True, params=["numba", "torch"])
def _way(request, monkeypatch):
    """Draws with Numba, or with PyTorch as if Numba were not installed."""
    if request.param == "numba":
        pytest.importorskip("numba", reason="Numba is not installed")
    else:
        monkeypatch.setattr(module, "numba_problem", lambda: "is missing")


@pytest.mark.parametrize("p", [0.0001, 0.1, 0.5, 0.9])
def test_dropout_has_the_given_rate_and_keeps_the_mean(p):
    x = torch.ones(1000, 1003)
    out = dropout(x, p)
    rate = (out == 0).double().mean()
    assert rate == pytest.approx(p, abs=5 * (p * (1 - p) / x.numel()) ** 0.5 + 2**-17)
    assert out.double().mean() == pytest.approx(1.0, abs=5 * (p / (1 - p) / x.numel()) ** 0.5)
    assert out.unique().numel() == 2


def test_neighbouring_values_are_dropped_independently():
    keep = (dropout(torch.ones(400_000), 0.5) > 0).double() - 0.5
    for distance in (1, 2, 3, 4, 8, 64, 4096):
        assert abs(float((keep[distance:] * keep[:-distance]).mean()) * 4) < 5 / 400_000**0.5


def test_gradients_pass_through_values_that_are_not_dropped():
    x = torch.ones(100, requires_grad=True)
    out = dropout(x, 0.4)
    out.sum().backward()
    torch.testing.assert_close(x.grad, out.detach())


def test_calls_differ_unless_the_seed_is_the_same():
    torch.manual_seed(3)
    first, second = (dropout(torch.ones(100_000), 0.5) for _ in range(2))
    agree = ((first > 0) == (second > 0)).double().mean()
    assert float(agree) == pytest.approx(0.5, abs=5 * 0.5 / 100_000**0.5)
    torch.manual_seed(3)
    assert torch.equal(dropout(torch.ones(100_000), 0.5), first)


def test_rates_of_zero_and_one_are_exact_and_invalid_rates_refused():
    x = torch.randn(10)
    assert dropout(x, 0.0) is dropout(x, 0.5, training=False) is x
    assert torch.equal(dropout(x, 1.0), torch.zeros(10))
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"'p' to be a number in \[0, 1\]"):
            dropout(x, p)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4)])
def test_dropout_takes_any_shape_and_dtype(shape, dtype):
    out = dropout(torch.ones(shape, dtype=dtype), 0.3)
    assert (out.shape, out.dtype) == (shape, dtype)


def test_dropout_compiles():
    out = torch.compile(dropout, backend="eager", fullgraph=True)(torch.ones(1000), 0.5)
    assert 300 < int((out == 0).sum()) < 700


def test_dropout_has_all_derivatives():
    def same(x):
        torch.manual_seed(0)
        return dropout(x, 0.5)

    x = torch.randn(6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(same, x, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(same, x)


def test_dropout_can_be_mapped_over_a_batch():
    x = torch.ones(5, 400)
    out = torch.func.vmap(lambda row: dropout(row, 0.5), randomness="different")(x)
    assert 0.3 < float((out == 0).double().mean()) < 0.7
