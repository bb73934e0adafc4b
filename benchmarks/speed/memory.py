"""Peak memory of a call, over what its inputs take. On a CPU it is measured in a process of its own:

    python -m benchmarks.speed.memory MODULE:FUNCTION '{"argument": "value"}'

calls a function that makes the inputs, warms up and returns the calls by name, and prints their peaks.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from benchmarks.command_line import default_heap
from benchmarks.speed.measure import Job

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peaks_of(target: str, device: str = "cpu", **arguments: Any) -> dict[str, int] | str:
    """The bytes that each call adds to its inputs, or why they could not be measured."""
    arguments = {"device": device, **arguments}
    if device == "cuda":
        return _peaks(target, arguments)
    if not CLEAR.exists():
        return "the system does not count peaks of memory"
    release()
    command = [sys.executable, "-m", __spec__.name, target, json.dumps(arguments)]
    environment = {**default_heap(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    peaks: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return peaks


def _peaks(target: str, arguments: dict[str, Any]) -> dict[str, int]:
    module, function = target.split(":")
    jobs: dict[str, Job] = getattr(import_module(module), function)(**arguments)
    measure = _extra_on_device if arguments["device"] == "cuda" else _extra_resident
    return {name: measure(job) for name, job in jobs.items()}


def release() -> None:
    """Gives free memory back to the system, which must hold the other process as well."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _extra_resident(job: Job) -> int:
    release()
    CLEAR.write_text("5")  # the peak starts from what is resident now
    before = _status("VmRSS")
    result = job()
    extra = _status("VmHWM") - before
    del result
    return extra


def _status(name: str) -> int:
    lines = STATUS.read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _extra_on_device(job: Job) -> int:
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = job()
    torch.cuda.synchronize()
    del result
    return torch.cuda.max_memory_allocated() - before


if __name__ == "__main__":
    print(json.dumps(_peaks(sys.argv[1], json.loads(sys.argv[2]))))
