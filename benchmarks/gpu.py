"""Runs all checks and measurements for a GPU, each in a process with a time limit:

    python -m benchmarks.gpu --root data --replace
    python -m benchmarks.gpu --parts correctness,attention --minutes 5
    python -m benchmarks.gpu --device cpu --quick              # tiny sizes: does every part run?

All parts take under 40 minutes. Results are written as they come, so that an interrupted run keeps
its results; a part that fails, or takes too long, does not stop the others. The last lines report
the state of each part.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.command_line import chosen, run
from benchmarks.files import write_results

ROOT = Path(__file__).parents[1]
TESTS = ("tests/properties/test_devices.py", "tests/ops/kernels/test_csr_triton.py")


@dataclass(frozen=True)
class Part:
    """A check or measurement with a time limit in minutes."""

    minutes: float
    module: str
    options: str = ""
    quick: str = "--quick"
    takes_seconds: bool = False  #: Whether the module has an option for a time limit.

    def command(
        self, device: str, root: Path, minutes: float, *, quick: bool, replace: bool
    ) -> list[str]:
        """The command line."""
        if self.module == "pytest":
            tests = [self.quick] if quick else TESTS
            return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        words = (self.quick if quick else self.options).split()
        options = [word.format(root=root) for word in words]
        options += ["--replace"] if replace else []
        options += ["--seconds", str(45 * minutes)] if self.takes_seconds else []
        return [sys.executable, "-m", self.module, "--device", device, *options]


#: The parts in the order that they run: the most important first, because a run may be cut short.
PARTS: dict[str, Part] = {
    "correctness": Part(4, "pytest", quick=TESTS[0]),
    "attention": Part(6, "benchmarks.speed.attention", "--repeats 7", takes_seconds=True),
    "attention-bf16": Part(
        5,
        "benchmarks.speed.attention",
        "--repeats 7 --dtype bfloat16 --regimes R3,R4,R5,HUB,DENSITY",
        "--quick --dtype bfloat16 --regimes R3",
        takes_seconds=True,
    ),
    "models": Part(4, "benchmarks.speed.models", "--repeats 5", takes_seconds=True),
    "models-bf16": Part(
        4,
        "benchmarks.speed.models",
        "--repeats 5 --precision bf16",
        "--quick --precision bf16 --graphs prior",
        takes_seconds=True,
    ),
    "papers": Part(
        15,
        "benchmarks.speed.family",
        "--models lamp,seq2seq --rounds 5 --root {root}",
        "--models lamp --datasets sider --rounds 1 --batches 1 --epochs 0 --root {root}",
    ),
}


def main(
    parts: str = ",".join(PARTS),
    minutes: float = 38.0,
    device: Literal["cpu", "cuda"] = "cuda",
    root: Path = Path("data"),
    replace: bool = False,
    quick: bool = False,
) -> int:
    """Runs the parts one after another, and returns 1 if one of them failed or was cut short.

    Args:
        parts: The parts, joined by commas.
        minutes: The time limit of all parts. The last part gets the remaining time.
        device: Where to compute.
        root: Folder that keeps the data of the papers' tables.
        replace: Whether to write tracked results.
        quick: Whether to take tiny sizes.
    """
    start, rows = time.monotonic(), []
    for name in chosen("parts", parts, tuple(PARTS)):
        part, remaining = PARTS[name], minutes - (time.monotonic() - start) / 60
        row = {"part": name, "state": "no time was left", "seconds": 0.0}
        if remaining > 0:
            limit = min(part.minutes, remaining)
            row |= _run(part.command(device, root, limit, quick=quick, replace=replace), 60 * limit)
        rows.append(row)
        print(f"{name}: {row['state']}, {row['seconds']:.0f} s", flush=True)
        # This file is not tracked, because it holds no measurements.
        write_results(f"gpu-{device}", {"parts": rows, "quick": quick})
    return int(any(row["state"] != "done" for row in rows))


def _run(command: list[str], seconds: float) -> dict[str, object]:
    """Runs a command, shows its output, and returns its state."""
    print("$", " ".join(command[1:]), flush=True)
    start = time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    try:
        result = subprocess.run(command, cwd=ROOT, env=environment, timeout=seconds, check=False)
        status = result.returncode
        state = "done" if status == 0 else f"failed with status {status}"
    except subprocess.TimeoutExpired:
        state = f"cut short after {seconds:.0f} s"
    return {"command": command[1:], "state": state, "seconds": time.monotonic() - start}


if __name__ == "__main__":
    sys.exit(run(main))
