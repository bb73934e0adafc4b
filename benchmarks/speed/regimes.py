"""Patterns in the benchmark of attention, from batches of documents to graphs with huge hubs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tg_mlc.ops import Blocks, Edges, Pattern, Shared

SEED = 0
NUM_HUBS = 8


@dataclass(frozen=True)
class Regime:
    """A pattern, and the baseline that all candidates are compared with."""

    name: str
    make: Callable[[], Pattern]
    heads: int = 4
    channels: int = 128  #: Channels of a head.
    baseline: str = "literal"
    per_edge: bool = True  #: Whether candidates with tensors of a row for every edge take part.


class Inputs(NamedTuple):
    """The tensors of one call, and the gradient of its output."""

    query: Tensor
    key: Tensor
    value: Tensor
    grad: Tensor

    @property
    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors that have gradients."""
        return self.query, self.key, self.value


def draw(pattern: Pattern, regime: Regime, dtype: torch.dtype = torch.float32) -> Inputs:
    """Standard normal inputs and gradients, drawn on the CPU so that every device has the same."""
    generator = torch.Generator().manual_seed(SEED)
    rows = (pattern.num_queries, pattern.num_keys, pattern.num_keys, pattern.num_queries)
    shapes = [(number, regime.heads, regime.channels) for number in rows]
    tensors = (torch.randn(shape, generator=generator) for shape in shapes)
    query, key, value, grad = (tensor.to(pattern.device, dtype) for tensor in tensors)
    return Inputs(*(leaf.requires_grad_() for leaf in (query, key, value)), grad)


GROUPS = ("R1", "R2", "R3", "R4", "R5", "L100k", "HUB", "DENSITY")
DENSITIES = (0.01, 0.02, 0.05, 0.10, 0.20)


def regimes(group: str, *, quick: bool = False) -> list[Regime]:
    """The regimes of a group, or tiny regimes of the same kind."""
    if group == "DENSITY":
        sizes = (120,) if quick else (500, 983)
        return [_dense(size, density, quick) for size in sizes for density in DENSITIES]
    full, tiny = {
        "R1": (lambda: _documents(159, 8, 20, 301), lambda: _documents(9, 3, 2, 12)),
        "R2": (lambda: complete(500, 1), lambda: complete(12, 1)),
        "R3": (lambda: sparse(983, 10, 32), lambda: sparse(40, 4, 3)),
        "R4": (lambda: sparse(983, 60, 4), lambda: sparse(40, 10, 2)),
        "R5": (lambda: sparse(10_000, 32, 1), lambda: sparse(150, 6, 1)),
        "L100k": (lambda: sparse(100_000, 32, 1), lambda: sparse(300, 8, 1)),
        "HUB": (lambda: hubs(10_000), lambda: hubs(100)),
    }[group]
    return [_tiny(group, tiny) if quick else Regime(group, full)]


def _dense(size: int, density: float, quick: bool) -> Regime:
    name = f"L={size}, {density:.0%}"
    degree = max(2, round(density * size))
    if quick:
        return _tiny(name, lambda: sparse(size, degree, 2), baseline="SDPA")
    return Regime(name, lambda: sparse(size, degree, 8), baseline="SDPA", per_edge=False)


def _tiny(name: str, make: Callable[[], Pattern], baseline: str = "literal") -> Regime:
    return Regime(name, make, heads=2, channels=16, baseline=baseline)


def find(name: str, *, quick: bool = False) -> Regime:
    """The regime with this name, of any group."""
    all_regimes = (regime for group in GROUPS for regime in regimes(group, quick=quick))
    return next(regime for regime in all_regimes if regime.name == name)


def ragged(num_labels: int, sizes: Tensor) -> Blocks:
    """Blocks with the same number of labels for each sample, and ``sizes`` keys."""
    query_ptr = torch.arange(sizes.numel() + 1) * num_labels
    return Blocks(query_ptr, torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)]))


def _documents(num_labels: int, num_samples: int, low: int, high: int) -> Blocks:
    return ragged(num_labels, torch.randint(low, high, (num_samples,), generator=_generator()))


def complete(num_nodes: int, num_samples: int) -> Shared:
    """All pairs of nodes, for each sample."""
    query, key = torch.ones(num_nodes, num_nodes).nonzero().t()
    return Shared(Edges(torch.stack([key, query]), num_nodes, num_nodes).prepare(), num_samples)


def sparse(num_nodes: int, degree: int, num_samples: int) -> Shared:
    """Rows of about ``degree`` random columns each, without locality."""
    return Shared(random_graph(spread(num_nodes, degree)).prepare(), num_samples)


def hubs(num_nodes: int) -> Shared:
    """A power law: most rows have 2 to 4 neighbours, and a few hubs have a fifth of all nodes."""
    degrees = power_law(num_nodes)
    return Shared(random_graph(degrees, popularity=degrees.double()).prepare(), 1)


def spread(num_nodes: int, degree: int) -> Tensor:
    """Uniform degrees between half and one and a half times ``degree``, at least 1."""
    highest = min(num_nodes, degree + degree // 2)
    return torch.randint(max(1, degree // 2), highest + 1, (num_nodes,), generator=_generator())


def power_law(num_nodes: int) -> Tensor:
    """Power-law degrees from 2 with exponent 2.5, and a few rows with a fifth of all nodes."""
    uniform = torch.rand(num_nodes, generator=_generator(), dtype=torch.float64)
    degrees = (2 * (1 - uniform) ** (-1 / 1.5)).long().clamp(max=num_nodes // 5)
    degrees[:NUM_HUBS] = num_nodes // 5
    return degrees


def random_graph(degrees: Tensor, popularity: Tensor | None = None) -> Edges:
    """Edges to each row from ``degrees`` distinct random columns, sorted by row and column."""
    size, generator = degrees.numel(), _generator()
    pairs, missing = torch.empty(0, dtype=torch.long), degrees
    while int(missing.sum()) > 0:
        row = torch.repeat_interleave(torch.arange(size), missing)
        if popularity is None:
            column = torch.randint(size, (row.numel(),), generator=generator)
        else:
            options = {"replacement": True, "generator": generator}
            column = torch.multinomial(popularity, row.numel(), **options)
        pairs = torch.cat([pairs, row * size + column]).unique()
        missing = degrees - torch.bincount(pairs // size, minlength=size)
    return Edges(torch.stack([pairs % size, pairs // size]), size, size)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(SEED)
