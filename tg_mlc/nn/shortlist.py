"""Shortlists of labels for each sample, for label graphs with many thousand labels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.index import index2ptr

from tg_mlc.graphs.hierarchy import pairs_of
from tg_mlc.ops.patterns import adjacency_of, shape_error, to_list


class Shortlist(NamedTuple):
    """The labels to compute for each of :math:`B` samples, :math:`M` in total."""

    label: Tensor  #: the labels :math:`(M)`, sorted by sample and label
    ptr: Tensor  #: bounds of each sample's labels :math:`(B + 1)`
    edge_index: Tensor  #: edges :math:`(2, E)` within samples, as indices into :obj:`label`

    @property
    def sample(self) -> Tensor:
        """The sample index :math:`(M)` of each label."""
        return torch.repeat_interleave(self.ptr.diff())

    def pick(self, values: Tensor) -> Tensor:
        """Selects values :math:`(M, *)` of the shortlist from values :math:`(B, L, *)`."""
        if len(values) != self.ptr.numel() - 1:
            got = f"{self.ptr.numel() - 1} shortlists for {len(values)} samples"
            raise ValueError(f"Expected a shortlist for each sample (got {got})")
        return values[self.sample, self.label]


class Shortlister:
    r"""Makes shortlists of candidates and their ancestors in a hierarchy, with the edges among
    these labels. Time grows with the candidates and their neighbours, not with all labels.

    .. code-block:: python

        shortlist = Shortlister(label_graph)(scores.topk(100).indices)
        states = labels(x, ptr=ptr, shortlist=shortlist)
        logits = head(states, shortlist.label)

    Args:
        label_graph (LabelGraph): The label graph.
    """

    def __init__(self, label_graph: Data) -> None:
        self.num_labels = int(label_graph.num_nodes or 0)
        self._neighbours = grouped(to_list(adjacency_of(label_graph)), self.num_labels)
        parents = label_graph.get("parent_index")
        self._ancestors = (
            None if parents is None else grouped(pairs_of(label_graph), self.num_labels)
        )

    def __call__(self, candidates: Tensor) -> Shortlist:
        """Makes shortlists from candidate labels :math:`(B, K)`."""
        if candidates.dim() != 2:
            raise shape_error("'candidates'", "[B, K]", candidates)
        sample = torch.arange(candidates.size(0), device=candidates.device)
        sample = sample.repeat_interleave(candidates.size(1))
        keys = sample * self.num_labels + candidates.flatten()
        if self._ancestors is not None:
            index, ancestor = gathered(candidates.flatten(), *self._ancestors)
            keys = torch.cat([keys, sample[index] * self.num_labels + ancestor])
        keys = torch.unique(keys)  # sorted by sample, then by label
        sample, label = keys // self.num_labels, keys % self.num_labels
        index, neighbour = gathered(label, *self._neighbours)
        neighbour_keys = sample[index] * self.num_labels + neighbour
        position = torch.searchsorted(keys, neighbour_keys).clamp(max=max(len(keys) - 1, 0))
        is_in_shortlist = keys[position] == neighbour_keys
        edge_index = torch.stack([position[is_in_shortlist], index[is_in_shortlist]])
        return Shortlist(label, index2ptr(sample, candidates.size(0)), edge_index)


def grouped(edge_index: Tensor, num_targets: int) -> tuple[Tensor, Tensor]:
    """Returns bounds of each target's sources, and sources sorted by target."""
    source, target = edge_index
    order = target.argsort(stable=True)
    return index2ptr(target[order], num_targets), source[order]


def gathered(target: Tensor, ptr: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
    """Returns all sources of targets, after the index of each source's target in ``target``."""
    begin, count = ptr[target], ptr[target + 1] - ptr[target]
    index = torch.repeat_interleave(count)
    offset = torch.arange(len(index), device=target.device) - (count.cumsum(0) - count)[index]
    return index, source[begin[index] + offset]
