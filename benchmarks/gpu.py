"""Runs everything that there is to do on a GPU, each part in a process of its own with a time limit, in under 40
minutes:

    python -m benchmarks.gpu --root data --replace
    python -m benchmarks.gpu --parts correctness,attention --minutes 5
    python -m benchmarks.gpu --device cpu --quick              # tiny sizes, to see that every part runs

Results are written as they come, so that a run which is cut short keeps what it has; a part that fails, or takes too
long, does not stop the others. The last lines say what became of each.
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
    """One thing to do, and the minutes that it may take."""

    minutes: float
    module: str
    options: str = ""
    quick: str = "--quick"
    takes_seconds: bool = False  #: whether it can be told when to begin nothing more

    def command(
        self, device: str, root: Path, minutes: float, *, quick: bool, replace: bool
    ) -> list[str]:
        """The command line."""
        if self.module == "pytest":
            return [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                *([self.quick] if quick else TESTS),
            ]
        options = [
            option.format(root=root) for option in (self.quick if quick else self.options).split()
        ]
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
        minutes: The time for all of them; no part begins after it, and the last gets what is left.
        device: Where to compute.
        root: Folder that keeps the data of the papers' tables.
        replace: Whether to write tracked results.
        quick: Whether to take tiny sizes.
    """
    start, rows = time.monotonic(), []
    for name in chosen("parts", parts, tuple(PARTS)):
        part, left = PARTS[name], minutes - (time.monotonic() - start) / 60
        row = {"part": name, "state": "no time was left", "seconds": 0.0}
        if left > 0:
            given = min(part.minutes, left)
            row |= _run(part.command(device, root, given, quick=quick, replace=replace), 60 * given)
        rows.append(row)
        print(f"{name}: {row['state']}, {row['seconds']:.0f} s", flush=True)
        # Not among the tracked results, which hold measurements:
        write_results(f"gpu-{device}", {"parts": rows, "quick": quick})
    return int(any(row["state"] != "done" for row in rows))


def _run(command: list[str], seconds: float) -> dict[str, object]:
    """Runs a command, shows what it prints, and says what became of it."""
    print("$", " ".join(command[1:]), flush=True)
    start = time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    try:
        status = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=seconds, check=False
        ).returncode
        state = "done" if status == 0 else f"failed with status {status}"
    except subprocess.TimeoutExpired:
        state = f"cut short after {seconds:.0f} s"
    return {"command": command[1:], "state": state, "seconds": time.monotonic() - start}


if __name__ == "__main__":
    sys.exit(run(main))
