from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.ops.random_patterns import ptr, random_edges
from tg_mlc.ops import Blocks, Pattern, Shared
from tg_mlc.ops.attention import triton
from tg_mlc.ops.attention.backend import AttentionCall


def call(
    pattern: Pattern, *, device: str = "cuda", dtype: torch.dtype = torch.float32, return_weights: bool = False
) -> AttentionCall:
    def tensor(num_rows: int) -> Tensor:
        with FakeTensorMode():
            return torch.empty(num_rows, 2, 4, device=device, dtype=dtype)

    tensors = [tensor(num_rows) for num_rows in (pattern.num_queries, pattern.num_keys, pattern.num_keys)]
    return AttentionCall(*tensors, pattern, scale=0.5, return_weights=return_weights)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "_INSTALLED", True)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)


EDGES = random_edges(5, 5, 9, seed=0)


@pytest.mark.usefixtures("installed")
def test_prefers_edges_on_a_gpu() -> None:
    for pattern in (EDGES, Shared(EDGES, 3)):
        assert triton.BACKEND.prefer(call(pattern)) == "is sparse, so only its edges are computed"
        assert triton.BACKEND.refuse(call(pattern)) is None
        assert triton.BACKEND.prefer(call(pattern, device="cpu")) is None
    assert triton.BACKEND.prefer(call(Blocks(ptr([2]), ptr([3])))) is None


@pytest.mark.usefixtures("installed")
def test_refuses_what_its_kernels_cannot() -> None:
    assert "double precision" in (triton.BACKEND.refuse(call(EDGES, dtype=torch.float64)) or "")
    assert "weights are not kept" in (triton.BACKEND.refuse(call(EDGES, return_weights=True)) or "")
    assert "CUDA device" in (triton.BACKEND.refuse(call(EDGES, device="cpu")) or "")


@pytest.mark.usefixtures("installed")
def test_the_interpreter_runs_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert triton.BACKEND.refuse(call(EDGES, device="cpu")) is None


def test_says_how_to_install_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "_INSTALLED", False)
    assert "pip install triton" in (triton.BACKEND.refuse(call(EDGES)) or "")


def test_importing_the_package_does_not_import_triton() -> None:
    code = "import sys, tg_mlc; sys.exit('triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
