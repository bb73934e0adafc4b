"""Compiles each variant of the Triton kernels without a GPU: registers, spills and occupancy.

    python -m benchmarks.speed.registers --replace
    python -m benchmarks.speed.registers --quick

The assembler is that of Triton's wheel. Warps are the number that a multiprocessor holds at a time,
limited by registers and by its programs; with few warps, less memory latency is hidden.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from benchmarks.command_line import run
from benchmarks.files import check_replacement, write_results
from tg_mlc.ops.kernels import csr_triton

KERNELS = ("attend", "query_gradient", "key_gradient")
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
CHANNELS = (16, 128, 512)
ARCHITECTURES = (80, 90, 100)
#: Kinds of rows: with many edges, with one edge, and hubs with far more edges than other rows.
WALKS = ("many", "one", "hub")
#: Registers, warps and programs of a multiprocessor of these architectures.
REGISTERS, MOST_WARPS, MOST_PROGRAMS = 2**16, 64, 32


def main(replace: bool = False, quick: bool = False) -> int:
    """Prints a line for each variant, and returns 1 if one spills.

    Args:
        replace: Whether to write the tracked file in benchmarks/results/ instead of a new one.
        quick: Whether to compile three variants alone.
    """
    check_replacement(replace, quick=quick)
    rows = []
    for arch, walk in [*((arch, "many") for arch in ARCHITECTURES), (90, "one"), (90, "hub")]:
        for name, dtype, channels, dropout in product(KERNELS, TYPES, CHANNELS, (False, True)):
            # For the rarer walks, only the most expensive variant is compiled.
            if walk != "many" and (dtype, dropout) != ("fp16", True):
                continue
            if quick and (arch, walk, dtype, channels, dropout) != (90, "many", "fp16", 512, True):
                continue
            rows.append(compiled(name, dtype, channels, dropout, arch, walk))
            print(*rows[-1].values(), flush=True)
    print(f"Wrote {write_results('registers', {'variants': rows}, replace=replace)}")
    return int(any(row["spilled"] for row in rows))


def compiled(
    name: str, dtype: str, channels: int, dropout: bool, arch: int, walk: str = "many"
) -> dict[str, Any]:
    """The assembler's report on a kernel, as the Triton backend would start it without a bias."""
    function, itemsize = getattr(csr_triton, name), TYPES[dtype].itemsize
    block = triton.next_power_of_2(channels)
    rows, edges, warps = csr_triton.tile(100, 6400 if walk == "many" else 100, block, itemsize)
    if walk == "hub":
        rows, edges, warps = csr_triton.long_tile(block)
    constants: dict[str, Any] = {"DROPOUT": dropout, "C": channels, "C_V": channels}
    constants |= {"BLOCK_C": block, "BLOCK_V": block}
    constants |= {"ROWS": rows, "EDGES": edges, "bias": None, "grad_scores": None}
    constants |= {} if walk == "hub" else {"rows": None}
    types = dict.fromkeys(function.arg_names, f"*{dtype}")
    types |= dict.fromkeys(["rows", "ptr", "index", "order"], "*i64")
    types |= dict.fromkeys(["lse", "delta"], "*fp32")
    types |= dict.fromkeys(["scale", "dropout_p", "kept"], "fp32")
    integers = {key for key in types if key in ("heads", "seed", "longest") or key[:4] == "num_"}
    strides = {key for key in types if key.endswith("_stride")}
    types |= dict.fromkeys([*integers, *strides], "i32") | dict.fromkeys(constants, "constexpr")
    signature = {key: types[key] for key in function.arg_names}
    constants = {key: value for key, value in constants.items() if key in signature}
    aligned = [
        index for index, key in enumerate(signature) if signature[key][0] == "*" or key in strides
    ]
    attributes = {(index,): [["tt.divisibility", 16]] for index in aligned}
    options = {"num_warps": warps, "enable_fp_fusion": True}
    source = ASTSource(function, signature, constants, attributes)
    code = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options).asm
    registers, spilled = usage(code["cubin"])
    per_warp = -(-registers // 8) * 8 * 32  # Registers are allocated in multiples of 8.
    programs = min(REGISTERS // 4 // per_warp * 4 // warps, MOST_PROGRAMS, MOST_WARPS // warps)
    atomic = re.search(r"\b(atom|red)\.", code["ptx"]) is not None
    return {
        "kernel": name,
        "type": dtype,
        "channels": channels,
        "dropout": dropout,
        "arch": arch,
        "walk": walk,
        "rows": rows,
        "edges": edges,
        "warps_of_program": warps,
        "registers": registers,
        "spilled": spilled,
        "warps": programs * warps,
        "atomic": atomic,
    }


def usage(cubin: bytes) -> tuple[int, int]:
    """The registers of a thread, and the bytes of its stack, which holds spilled values."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
        command = [tool, "-res-usage", path]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = re.findall(r"REG:(\d+) STACK:(\d+)", output)[-1]
    return int(registers), int(stack)


if __name__ == "__main__":
    sys.exit(run(main))
