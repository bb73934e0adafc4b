"""Some labels for each sample, for label graphs of many thousand labels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.index import index2ptr

from tg_mlc.graphs.hierarchy import pairs_of
from tg_mlc.ops.patterns import adjacency_of, to_list


class Shortlist(NamedTuple):
    """The labels that each of :math:`B` samples is to be asked for, :math:`M` altogether."""

    label: Tensor  #: the labels :math:`(M)`, those of each sample in ascending order
    ptr: Tensor  #: where those of each sample begin and end :math:`(B + 1)`
    #: the edges of the label graph among the labels of each sample, between places :math:`(2, E)`
    edge_index: Tensor

    @property
    def sample(self) -> Tensor:
        """The sample of every label :math:`(M)`."""
        return torch.repeat_interleave(self.ptr.diff())

    def pick(self, values: Tensor) -> Tensor:
        """The values :math:`(M, *)` of these labels, of values :math:`(B, L, *)` of all."""
        if len(values) != self.ptr.numel() - 1:
            got = f"{self.ptr.numel() - 1} shortlists for {len(values)} samples"
            raise ValueError(f"Expected a shortlist for each sample (got {got})")
        return values[self.sample, self.label]


class Shortlister:
    r"""Makes shortlists of candidates, to which it adds their ancestors in a hierarchy, so that predictions can be made
    coherent, with the label graph induced on them. Its time does not grow with the number of labels, but with those of
    candidates and of their neighbours.

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
        self._above = None if parents is None else grouped(pairs_of(label_graph), self.num_labels)

    def __call__(self, candidates: Tensor) -> Shortlist:
        """Makes the shortlists of candidates :math:`(B, K)`, labels of each sample."""
        if candidates.dim() != 2:
            raise ValueError(
                f"Expected 'candidates' of shape [B, K] (got {list(candidates.shape)})"
            )
        sample = torch.arange(candidates.size(0), device=candidates.device).repeat_interleave(
            candidates.size(1)
        )
        keys = sample * self.num_labels + candidates.flatten()
        if self._above is not None:
            place, above = gathered(candidates.flatten(), *self._above)
            keys = torch.cat([keys, sample[place] * self.num_labels + above])
        keys = torch.unique(keys)  # sorted by sample, then by label
        sample, label = keys // self.num_labels, keys % self.num_labels
        place, neighbour = gathered(label, *self._neighbours)
        wanted = sample[place] * self.num_labels + neighbour
        found = torch.searchsorted(keys, wanted).clamp(max=max(len(keys) - 1, 0))
        listed = keys[found] == wanted
        edge_index = torch.stack([found[listed], place[listed]])
        return Shortlist(label, index2ptr(sample, candidates.size(0)), edge_index)


def grouped(edge_index: Tensor, num_targets: int) -> tuple[Tensor, Tensor]:
    """Pointers to the sources of every target, and these."""
    source, target = edge_index
    order = target.argsort(stable=True)
    return index2ptr(target[order], num_targets), source[order]


def gathered(target: Tensor, ptr: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
    """The sources of some targets, each with the place of its target."""
    begin, count = ptr[target], ptr[target + 1] - ptr[target]
    place = torch.repeat_interleave(count)
    within = torch.arange(len(place), device=target.device) - (count.cumsum(0) - count)[place]
    return place, source[begin[place] + within]
