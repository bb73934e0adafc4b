"""Random patterns for tests."""

import pytest
import torch
from hypothesis import strategies as st

from tg_mlc.ops import Blocks, Edges, Shared

#: Numbers of drawn examples: few in each run, and many in runs of slow tests.
EXAMPLES = [25, pytest.param(100, marks=pytest.mark.slow)]


def ptr(sizes):
    return torch.tensor([0, *sizes]).cumsum(0)


def random_edges(num_queries, num_keys, num_edges, seed, *, unique=True):
    generator = torch.Generator().manual_seed(seed)
    if unique:
        pair = torch.randperm(num_queries * num_keys, generator=generator)[:num_edges]
    else:
        pair = torch.randint(num_queries * num_keys, (num_edges,), generator=generator)
    return Edges(torch.stack([pair % num_keys, pair // num_keys]), num_queries, num_keys)


def tensors(pattern):
    """Returns queries, keys and values with two heads of four channels."""
    sizes = (pattern.num_queries, pattern.num_keys, pattern.num_keys)
    return [torch.randn(size, 2, 4) for size in sizes]


KINDS = ("edges", "blocks", "ragged", "shared", "complete")


@st.composite
def patterns(draw, kinds=KINDS):
    """Draws blocks, shared graphs and edge lists, also with empty samples or isolated nodes."""
    kind = draw(st.sampled_from(kinds))
    seed = draw(st.integers(0, 2**31))
    if kind == "edges":
        num_queries, num_keys = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        num_edges = draw(st.integers(0, num_queries * num_keys))
        return random_edges(num_queries, num_keys, num_edges, seed)
    if kind in ("blocks", "ragged"):
        keys = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
        queries = [3] * len(keys) if kind == "blocks" else [draw(st.integers(0, 4)) for _ in keys]
        return Blocks(ptr(queries), ptr(keys))
    num_nodes, num_samples = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    num_edges = num_nodes**2 if kind == "complete" else draw(st.integers(0, num_nodes**2))
    return Shared(random_edges(num_nodes, num_nodes, num_edges, seed), num_samples)
