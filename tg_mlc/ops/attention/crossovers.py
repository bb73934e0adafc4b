"""Crossover table: the densities and sizes from which on one backend overtakes another.

``backend="auto"`` uses no other figures of speed. ``python -m benchmarks.speed.attention --regimes DENSITY`` compares
the backends by density, in single precision. The sources, in benchmarks/results/:

- ``csr``: rounded from attention_calibration-cpu.json; another processor's crossovers, in
  attention_calibration-cpu-epyc.json, are mostly higher, by up to two thirds;
- blocks: rounded from attention_calibration-cpu-epyc.json;
- folding: between the two;
- ``scatter``: between those of 300 labels (2 %) and 983 labels (1 %);
- ``triton``: 3 %, until it is measured.
"""

from __future__ import annotations

import math

from tg_mlc._optional import is_installed
from tg_mlc.ops.attention.backend import CallShape
from tg_mlc.ops.patterns import Blocks
from tg_mlc.ops.runtime import numba_problem

#: By what would compute the edges alone: from how many nodes on, and from which share of pairs on, one masked matrix
#: product costs less than the edges of a shared graph. Where weights are dropped on a CPU, a masked product has no
#: fused kernel, and draws numbers for the pairs that are no edges too.
DENSE_FROM: dict[str, tuple[tuple[int, float], ...]] = {
    "csr": ((0, 0.0), (32, 0.5), (1024, 0.35), (2048, 0.3)),
    "csr, narrow": ((0, 0.0), (32, 0.35), (64, 0.25), (128, 0.2), (1024, 0.15)),
    "csr, dropping": ((0, 0.0), (32, 0.6), (1024, 0.5)),
    "csr, narrow, dropping": ((0, 0.0), (32, 0.3), (64, 0.5)),
    "scatter": ((0, 0.0), (129, 0.02)),
    "triton": ((0, 0.0), (129, 0.03)),
}
#: Channels of a head below which it is narrow: measured with 128 and with 16, at 32 in between.
NARROW = 64
#: Multiplications of an average block below which starting its matrix products costs more than padding saves, and
#: where some weights are dropped, more than is saved by not keeping them.
MIN_BLOCK, MIN_DROPPED = 2**23, 2**22
#: The most channels of a head that the kernels of narrow heads take, and the scores of all blocks from which on they
#: overtake padding where no weights are dropped (where some are, they always do).
MAX_NARROW, MIN_NARROW = 32, 2**16
#: Share of a padded product that may be padding before single blocks are cheaper.
MAX_WASTE = 0.1
#: The cost of a multiplication that folds a projection into keys and values, in other multiplications: these products
#: are small, and their results are copied.
FOLD_COST = 1.5

_ON_CUDA = "triton" if is_installed("triton") else "scatter"


def dense_from(shape: CallShape, num_nodes: int) -> float:
    """Returns the density from which on a masked matrix product is the faster way along a shared graph."""
    if shape.device == "cuda" and not shape.return_weights:
        rival = _ON_CUDA
    elif shape.return_weights or numba_problem() is not None:
        rival = "scatter"
    else:
        rival = f"csr{'' if shape.channels >= NARROW else ', narrow'}{', dropping' if shape.dropout_p > 0.0 else ''}"
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
    """Returns how many times as many multiplications the projections of queries and messages take apart from the
    attention as folded into keys and values, which pays above 1; with ``shared`` states of the targets, queries are
    projected once in either case.
    """
    size = heads * (value_channels if shared else head_channels + value_channels)
    apart = (pattern.num_queries * channels + pattern.num_edges) * size
    padded = pattern.num_samples * pattern.max_queries * pattern.max_keys * heads * channels
    folded = FOLD_COST * pattern.num_keys * channels * size + (padded if shared else 2 * padded)
    return apart / folded if folded > 0 else math.inf
