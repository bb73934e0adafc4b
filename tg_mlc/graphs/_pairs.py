"""Conversion of a label graph into one number for every pair of labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tg_mlc.graphs.label_graph import LabelGraph


class Pairs(NamedTuple):
    """Every pair of different labels, in one order for all graphs of as many labels."""

    joined: np.ndarray  # whether the graph has the edge
    strength: np.ndarray  # its weight; less than that of any edge where there is none
    sources: np.ndarray  # of every label (row), as a matrix of truth values

    @property
    def num_pairs(self) -> int:
        return len(self.joined)

    @property
    def num_edges(self) -> int:
        return int(self.joined.sum())


def read_pairs(graph: LabelGraph, directed: bool) -> Pairs:
    """Reads ordered pairs, or unordered ones, of which each weighs the mean of the directions that are there."""
    graph = graph.remove_self_loops() if directed else graph.remove_self_loops().to_undirected(reduce="mean")
    source, target = graph.edge_index.cpu().numpy()
    weight = np.ones(len(source)) if graph.edge_weight is None else graph.edge_weight.detach().cpu().double().numpy()
    absent = min(0.0, float(weight.min()) - 1.0) if len(weight) and weight.min() <= 0 else 0.0
    joined = np.zeros((graph.num_labels, graph.num_labels), dtype=bool)
    strength = np.full(joined.shape, absent)
    joined[target, source] = True
    strength[target, source] = weight
    counted = ~np.eye(graph.num_labels, dtype=bool) if directed else np.tri(graph.num_labels, k=-1, dtype=bool)
    return Pairs(joined[counted], strength[counted], joined)
