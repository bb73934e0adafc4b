"""Crossover table: sizes at which one backend overtakes another, beside the constants in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
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
#: Of a head in a small model.
NARROW_CHANNELS = 16
#: Of a sample whose labels attend to each other.
LABELS = (32, 64, 96, 128, 192, 256, 512)
#: Numbers of components that labels attend to.
KEYS = (10, 20, 40, 60, 80, 100, 120, 160)


def calibrate(repeats: int, device: str, *, quick: bool = False) -> dict[str, Any]:
    """Times both sides of each choice in float32, prints and returns where they are level."""
    torch.manual_seed(0)
    regime = Regime("", lambda: sparse(2, 1, 1), *((2, 16) if quick else (4, 128)))
    by_density: dict[float, dict[int, dict[int, dict[str, Any]]]] = {0.0: {}, DROPOUT: {}}
    print(f"Shared, sparse against dense; in use: {crossovers.DENSE_FROM}")
    for dropout_p, channels in product(by_density, (regime.channels, NARROW_CHANNELS)):
        by_density[dropout_p][channels] = by_size = {
            size: _densities(size, replace(regime, channels=channels), dropout_p, repeats, device)
            for size in ((16, 32) if quick else (32, 64, 128, 256, 512, 1024, 2048))
        }
        for size, row in by_size.items():
            print(
                f"  {size} nodes, {row['num_samples']} samples, {channels} channels, dropout {dropout_p}, "
                f"{row['sparse']}: {_verdict(row)}"
            )
    by_keys = {
        keys: _wastes(keys, regime, repeats, device) for keys in ((4, 8) if quick else (8, 16, 32, 64, 128, 256))
    }
    print(
        f"Blocks, dense against blocks; in use: MIN_BLOCK = {crossovers.MIN_BLOCK}, MAX_WASTE = {crossovers.MAX_WASTE}"
    )
    for keys, row in by_keys.items():
        print(f"  {keys} keys, {row.get('work', '-')} multiplications a block: {_verdict(row)}")
    dropped = {
        channels: _droppings((4, 9) if quick else LABELS, replace(regime, channels=channels), repeats, device)
        for channels in (regime.channels, NARROW_CHANNELS)
    }
    print(f"Blocks with dropout, dense against blocks; in use: MIN_DROPPED = {crossovers.MIN_DROPPED}")
    for channels, row in dropped.items():
        print(f"  {channels} channels: {_verdict(row, '.2g')}")
    by_labels = {
        num_labels: _foldings(num_labels, regime, repeats, device)
        for num_labels in ((4, 9) if quick else (27, 159, 983))
    }
    print(f"Blocks, projections apart against folded; in use: FOLD_COST = {crossovers.FOLD_COST}")
    for num_labels, row in by_labels.items():
        print(f"  {num_labels} labels: {_verdict(row)}")
    return {
        "in_use": {
            "DENSE_FROM": crossovers.DENSE_FROM,
            "MIN_BLOCK": crossovers.MIN_BLOCK,
            "MIN_DROPPED": crossovers.MIN_DROPPED,
            "MAX_WASTE": crossovers.MAX_WASTE,
            "FOLD_COST": crossovers.FOLD_COST,
        },
        "density": by_density[0.0],
        "density, dropped": by_density[DROPOUT],
        "waste": by_keys,
        "dropped": dropped,
        "folding": by_labels,
    }


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
        # What would be chosen if a mask were out of the question, as it is for a list of edges:
        edges = Shared(pattern.graph, 1)
        name = registry.choose(call(draw(edges, regime), edges.graph).shape)[0].name
        ratios[pattern.density] = _ratio_of_backends(pattern, inputs, (name, "dense"), repeats, device, dropout_p)
    return {"num_samples": num_samples, "sparse": name, **_summary(ratios)}


def _wastes(keys: int, regime: Regime, repeats: int, device: str) -> dict[str, Any]:
    ratios: dict[float, float] = {}
    work = 0
    for waste in WASTES:
        pattern = ragged(159, lengths(keys, waste, 16)).to(device)
        inputs = draw(pattern, regime)
        if reason := registry.get("blocks").refuse(call(inputs, pattern).shape):
            return {"refused": reason}
        work = pattern.num_edges * regime.heads * regime.channels // pattern.num_samples
        actual = 1 - pattern.num_edges / (pattern.num_samples * pattern.max_queries * pattern.max_keys)
        ratios[actual] = _ratio_of_backends(pattern, inputs, ("dense", "blocks"), repeats, device)
    return {"work": work, **_summary(ratios)}


def _droppings(sizes: Sequence[int], regime: Regime, repeats: int, device: str) -> dict[str, Any]:
    """How much longer it takes to keep weights some of which are dropped, by the multiplications of a block."""
    ratios: dict[float, float] = {}
    for size in sizes:
        pattern = ragged(size, torch.full((16,), size)).to(device)
        inputs = draw(pattern, regime)
        if reason := registry.get("blocks").refuse(call(inputs, pattern).shape):
            return {"refused": reason}
        ratio = _ratio_of_backends(pattern, inputs, ("dense", "blocks"), repeats, device, DROPOUT)
        ratios[size**2 * regime.heads * regime.channels] = ratio
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


def _verdict(row: dict[str, Any], form: str = ".1%") -> str:
    if "refused" in row:
        return str(row["refused"])
    points = ", ".join(f"{x:{form}}: {ratio:.2f}" for x, ratio in zip(row["x"], row["ratios"], strict=True))
    if row["crossover"] is not None:
        level = f"level at {row['crossover']:{form}}"
    else:
        level = "the first is faster at all" if row["ratios"][-1] <= 1 else "the first is slower at all"
    return f"{level} ({points})"
