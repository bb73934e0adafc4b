"""Compares ways to compute attention along a pattern: wall clock, CPU time, peak memory, and the share of the limits of
the machine.

    python -m benchmarks.speed.attention --replace
    python -m benchmarks.speed.attention --quick        # tiny sizes: do all candidates agree?
    python -m benchmarks.speed.attention --calibrate    # where does one backend overtake another?

First the output and the three gradients of every candidate are compared with the reference in double precision; one
that disagrees is listed, and gets no ratio. Those that agree take turns in one process, with whatever depends on the
pattern alone (edge lists, masks, sorted edges) made before. Peak memory is that of a process of its own.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any, Literal

import torch

from benchmarks.command_line import chosen, retain_heap, run
from benchmarks.files import check_replacement, name_of, write_results
from benchmarks.speed import growth
from benchmarks.speed.attention_rows import Row, Settings, compare, relate
from benchmarks.speed.crossovers import calibrate as find_thresholds
from benchmarks.speed.implementations import OURS
from benchmarks.speed.measure import Limits, measure_limits
from benchmarks.speed.regimes import GROUPS
from benchmarks.speed.regimes import regimes as regimes_of

SCALING = "SCALING"


def main(
    regimes: str = ",".join((*GROUPS, SCALING)),
    repeats: int = 15,
    device: Literal["cpu", "cuda"] = "cpu",
    dtype: Literal["float32", "bfloat16"] = "float32",
    threads: int = 2,
    replace: bool = False,
    quick: bool = False,
    calibrate: bool = False,
    machine: str = "",
) -> int:
    """Compares all candidates, prints a table for each regime, and returns 1 if a candidate disagrees.

    Args:
        regimes: The regimes, joined by commas; SCALING fits how time grows with sizes.
        repeats: Rounds in which the candidates take turns.
        device: Where to compute.
        dtype: Type of the tensors.
        threads: Number of threads.
        replace: Whether to replace the tracked file in benchmarks/results/, instead of writing benchmarks/runs/.
        quick: Whether to take tiny sizes, one round, and no measurements of memory.
        calibrate: Whether to look instead for the sizes at which one backend overtakes another, in float32.
        machine: What to call this machine in the names of its files, if they are to stand beside another's.
    """
    check_replacement(replace, quick=quick)
    names = chosen("regimes", regimes, (*GROUPS, SCALING))
    torch.set_num_threads(threads)
    settings = Settings(1 if quick else repeats, device, dtype, threads, quick)
    limits = measure_limits(device, settings.torch_dtype, quick=quick)
    print(describe(limits, settings))
    content: dict[str, Any] = {"settings": settings.to_dict()}
    if calibrate:
        content["limits"] = asdict(limits)
        content["calibration"] = find_thresholds(settings.repeats, device, quick=quick)
        return finish(name_of("attention_calibration", device, machine), content, replace, [])

    content["regimes"] = rows = {}
    for regime in (regime for name in names if name != SCALING for regime in regimes_of(name, quick=quick)):
        rows[regime.name] = compare(regime, settings, limits)
        print("\n".join(["", *table(regime.name, rows[regime.name])]), flush=True)
    if SCALING in names:
        content["scaling"] = growth.exponents(settings.repeats, device, settings.torch_dtype, quick=quick)
        print("\n".join(["", *growth.table(content["scaling"])]))
    limits = limits.or_better(measure_limits(device, settings.torch_dtype, quick=quick))
    content["limits"] = asdict(limits)
    for row in rows.values():
        relate(row, limits)
    return finish(
        name_of("attention", device, dtype if dtype != "float32" else "", machine), content, replace, wrong(rows)
    )


def wrong(rows: dict[str, Row]) -> list[str]:
    """The candidates that disagree, and ours where they failed."""
    return [
        f"{name} on {regime} {found['state']}"
        for regime, row in rows.items()
        for name, found in row["candidates"].items()
        if found["state"] == "disagrees" or (found["state"] == "failed" and name.startswith(OURS))
    ]


def finish(name: str, content: dict[str, Any], replace: bool, problems: list[str]) -> int:
    """Writes the results and returns the exit status."""
    print(f"\nWrote {write_results(name, content, replace=replace)}")
    if problems:
        print(f"\nWrong: {'; '.join(problems)}")
    return int(bool(problems))


def describe(limits: Limits, settings: Settings) -> str:
    """The machine's limits in one line."""
    products = ", ".join(f"{1e-9 * rate:.0f} ({precision})" for precision, rate in limits.by_precision.items())
    return (
        f"{settings.device}, {settings.dtype}, {settings.threads} threads: matrix products {products} GFLOP/s, "
        f"copies {1e-9 * limits.bandwidth:.0f} GB/s"
    )


def table(name: str, row: Row) -> list[str]:
    """One line for each candidate."""
    limit, baseline = row["limit"]["forward_backward"], row["baseline"]
    head = ("fwd ms", "fwd CPU ms", "fwd+bwd ms", "quartiles", "CPU ms", f"x {baseline}", "x CPU", "of limit")
    lines = [
        f"{name}: {row['pattern']}, {row['num_edges']} edges; auto takes {row['auto']}",
        f"limit with backward: {limit['wall_ms']:.3g} ms ({limit['bound']})",
        _line("", *head, "peak MB", "worst error"),
    ]
    return lines + [_candidate(name, found) for name, found in row["candidates"].items()]


def _line(name: str, *cells: str) -> str:
    return f"{name:<18}" + "".join(f"{cell:>15}" for cell in cells)


def _candidate(name: str, found: Row) -> str:
    if "forward" not in found:
        why = found["why"] or ", ".join(f"{which} {_error(value)}" for which, value in found["errors"].items())
        return f"{_line(name)}  {found['state']}: {why}"
    forward, both = found["forward"], found["forward_backward"]
    wall = both["wall_ms"]
    cells = [
        f"{forward['wall_ms']['median']:.3g}",
        f"{forward['cpu_ms']['median']:.3g}",
        f"{wall['median']:.3g}",
        f"{wall['q1']:.3g}-{wall['q3']:.3g}",
        f"{both['cpu_ms']['median']:.3g}",
        *(f"{both[ratio]:.3g}" if ratio in both else "-" for ratio in ("wall_ratio", "cpu_ratio")),
        f"{both['wall_share_of_limit']:.1%}",
        _peaks(found.get("peak_bytes")),
        max(map(_error, found["errors"].values()), key=float),
    ]
    return _line(name, *cells)


def _peaks(peaks: dict[str, int] | str | None) -> str:
    if peaks is None or isinstance(peaks, str):
        return "-"
    return " / ".join(f"{1e-6 * size:.0f}" for size in peaks.values())


def _error(value: float | None) -> str:
    return "nan" if value is None else f"{value:.1e}"


if __name__ == "__main__":
    retain_heap()
    sys.exit(run(main))
