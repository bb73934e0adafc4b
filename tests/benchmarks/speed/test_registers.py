import pytest

pytest.importorskip("triton", minversion="3.3")  # Constants have another name in older versions.

from benchmarks.speed import registers
from tg_mlc.ops.kernels import csr_triton


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("name", registers.KERNELS)
@pytest.mark.parametrize("walk", ["many", pytest.param("hub", marks=pytest.mark.slow)])
def test_kernels_compile_without_a_gpu(name, walk):
    row = registers.compiled(name, "bf16", 128, True, 80, walk)
    assert (row["spilled"], row["atomic"]) == (0, False)
    assert 0 < row["registers"] <= 255
    assert row["warps"] >= row["warps_of_program"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "arch", "walk"),
    [
        ("fp32", 90, "many"),
        *(("fp16", arch, "many") for arch in (80, 90, 100)),
        ("fp16", 90, "one"),
        ("fp16", 90, "hub"),
    ],
)
@pytest.mark.parametrize("name", registers.KERNELS)
def test_no_kernel_spills(name, dtype, arch, walk):
    assert registers.compiled(name, dtype, 512, True, arch, walk)["spilled"] == 0


@pytest.mark.slow
def test_spilled_registers_are_counted(monkeypatch):
    monkeypatch.setattr(csr_triton, "TILE", 2**15)
    assert registers.compiled("key_gradient", "fp32", 512, False, 90)["spilled"] > 0
