from __future__ import annotations

import pytest
import torch

from tests.ops.random_patterns import ptr
from tg_mlc.ops import Blocks


def test_blocks_of_several_sizes() -> None:
    pattern = Blocks(ptr([2, 1, 1]), ptr([1, 0, 2]))
    assert str(pattern) == "Blocks(num_samples=3, num_queries=4, num_keys=3)"
    assert (pattern.num_samples, pattern.num_edges) == (3, 4)
    assert (pattern.max_queries, pattern.max_keys) == (2, 2)
    assert pattern.to_edge_index().tolist() == [[0, 0, 1, 2], [0, 1, 3, 3]]


def test_errors() -> None:
    good = ptr([1, 2])
    with pytest.raises(TypeError, match=r"'key_ptr' to hold torch.long"):
        Blocks(good, good.float())
    with pytest.raises(ValueError, match=r"'query_ptr' to start at 0 and never to decrease"):
        Blocks(torch.tensor([0, 3, 2]), good)
    with pytest.raises(ValueError, match=r"'key_ptr' to start at 0 and never to decrease"):
        Blocks(good, torch.tensor([1, 3, 3]))
    with pytest.raises(ValueError, match=r"'key_ptr' of shape \[num_samples \+ 1\]"):
        Blocks(good, torch.tensor([[0, 1]]))
    with pytest.raises(ValueError, match=r"same number of samples \(got 2 and 1\)"):
        Blocks(good, ptr([3]))
    with pytest.raises(ValueError, match=r"'key_ptr' to end at the number of rows, 5 \(got 3\)"):
        Blocks(good, good, num_keys=5)
    with pytest.raises(ValueError, match=r"no sample of 'key_ptr' to be larger than 1 \(got 2\)"):
        Blocks(good, good, max_keys=1)
