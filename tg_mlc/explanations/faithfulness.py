"""Masks: what happens to a probability as components or bonds are removed, one by one or in an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc.explanations.explanation import Faithfulness
from tg_mlc.explanations.subject import Subject
from tg_mlc.inputs.molecules import Molecules
from tg_mlc.inputs.smiles import without_bond

#: Shares of components at which curves are read, between none and all.
SHARES = (0.1, 0.2, 0.3, 0.5, 0.75)
RANDOM = "random"  #: the name of an order by chance
NUM_RANDOM = 2  #: orders by chance for each sample and label


def occlusion(
    subject: Subject,
    samples: Sequence[Data],
    labels: Sequence[int],
    given: Tensor | None = None,
    of_groups: bool = True,
) -> list[dict[str, np.ndarray]]:
    """By how much the logits fall :math:`(C, L)` where one component of a sample is masked, for every sample; and, if
    asked for, of molecules, where all atoms of a group are masked at once: the mean over the groups that an atom
    belongs to; if there is none, its own.
    """
    masked: list[list[Data]] = []
    chosen: list[tuple[np.ndarray, np.ndarray]] = []
    for sample in samples:
        _, first, place = np.unique(subject.symmetry(sample), return_index=True, return_inverse=True)
        groups = subject.groups(sample) if of_groups else np.zeros((0, len(place)), bool)
        removed = np.concatenate([np.zeros((1, len(place)), bool), np.eye(len(place), dtype=bool)[first], groups])
        masked.append([subject.masked(sample, ~mask) for mask in removed])
        chosen.append((place, groups))
    found = []
    for falls, (place, groups) in zip(_falls(subject, masked, labels, given), chosen, strict=True):
        number = len(falls) - len(groups)
        scores = {"occlusion": falls[:number][place]}
        if of_groups and isinstance(subject.kind, Molecules):
            count = groups.sum(axis=0)[:, None]
            means = groups.T @ falls[number:] / np.maximum(count, 1)
            scores["group occlusion"] = np.where(count > 0, means, scores["occlusion"])
        found.append(scores)
    return found


def bond_occlusion(
    subject: Subject, samples: Sequence[Data], labels: Sequence[int], given: Tensor | None = None
) -> list[np.ndarray]:
    """By how much the logits fall :math:`(K, L)` where one bond of a molecule is cut, for every sample."""
    if not isinstance(subject.kind, Molecules):
        return [np.empty((0, len(labels)))] * len(samples)
    changed: list[list[Data]] = []
    places: list[np.ndarray] = []
    for sample in samples:
        cut = [without_bond(sample.smiles, bond) for bond in range(len(subject.kind.bonds(sample)[0]))]
        _, first, place = np.unique(np.array(cut, str), return_index=True, return_inverse=True)
        changed.append([sample, *(subject.kind.without_bond(sample, bond) for bond in first.tolist())])
        places.append(place)
    return [falls[place] for falls, place in zip(_falls(subject, changed, labels, given), places, strict=True)]


def _falls(
    subject: Subject, variants: list[list[Data]], labels: Sequence[int], given: Tensor | None
) -> list[np.ndarray]:
    """By how much the logits fall from the first of each sample's variants to each of the others."""
    sizes = list(map(len, variants))
    known = None if given is None else given[np.repeat(np.arange(len(sizes)), sizes)]
    logits = subject.logits([each for of_sample in variants for each in of_sample], known).numpy()[:, labels]
    return [part[0] - part[1:] for part in np.split(logits, np.cumsum(sizes)[:-1])]


def faithfulness(
    subject: Subject,
    samples: Sequence[Data],
    scores: Sequence[Mapping[str, np.ndarray]],
    labels: Sequence[int],
    *,
    given: Tensor | None = None,
    per_sample: int = 2,
    seed: int = 0,
) -> dict[str, Faithfulness]:
    """Measures how faithful the scores of each method are, and a random order.

    Args:
        subject (Subject): The model.
        samples (Sequence[Data]): Samples of it.
        scores (Sequence): For each sample the scores :math:`(C, L)` by method; those of components that cannot be
            masked are left out.
        labels (Sequence[int]): The labels that scores are of.
        given (torch.Tensor, optional): The labels :math:`(N, L)` that the samples are given. (default: :obj:`None`)
        per_sample (int, optional): For how many labels of a sample, the most probable ones. (default: :obj:`2`)
        seed (int, optional): Seed of random orders. (default: :obj:`0`)
    """
    rng = np.random.default_rng(seed)
    areas: dict[str, list[tuple[float, float]]] = {}
    for row, (sample, by_method) in enumerate(zip(samples, scores, strict=True)):
        number = len(subject.components(sample))
        known = None if given is None else given[row].view(1, -1)
        whole = subject.logits([sample], known).numpy()[0, labels]
        orders: list[tuple[str, int, np.ndarray]] = []
        for label in np.argsort(-whole, kind="stable")[:per_sample]:
            found = {method: each[:number, label] for method, each in by_method.items()}
            applies = {method: each for method, each in found.items() if not np.isnan(each).any()}
            orders += [(method, label, np.argsort(-each, kind="stable")) for method, each in applies.items()]
            orders += [(RANDOM, label, rng.permutation(number)) for _ in range(NUM_RANDOM)]
        steps = np.unique([0, number, *(int(np.ceil(share * number)) for share in SHARES)])
        # By order, what is removed and what is added, [orders, steps, 2, C].
        ranks = np.stack([np.argsort(order) for _, _, order in orders])
        added = ranks[:, None] < steps[:, None]
        masks, place = np.unique(np.stack([~added, added], axis=2).reshape(-1, number), axis=0, return_inverse=True)
        masked = [subject.masked(sample, mask) for mask in masks]
        logits = subject.logits(masked, None if known is None else known.expand(len(masks), -1))
        probability = expit(logits.numpy())[:, labels]
        for each, (method, label, _) in enumerate(orders):
            curves = probability[place.reshape(len(orders), -1, 2)[each], label]  # [steps, 2]
            both = (np.diff(steps) / number) @ ((curves[1:] + curves[:-1]) / 2)
            areas.setdefault(method, []).append((float(both[0]), float(both[1])))
    means = {method: np.mean(each, axis=0) for method, each in areas.items()}
    return {method: Faithfulness(float(d), float(i), len(areas[method])) for method, (d, i) in means.items()}
