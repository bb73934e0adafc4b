from __future__ import annotations

import pytest
import torch

from tests.ops.random_patterns import ptr, random_edges
from tg_mlc.ops import Blocks, Edges, Shared


@pytest.mark.parametrize(
    "pattern",
    [random_edges(5, 4, 9, seed=0), Blocks(ptr([2, 0, 3]), ptr([4, 2, 1])), Shared(random_edges(4, 4, 7, seed=1), 3)],
    ids=["edges", "blocks", "shared"],
)
def test_csr_groups_the_canonical_edges_by_query(pattern: Edges | Blocks | Shared) -> None:
    source, target = pattern.to_edge_index()
    rowptr, key, perm = pattern.csr()
    perm = torch.arange(source.numel()) if perm is None else perm
    assert torch.equal(source[perm], key)
    assert torch.equal(rowptr.diff(), torch.bincount(target, minlength=pattern.num_queries))
    assert torch.equal(target[perm], torch.arange(pattern.num_queries).repeat_interleave(rowptr.diff()))


@pytest.mark.parametrize(
    "pattern",
    [random_edges(5, 4, 9, seed=0), Blocks(ptr([2, 0, 3]), ptr([4, 2, 1])), Shared(random_edges(4, 4, 7, seed=1), 3)],
    ids=["edges", "blocks", "shared"],
)
def test_to_moves_the_pattern(pattern: Edges | Blocks | Shared) -> None:
    moved = pattern.to("meta")
    assert type(moved) is type(pattern)
    assert moved.device == torch.device("meta")
    assert (moved.num_queries, moved.num_keys) == (pattern.num_queries, pattern.num_keys)
    assert torch.equal(pattern.to("cpu").to_edge_index(), pattern.to_edge_index())
