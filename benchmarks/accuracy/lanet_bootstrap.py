"""Paired bootstrap over entities: by how much two rows of the LANET tables differ, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from tg_mlc.data import EventSequences, Split
from tg_mlc.metrics import ndcg_at_k, recall_at_k
from tg_mlc.sequences import EventPreprocessor

#: A metric of how often each row counts.
Weighed = Callable[[np.ndarray], float]


def compare(
    cells: Iterable[Path], events: EventSequences, split: Split, against: str, draws: int
) -> dict[str, dict[str, list[float]]]:
    """The difference of every row to one, with the ends of its 95 % interval; scores of seeds are averaged.

    Raises:
        ValueError: If there are no scores of that one.
    """
    paths = _scores(cells)
    if against not in paths:
        raise ValueError(f"Expected 'against' to be one of {sorted(paths)} (got {against!r})")
    dataset = EventPreprocessor().fit_transform(events, split)
    test = split.test.numpy()
    y, entity = dataset.y[test].toarray(), dataset.entity_of[test]
    weights = [np.ones(len(y)), *resamples(entity, draws)]
    other = _values(y, paths.pop(against), weights)
    return {name: _intervals(_values(y, files, weights), other) for name, files in sorted(paths.items())}


def _scores(cells: Iterable[Path]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in cells:
        found.setdefault(path.stem.rpartition("-")[0], []).append(path.with_name(f"{path.stem}.npy"))
    return found


def _values(y: np.ndarray, files: list[Path], weights: list[np.ndarray]) -> dict[str, np.ndarray]:
    metrics = weighed_metrics(y, np.mean([np.load(file) for file in files], axis=0))
    return {key: np.array([metric(weight) for weight in weights]) for key, metric in metrics.items()}


def _intervals(values: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> dict[str, list[float]]:
    differences = {key: values[key] - others[key] for key in values}
    return {key: [found[0], *np.quantile(found[1:], (0.025, 0.975)).tolist()] for key, found in differences.items()}


def weighed_metrics(y: np.ndarray, scores: np.ndarray) -> dict[str, Weighed]:
    """The columns of the tables as functions of weights of rows, sorted and ranked once for all draws."""
    pooled, per_label = RankedOnce(y, scores, pooled=True), RankedOnce(y, scores, pooled=False)
    return {
        "miAUC": lambda weight: float(pooled(weight)[0]),
        "maAUC": lambda weight: float(np.nanmean(per_label(weight))),
        "R@10": _mean_of(recall_at_k, y, scores),
        "NDCG@10": _mean_of(ndcg_at_k, y, scores),
    }


def _mean_of(metric: Callable[[np.ndarray, np.ndarray], float], y: np.ndarray, scores: np.ndarray) -> Weighed:
    """A metric that is the mean over samples, NaN for those that are left out."""
    each = np.array([metric(y[[row]], scores[[row]]) for row in range(len(y))])
    some = ~np.isnan(each)
    return lambda weight: float(np.average(each[some], weights=weight[some]))


class RankedOnce:
    """The areas under ROC curves, one for each label or for all entries pooled, for any weights of rows."""

    def __init__(self, y: np.ndarray, scores: np.ndarray, *, pooled: bool) -> None:
        label = np.zeros(y.size, np.int64) if pooled else np.tile(np.arange(y.shape[1]), len(y))
        order = np.lexsort((scores.ravel(), label))
        label, score = label[order], scores.ravel()[order]
        self._row, self._positive = order // y.shape[1], y.ravel()[order] == 1
        is_new = np.append(True, (np.diff(score) != 0) | (np.diff(label) != 0))
        self._tie = np.cumsum(is_new) - 1  # equal scores of a label count as half a pair
        self._label = label[is_new]
        self._start = np.flatnonzero(np.append(True, np.diff(self._label) != 0))

    def __call__(self, weight: np.ndarray) -> np.ndarray:
        """Returns the areas, NaN where one class has no weight."""
        weighed = weight[self._row]
        positive = np.bincount(self._tie, weighed * self._positive)
        negative = np.bincount(self._tie, weighed * ~self._positive)
        below = np.cumsum(negative) - negative
        below -= below[self._start][np.searchsorted(self._start, np.arange(len(below)), side="right") - 1]
        won = np.add.reduceat(positive * (below + negative / 2), self._start)
        pairs = np.add.reduceat(positive, self._start) * np.add.reduceat(negative, self._start)
        return np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)


def resamples(entity: np.ndarray, draws: int, seed: int = 0) -> Iterator[np.ndarray]:
    """How often each row is there if as many entities as there are are drawn with replacement."""
    rng = np.random.default_rng(seed)
    names, place = np.unique(entity, return_inverse=True)
    for _ in range(draws):
        yield np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))[place].astype(np.float64)
