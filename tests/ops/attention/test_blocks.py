"""Blocks that are divided among threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.ops.patterns import ptr
from tg_mlc.ops import Blocks, explain_choice, graph_attention

PATTERN = Blocks(ptr([3, 0, 5, 2, 4]), ptr([4, 3, 0, 7, 1]))


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def tensors(pattern: Blocks, channels: int = 4) -> list[torch.Tensor]:
    sizes = (pattern.num_queries, pattern.num_keys, pattern.num_keys)
    return [torch.randn(size, 2, channels, dtype=torch.float64, requires_grad=True) for size in sizes]


def test_threads_agree_with_the_oracle_and_stay_as_many() -> None:
    leaves, results = tensors(PATTERN), []
    for backend in ("blocks", "reference"):
        out = graph_attention(*leaves, PATTERN, backend=backend)
        results.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    torch.testing.assert_close(results[0], results[1], atol=1e-10, rtol=1e-10)
    assert torch.get_num_threads() == 3


def test_dropout_does_not_depend_on_the_threads() -> None:
    leaves, results = tensors(PATTERN), []
    for num_threads in (1, 3):
        torch.set_num_threads(num_threads)
        torch.manual_seed(0)
        out = graph_attention(*leaves, PATTERN, dropout_p=0.5, backend="blocks")
        results.append([out, *torch.autograd.grad(out.sum(), leaves)])
    torch.testing.assert_close(results[0], results[1])


def test_inference_mode() -> None:
    leaves = tensors(PATTERN)
    expected = graph_attention(*leaves, PATTERN, backend="reference")
    with torch.inference_mode():
        torch.testing.assert_close(graph_attention(*leaves, PATTERN, backend="blocks"), expected)


def test_large_ragged_blocks_are_preferred() -> None:
    ragged = Blocks(ptr([100, 100]), ptr([400, 100]))
    regular = Blocks(ptr([100, 100]), ptr([250, 250]))
    small = Blocks(ptr([3, 3]), ptr([9, 2]))
    assert explain_choice(*tensors(ragged, 128), ragged).startswith("blocks: Blocks")
    assert explain_choice(*tensors(regular, 128), regular).startswith("dense: Blocks")
    assert explain_choice(*tensors(small, 32), small).startswith("dense: Blocks")
