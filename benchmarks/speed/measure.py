"""Times of candidates that run in turn, the limits of the machine, and peaks of memory.

Peaks exclude the inputs of a call. On a CPU they are measured in a separate process:

    python -m benchmarks.speed.measure MODULE:FUNCTION '{"argument": "value"}'

calls a function that makes the inputs, warms up and returns the calls by name, and prints their
peaks.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.command_line import default_heap

Job = Callable[[], Any]

#: Calls that take less than this time are repeated, so that each sample takes this time.
MIN_SECONDS = 0.005
#: A candidate stops after this total time, but not before this number of rounds.
MAX_SECONDS, MIN_ROUNDS = 60.0, 3


@dataclass
class Samples:
    """Wall clock and CPU time (of all threads) of single calls, in seconds."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Medians and quartiles in milliseconds."""
        times = {"wall_ms": quartiles(self.wall), "cpu_ms": quartiles(self.cpu)}
        return {"rounds": len(self.wall), **times}


def quartiles(seconds: list[float]) -> dict[str, float]:
    """Median and quartiles in milliseconds."""
    q1, median, q3 = np.quantile(seconds, (0.25, 0.5, 0.75)).tolist()
    return {"median": 1e3 * median, "q1": 1e3 * q1, "q3": 1e3 * q3}


def interleave(jobs: Mapping[str, Job], repeats: int, device: str = "cpu") -> dict[str, Samples]:
    """Times every job once a round, so that a change of the machine's load affects all of them.

    Every job first runs once or twice. The rounds alternate in direction, as a job may leave a cold
    cache to the next. Short jobs are repeated within a round, unless there is one round only.
    """
    for job in jobs.values():
        job()
    calls = dict.fromkeys(jobs, 1)
    for name, job in jobs.items() if repeats > 1 else ():
        calls[name] = min(100, max(1, math.ceil(MIN_SECONDS / _time(job, 1, device)[0])))
    samples = {name: Samples() for name in jobs}
    spent = dict.fromkeys(jobs, 0.0)
    gc.collect()
    gc.disable()
    try:
        for turn in range(repeats):
            for name in list(jobs) if turn % 2 == 0 else reversed(jobs):
                if turn >= MIN_ROUNDS and spent[name] > MAX_SECONDS:
                    continue
                wall, cpu = _time(jobs[name], calls[name], device)
                samples[name].wall.append(wall)
                samples[name].cpu.append(cpu)
                spent[name] += wall * calls[name]
    finally:
        gc.enable()
    return samples


def _time(job: Job, calls: int, device: str) -> tuple[float, float]:
    synchronize(device)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(calls):
        job()
    synchronize(device)
    return (time.perf_counter() - wall) / calls, (time.process_time() - cpu) / calls


def synchronize(device: str) -> None:
    """Waits for the device."""
    if device == "cuda":
        torch.cuda.synchronize()


def relative_rms(value: Tensor, expected: Tensor) -> float:
    """The root mean square (RMS) of the difference, divided by the RMS of ``expected`` unless zero.

    Infinite if any value is not a number.
    """
    value, expected = value.detach(), expected.detach()
    difference = float((value.to(expected.dtype) - expected).square().mean().sqrt())
    error = difference / (float(expected.square().mean().sqrt()) or 1.0)
    return error if math.isfinite(error) else math.inf


RATES = ("flops", "bandwidth", "cpu_flops", "cpu_bandwidth")


@dataclass
class Limits:
    """The best rates of the machine in this run, per second of wall clock and of CPU time."""

    flops: float
    bandwidth: float  #: Bytes read and written.
    cpu_flops: float
    cpu_bandwidth: float
    #: The rate of matrix products by :func:`torch.set_float32_matmul_precision`.
    by_precision: dict[str, float]

    def flops_under(self, precision: str) -> float:
        """The rate of products under an exact :func:`torch.set_float32_matmul_precision`."""
        if precision not in self.by_precision:
            raise ValueError(
                f"Expected 'precision' to be a setting with exact products on this machine, "
                f"{list(self.by_precision)} (got '{precision}')"
            )
        return self.by_precision[precision]

    def or_better(self, other: Limits) -> Limits:
        """The higher value of each rate, because other load can only lower a rate."""
        rates = (max(getattr(self, rate), getattr(other, rate)) for rate in RATES)
        others, items = other.by_precision, self.by_precision.items()
        return Limits(*rates, {name: max(rate, others.get(name, 0.0)) for name, rate in items})

    def seconds(self, flop: float, num_bytes: float) -> dict[str, Any]:
        """The minimum milliseconds of some work, and the rate that bounds it (FLOP or bytes)."""
        bound = "FLOP" if flop / self.flops > num_bytes / self.bandwidth else "bytes"
        wall = 1e3 * max(flop / self.flops, num_bytes / self.bandwidth)
        cpu = 1e3 * max(flop / self.cpu_flops, num_bytes / self.cpu_bandwidth)
        return {"bound": bound, "wall_ms": wall, "cpu_ms": cpu}


def measure_limits(device: str, dtype: torch.dtype, *, quick: bool = False) -> Limits:
    """Rates of large products and copies with the same number of threads as candidates."""
    size = 256 if quick else (8192 if device == "cuda" else 2048)
    precisions = ("highest", "high", "medium") if dtype == torch.float32 else ("highest",)
    products = {precision: _product(size, device, dtype, precision) for precision in precisions}
    # Products with fewer exact digits are no limit for products in this dtype.
    exact = {precision: rates for precision, (rates, is_exact) in products.items() if is_exact}
    elements = 2**20 if quick else 2**26
    source = torch.randn(elements, device=device)
    target = torch.empty_like(source)
    copy = _best(lambda: target.copy_(source), 2 * 4 * elements, device)
    return Limits(
        flops=max(wall for wall, _ in exact.values()),
        bandwidth=copy[0],
        cpu_flops=max(cpu for _, cpu in exact.values()),
        cpu_bandwidth=copy[1],
        by_precision={precision: rates[0] for precision, rates in exact.items()},
    )


def _product(
    size: int, device: str, dtype: torch.dtype, precision: str
) -> tuple[tuple[float, float], bool]:
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    previous = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        rates = _best(lambda: left @ right, 2 * size**3, device)
        error = relative_rms((left @ right)[:64], left[:64].double() @ right.double())
    finally:
        torch.set_float32_matmul_precision(previous)
    return rates, precision == "highest" or error < 1e-5


def _best(job: Job, work: float, device: str) -> tuple[float, float]:
    samples = interleave({"": job}, 10, device)[""]
    return work / min(samples.wall), work / max(min(samples.cpu), 1e-9)


CLEAR = Path("/proc/self/clear_refs")


def peaks_of(target: str, device: str = "cpu", **arguments: Any) -> dict[str, int] | str:
    """The bytes that each call adds to its inputs, or the reason why peaks were not measured."""
    arguments = {"device": device, **arguments}
    if device == "cuda":
        return _peaks(target, arguments)
    if not CLEAR.exists():
        return "the system does not count peaks of memory"
    release()
    command = [sys.executable, "-m", __spec__.name, target, json.dumps(arguments)]
    environment = {**default_heap(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return (result.stderr.strip().splitlines() or [f"exit status {result.returncode}"])[-1]
    peaks: dict[str, int] = json.loads(result.stdout.splitlines()[-1])
    return peaks


def _peaks(target: str, arguments: dict[str, Any]) -> dict[str, int]:
    module, function = target.split(":")
    jobs: dict[str, Job] = getattr(import_module(module), function)(**arguments)
    measure = _extra_on_device if arguments["device"] == "cuda" else _extra_resident
    return {name: measure(job) for name, job in jobs.items()}


def release() -> None:
    """Returns free memory to the system, which has to hold another process as well."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _extra_resident(job: Job) -> int:
    release()
    CLEAR.write_text("5")  # Resets the peak to what is resident now.
    before = memory_of("self", "VmRSS")
    result = job()
    extra = memory_of("self", "VmHWM") - before
    del result
    return extra


def memory_of(process: int | str, field: str) -> int:
    """Resident bytes (VmRSS) or their peak (VmHWM) of a process; zero if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
        return 1024 * int(status.partition(f"{field}:")[2].split()[0])
    except (OSError, IndexError):
        return 0


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
