"""Methods of explaining score the components of a few samples; METHODS holds them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor
from torch_geometric.data import Batch, Data

from tg_mlc.explanations.network import Attention, NetworkProbe
from tg_mlc.explanations.question import Question

#: For each sample, scores :math:`(C, L)` of components or of rows of states; :obj:`None` if the
#: method does not apply to the model.
Scores = list[np.ndarray] | None


class Chunk:
    """A few samples that a whole model is asked about, and answers that several methods need.

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
        question = self.question
        sizes = [len(question.kind.components(sample)) for sample in self.samples]
        pairs = zip(self.samples, sizes, strict=True)
        hidden = [question.hide(sample, np.ones(size, bool)) for sample, size in pairs]
        return self._logits(hidden, self.given)

    def falls(self, start: np.ndarray, changed: Sequence[Sequence[Data]]) -> list[np.ndarray]:
        """Returns by how much logits fall :math:`(M, L)` in the changed samples of each sample.

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
        changed, indices = [], []
        for sample in self.samples:
            numbers = self.question.kind.symmetry(sample)
            _, first, index = np.unique(numbers, return_index=True, return_inverse=True)
            hidden = np.eye(len(numbers), dtype=bool)[first]
            changed.append([self.question.hide(sample, ~mask) for mask in hidden])
            indices.append(index)
        falls = self.falls(self.whole, changed)
        return [rows[index] for rows, index in zip(falls, indices, strict=True)]


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
    """The attention of a label to components, averaged over steps and heads."""
    weights = view.attention
    if weights is None or not view.probe.reads_components:
        return None
    return split(weights.to_components.mean(dim=(0, 1))[:, view.labels], weights.ptr)


def integrated_gradients(view: NetworkView) -> Scores:
    """Component states times gradients along the straight path from zero states."""
    if not view.probe.has_states:
        return None
    return split(*view.probe.integrated(view.batch, view.labels)[:2])


def alone(view: NetworkView) -> Scores:
    """By how much logits rise where labels attend to one component and to no other."""
    if view.probe.bypass(view.batch) is None:
        return None
    view.probe.logits(view.batch)
    return [view.probe.alone(row)[:, view.labels] for row in range(len(view.probe.ptr) - 1)]


def occlusion(chunk: Chunk) -> Scores:
    """By how much logits fall where one component of a sample is hidden."""
    return chunk.occlusion


def link_occlusion(chunk: Chunk) -> list[np.ndarray]:
    """By how much logits fall :math:`(K, L)` where one link of a sample is cut."""
    changed, indices = [], []
    for sample, links in zip(chunk.samples, chunk.links, strict=True):
        _, first, index = np.unique(links.symmetry, return_index=True, return_inverse=True)
        cut = [chunk.question.kind.without_link(sample, link) for link in first.tolist()]
        changed.append(cut)
        indices.append(index)
    falls = chunk.falls(chunk.logits, changed)
    return [rows[index] for rows, index in zip(falls, indices, strict=True)]


def group_occlusion(chunk: Chunk) -> Scores:
    """By how much logits fall where all components of a group are hidden at once: the mean over the
    groups that a component belongs to; its own occlusion if it belongs to none.
    """
    groups: list[np.ndarray] = []
    changed = []
    for sample in chunk.samples:
        masks = chunk.question.kind.groups(sample)
        if masks is None:
            return None
        groups.append(masks)
        changed.append([chunk.question.hide(sample, ~group) for group in masks])
    scores = []
    falls = chunk.falls(chunk.whole, changed)
    for rows, masks, own in zip(falls, groups, chunk.occlusion, strict=True):
        count = masks.sum(axis=0)[:, None]
        means = masks.T @ rows / np.maximum(count, 1)
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
    "integrated gradients": Method(integrated_gradients),
    "alone": Method(alone),
    "occlusion": Method(occlusion, is_of_network=False, score_links=link_occlusion),
    "group occlusion": Method(group_occlusion, is_of_network=False),
}
