"""Checks of indices and pointers, with messages that a user can act on."""

from __future__ import annotations

import torch
from torch import Tensor


def longest(ptr: Tensor) -> int:
    """The size of the largest segment of a pointer."""
    return int(ptr.diff().max()) if ptr.numel() > 1 else 0


def check_edge_index(edge_index: Tensor, num_sources: int, num_targets: int) -> None:
    """Raises a clear error unless :obj:`edge_index` fits the given numbers of nodes."""
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"Expected 'edge_index' to be a tensor (got {type(edge_index).__name__})")
    if edge_index.dtype != torch.long:
        raise TypeError(f"Expected 'edge_index' to hold torch.long (got {edge_index.dtype}); cast it with '.long()'")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"Expected 'edge_index' of shape [2, num_edges] (got {list(edge_index.shape)})")
    for name, index, size in (("source", edge_index[0], num_sources), ("target", edge_index[1], num_targets)):
        if index.numel() > 0 and (int(index.min()) < 0 or int(index.max()) >= size):
            raise ValueError(
                f"Expected the {name} indices of 'edge_index' to lie in [0, {size}) "
                f"(got values from {int(index.min())} to {int(index.max())})"
            )


def check_ptr(name: str, ptr: Tensor, total: int | None, max_size: int | None) -> None:
    """Raises a clear error unless :obj:`ptr` is a pointer over :obj:`total` rows."""
    if ptr.dtype != torch.long:
        raise TypeError(f"Expected '{name}' to hold torch.long (got {ptr.dtype}); cast it with '.long()'")
    if ptr.dim() != 1 or ptr.numel() == 0:
        raise ValueError(f"Expected '{name}' of shape [num_samples + 1] (got {list(ptr.shape)})")
    if int(ptr[0]) != 0 or bool((ptr.diff() < 0).any()):
        raise ValueError(f"Expected '{name}' to start at 0 and never to decrease (got {ptr.tolist()[:8]}...)")
    if total is not None and int(ptr[-1]) != total:
        raise ValueError(f"Expected '{name}' to end at the number of rows, {total} (got {int(ptr[-1])})")
    if max_size is not None and longest(ptr) > max_size:
        raise ValueError(f"Expected no sample of '{name}' to be larger than {max_size} (got {longest(ptr)})")
