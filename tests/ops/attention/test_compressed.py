import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.ops.random_patterns import ptr, random_edges
from tg_mlc.ops import Blocks, Shared
from tg_mlc.ops.attention import compressed
from tg_mlc.ops.attention.backend import AttentionCall
from tg_mlc.ops.attention.compressed import TRITON


def call(pattern, device="cuda", dtype=torch.float32, **options):
    sizes = (pattern.num_queries, pattern.num_keys, pattern.num_keys)
    with FakeTensorMode():
        tensors = [torch.empty(size, 2, 4, device=device, dtype=dtype) for size in sizes]
    return AttentionCall(*tensors, pattern, scale=0.5, **options).shape


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(compressed, "_HAS_TRITON", True)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)


EDGES = random_edges(5, 5, 9, seed=0)


@pytest.mark.usefixtures("installed")
def test_sparse_patterns_are_preferred_on_a_gpu():
    for pattern in (EDGES, Shared(EDGES, 3)):
        assert TRITON.prefer(call(pattern)) == "is sparse, so only its edges are computed"
        assert TRITON.refuse(call(pattern)) is None
        assert TRITON.prefer(call(pattern, device="cpu")) is None
    assert TRITON.prefer(call(Blocks(ptr([2]), ptr([3])))) is None


def test_calls_that_the_kernels_cannot_take_are_refused(installed, monkeypatch):
    assert "double precision" in (TRITON.refuse(call(EDGES, dtype=torch.float64)) or "")
    assert "weights are not kept" in (TRITON.refuse(call(EDGES, return_weights=True)) or "")
    assert "CUDA device" in (TRITON.refuse(call(EDGES, device="cpu")) or "")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert TRITON.refuse(call(EDGES, device="cpu")) is None
    monkeypatch.setattr(compressed, "_HAS_TRITON", False)
    assert "pip install triton" in (TRITON.refuse(call(EDGES)) or "")
