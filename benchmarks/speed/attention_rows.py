"""Rows of the benchmark of attention: all candidates on one regime."""

from __future__ import annotations

import gc
import os
from dataclasses import asdict, dataclass
from typing import Any

import torch

from benchmarks.command_line import RETAINED_HEAP, heap_is_retained
from benchmarks.speed.implementations import Attend, call, candidates, passes
from benchmarks.speed.measure import Job, Limits, interleave
from benchmarks.speed.memory import peaks_of
from benchmarks.speed.reference import agrees, errors, reference
from benchmarks.speed.regimes import SEED, Inputs, Regime, draw
from tg_mlc.ops import Pattern
from tg_mlc.ops.attention import registry

PASSES = ("forward", "forward_backward")
#: Share of the memory that a candidate may take.
MEMORY_SHARE = 0.5

Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What all regimes of a run share."""

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

    def to_dict(self) -> dict[str, Any]:
        """What is stored beside the results."""
        heap = RETAINED_HEAP if heap_is_retained() else "default"
        return {**asdict(self), "seed": SEED, "heap": heap, "heap_of_memory_measurements": "default"}


def compare(regime: Regime, settings: Settings, limits: Limits) -> Row:
    """What every candidate gives, takes and needs."""
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
    jobs: dict[str, Job] = {
        f"{name}/{which}": job for name, attend in attends.items() for which, job in passes(attend, inputs).items()
    }
    for name, samples in interleave(jobs, settings.repeats, settings.device).items():
        candidate, which = name.split("/")
        row["candidates"][candidate][which] = samples.summary()
    _relate_to_baseline(row)
    relate(row, limits)
    del attends, jobs, inputs, pattern
    gc.collect()
    if not settings.quick:
        _add_peaks(regime, settings, row["candidates"])
    return row


def work(pattern: Pattern, inputs: Inputs, which: str) -> tuple[float, float]:
    """The FLOP of the products along the edges, and the bytes of every tensor read or written once a pass."""
    flop = 4 * pattern.num_edges * inputs.query[0].numel()
    rows = 2 * (pattern.num_queries + pattern.num_keys)  # queries, keys, values and output
    times = 1 if which == "forward" else 3  # backward reads these and the output's gradient, and writes three more
    return times * flop, times * rows * inputs.query[0].numel() * inputs.query.element_size()


def _check(
    regime: Regime, pattern: Pattern, inputs: Inputs, settings: Settings, rows: dict[str, Row]
) -> dict[str, Attend]:
    """Those that agree with the reference; all are listed."""
    memory, expected, attends = _memory(settings.device), reference(inputs, pattern), {}
    for candidate in candidates():
        reason = candidate.refuse(inputs, pattern, memory)
        if candidate.per_edge and not regime.per_edge:
            reason = reason or "not compared here: makes tensors with a row for every edge"
        if reason:
            rows[candidate.name] = {"state": "refused", "why": reason}
            continue
        try:
            attend = candidate.prepare(pattern)
            error = errors(attend, inputs, expected)
        except (RuntimeError, TypeError, ValueError, ImportError, MemoryError) as problem:
            rows[candidate.name] = {"state": "failed", "why": f"{type(problem).__name__}: {problem}"[:300]}
            continue
        agreed = agrees(error, settings.torch_dtype)
        rows[candidate.name] = {
            "state": "agrees" if agreed else "disagrees",
            "why": None,
            # JSON has no infinity:
            "errors": {name: value if value < float("inf") else None for name, value in error.items()},
        }
        if agreed:
            attends[candidate.name] = attend
    return attends


def _memory(device: str) -> float:
    if device == "cuda":
        total = torch.cuda.get_device_properties(0).total_memory
    else:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MEMORY_SHARE * total


def relate(row: Row, limits: Limits) -> None:
    """Adds what the limits are, and the share of them that every candidate reaches."""
    row["limit"] = {which: limits.seconds(*row["work"][which]) for which in PASSES}
    for found, which in _timed(row):
        for clock in ("wall", "cpu"):
            found[which][f"{clock}_share_of_limit"] = (
                row["limit"][which][f"{clock}_ms"] / found[which][f"{clock}_ms"]["median"]
            )


def _relate_to_baseline(row: Row) -> None:
    baseline = row["candidates"].get(row["baseline"], {})
    for found, which in _timed(row):
        for clock in ("wall", "cpu"):
            if which in baseline:
                ratio = baseline[which][f"{clock}_ms"]["median"] / found[which][f"{clock}_ms"]["median"]
                found[which][f"{clock}_ratio"] = ratio


def _timed(row: Row) -> list[tuple[Row, str]]:
    return [(found, which) for found in row["candidates"].values() for which in PASSES if which in found]


def _add_peaks(regime: Regime, settings: Settings, rows: dict[str, Row]) -> None:
    for name, found in rows.items():
        if found["state"] == "agrees":
            found["peak_bytes"] = peaks_of(
                "benchmarks.speed.implementations:memory_jobs",
                settings.device,
                regime=regime.name,
                candidate=name,
                quick=settings.quick,
                dtype=settings.dtype,
                threads=settings.threads,
            )
