"""torch-scatter's kernels, where it is installed and no derivatives are asked for."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric.utils import segment

from tests.ops.random_patterns import random_edges
from tg_mlc.ops import graph_attention
from tg_mlc.ops.attention import gather

pytestmark = pytest.mark.skipif(
    not torch_geometric.typing.WITH_TORCH_SCATTER, reason="needs torch-scatter"
)


@pytest.fixture
def segments(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sees what torch-scatter is asked for."""
    seen: list[str] = []

    def spy(x: Tensor, ptr: Tensor, reduce: str) -> Any:
        seen.append(reduce)
        return segment(x, ptr, reduce)

    monkeypatch.setattr(gather, "segment", spy)
    return seen


def test_inference_is_what_training_computes(segments: list[str]) -> None:
    torch.manual_seed(0)
    pattern = random_edges(9, 7, 30, seed=0)
    tensors = [
        torch.randn(size, 2, 4, dtype=torch.double, requires_grad=True) for size in (9, 7, 7)
    ]
    bias = torch.randn(30, 2, dtype=torch.double)
    bias[pattern.edge_index[1] == pattern.edge_index[1, 0]] = -math.inf
    options: dict[str, Any] = {"edge_bias": bias, "return_weights": True, "backend": "scatter"}
    expected = graph_attention(*tensors, pattern, **options)
    assert segments == []
    with torch.no_grad():
        found = graph_attention(*tensors, pattern, **options)
    assert segments == ["max", "sum"]
    torch.testing.assert_close(found, expected)
    assert found[0][pattern.edge_index[1, 0]].count_nonzero() == 0
