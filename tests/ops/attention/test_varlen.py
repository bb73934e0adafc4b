from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.ops.attention.test_triton import EDGES, call
from tests.ops.random_patterns import ptr
from tg_mlc.ops import Blocks, graph_attention
from tg_mlc.ops.attention import varlen
from tg_mlc.ops.attention.backend import AttentionCall

BLOCKS = Blocks(ptr([2, 3, 1]), ptr([3, 0, 4]))
HALF: dict[str, Any] = {"dtype": torch.bfloat16}

pytestmark = pytest.mark.skipif(not varlen._INSTALLED, reason="this PyTorch has no varlen_attn")


def by_definition(
    query: Tensor, key: Tensor, value: Tensor, rows: Tensor, cols: Tensor, max_q: int, max_k: int, *, scale: float
) -> Tensor:
    """What varlen_attn computes."""
    assert rows.dtype == cols.dtype == torch.int32
    assert (max_q, max_k) == (int(rows.diff().max()), int(cols.diff().max()))
    samples = [(slice(*rows[i : i + 2]), slice(*cols[i : i + 2])) for i in range(rows.numel() - 1)]
    weights = [torch.einsum("qhc,khc->qhk", query[row], key[col]).mul(scale).softmax(-1) for row, col in samples]
    return torch.cat(
        [torch.einsum("qhk,khc->qhc", w, value[col]) for w, (_, col) in zip(weights, samples, strict=True)]
    )


def test_hands_over_what_the_kernel_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", by_definition)
    tensors = [torch.randn(rows, 2, 4) for rows in (BLOCKS.num_queries, BLOCKS.num_keys, BLOCKS.num_keys)]
    out, weights = varlen.run(AttentionCall(*tensors, BLOCKS, scale=0.3))
    assert weights is None
    torch.testing.assert_close(out, graph_attention(*tensors, BLOCKS, scale=0.3, backend="reference"))


def test_refuses_what_the_kernel_cannot() -> None:
    takes = call(BLOCKS, **HALF)
    with FakeTensorMode():
        narrow = torch.empty(BLOCKS.num_keys, 2, 3, device="cuda", dtype=torch.bfloat16)
    assert varlen.BACKEND.refuse(takes) is None
    for changed, reason in (
        (call(EDGES, **HALF), "only for Blocks"),
        (call(BLOCKS, device="cpu", **HALF), "CUDA device"),
        (call(BLOCKS), "half precision"),
        (call(BLOCKS, return_weights=True, **HALF), "weights are not kept"),
        (dataclasses.replace(takes, dropout_p=0.1), "neither a bias nor dropout"),
        (dataclasses.replace(takes, value=narrow), "of one size"),
    ):
        assert reason in (varlen.BACKEND.refuse(changed) or "")


def test_is_not_chosen_before_it_is_measured() -> None:
    assert varlen.BACKEND.prefer(call(BLOCKS, **HALF)) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_equals_the_reference_on_a_gpu() -> None:
    blocks = BLOCKS.to("cuda")
    sizes = (blocks.num_queries, blocks.num_keys, blocks.num_keys)
    tensors = [torch.randn(rows, 2, 16, device="cuda", dtype=torch.bfloat16, requires_grad=True) for rows in sizes]
    found, expected = (graph_attention(*tensors, blocks, backend=name) for name in ("varlen", "reference"))
    torch.testing.assert_close(found, expected, atol=2e-2, rtol=2e-2)
    gradients = [torch.autograd.grad(out.square().sum(), tensors) for out in (found, expected)]
    torch.testing.assert_close(*gradients, atol=5e-2, rtol=5e-2)
