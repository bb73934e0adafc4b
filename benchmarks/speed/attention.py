"""Compares ways to compute attention along a pattern: time, memory, and fractions of the limits.

    python -m benchmarks.speed.attention --replace
    python -m benchmarks.speed.attention --quick        # tiny sizes: do all candidates agree?

First the output and the three gradients of every candidate are compared with the reference in
double precision; candidates that disagree are listed without a ratio. The others take turns in one
process; what depends on the pattern alone (edge lists, masks, sorted edges) is prepared before.
Peak memory is that of a separate process.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, product
from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import linregress

from benchmarks.command_line import chosen, heaps, retain_heap, run
from benchmarks.files import check_replacement, name_of, read_file, write_results
from benchmarks.report import speed as tables
from benchmarks.speed import implementations as ways
from benchmarks.speed.implementations import FLEX, OURS, Attend, call, passes
from benchmarks.speed.measure import Job, Limits, interleave, measure_limits, peaks_of
from benchmarks.speed.regimes import GROUPS, SEED, Inputs, Regime, complete, draw, ragged, sparse
from benchmarks.speed.regimes import regimes as regimes_of
from tg_mlc.ops import Pattern
from tg_mlc.ops.attention import registry

SCALING = "SCALING"
PASSES = ("forward", "forward_backward")
#: Fraction of the memory that a candidate may take.
MEMORY_SHARE = 0.5

Row = dict[str, Any]


def main(
    regimes: str = ",".join((*GROUPS, SCALING)),
    repeats: int = 15,
    device: Literal["cpu", "cuda"] = "cpu",
    dtype: Literal["float32", "bfloat16"] = "float32",
    threads: int = 2,
    replace: bool = False,
    quick: bool = False,
    machine: str = "",
    seconds: float = math.inf,
) -> int:
    """Compares all candidates, prints a table by regime, and returns 1 if a candidate disagrees.

    Args:
        regimes: The regimes, joined by commas; SCALING fits how time grows with sizes.
        repeats: Rounds in which the candidates take turns.
        device: Where to compute.
        dtype: Type of the tensors.
        threads: Number of threads.
        replace: Whether to write the tracked file in benchmarks/results/ instead of a new one.
        quick: Whether to take tiny sizes, one round, and no measurements of memory.
        machine: A suffix of the file's name that keeps results of several machines apart.
        seconds: No regime begins after this time; the remaining ones are listed.
    """
    end = time.monotonic() + seconds
    check_replacement(replace, quick=quick)
    names = chosen("regimes", regimes, (*GROUPS, SCALING))
    torch.set_num_threads(threads)
    settings = Settings(1 if quick else repeats, device, dtype, threads, quick)
    limits = measure_limits(device, settings.torch_dtype, quick=quick)
    rows: dict[str, Row] = {}
    shared = {**asdict(settings), "seed": SEED, **heaps()}
    content: dict[str, Any] = {"settings": shared, "regimes": rows}
    groups = (regimes_of(name, quick=quick) for name in names if name != SCALING)
    for regime in chain.from_iterable(groups):
        if time.monotonic() > end:
            content.setdefault("left_out", []).append(regime.name)
            continue
        rows[regime.name] = compare(regime, settings, limits)
        candidates = rows[regime.name]["candidates"].items()
        print(regime.name, {name: row["state"] for name, row in candidates}, flush=True)
    if SCALING in names and time.monotonic() < end:
        content["scaling"] = {name: growth(*sweep, settings) for name, sweep in SWEEPS.items()}
    limits = limits.or_better(measure_limits(device, settings.torch_dtype, quick=quick))
    content["limits"] = asdict(limits)
    for row in rows.values():
        relate(row, limits)
    name = name_of("attention", device, dtype if dtype != "float32" else "", machine)
    path, problems = write_results(name, content, replace=replace), wrong(rows)
    result = read_file(path)
    scaling = tables.growth(result) if "scaling" in result else []
    print("\n".join(["", *tables.attention(result), "", *scaling, f"Wrote {path}"]))
    if problems:
        print(f"Wrong: {'; '.join(problems)}")
    return int(bool(problems))


def wrong(rows: dict[str, Row]) -> list[str]:
    """The candidates that disagree with the reference, and our candidates that failed."""
    problems = []
    for regime, row in rows.items():
        for name, candidate in row["candidates"].items():
            failed = candidate["state"] == "failed" and name.startswith(OURS)
            if failed or candidate["state"] == "disagrees":
                problems.append(f"{name} on {regime} {candidate['state']}")
    return problems


@dataclass(frozen=True)
class Settings:
    """Settings that all regimes of a run share."""

    repeats: int
    device: str
    dtype: str
    threads: int
    quick: bool

    @property
    def torch_dtype(self) -> torch.dtype:
        """The type of all tensors."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype


def compare(regime: Regime, settings: Settings, limits: Limits) -> Row:
    """The errors, times and memory of every candidate."""
    pattern = regime.make().to(settings.device)
    inputs = draw(pattern, regime, settings.torch_dtype)
    backend, reason = registry.choose(call(inputs, pattern).shape)
    row: Row = {
        "pattern": repr(pattern),
        "num_edges": pattern.num_edges,
        "density": pattern.density,
        "auto": f"{backend.name}: {reason}",
        "baseline": regime.baseline,
        "work": {name: work(pattern, inputs, name) for name in PASSES},
        "candidates": {},
    }
    attends = _check(regime, pattern, inputs, settings, row["candidates"])
    jobs: dict[str, Job] = {}
    for name, attend in attends.items():
        jobs |= {f"{name}/{which}": job for which, job in passes(attend, inputs).items()}
    for name, samples in interleave(jobs, settings.repeats, settings.device).items():
        candidate, which = name.split("/")
        row["candidates"][candidate][which] = samples.summary()
    relate(row, limits)
    del attends, jobs, inputs, pattern
    gc.collect()
    for name, candidate in row["candidates"].items():
        # The memory of FlexAttention is not measured, because it would compile again.
        if candidate["state"] == "agrees" and not settings.quick and name != FLEX:
            options = {
                key: getattr(settings, key) for key in ("device", "quick", "dtype", "threads")
            }
            target = "benchmarks.speed.implementations:memory_jobs"
            candidate["peak_bytes"] = peaks_of(
                target, regime=regime.name, candidate=name, **options
            )
    return row


def work(pattern: Pattern, inputs: Inputs, which: str) -> tuple[float, float]:
    """The FLOP of products along edges, and the bytes of tensors that are read or written once."""
    flop = 4 * pattern.num_edges * inputs.query[0].numel()
    rows = 2 * (pattern.num_queries + pattern.num_keys)  # queries, keys, values and output
    # The backward pass reads the same tensors and a gradient, and writes three gradients.
    factor = 1 if which == "forward" else 3
    return factor * flop, factor * rows * inputs.query[0].numel() * inputs.query.element_size()


def _check(
    regime: Regime, pattern: Pattern, inputs: Inputs, settings: Settings, rows: dict[str, Row]
) -> dict[str, Attend]:
    """The candidates that agree with the reference. Adds every candidate's state to ``rows``."""
    if settings.device == "cuda":
        total = torch.cuda.get_device_properties(0).total_memory
    else:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory, expected, attends = MEMORY_SHARE * total, ways.reference(inputs, pattern), {}
    for candidate in ways.candidates():
        reason = candidate.refuse(inputs, pattern, memory)
        if candidate.per_edge and not regime.per_edge:
            reason = reason or "not compared here: makes tensors with a row for every edge"
        if candidate.name == FLEX and regime.name not in ("R1", "R4"):
            reason = reason or "not compared here: compiles anew, for half a minute"
        if reason:
            rows[candidate.name] = {"state": "refused", "why": reason}
            continue
        try:
            attend = candidate.prepare(pattern)
            error = ways.errors(attend, inputs, expected)
        except (RuntimeError, TypeError, ValueError, ImportError, MemoryError) as problem:
            why = f"{type(problem).__name__}: {problem}"[:300]
            rows[candidate.name] = {"state": "failed", "why": why}
            continue
        agreed = ways.agrees(error, settings.torch_dtype)
        # JSON has no infinity.
        finite = {name: value if value < float("inf") else None for name, value in error.items()}
        state = "agrees" if agreed else "disagrees"
        rows[candidate.name] = {"state": state, "why": None, "errors": finite}
        if agreed:
            attends[candidate.name] = attend
    return attends


def relate(row: Row, limits: Limits) -> None:
    """Adds the limits, the fractions of the limits that candidates reach, and baseline ratios."""
    row["limit"] = {which: limits.seconds(*row["work"][which]) for which in PASSES}
    baseline = row["candidates"].get(row.get("baseline"), {})
    for candidate, which, clock in product(row["candidates"].values(), PASSES, ("wall", "cpu")):
        if which in candidate:
            times, key = candidate[which], f"{clock}_ms"
            time = times[key]["median"]
            times[f"{clock}_share_of_limit"] = row["limit"][which][key] / time
            if which in baseline:
                times[f"{clock}_ratio"] = baseline[which][key]["median"] / time


#: (function from a size to a pattern, sizes, tiny sizes). Names begin with the size that varies.
Sweep = tuple[Callable[[int], Pattern], tuple[int, ...], tuple[int, ...]]
SWEEPS: dict[str, Sweep] = {
    "labels, complete graph, 4 samples": (lambda n: complete(n, 4), (128, 256, 512, 1024), (8, 16)),
    "labels, degree 16, 8 samples": (
        lambda n: sparse(n, 16, 8),
        (1000, 2000, 4000, 8000),
        (20, 40),
    ),
    "edges, 2000 labels, 4 samples": (lambda n: sparse(2000, n, 4), (8, 16, 32, 48), (2, 4)),
    "keys of a sample, 159 labels, 8 samples": (
        lambda n: ragged(159, torch.full((8,), n)),
        (40, 80, 160, 320),
        (4, 8),
    ),
    "samples, 983 labels, degree 10": (lambda n: sparse(983, 10, n), (4, 8, 16, 32), (1, 2)),
}


def growth(
    make: Callable[[int], Pattern], full: tuple[int, ...], tiny: tuple[int, ...], settings: Settings
) -> dict[str, Any]:
    """The exponent of a sweep, forward and backward, with the automatic backend."""
    sizes, shape = (tiny, (2, 16)) if settings.quick else (full, (4, 128))
    regime, jobs, edges, backends = Regime("", lambda: make(0), *shape), dict[str, Job](), [], []
    for size in sizes:
        pattern = make(size).to(settings.device)
        inputs: Inputs = draw(pattern, regime, settings.torch_dtype)
        jobs[str(size)] = passes(ways.ours(pattern, "auto"), inputs)["forward_backward"]
        edges.append(pattern.num_edges)
        backends.append(registry.choose(call(inputs, pattern).shape)[0].name)
    samples = interleave(jobs, settings.repeats, settings.device)
    content: dict[str, Any] = {"sizes": sizes, "edges": edges, "backends": backends}
    for clock in ("wall", "cpu"):
        times = [float(np.median(getattr(sample, clock))) for sample in samples.values()]
        content[f"{clock}_ms"] = [1e3 * time for time in times]
        content[f"{clock}_fit"] = fit_exponent(sizes, times)
    return content


def fit_exponent(sizes: Sequence[float], times: Sequence[float]) -> dict[str, float]:
    """The slope of log time over log size, and the fraction of explained variance."""
    line = linregress(np.log(sizes), np.log(times))
    return {"exponent": float(line.slope), "r2": float(line.rvalue**2)}


if __name__ == "__main__":
    retain_heap()
    sys.exit(run(main))
