"""Explanation methods, which score the components of a few samples; METHODS holds them by name.
Faithfulness measures how probabilities change if components are removed in order of their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from torch import Tensor
from torch_geometric.data import Batch, Data

from tg_mlc.explanations.explanation import Faithfulness
from tg_mlc.explanations.network import Attention, NetworkProbe
from tg_mlc.explanations.question import Question
from tg_mlc.inputs.components import Links

#: Per sample, the scores :math:`(C, L)` of components or of rows of states; :obj:`None` if the
#: method does not apply to the model.
Scores = list[np.ndarray] | None

#: Fractions of components at which curves are evaluated, besides 0 and 1.
FRACTIONS = (0.1, 0.2, 0.3, 0.5, 0.75)
RANDOM = "random"  #: The name under which random orders are reported.
NUM_RANDOM = 2  #: The number of random orders per sample and label.
PER_SAMPLE = 2  #: Maximum number of labels per sample that faithfulness is measured on.
MIN_CURVES = 10  #: The minimum number of faithfulness curves, if there are enough samples.


@dataclass
class Chunk:
    """A few samples for methods that query the whole model, and results that methods share."""

    question: Question
    samples: list[Data]
    labels: list[int]  #: the labels to explain
    given: Tensor | None = None  #: given labels :math:`(N, L)`

    @cached_property
    def links(self) -> list[Links]:
        """The links of each sample."""
        return [self.question.kind.links(sample) for sample in self.samples]

    @cached_property
    def whole(self) -> np.ndarray:
        """The logits :math:`(N, L)` of samples after :obj:`hide` without a hidden component."""
        question = self.question
        sizes = [len(question.kind.components(sample)) for sample in self.samples]
        pairs = zip(self.samples, sizes, strict=True)
        return self.logits([question.hide(sample, np.ones(size, bool)) for sample, size in pairs])

    def logits(self, samples: Sequence[Data], rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Returns the logits of changed samples. ``rows`` are the indices of their given labels."""
        given = None if self.given is None else self.given[rows]
        return self.question.logits(samples, given)[:, self.labels]

    def falls(self, start: np.ndarray, changed: Sequence[Sequence[Data]]) -> list[np.ndarray]:
        """Returns, for each sample, how far logits fall :math:`(M, L)` in its :math:`M` changed
        copies, compared with ``start``, the logits :math:`(N, L)` of unchanged samples.
        """
        sizes = [len(variants) for variants in changed]
        rows = np.repeat(np.arange(len(sizes)), sizes)
        logits = self.logits([sample for variants in changed for sample in variants], rows)
        return np.split(start[rows] - logits, np.cumsum(sizes)[:-1])

    def falls_without_each(
        self,
        start: np.ndarray,
        symmetries: Sequence[np.ndarray],
        change: Callable[[Data, int], Data],
    ) -> list[np.ndarray]:
        """Returns how far logits fall :math:`(M, L)` if one part of a sample is changed. Parts of a
        sample with the same symmetry number share the result of the first of them.
        """
        changed, indices = [], []
        for sample, numbers in zip(self.samples, symmetries, strict=True):
            _, first_parts, part_index = np.unique(numbers, return_index=True, return_inverse=True)
            changed.append([change(sample, part) for part in first_parts.tolist()])
            indices.append(part_index)
        falls = self.falls(start, changed)
        return [values[part_index] for values, part_index in zip(falls, indices, strict=True)]

    @cached_property
    def occlusion(self) -> list[np.ndarray]:
        """How far logits fall :math:`(C, L)` if one component is hidden."""
        kind = self.question.kind

        def without(sample: Data, component: int) -> Data:
            is_kept = np.arange(len(kind.components(sample))) != component
            return self.question.hide(sample, is_kept)

        symmetries = [kind.symmetry(sample) for sample in self.samples]
        return self.falls_without_each(self.whole, symmetries, without)


@dataclass
class NetworkView:
    """A batch of a few samples for one network."""

    probe: NetworkProbe
    batch: Batch
    labels: list[int]  #: the labels to explain

    @cached_property
    def attention(self) -> Attention | None:
        """Attention and states; :obj:`None` if labels neither pass nor get messages."""
        return self.probe.attention(self.batch)


def split(values: Tensor, ptr: Tensor) -> list[np.ndarray]:
    """Returns values split into the rows of each sample."""
    return np.split(values.detach().double().cpu().numpy(), ptr[1:-1].tolist())


def attention(view: NetworkView) -> Scores:
    """Returns the attention of labels to components, averaged over steps and heads."""
    weights = view.attention
    if weights is None or not view.probe.reads_components:
        return None
    return split(weights.to_components.mean(dim=(0, 1))[:, view.labels], weights.ptr)


def integrated_gradients(view: NetworkView) -> Scores:
    """Returns component states times mean gradients on the straight path from zero states."""
    if not view.probe.has_states:
        return None
    return split(*view.probe.integrated(view.batch, view.labels)[:2])


def alone(view: NetworkView) -> Scores:
    """Returns how far logits rise if labels attend to a single component."""
    if view.probe.bypass(view.batch) is None:
        return None
    view.probe.logits(view.batch)
    return [view.probe.alone(row)[:, view.labels] for row in range(len(view.probe.ptr) - 1)]


def occlusion(chunk: Chunk) -> Scores:
    """Returns how far logits fall if one component of a sample is hidden."""
    return chunk.occlusion


def link_occlusion(chunk: Chunk) -> list[np.ndarray]:
    """Returns how far logits fall :math:`(K, L)` if one link of a sample is cut."""
    symmetries = [links.symmetry for links in chunk.links]
    start, cut = chunk.logits(chunk.samples), chunk.question.kind.without_link
    return chunk.falls_without_each(start, symmetries, cut)


def group_occlusion(chunk: Chunk) -> Scores:
    """Returns how far logits fall if all components of a group are hidden: for each component, the
    mean over its groups, or its own occlusion if it has no group.
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
    for group_falls, masks, own_falls in zip(falls, groups, chunk.occlusion, strict=True):
        count = masks.sum(axis=0)[:, None]
        means = masks.T @ group_falls / np.maximum(count, 1)
        scores.append(np.where(count > 0, means, own_falls))
    return scores


class Method(NamedTuple):
    """An explanation method."""

    #: Scores the components of a :class:`NetworkView`, or of a :class:`Chunk`.
    score: Callable[[Any], Scores]
    is_of_network: bool = True  #: whether the method takes a NetworkView, not a Chunk
    is_signed: bool = True  #: whether the sign of a score says if a component raises a logit
    #: Scores the links of the samples of a :class:`Chunk`, if the method scores them.
    score_links: Callable[[Chunk], list[np.ndarray]] | None = None


#: All methods by name, in the order in which they are run.
METHODS: dict[str, Method] = {
    "attention": Method(attention, is_signed=False),
    "integrated gradients": Method(integrated_gradients),
    "alone": Method(alone),
    "occlusion": Method(occlusion, is_of_network=False, score_links=link_occlusion),
    "group occlusion": Method(group_occlusion, is_of_network=False),
}


def num_measured(question: Question, num_methods: int, num_labels: int) -> int:
    """Returns the number of samples on which faithfulness is measured."""
    per_sample = min(PER_SAMPLE, num_labels)
    num_hidden = 2 * len(FRACTIONS) * per_sample * (num_methods + NUM_RANDOM)
    return max(-(-MIN_CURVES // per_sample), question.max_hidden // num_hidden)


def faithfulness(
    question: Question, scores: Sequence[Mapping[str, np.ndarray]], labels: Sequence[int]
) -> dict[str, Faithfulness]:
    """Measures how faithful the scores of each method and random orders are, on the most probable
    labels of each sample.

    Args:
        question (Question): The model and samples.
        scores (Sequence): Per measured sample, the scores :math:`(C, L)` by method. Components
            that cannot be hidden are skipped.
        labels (Sequence[int]): The labels of the scores.
    """
    rng = np.random.default_rng(0)
    areas: dict[str, list[np.ndarray]] = {}
    for row, (sample, scores_by_method) in enumerate(zip(question.samples, scores, strict=False)):
        size = len(question.kind.components(sample))
        given = None if question.given is None else question.given[row : row + 1]
        initial = question.logits([sample], given)[0, labels]
        orders: list[tuple[str, int, np.ndarray]] = []
        for label in np.argsort(-initial, kind="stable")[:PER_SAMPLE]:
            for method, all_values in scores_by_method.items():
                values = all_values[:size, label]
                if not np.isnan(values).any():
                    orders.append((method, label, np.argsort(-values, kind="stable")))
            orders += [(RANDOM, label, rng.permutation(size)) for _ in range(NUM_RANDOM)]
        steps = np.unique([0, size, *(int(np.ceil(fraction * size)) for fraction in FRACTIONS)])
        # The masks of each order: while components are removed (0) and while they are added (1).
        ranks = np.stack([np.argsort(order) for _, _, order in orders])
        added = ranks[:, None] < steps[:, None]
        present = np.stack([~added, added], axis=2)  # [orders, steps, 2, C]
        masks, mask_index = np.unique(present.reshape(-1, size), axis=0, return_inverse=True)
        hidden = [question.hide(sample, mask) for mask in masks]
        logits = question.logits(hidden, None if given is None else given.expand(len(masks), -1))
        probability = expit(logits)[:, labels]
        indices = mask_index.reshape(len(orders), -1, 2)
        for (method, label, _), rows in zip(orders, indices, strict=True):
            curves = probability[rows, label]  # [steps, 2]
            area = (np.diff(steps) / size) @ ((curves[1:] + curves[:-1]) / 2)
            areas.setdefault(method, []).append(area)
    measured = {}
    for method, pairs in areas.items():
        deletion, insertion = map(float, np.mean(pairs, axis=0))
        measured[method] = Faithfulness(deletion, insertion, len(pairs))
    return measured
