"""Similarity of groups of nouns, by the places of their synsets in WordNet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby

import networkx as nx
import numpy as np

Hypernyms = Mapping[int, tuple[int, ...]]
Ways = dict[int, dict[int, int]]


def wu_palmer(hypernyms: Hypernyms, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the similarity of every two groups, that of their most similar synsets; zero where one is empty, or no
    synset is above both.

    Depths and ways are those of NLTK: the lowest common synset is the one whose shortest way to the top is longest,
    and its depth is that of its longest way. Of several, NLTK takes the first by name; here it is the one that makes
    the two most similar, so that their order does not matter.
    """
    out = np.zeros((len(groups), len(groups)))
    owners: dict[int, list[int]] = {}
    for label, group in enumerate(groups):
        for synset in group:
            owners.setdefault(synset, []).append(label)
    place = {synset: column for column, synset in enumerate(owners)}
    filled = [label for label, group in enumerate(groups) if group]
    columns = [place[synset] for label in filled for synset in groups[label]]
    starts = np.cumsum([0, *(len(groups[label]) for label in filled)])[:-1]
    for labels, row in zip(owners.values(), _rows(hypernyms, list(owners)), strict=True):
        similarity = np.maximum.reduceat(row[columns], starts)
        for label in labels:
            out[label, filled] = np.maximum(out[label, filled], similarity)
    return out


def _rows(hypernyms: Hypernyms, synsets: list[int]) -> Iterable[np.ndarray]:
    """The similarity of each synset to all of them, one at a time, as all at once may not fit in memory."""
    above: nx.DiGraph[int] = nx.DiGraph(dict[int, Iterable[int]](hypernyms))
    ways: Ways = {}
    distances = [_distances(above, synset, ways) for synset in synsets]
    depth = _depths(hypernyms, {ancestor for distance in distances for ancestor in distance})
    below: dict[int, list[tuple[int, int]]] = {}
    for column, distance in enumerate(distances):
        for ancestor, steps in distance.items():
            below.setdefault(ancestor, []).append((column, steps))
    arrays = {ancestor: np.array(pairs).T for ancestor, pairs in below.items()}
    for distance in distances:
        row = np.zeros(len(synsets))
        by_depth = sorted(distance, key=lambda ancestor: depth[ancestor][0])
        for _, level in groupby(by_depth, key=lambda ancestor: depth[ancestor][0]):
            lowest = np.zeros(len(synsets))
            for ancestor in level:
                columns, steps = arrays[ancestor]
                top = 2.0 * (depth[ancestor][1] + 1)
                lowest[columns] = np.maximum(lowest[columns], top / (top + steps + distance[ancestor]))
            row = np.where(lowest > 0, lowest, row)  # the deeper common synset counts, however similar
        yield row


def _distances(above: nx.DiGraph[int], synset: int, ways: Ways) -> dict[int, int]:
    """The length of the shortest way to every synset above, which may lead over one that is above both."""
    own = nx.single_source_shortest_path_length(above, synset)
    for ancestor in own.keys() - ways.keys():
        ways[ancestor] = nx.single_source_shortest_path_length(above, ancestor)
    return {ancestor: min(own[up] + steps for up, steps in ways[ancestor].items()) for ancestor in own}


def _depths(hypernyms: Hypernyms, synsets: Iterable[int]) -> dict[int, tuple[int, int]]:
    """The numbers of steps on the shortest and on the longest way to a synset without any above."""
    depths: dict[int, tuple[int, int]] = {}
    try:
        for synset in TopologicalSorter({synset: hypernyms[synset] for synset in synsets}).static_order():
            above = [depths[up] for up in hypernyms[synset]]
            depths[synset] = (1 + min(up[0] for up in above), 1 + max(up[1] for up in above)) if above else (0, 0)
    except CycleError as error:
        circle = " -> ".join(f"{synset:08d}" for synset in error.args[1])
        raise ValueError(f"Expected no synset above itself (got {circle}); get WordNet's files once more") from None
    return depths
