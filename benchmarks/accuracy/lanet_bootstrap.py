"""Paired bootstrap over entities: by how much rows of the LANET tables differ, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accuracy.lanet_models import ORDER, title_of
from benchmarks.files import read_file
from tg_mlc.data import EventSequences, Split
from tg_mlc.metrics import ndcg_at_k, recall_at_k
from tg_mlc.sequences import EventPreprocessor

#: A metric of how often each row counts in each draw, [rows, draws].
Weighed = Callable[[np.ndarray], np.ndarray]
#: Draws at a time, of which all places in the order of scores are in memory.
CHUNK = 40
#: A difference and the ends of its 95 % interval, by metric; None where it is undefined.
Intervals = dict[str, list[float] | None]


def compare(
    cells: Iterable[Path], events: EventSequences, split: Split, against: Sequence[str], draws: int
) -> dict[str, dict[str, Intervals]]:
    """The differences of all rows to each of some, by their titles; a row's value is the mean of those of its seeds.

    Raises:
        ValueError: If there are no scores of one of these.
    """
    paths: dict[str, list[Path]] = {}
    for path in cells:
        paths.setdefault(title_of(read_file(path)["cell"]), []).append(path)
    if unknown := set(against) - set(paths):
        raise ValueError(f"Expected 'against' to be some of {list(paths)} (got {sorted(unknown)})")
    dataset = EventPreprocessor().fit_transform(events, split)
    test = split.test.numpy()
    y, entity = dataset.y[test].toarray(), dataset.entity_of[test]
    weights = np.stack([np.ones(len(y)), *resamples(entity, draws)], axis=1)
    values = {
        title: _mean_over_seeds(y, paths[title], weights)
        for title in sorted(paths, key=ORDER.index)
    }
    return {
        one: {
            title: {
                key: _interval(found[key] - values[one][key]) for key in found if key in values[one]
            }
            for title, found in values.items()
            if title != one
        }
        for one in against
    }


def _mean_over_seeds(
    y: np.ndarray, files: list[Path], weights: np.ndarray
) -> dict[str, np.ndarray]:
    """The metrics of a row in all draws: the means of those of its seeds, not those of an ensemble."""
    parts = np.array_split(weights, range(CHUNK, weights.shape[1], CHUNK), axis=1)
    found: dict[str, list[np.ndarray]] = {}
    for file in files:
        scores, thresholds = (
            np.load(file.with_name(f"{file.stem}.npy")),
            read_file(file).get("thresholds", {}),
        )
        for key, metric in weighed_metrics(y, scores, thresholds).items():
            found.setdefault(key, []).append(np.concatenate([metric(part) for part in parts]))
    return {
        key: np.mean(values, axis=0) for key, values in found.items() if len(values) == len(files)
    }


def _interval(differences: np.ndarray) -> list[float] | None:
    """The difference, and the quantiles of those of the draws that define it."""
    drawn = differences[1:][~np.isnan(differences[1:])]
    if np.isnan(differences[0]) or not len(drawn):
        return None
    return [float(differences[0]), *np.quantile(drawn, (0.025, 0.975)).tolist()]


def weighed_metrics(
    y: np.ndarray, scores: np.ndarray, thresholds: Mapping[str, float]
) -> dict[str, Weighed]:
    """The columns of the tables as functions of weights of rows, sorted and ranked once for all draws.

    F1 is left out where its threshold is not known.
    """
    pooled, per_label = (_roc_auc(y, scores, pooled=pooled) for pooled in (True, False))

    def macro_auc(weight: np.ndarray) -> np.ndarray:
        values = per_label(weight)
        some = ~np.isnan(values)
        return _share(np.where(some, values, 0.0).sum(axis=0), some.sum(axis=0))

    found: dict[str, Weighed] = {
        "roc_auc_micro": lambda weight: pooled(weight)[0],
        "roc_auc_macro": macro_auc,
    }
    for key in ("f1_micro", "f1_macro"):
        if key in thresholds:
            found[key] = _f1(y == 1, scores >= thresholds[key], pooled=key == "f1_micro")
    return {
        **found,
        "R@10": _mean_of(recall_at_k, y, scores),
        "NDCG@10": _mean_of(ndcg_at_k, y, scores),
    }


def _f1(positive: np.ndarray, predicted: np.ndarray, *, pooled: bool) -> Weighed:
    """F1 of all entries, or the mean over labels, where those without positives and predictions count as 0."""
    hits, total = positive & predicted, positive.astype(int) + predicted
    if pooled:
        hits, total = hits.sum(axis=1), total.sum(axis=1)
        return lambda weight: 2 * (hits @ weight) / np.maximum(total @ weight, 1)
    hits, total = (part.T.astype(np.float32) for part in (hits, total))
    return lambda weight: np.mean(
        2 * (hits @ weight.astype("f4")) / np.maximum(total @ weight.astype("f4"), 1), axis=0
    )


def _mean_of(
    metric: Callable[[np.ndarray, np.ndarray], float], y: np.ndarray, scores: np.ndarray
) -> Weighed:
    """A metric that is the mean over samples, NaN for those that are left out."""
    each = np.array([metric(y[[row]], scores[[row]]) for row in range(len(y))])
    some = ~np.isnan(each)
    return lambda weight: _share(each[some] @ weight[some], weight[some].sum(axis=0))


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """The quotient, NaN where there is nothing to divide by."""
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)


def _roc_auc(y: np.ndarray, scores: np.ndarray, *, pooled: bool) -> Weighed:
    """The areas under ROC curves of all labels, or of all entries as one, NaN where one class has no weight."""
    label = np.zeros(y.size, np.int64) if pooled else np.tile(np.arange(y.shape[1]), len(y))
    order = np.lexsort((scores.ravel(), label))
    label, score, row = label[order], scores.ravel()[order], order // y.shape[1]
    positive = y.ravel()[order] == 1
    labels = np.flatnonzero(np.append(True, np.diff(label) != 0))  # where each begins
    # equal scores of a label
    ties = np.flatnonzero(np.append(True, (np.diff(label) != 0) | (np.diff(score) != 0)))
    label_of_tie = np.searchsorted(labels, ties, side="right") - 1
    first_tie = np.searchsorted(ties, labels)

    def areas(weight: np.ndarray) -> np.ndarray:
        of_row = weight[row]
        won, lost = (np.add.reduceat(of_row * is_it, ties) for is_it in (positive, ~positive))
        below = np.cumsum(lost) - lost
        # One half of equal scores is below.
        pairs = won * (below - below[first_tie][label_of_tie] + lost / 2)
        better, positives, negatives = (
            np.add.reduceat(part, first_tie) for part in (pairs, won, lost)
        )
        return _share(better, positives * negatives)

    return lambda weights: np.stack([areas(weight) for weight in weights.T], axis=1)


def resamples(entity: np.ndarray, draws: int, seed: int = 0) -> Iterator[np.ndarray]:
    """How often each row is there if as many entities as there are are drawn with replacement."""
    rng = np.random.default_rng(seed)
    names, place = np.unique(entity, return_inverse=True)
    for _ in range(draws):
        yield np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))[
            place
        ].astype(np.float64)
