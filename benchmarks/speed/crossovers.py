"""Crossover table: sizes at which one backend overtakes another, beside the constants in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.speed.implementations import call
from benchmarks.speed.measure import Job, interleave, relative_rms
from benchmarks.speed.reference import TOLERANCE
from benchmarks.speed.regimes import Inputs, Regime, draw, ragged, sparse
from tg_mlc.nn import FeatureToLabelConv
from tg_mlc.nn._fast import folded_attention
from tg_mlc.ops import Blocks, Pattern, Shared, graph_attention
from tg_mlc.ops.attention import crossovers, registry

DENSITIES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.35, 0.5, 0.65, 0.8)
WASTES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45)
DROPOUT = 0.1
#: The size of a head in a small model.
NARROW_CHANNELS = 16
#: Numbers of labels that attend to each other.
LABELS = (32, 64, 96, 128, 192, 256, 512)
#: Numbers of components that labels attend to.
KEYS = (10, 20, 40, 60, 80, 100, 120, 160)


def calibrate(repeats: int, device: str, *, quick: bool = False) -> dict[str, Any]:
    """Times both sides of each choice in float32, prints and returns where they are level."""
    torch.manual_seed(0)
    regime = Regime("", lambda: sparse(2, 1, 1), *((2, 16) if quick else (4, 128)))
    widths = {channels: replace(regime, channels=channels) for channels in (regime.channels, NARROW_CHANNELS)}
    sizes, num_keys = ((16, 32), (4, 8)) if quick else ((32, 64, 128, 256, 512, 1024, 2048), (8, 16, 32, 64, 128, 256))
    labels, few = ((4, 9), (4, 9)) if quick else (LABELS, (27, 159, 983))
    constants = ("DENSE_FROM", "MIN_BLOCK", "MIN_DROPPED", "MAX_WASTE", "FOLD_COST")
    by_density = {
        dropout_p: {
            channels: {size: _densities(size, wide, dropout_p, repeats, device) for size in sizes}
            for channels, wide in widths.items()
        }
        for dropout_p in (0.0, DROPOUT)
    }
    found = {
        "density": by_density[0.0],
        "density, dropped": by_density[DROPOUT],
        "waste": {keys: _wastes(keys, regime, repeats, device) for keys in num_keys},
        "dropped": {channels: _droppings(labels, wide, repeats, device) for channels, wide in widths.items()},
        "folding": {num_labels: _foldings(num_labels, regime, repeats, device) for num_labels in few},
    }
    in_use = {name: getattr(crossovers, name) for name in constants}
    print("in use: " + ", ".join(f"{name} = {value}" for name, value in in_use.items()))
    for what, rows in found.items():
        for path, row in _leaves(rows):
            print(f"{what}, {path}: {_verdict(row)}")
    return {"in_use": in_use, **found}


def _leaves(rows: dict[Any, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for key, row in rows.items():
        if "x" in row or "refused" in row:
            yield f"{path}{key}", row
        else:
            yield from _leaves(row, f"{path}{key} channels, ")


def crossover(x: Sequence[float], ratios: Sequence[float]) -> float | None:
    """Where a ratio of times first passes one upwards, between the two nearest points; :obj:`None` if nowhere."""
    for (low, below), (high, above) in pairwise(zip(x, ratios, strict=True)):
        if below <= 1 < above:
            share = -np.log(below) / (np.log(above) - np.log(below))
            return float(low + share * (high - low))
    return None


def _densities(size: int, regime: Regime, dropout_p: float, repeats: int, device: str) -> dict[str, Any]:
    num_samples = max(1, min(32, 2**20 // size**2))
    ratios: dict[float, float] = {}
    name = ""
    # One neighbour alone has the weight 1, whatever the scores are, so that there is no gradient to compare.
    for density in (density for density in DENSITIES if density * size >= 2):
        pattern = sparse(size, round(density * size), num_samples).to(device)
        assert isinstance(pattern, Shared)
        inputs = draw(pattern, regime)
        # The choice without masks, which lists of edges cannot have:
        edges = Shared(pattern.graph, 1)
        name = registry.choose(call(draw(edges, regime), edges.graph).shape)[0].name
        ratios[pattern.density] = _ratio_of_backends(pattern, inputs, (name, "dense"), repeats, device, dropout_p)
    return {"num_samples": num_samples, "sparse": name, **_summary(ratios)}


def _wastes(keys: int, regime: Regime, repeats: int, device: str) -> dict[str, Any]:
    """How much longer the padded form takes than blocks, by the share of it that is empty."""
    patterns = [ragged(159, lengths(keys, waste, 16)).to(device) for waste in WASTES]
    empty = [1 - each.num_edges / (each.num_samples * each.max_queries * each.max_keys) for each in patterns]
    row = _of_blocks(dict(zip(empty, patterns, strict=True)), regime, 0.0, repeats, device)
    work = patterns[-1].num_edges * regime.heads * regime.channels // patterns[-1].num_samples
    return row if "refused" in row else {"work": work, **row}


def _droppings(sizes: Sequence[int], regime: Regime, repeats: int, device: str) -> dict[str, Any]:
    """How much longer it takes to keep weights some of which are dropped, by the multiplications of a block."""
    work = {size**2 * regime.heads * regime.channels: size for size in sizes}
    patterns = {x: ragged(size, torch.full((16,), size)).to(device) for x, size in work.items()}
    return _of_blocks(patterns, regime, DROPOUT, repeats, device)


def _of_blocks(
    patterns: dict[Any, Blocks], regime: Regime, dropout_p: float, repeats: int, device: str
) -> dict[str, Any]:
    ratios = {}
    for x, pattern in patterns.items():
        inputs = draw(pattern, regime)
        if reason := registry.get("blocks").refuse(call(inputs, pattern).shape):
            return {"refused": reason}
        ratios[x] = _ratio_of_backends(pattern, inputs, ("dense", "blocks"), repeats, device, dropout_p)
    return _summary(ratios)


def _attended(pattern: Blocks, inputs: Inputs, backend: str, dropout_p: float) -> tuple[Tensor, ...]:
    out = graph_attention(*inputs.leaves, pattern, dropout_p=dropout_p, backend=backend)
    return out, *torch.autograd.grad(out, inputs.leaves, inputs.grad)


def _foldings(num_labels: int, regime: Regime, repeats: int, device: str) -> dict[str, Any]:
    """How much longer projections take apart from the attention, by the ratio that is to say so."""
    heads, channels = regime.heads, regime.channels
    conv = FeatureToLabelConv(heads * channels, heads).to(device)
    ratios: dict[float, float] = {}
    for keys in sorted(KEYS, reverse=True):
        pattern = ragged(num_labels, torch.full((16,), keys)).to(device)
        inputs = draw(pattern, regime)
        jobs = {name: partial(_with_gradients, way, conv, pattern, inputs) for name, way in WAYS.items()}
        _check_agreement("projections apart and folded", *(job() for job in jobs.values()))
        ratio = crossovers.folding_ratio(pattern, heads, heads * channels, channels, channels)
        ratios[ratio] = _ratio(jobs, repeats, device)
    return _summary(ratios)


def lengths(mean: int, waste: float, num_samples: int) -> torch.Tensor:
    """Evenly spread lengths that leave about this share of their padded form empty, up to a half."""
    longest = mean / (1 - waste)
    return torch.linspace(longest * (1 - 2 * waste), longest, num_samples).round().long().clamp(min=1)


def _apart(conv: FeatureToLabelConv, states: Tensor, key: Tensor, value: Tensor, pattern: Blocks) -> Tensor:
    query = conv.lin_query(states).view(-1, *key.shape[1:])
    out: Tensor = conv.lin_out(graph_attention(query, key, value, pattern).flatten(1))
    return out


def _folded(conv: FeatureToLabelConv, states: Tensor, key: Tensor, value: Tensor, pattern: Blocks) -> Tensor:
    return folded_attention(states, key, value, pattern, conv.lin_query, conv.lin_out, conv.scale, 0.0, 1)


WAYS = {"apart": _apart, "folded": _folded}


def _with_gradients(
    way: Callable[..., Tensor], conv: FeatureToLabelConv, pattern: Blocks, inputs: Inputs
) -> tuple[Tensor, ...]:
    out = way(conv, inputs.query.flatten(1), inputs.key, inputs.value, pattern)
    leaves = (*inputs.leaves, conv.lin_query.weight, conv.lin_out.weight)
    return out, *torch.autograd.grad(out, leaves, inputs.grad.flatten(1))


def _check_agreement(what: str, found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    """No ratio of times without the same outputs and gradients."""
    error = max(relative_rms(one, other.double()) for one, other in zip(found, expected, strict=True))
    if error > TOLERANCE[torch.float32]:
        raise RuntimeError(f"Expected {what} to agree (got a relative error of {error:.2g})")


def _ratio_of_backends(
    pattern: Pattern, inputs: Inputs, backends: tuple[str, str], repeats: int, device: str, dropout_p: float = 0.0
) -> float:
    """The time of the first backend over that of the second, forward and backward; they agree where none is dropped."""
    _check_agreement(" and ".join(backends), *(_attended(pattern, inputs, name, 0.0) for name in backends))
    return _ratio({name: partial(_attended, pattern, inputs, name, dropout_p) for name in backends}, repeats, device)


def _ratio(jobs: dict[str, Job], repeats: int, device: str) -> float:
    """The time of the first job over that of the second."""
    first, second = (float(np.median(samples.wall)) for samples in interleave(jobs, repeats, device).values())
    return first / second


def _summary(ratios: dict[float, float]) -> dict[str, Any]:
    return {
        "x": list(ratios),
        "ratios": list(ratios.values()),
        "crossover": crossover(list(ratios), list(ratios.values())),
    }


def _verdict(row: dict[str, Any]) -> str:
    if "refused" in row:
        return str(row["refused"])
    points = ", ".join(f"{x:.3g}: {ratio:.2f}" for x, ratio in zip(row["x"], row["ratios"], strict=True))
    if row["crossover"] is not None:
        return f"level at {row['crossover']:.3g} ({points})"
    return f"the first is {'faster' if row['ratios'][-1] <= 1 else 'slower'} at all ({points})"
