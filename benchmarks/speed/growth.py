"""Growth of the time of attention with labels, keys, edges and samples: slopes of straight lines on double logarithmic
axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy.stats import linregress

from benchmarks.speed.implementations import call, ours, passes
from benchmarks.speed.measure import Job, interleave
from benchmarks.speed.regimes import Inputs, Regime, complete, draw, ragged, sparse
from tg_mlc.ops import Pattern
from tg_mlc.ops.attention import registry

#: A pattern that grows, and its sizes; the last name is that of the sweep's x.
Sweep = tuple[Callable[[int], Pattern], tuple[int, ...], tuple[int, ...]]
SWEEPS: dict[str, Sweep] = {
    "labels, complete graph, 4 samples": (lambda n: complete(n, 4), (128, 256, 512, 1024), (8, 16)),
    "labels, degree 16, 8 samples": (lambda n: sparse(n, 16, 8), (1000, 2000, 4000, 8000), (20, 40)),
    "edges, 2000 labels, 4 samples": (lambda n: sparse(2000, n, 4), (8, 16, 32, 48), (2, 4)),
    "keys of a sample, 159 labels, 8 samples": (lambda n: ragged(159, torch.full((8,), n)), (40, 80, 160, 320), (4, 8)),
    "samples, 983 labels, degree 10": (lambda n: sparse(983, 10, n), (4, 8, 16, 32), (1, 2)),
}


def exponents(repeats: int, device: str, dtype: torch.dtype, *, quick: bool = False) -> dict[str, Any]:
    """The exponent of every sweep, forward and backward with the backend that is chosen by itself."""
    return {name: _sweep(*sweep, repeats, device, dtype, quick) for name, sweep in SWEEPS.items()}


def _sweep(
    make: Callable[[int], Pattern],
    full: tuple[int, ...],
    tiny: tuple[int, ...],
    repeats: int,
    device: str,
    dtype: torch.dtype,
    quick: bool,
) -> dict[str, Any]:
    sizes, regime = (tiny if quick else full), Regime("", lambda: make(0), *((2, 16) if quick else (4, 128)))
    jobs: dict[str, Job] = {}
    edges, backends = [], []
    for size in sizes:
        pattern = make(size).to(device)
        inputs: Inputs = draw(pattern, regime, dtype)
        jobs[str(size)] = passes(ours(pattern, "auto"), inputs)["forward_backward"]
        edges.append(pattern.num_edges)
        backends.append(registry.choose(call(inputs, pattern).shape)[0].name)
    samples = interleave(jobs, repeats, device)
    times = {clock: [float(np.median(getattr(s, clock))) for s in samples.values()] for clock in ("wall", "cpu")}
    return {
        "sizes": sizes,
        "edges": edges,
        "backends": backends,
        **{f"{clock}_ms": [1e3 * t for t in values] for clock, values in times.items()},
        **{f"{clock}_fit": fit_exponent(sizes, values) for clock, values in times.items()},
    }


def fit_exponent(sizes: Sequence[float], times: Sequence[float]) -> dict[str, float]:
    """The slope of log time over log size, and the share of the variance that the line explains."""
    line = linregress(np.log(sizes), np.log(times))
    return {"exponent": float(line.slope), "r2": float(line.rvalue**2)}
