"""Faithfulness: what happens to a probability as components are removed or added in the order of their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc.explanations.explanation import Faithfulness
from tg_mlc.explanations.question import Question

#: Shares of components at which curves are read, between none and all.
SHARES = (0.1, 0.2, 0.3, 0.5, 0.75)
RANDOM = "random"  #: the name of an order by chance
NUM_RANDOM = 2  #: orders by chance for each sample and label


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
        scores (Sequence): For each sample the scores :math:`(C, L)` by method; those of components that cannot be
            hidden are left out.
        labels (Sequence[int]): The labels that scores are of.
        given (torch.Tensor, optional): The labels :math:`(N, L)` that the samples are given. (default: :obj:`None`)
        per_sample (int, optional): For how many labels of a sample, the most probable ones. (default: :obj:`2`)
        seed (int, optional): Seed of random orders. (default: :obj:`0`)
    """
    rng = np.random.default_rng(seed)
    areas: dict[str, list[tuple[float, float]]] = {}
    for row, (sample, by_method) in enumerate(zip(samples, scores, strict=True)):
        number = len(question.kind.components(sample))
        known = None if given is None else given[row].view(1, -1)
        whole = question.logits([sample], known)[0, labels]
        orders: list[tuple[str, int, np.ndarray]] = []
        for label in np.argsort(-whole, kind="stable")[:per_sample]:
            found = {method: each[:number, label] for method, each in by_method.items()}
            applies = {method: each for method, each in found.items() if not np.isnan(each).any()}
            orders += [
                (method, label, np.argsort(-each, kind="stable"))
                for method, each in applies.items()
            ]
            orders += [(RANDOM, label, rng.permutation(number)) for _ in range(NUM_RANDOM)]
        steps = np.unique([0, number, *(int(np.ceil(share * number)) for share in SHARES)])
        # By order, what is removed and what is added, [orders, steps, 2, C].
        ranks = np.stack([np.argsort(order) for _, _, order in orders])
        added = ranks[:, None] < steps[:, None]
        masks, place = np.unique(
            np.stack([~added, added], axis=2).reshape(-1, number), axis=0, return_inverse=True
        )
        hidden = [question.hide(sample, mask) for mask in masks]
        logits = question.logits(hidden, None if known is None else known.expand(len(masks), -1))
        probability = expit(logits)[:, labels]
        for each, (method, label, _) in enumerate(orders):
            curves = probability[place.reshape(len(orders), -1, 2)[each], label]  # [steps, 2]
            both = (np.diff(steps) / number) @ ((curves[1:] + curves[:-1]) / 2)
            areas.setdefault(method, []).append((float(both[0]), float(both[1])))
    means = {method: np.mean(each, axis=0) for method, each in areas.items()}
    return {
        method: Faithfulness(float(d), float(i), len(areas[method]))
        for method, (d, i) in means.items()
    }
