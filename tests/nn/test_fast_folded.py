"""Folding the projections changes how much is computed, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.parametrizations import spectral_norm

import tg_mlc
from tg_mlc.nn import FeatureToLabelConv, _fast, _plan
from tg_mlc.nn import attention as attention_module
from tg_mlc.ops import Blocks

NUM_LABELS = 9


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sees whether projections are folded."""
    calls: list[int] = []

    def spy(states: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        calls.append(states.size(0))
        return _fast.folded_attention(states, *args, **kwargs)

    monkeypatch.setattr(attention_module, "folded_attention", spy)
    return calls


def conv_of(**options: Any) -> FeatureToLabelConv:
    torch.manual_seed(0)
    conv = FeatureToLabelConv((5, 16), **{"heads": 4, **options}).double()
    for parameter in conv.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return conv


def inputs(sizes: list[int], num_copies: int = 1) -> tuple[Tensor, Tensor, Blocks]:
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    rows = len(sizes) * NUM_LABELS // num_copies
    x, u = torch.randn(sum(sizes), 5).double(), torch.randn(rows, 16).double()
    return x.requires_grad_(), u.requires_grad_(), Blocks(torch.arange(len(sizes) + 1) * NUM_LABELS, ptr)


def gradients(conv: FeatureToLabelConv, x: Tensor, u: Tensor, pattern: Blocks, num_copies: int) -> list[Tensor]:
    out = conv((x, u), pattern, num_copies=num_copies)
    return [out, *torch.autograd.grad(out.square().sum(), [x, u, *conv.parameters()])]


@pytest.mark.parametrize("sizes", [[2, 2, 2, 2], [1, 3, 0, 2], [0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("num_copies", [1, 4])
@pytest.mark.parametrize(
    "options",
    [{}, {"bias": True, "norm": "pre"}, {"heads": 3, "head_channels": 6, "value_channels": 4, "scale": 0.7}],
    ids=["plain", "bias", "sizes of heads"],
)
def test_outputs_and_gradients_are_those_of_the_equation(
    sizes: list[int], num_copies: int, options: dict[str, Any], folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_plan, "folding_ratio", lambda *args, **kwargs: 2.0)
    conv, given = conv_of(**options), inputs(sizes, num_copies)
    found = gradients(conv, *given, num_copies)
    assert folded
    with tg_mlc.set_backend("reference"):
        torch.testing.assert_close(found, gradients(conv, *given, num_copies))
    assert len(folded) == 1


def test_few_keys_are_folded_and_many_are_not(folded: list[int]) -> None:
    conv = conv_of()
    for size, expected in ((2, 1), (30, 1)):
        x, u, pattern = inputs([size] * 4)
        conv((x, u), pattern)
        assert len(folded) == expected


def test_dropped_weights_scale_the_others(folded: list[int]) -> None:
    torch.manual_seed(0)
    conv = conv_of(attention_dropout=0.5, dropout=0.0)
    x, u, pattern = inputs([2] * 4)
    with torch.no_grad():
        states = torch.stack([conv._message(u, x, pattern, None, 1, False)[0] for _ in range(2000)])
        assert states.std(dim=0).min() > 0
        conv.eval()
        expected = conv._message(u, x, pattern, None, 1, False)[0]
    assert len(folded) == 2001
    torch.testing.assert_close(states.mean(dim=0), expected, atol=0.1, rtol=0.1)


def test_second_derivatives(folded: list[int]) -> None:
    conv, (x, u, pattern) = conv_of(), inputs([2, 1])
    assert torch.autograd.gradgradcheck(lambda x, u: conv._message(u, x, pattern, None, 1, False)[0], (x, u))
    assert folded


@pytest.mark.parametrize("way", ["argument", "set_backend", "weights", "hook", "parametrised"])
def test_nothing_is_folded_where_somebody_looks(way: str, folded: list[int]) -> None:
    conv = conv_of(backend="blocks" if way == "argument" else "auto")
    x, u, pattern = inputs([2] * 4)
    seen: list[Tensor] = []
    if way == "hook":
        conv.lin_query.register_forward_hook(lambda module, given, out: seen.append(out))
    if way == "parametrised":
        spectral_norm(conv.lin_out)
    if way == "set_backend":
        with tg_mlc.set_backend("dense"):
            conv((x, u), pattern)
    else:
        conv((x, u), pattern, return_attention_weights=way == "weights")
    assert not folded
    assert len(seen) == (way == "hook")


def test_samples_of_different_numbers_of_queries_are_not_folded(folded: list[int]) -> None:
    conv = conv_of()
    x, u = torch.randn(4, 5).double(), torch.randn(20, 16).double()
    conv((x, u), Blocks(torch.tensor([0, 12, 20]), torch.tensor([0, 2, 4])))
    assert not folded
