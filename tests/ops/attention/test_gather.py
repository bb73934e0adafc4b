"""torch-scatter's kernels run where it is installed and no derivatives are needed."""

import math

import pytest
import torch
import torch_geometric.typing
from torch_geometric.utils import segment

from tests.ops.random_patterns import random_edges
from tg_mlc.ops import graph_attention
from tg_mlc.ops.attention import gather

pytestmark = pytest.mark.skipif(
    not torch_geometric.typing.WITH_TORCH_SCATTER, reason="needs torch-scatter"
)


@pytest.fixture
def segments(monkeypatch):
    """Records the reductions that torch-scatter computes."""
    calls = []

    def spy(x, ptr, reduce):
        calls.append(reduce)
        return segment(x, ptr, reduce)

    monkeypatch.setattr(gather, "segment", spy)
    return calls


def test_inference_equals_training(segments):
    pattern = random_edges(9, 7, 30, seed=0)
    options = {"dtype": torch.double, "requires_grad": True}
    tensors = [torch.randn(size, 2, 4, **options) for size in (9, 7, 7)]
    bias = torch.randn(30, 2, dtype=torch.double)
    bias[pattern.edge_index[1] == pattern.edge_index[1, 0]] = -math.inf
    options = {"edge_bias": bias, "return_weights": True, "backend": "scatter"}
    expected = graph_attention(*tensors, pattern, **options)
    assert segments == []
    with torch.no_grad():
        actual = graph_attention(*tensors, pattern, **options)
    assert segments == ["max", "sum"]
    torch.testing.assert_close(actual, expected)
    assert actual[0][pattern.edge_index[1, 0]].count_nonzero() == 0
