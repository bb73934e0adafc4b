from __future__ import annotations

from typing import Literal

import pytest
import torch

from tg_mlc.graphs import LabelGraph


def shuffled_tree(depth: int) -> LabelGraph:
    """A binary tree whose labels are numbered at random."""
    child = torch.arange(1, 2**depth - 1)
    edges = torch.stack([(child - 1) // 2, child])
    place = torch.randperm(2**depth - 1, generator=torch.Generator().manual_seed(0))
    return LabelGraph(place[edges], num_nodes=2**depth - 1).to_undirected()


def mean_distance(graph: LabelGraph) -> float:
    return (graph.edge_index[0] - graph.edge_index[1]).abs().double().mean().item()


@pytest.mark.parametrize("method", ["rcm", "tree"])
def test_neighbours_come_close(method: Literal["rcm", "tree"]) -> None:
    graph = shuffled_tree(8)
    order = graph.locality_order(method)
    assert order.sort().values.tolist() == list(range(255))
    assert mean_distance(graph.permute(order)) < mean_distance(graph) / 2


@pytest.mark.parametrize("method", ["rcm", "tree"])
def test_isolated_labels_and_loops_are_kept(method: Literal["rcm", "tree"]) -> None:
    graph = LabelGraph(torch.tensor([[0, 4, 2], [4, 0, 2]]), num_nodes=6)
    assert graph.locality_order(method).sort().values.tolist() == list(range(6))


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"'method' to be one of rcm, tree \(got 'size'\)"):
        shuffled_tree(2).locality_order("size")  # type: ignore[arg-type]
