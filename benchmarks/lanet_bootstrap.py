"""Paired bootstrap over entities: by how much two rows of the LANET tables differ, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tg_mlc.data import EventSequences, Split
from tg_mlc.metrics import macro_roc_auc, micro_roc_auc, ndcg_at_k, recall_at_k
from tg_mlc.sequences import EventPreprocessor

METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "miAUC": micro_roc_auc,
    "maAUC": macro_roc_auc,
    "R@10": recall_at_k,
    "NDCG@10": ndcg_at_k,
}


def compare(
    place: Path, events: EventSequences, split: Split, against: str, draws: int
) -> dict[str, dict[str, list[float]]]:
    """The difference of every row to one, with the ends of its 95 % interval; scores of seeds are averaged.

    Raises:
        ValueError: If there are no scores of that one.
    """
    means = {name: np.mean([np.load(path) for path in paths], axis=0) for name, paths in _scores(place).items()}
    if against not in means:
        raise ValueError(f"Expected 'against' to be one of {sorted(means)} (got {against!r})")
    dataset = EventPreprocessor().fit_transform(events, split)
    test = split.test.numpy()
    y, entity = dataset.y[test].toarray(), dataset.entity_of[test]
    return {
        name: {key: _interval(metric, y, means[name], means[against], entity, draws) for key, metric in METRICS.items()}
        for name in sorted(means.keys() - {against})
    }


def _scores(place: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(place.glob("*.npy")):
        found.setdefault(path.stem.rpartition("-")[0], []).append(path)
    return found


def _interval(
    metric: Callable[[np.ndarray, np.ndarray], float],
    y: np.ndarray,
    scores: np.ndarray,
    others: np.ndarray,
    entity: np.ndarray,
    draws: int,
) -> list[float]:
    drawn = [metric(y[rows], scores[rows]) - metric(y[rows], others[rows]) for rows in resamples(entity, draws)]
    return [metric(y, scores) - metric(y, others), *np.quantile(drawn, (0.025, 0.975)).tolist()]


def resamples(entity: np.ndarray, draws: int, seed: int = 0) -> Iterator[np.ndarray]:
    """The rows of as many entities as there are, drawn with replacement, each with all of its rows."""
    rng = np.random.default_rng(seed)
    order = np.argsort(entity, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(entity[order])) + 1)
    for _ in range(draws):
        yield np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))])
