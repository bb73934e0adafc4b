import sys

import pytest
import torch

from tests.fresh import run_python
from tg_mlc import _memory
from tg_mlc._memory import LARGE, on_large_pages


@pytest.mark.parametrize("size", [0, 1, LARGE // 4 - 1, LARGE // 4, LARGE // 4 + 1025])
@pytest.mark.parametrize("offset", [0, 3])
def test_large_pages_keep_values(size, offset):
    tensor = torch.arange(size + offset, dtype=torch.float32)[offset:]
    assert on_large_pages(tensor) is tensor
    assert torch.equal(tensor, torch.arange(offset, size + offset, dtype=torch.float32))


def test_large_pages_are_skipped_without_glibc(monkeypatch):
    monkeypatch.setattr(_memory, "_libc", lambda: None)
    _memory.keep_heap()
    assert on_large_pages(torch.ones(LARGE)).sum() == LARGE


@pytest.mark.skipif(sys.platform != "linux", reason="needs glibc")
def test_a_kept_heap_takes_no_fresh_pages():
    code = """
import resource, torch
from tg_mlc.ops import keep_heap

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(2**24)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 20

before = faults()
keep_heap()
faults()  # The first calls grow the heap until a freed block is large enough.
print(before, faults())
"""
    usual_faults, kept_faults = map(int, run_python(code)[0].split())
    if usual_faults < 1000:
        pytest.skip("the system gives large pages anyway")
    assert kept_faults < 100
