"""Faithfulness: what happens to a probability as components are removed in the order of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc.explanations.explanation import Faithfulness
from tg_mlc.explanations.question import Question

#: Fractions of components at which curves are read, between none and all.
FRACTIONS = (0.1, 0.2, 0.3, 0.5, 0.75)
RANDOM = "random"  #: The name of a random order.
NUM_RANDOM = 2  #: Random orders of each sample and label.


def faithfulness(
    question: Question,
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
        question (Question): The model.
        samples (Sequence[Data]): Samples of it.
        scores (Sequence): For each sample the scores :math:`(C, L)` by method; those of components
            that cannot be hidden are skipped.
        labels (Sequence[int]): The labels that scores are of.
        given (torch.Tensor, optional): The labels :math:`(N, L)` that the samples are given.
            (default: :obj:`None`)
        per_sample (int, optional): The number of labels of a sample, the most probable ones.
            (default: :obj:`2`)
        seed (int, optional): Seed of random orders. (default: :obj:`0`)
    """
    rng = np.random.default_rng(seed)
    areas: dict[str, list[np.ndarray]] = {}
    for row, (sample, by_method) in enumerate(zip(samples, scores, strict=True)):
        number = len(question.kind.components(sample))
        known = None if given is None else given[row].view(1, -1)
        whole = question.logits([sample], known)[0, labels]
        orders: list[tuple[str, int, np.ndarray]] = []
        for label in np.argsort(-whole, kind="stable")[:per_sample]:
            for method, all_values in by_method.items():
                values = all_values[:number, label]
                if not np.isnan(values).any():
                    orders.append((method, label, np.argsort(-values, kind="stable")))
            orders += [(RANDOM, label, rng.permutation(number)) for _ in range(NUM_RANDOM)]
        steps = np.unique([0, number, *(int(np.ceil(part * number)) for part in FRACTIONS)])
        # Masks of each order while components are removed, and while they are added.
        ranks = np.stack([np.argsort(order) for _, _, order in orders])
        added = ranks[:, None] < steps[:, None]
        both = np.stack([~added, added], axis=2)  # [orders, steps, 2, C]
        masks, index = np.unique(both.reshape(-1, number), axis=0, return_inverse=True)
        hidden = [question.hide(sample, mask) for mask in masks]
        logits = question.logits(hidden, None if known is None else known.expand(len(masks), -1))
        probability = expit(logits)[:, labels]
        indices = index.reshape(len(orders), -1, 2)
        for (method, label, _), of_order in zip(orders, indices, strict=True):
            curves = probability[of_order, label]  # [steps, 2]
            area = (np.diff(steps) / number) @ ((curves[1:] + curves[:-1]) / 2)
            areas.setdefault(method, []).append(area)
    measured = {}
    for method, pairs in areas.items():
        deletion, insertion = map(float, np.mean(pairs, axis=0))
        measured[method] = Faithfulness(deletion, insertion, len(pairs))
    return measured
