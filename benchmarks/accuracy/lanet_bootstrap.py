"""Paired bootstrap over entities: by how much rows of the LANET tables differ, and how surely."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.lanet_models import ORDER, title_of
from tg_mlc.data import EventSequences, Split
from tg_mlc.metrics import ndcg_at_k, recall_at_k
from tg_mlc.sequences import EventPreprocessor

#: A metric of how often each row counts.
Weighed = Callable[[np.ndarray], float]
#: A difference and the ends of its 95 % interval, by metric; None where it is undefined.
Intervals = dict[str, list[float] | None]
Values = dict[str, np.ndarray]


def compare(
    cells: Iterable[Path], events: EventSequences, split: Split, against: Sequence[str], draws: int
) -> dict[str, dict[str, Intervals]]:
    """The differences of all rows to each of some, by their titles; a row's value is the mean of those of its seeds.

    Raises:
        ValueError: If there are no scores of one of these.
    """
    paths = _by_title(cells)
    if unknown := set(against) - set(paths):
        raise ValueError(f"Expected 'against' to be some of {list(paths)} (got {sorted(unknown)})")
    dataset = EventPreprocessor().fit_transform(events, split)
    test = split.test.numpy()
    y, entity = dataset.y[test].toarray(), dataset.entity_of[test]
    weights = [np.ones(len(y)), *resamples(entity, draws)]
    values = {title: _mean_over_seeds(y, files, weights) for title, files in paths.items()}
    return {
        one: {title: _intervals(found, values[one]) for title, found in values.items() if title != one}
        for one in against
    }


def _by_title(cells: Iterable[Path]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in cells:
        found.setdefault(title_of(json.loads(path.read_text())["cell"]), []).append(path)
    return dict(sorted(found.items(), key=lambda item: ORDER.index(item[0])))


def _mean_over_seeds(y: np.ndarray, files: list[Path], weights: list[np.ndarray]) -> Values:
    """The metrics of a row in all draws: the means of those of its seeds, as no ensemble of them is compared."""
    found = [_values(y, file, weights) for file in files]
    shared = set.intersection(*map(set, found))
    return {key: np.mean([values[key] for values in found], axis=0) for key in found[0] if key in shared}


def _values(y: np.ndarray, file: Path, weights: list[np.ndarray]) -> Values:
    thresholds: dict[str, Any] = json.loads(file.read_text()).get("thresholds", {})
    metrics = weighed_metrics(y, np.load(file.with_name(f"{file.stem}.npy")), thresholds)
    return {key: np.array([metric(weight) for weight in weights]) for key, metric in metrics.items()}


def _intervals(values: Values, others: Values) -> Intervals:
    return {key: _interval(values[key] - others[key]) for key in values if key in others}


def _interval(differences: np.ndarray) -> list[float] | None:
    """The difference, and the quantiles of those of the draws that define it."""
    drawn = differences[1:][~np.isnan(differences[1:])]
    if np.isnan(differences[0]) or not len(drawn):
        return None
    return [float(differences[0]), *np.quantile(drawn, (0.025, 0.975)).tolist()]


def weighed_metrics(y: np.ndarray, scores: np.ndarray, thresholds: Mapping[str, float]) -> dict[str, Weighed]:
    """The columns of the tables as functions of weights of rows, sorted and ranked once for all draws.

    F1 is left out where its threshold is not known.
    """
    pooled, per_label = RankedOnce(y, scores, pooled=True), RankedOnce(y, scores, pooled=False)
    decided = {"miF1": _pooled_f1, "maF1": _mean_f1}
    return {
        "miAUC": lambda weight: float(pooled(weight)[0]),
        "maAUC": lambda weight: _mean(per_label(weight)),
        **{key: decided[key](y == 1, scores >= thresholds[key]) for key in decided if key in thresholds},
        "R@10": _mean_of(recall_at_k, y, scores),
        "NDCG@10": _mean_of(ndcg_at_k, y, scores),
    }


def _pooled_f1(positive: np.ndarray, predicted: np.ndarray) -> Weighed:
    hits, total = (positive & predicted).sum(axis=1), (positive.sum(axis=1) + predicted.sum(axis=1))
    return lambda weight: float(2 * (weight @ hits) / max(weight @ total, 1))


def _mean_f1(positive: np.ndarray, predicted: np.ndarray) -> Weighed:
    """Labels with neither positives nor predictions count as 0."""
    hits, total = (part.astype(np.float32) for part in (positive & predicted, positive.astype(int) + predicted))
    return lambda weight: float(np.mean(2 * (weight.astype("f4") @ hits) / np.maximum(weight.astype("f4") @ total, 1)))


def _mean(values: np.ndarray) -> float:
    """The mean of what is defined."""
    some = values[~np.isnan(values)]
    return float(some.mean()) if len(some) else float("nan")


def _mean_of(metric: Callable[[np.ndarray, np.ndarray], float], y: np.ndarray, scores: np.ndarray) -> Weighed:
    """A metric that is the mean over samples, NaN for those that are left out."""
    each = np.array([metric(y[[row]], scores[[row]]) for row in range(len(y))])
    some = ~np.isnan(each)
    return lambda weight: float(np.average(each[some], weights=weight[some])) if weight[some].any() else float("nan")


class RankedOnce:
    """The areas under ROC curves, one for each label or for all entries pooled, for any weights of rows."""

    def __init__(self, y: np.ndarray, scores: np.ndarray, *, pooled: bool) -> None:
        label = np.zeros(y.size, np.int64) if pooled else np.tile(np.arange(y.shape[1]), len(y))
        order = np.lexsort((scores.ravel(), label))
        label, score = label[order], scores.ravel()[order]
        first = np.flatnonzero(np.append(True, (np.diff(score) != 0) | (np.diff(label) != 0)))  # of equal scores
        start = np.flatnonzero(np.append(True, np.diff(label) != 0))
        self._row, positive = order // y.shape[1], np.flatnonzero(y.ravel()[order] == 1)
        self._positive_row, self._label = self._row[positive], label[positive]
        place = np.searchsorted(first, positive, side="right") - 1
        self._low, self._high = first[place], np.append(first, len(order))[place + 1]
        self._start, self._stop = start, np.append(start, len(order))[1:]

    def __call__(self, weight: np.ndarray) -> np.ndarray:
        """Returns the areas, NaN where one class has no weight."""
        below = np.concatenate([[0.0], np.cumsum(weight[self._row])])
        own = weight[self._positive_row]
        # Of equal scores one half is below; half of all pairs are won among the positives themselves.
        won = own * ((below[self._low] + below[self._high]) / 2 - below[self._start[self._label]])
        positive = np.bincount(self._label, own, len(self._start))
        pairs = positive * (below[self._stop] - below[self._start] - positive)
        areas = np.bincount(self._label, won, len(self._start)) - positive**2 / 2
        return np.divide(areas, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


def resamples(entity: np.ndarray, draws: int, seed: int = 0) -> Iterator[np.ndarray]:
    """How often each row is there if as many entities as there are are drawn with replacement."""
    rng = np.random.default_rng(seed)
    names, place = np.unique(entity, return_inverse=True)
    for _ in range(draws):
        yield np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))[place].astype(np.float64)
