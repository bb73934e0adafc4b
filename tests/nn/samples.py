"""Small ragged batches and label graphs, for the tests of the layers."""

from __future__ import annotations

import torch
from torch import Tensor

from tg_mlc.graphs import LabelGraph


def ragged(
    sizes: list[int], channels: int, seed: int = 0, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Component states of samples of the given sizes, and the sample of each."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(sum(sizes), channels, generator=generator, dtype=dtype)
    return x, torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


def path_graph(num_labels: int) -> LabelGraph:
    """Labels send to themselves and to the next one, except that the last one neither sends nor receives."""
    index = torch.arange(num_labels - 1)
    return LabelGraph(
        torch.cat([torch.stack([index[:-1], index[1:]]), index.expand(2, -1)], dim=1),
        num_nodes=num_labels,
    )


def complete_edges(batch: Tensor, num_labels: int) -> Tensor:
    """Edges from every component to all labels, in the order of the labels."""
    num_nodes = batch.numel()
    return torch.stack(
        [
            torch.arange(num_nodes).repeat(num_labels),
            torch.arange(num_labels).repeat_interleave(num_nodes),
        ]
    )
