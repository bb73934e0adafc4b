"""Methods of explaining: scores of the components of a few samples; each is an entry of METHODS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.index import ptr2index

from tg_mlc.explanations.network import Attention, NetworkProbe
from tg_mlc.explanations.question import Question

NUM_ORDERS = 3  #: random orders of components for Shapley values, and one beyond so many components
MANY = 64

#: For each sample, scores :math:`(C, L)` of components or of rows of states; :obj:`None` where a
#: method does not apply to a model.
Scores = list[np.ndarray] | None


class Chunk:
    """A few samples that a whole model is asked about, and what several methods ask of them.

    Args:
        question (Question): The model.
        samples (Sequence[Data]): The samples.
        labels (Sequence[int]): The labels to explain.
        given (Tensor, optional): Labels that are given :math:`(N, L)`. (default: :obj:`None`)
    """

    def __init__(
        self,
        question: Question,
        samples: Sequence[Data],
        labels: Sequence[int],
        given: Tensor | None = None,
    ) -> None:
        self.question = question
        self.samples = list(samples)
        self.labels = list(labels)
        self.given = given
        self.links = [question.kind.links(sample) for sample in self.samples]

    @cached_property
    def logits(self) -> np.ndarray:
        """The logits :math:`(N, L)` of the samples as they are."""
        return self._logits(self.samples, self.given)

    @cached_property
    def whole(self) -> np.ndarray:
        """The logits :math:`(N, L)` of samples that were made by hiding no component."""
        hide, kind = self.question.hide, self.question.kind
        everything = [np.ones(len(kind.components(sample)), bool) for sample in self.samples]
        hidden = [hide(sample, kept) for sample, kept in zip(self.samples, everything, strict=True)]
        return self._logits(hidden, self.given)

    def falls(self, start: np.ndarray, changed: Sequence[Sequence[Data]]) -> list[np.ndarray]:
        """Returns by how much logits fall :math:`(M, L)` in each of the changed samples that every
        sample has.

        Args:
            start (numpy.ndarray): The logits :math:`(N, L)` before the changes.
            changed (Sequence): The changed samples of every sample.
        """
        sizes = [len(variants) for variants in changed]
        rows = np.repeat(np.arange(len(sizes)), sizes)
        given = None if self.given is None else self.given[rows]
        logits = self._logits([sample for variants in changed for sample in variants], given)
        return np.split(start[rows] - logits, np.cumsum(sizes)[:-1])

    def _logits(self, samples: Sequence[Data], given: Tensor | None) -> np.ndarray:
        return self.question.logits(samples, given)[:, self.labels]

    @cached_property
    def occlusion(self) -> list[np.ndarray]:
        """By how much logits fall :math:`(C, L)` where one component of a sample is hidden."""
        changed, places = [], []
        for sample in self.samples:
            numbers = self.question.kind.symmetry(sample)
            _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
            hidden = np.eye(len(numbers), dtype=bool)[first]
            changed.append([self.question.hide(sample, ~mask) for mask in hidden])
            places.append(place)
        falls = self.falls(self.whole, changed)
        return [of_sample[place] for of_sample, place in zip(falls, places, strict=True)]


class NetworkView:
    """A few samples as one network reads them.

    Args:
        probe (NetworkProbe): The network.
        batch (Batch): The samples.
        labels (list[int]): The labels to explain.
    """

    def __init__(self, probe: NetworkProbe, batch: Batch, labels: list[int]) -> None:
        self.probe, self.batch, self.labels = probe, batch, labels

    @cached_property
    def attention(self) -> Attention | None:
        """Attention and states; :obj:`None` if labels pass and get no messages."""
        return self.probe.attention(self.batch)


def split(values: Tensor, ptr: Tensor) -> list[np.ndarray]:
    """Returns the rows of every sample."""
    return np.split(values.detach().double().cpu().numpy(), ptr[1:-1].tolist())


def attention(view: NetworkView) -> Scores:
    """The attention of a label to components, on average over steps and heads."""
    found = view.attention
    if found is None or not view.probe.reads_components:
        return None
    return split(found.to_components.mean(dim=(0, 1))[:, view.labels], found.ptr)


def rollout(view: NetworkView) -> Scores:
    """Attention followed through all steps and labels; half a weight is on what a label has."""
    found = view.attention
    if found is None or not view.probe.reads_components:
        return None
    sample = ptr2index(found.ptr)
    rolled = torch.zeros_like(found.to_components[0, 0])
    for step, to_components in enumerate(found.to_components.mean(dim=1)):
        rolled = (rolled + to_components) / 2
        if len(found.to_labels):
            among = found.to_labels[step].mean(dim=0)
            rolled = (rolled + torch.einsum("nj,nji->ni", rolled, among[sample])) / 2
    return split(rolled[:, view.labels], found.ptr)


def gradient(view: NetworkView) -> Scores:
    """Component states times gradients."""
    if not view.probe.has_states:
        return None
    return split(*view.probe.gradients(view.batch, view.labels)[:2])


def integrated_gradients(view: NetworkView) -> Scores:
    """Component states times gradients along the straight path from zero states."""
    if not view.probe.has_states:
        return None
    return split(*view.probe.integrated(view.batch, view.labels)[:2])


def alone(view: NetworkView) -> Scores:
    """By how much logits rise where labels attend to one component and to no other."""

    def score(row: int, size: int) -> np.ndarray:
        masks = np.concatenate([np.zeros((1, size), bool), np.eye(size, dtype=bool)])
        logits = view.probe.among(row, masks)
        return np.asarray(logits[1:] - logits[0])

    return _among(view, score)


def shapley(view: NetworkView) -> Scores:
    """Shapley values by random orders, each of them also backwards."""

    def score(row: int, size: int) -> np.ndarray:
        rng, number = np.random.default_rng(0), NUM_ORDERS if size <= MANY else 1
        forwards = [rng.permutation(size) for _ in range(number)]
        orders = [order for forward in forwards for order in (forward, forward[::-1])]
        ranks = np.stack([np.argsort(order) for order in orders])
        masks = ranks[:, None] < np.arange(size + 1)[:, None]  # [orders, size + 1, size]
        logits = view.probe.among(row, masks.reshape(-1, size))
        rises = np.diff(logits.reshape(len(orders), size + 1, -1), axis=1)
        return np.asarray(np.take_along_axis(rises, ranks[:, :, None], axis=1).mean(axis=0))

    return _among(view, score)


def _among(view: NetworkView, score: Callable[[int, int], np.ndarray]) -> Scores:
    """Scores of each sample by what labels read out of some of its components alone."""
    if view.probe.beside_labels(view.batch) is None:
        return None
    view.probe.logits(view.batch)
    sizes = view.probe.ptr.diff().tolist()
    return [score(row, size)[:, view.labels] for row, size in enumerate(sizes)]


def occlusion(chunk: Chunk) -> Scores:
    """By how much logits fall where one component of a sample is hidden."""
    return chunk.occlusion


def link_occlusion(chunk: Chunk) -> list[np.ndarray]:
    """By how much logits fall :math:`(K, L)` where one link of a sample is cut."""
    changed, places = [], []
    for sample, links in zip(chunk.samples, chunk.links, strict=True):
        _, first, place = np.unique(links.symmetry, return_index=True, return_inverse=True)
        cut = [chunk.question.kind.without_link(sample, index) for index in first.tolist()]
        changed.append(cut)
        places.append(place)
    falls = chunk.falls(chunk.logits, changed)
    return [of_sample[place] for of_sample, place in zip(falls, places, strict=True)]


def group_occlusion(chunk: Chunk) -> Scores:
    """By how much logits fall where all components of a group are hidden at once: the mean over the
    groups that a component belongs to; its own occlusion if there is none.
    """
    groups: list[np.ndarray] = []
    for sample in chunk.samples:
        of_sample = chunk.question.kind.groups(sample)
        if of_sample is None:
            return None
        groups.append(of_sample)
    changed = [
        [chunk.question.hide(sample, ~group) for group in of_sample]
        for sample, of_sample in zip(chunk.samples, groups, strict=True)
    ]
    scores = []
    all_falls = chunk.falls(chunk.whole, changed)
    for falls, of_sample, own in zip(all_falls, groups, chunk.occlusion, strict=True):
        count = of_sample.sum(axis=0)[:, None]
        means = of_sample.T @ falls / np.maximum(count, 1)
        scores.append(np.where(count > 0, means, own))
    return scores


class Method(NamedTuple):
    """A method of explaining."""

    #: Scores the components of a :class:`NetworkView`, or of a :class:`Chunk`.
    score: Callable[[Any], Scores]
    is_of_network: bool = True  #: whether it looks into each network, or asks the whole model
    is_signed: bool = True  #: whether a score tells if a component raises or lowers a logit
    #: Scores the links of the samples of a :class:`Chunk`, if the method scores them.
    score_links: Callable[[Chunk], list[np.ndarray]] | None = None


#: All methods by name, in the order in which they are tried.
METHODS: dict[str, Method] = {
    "attention": Method(attention, is_signed=False),
    "rollout": Method(rollout, is_signed=False),
    "gradient": Method(gradient),
    "integrated gradients": Method(integrated_gradients),
    "alone": Method(alone),
    "shapley": Method(shapley),
    "occlusion": Method(occlusion, is_of_network=False, score_links=link_occlusion),
    "group occlusion": Method(group_occlusion, is_of_network=False),
}
