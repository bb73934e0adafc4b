"""Crossovers: densities and sizes above which one backend is faster than another.

The choices of ``backend="auto"`` depend only on these measurements.
``python -m benchmarks.speed.attention --regimes DENSITY`` compares the backends by density, in
single precision. Sources of the numbers, in benchmarks/results/:

- ``csr``: rounded from attention_calibration-cpu.json; another processor's crossovers, in
  attention_calibration-cpu-epyc.json, are mostly higher, by up to two thirds;
- blocks: rounded from attention_calibration-cpu-epyc.json;
- folding: between the values of both files;
- ``scatter``: between the crossovers of 300 labels (2 %) and of 983 labels (1 %);
- ``triton``: 3 %, not yet measured.
"""

from __future__ import annotations

import math

from tg_mlc._optional import is_installed
from tg_mlc.ops.attention.backend import CallShape
from tg_mlc.ops.patterns import Blocks
from tg_mlc.ops.runtime import numba_problem

#: Thresholds above which dense attention is faster than edge-wise attention, per edge-wise backend:
#: (nodes, density). With dropout on a CPU, dense attention has no fused kernel.
DENSE_FROM: dict[str, tuple[tuple[int, float], ...]] = {
    "csr": ((0, 0.0), (32, 0.5), (1024, 0.35), (2048, 0.3)),
    "csr, narrow": ((0, 0.0), (32, 0.35), (64, 0.25), (128, 0.2), (1024, 0.15)),
    "csr, dropping": ((0, 0.0), (32, 0.6), (1024, 0.5)),
    "csr, narrow, dropping": ((0, 0.0), (32, 0.3), (64, 0.5)),
    "scatter": ((0, 0.0), (129, 0.02)),
    "triton": ((0, 0.0), (129, 0.03)),
}
#: Heads with fewer channels are narrow. Crossovers at 32 channels lie between those at 16 and 128.
NARROW = 64
#: Multiplications in an average block above which products of single blocks are faster: without
#: dropout because of less padding, with dropout because of fewer stored weights.
MIN_BLOCK, MIN_DROPPED = 2**23, 2**22
#: Maximum number of channels for kernels of narrow heads, and number of scores above which kernels
#: of narrow heads are faster than padding (with dropout, at any number of scores).
MAX_NARROW, MIN_NARROW = 32, 2**16
#: Fraction of padding in a padded product above which single blocks are faster.
MAX_WASTE = 0.1
#: Relative cost of a multiplication that folds a projection: folded products are small, and their
#: results are copied.
FOLD_COST = 1.5

_ON_CUDA = "triton" if is_installed("triton") else "scatter"


def dense_from(shape: CallShape, num_nodes: int) -> float:
    """Returns the density above which a masked matrix product is faster."""
    if shape.device == "cuda" and not shape.return_weights:
        rival = _ON_CUDA
    elif shape.return_weights or numba_problem() is not None:
        rival = "scatter"
    else:
        rival = "csr" if shape.channels >= NARROW else "csr, narrow"
        rival += ", dropping" if shape.dropout_p > 0.0 else ""
    return next(density for size, density in reversed(DENSE_FROM[rival]) if num_nodes >= size)


def folding_ratio(
    pattern: Blocks,
    heads: int,
    channels: int,
    head_channels: int,
    value_channels: int,
    *,
    shared: bool = False,
) -> float:
    """Returns the ratio of multiplications with separate and with folded projections."""
    size = heads * (value_channels if shared else head_channels + value_channels)
    separate = (pattern.num_queries * channels + pattern.num_edges) * size
    padded = pattern.num_samples * pattern.max_queries * pattern.max_keys * heads * channels
    folded = FOLD_COST * pattern.num_keys * channels * size + (padded if shared else 2 * padded)
    return separate / folded if folded > 0 else math.inf
