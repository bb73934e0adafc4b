"""Paired bootstrap over entities: differences of rows of the LANET tables, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accuracy.lanet_models import ORDER, title_of
from benchmarks.files import read_file
from tg_mlc.data import EventSequences, Split
from tg_mlc.metrics import ndcg_at_k, recall_at_k
from tg_mlc.sequences import EventPreprocessor

#: A metric as a function of weights [rows, draws]: how often each draw contains each row.
Weighted = Callable[[np.ndarray], np.ndarray]
#: Draws per chunk, which limits the memory of sorted scores.
CHUNK = 40
#: A difference and the ends of its 95 % interval, by metric; None where undefined.
Intervals = dict[str, list[float] | None]


def compare(
    cells: Iterable[Path], events: EventSequences, split: Split, against: Sequence[str], draws: int
) -> dict[str, dict[str, Intervals]]:
    """Mean differences over seeds of all rows from each of the rows ``against``, by title.

    Raises:
        ValueError: If a row to compare with has no scores.
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
    ordered = sorted(paths, key=ORDER.index)
    values = {title: _mean_over_seeds(y, paths[title], weights) for title in ordered}
    differences: dict[str, dict[str, Intervals]] = {}
    for base in against:
        base_values, differences[base] = values[base], {}
        for title in (title for title in ordered if title != base):
            differences[base][title] = {
                key: _interval(value - base_values[key])
                for key, value in values[title].items()
                if key in base_values
            }
    return differences


def _mean_over_seeds(
    y: np.ndarray, files: list[Path], weights: np.ndarray
) -> dict[str, np.ndarray]:
    """The metrics of a row in all draws. Metrics, not scores, are averaged over its seeds."""
    chunks = np.array_split(weights, range(CHUNK, weights.shape[1], CHUNK), axis=1)
    values: dict[str, list[np.ndarray]] = {}
    for file in files:
        scores = np.load(file.with_name(f"{file.stem}.npy"))
        thresholds = read_file(file).get("thresholds", {})
        for key, metric in weighted_metrics(y, scores, thresholds).items():
            values.setdefault(key, []).append(np.concatenate([metric(chunk) for chunk in chunks]))
    complete = {key: by_seed for key, by_seed in values.items() if len(by_seed) == len(files)}
    return {key: np.mean(by_seed, axis=0) for key, by_seed in complete.items()}


def _interval(differences: np.ndarray) -> list[float] | None:
    """The difference, and its 95 % interval over the draws in which it is defined."""
    draws = differences[1:][~np.isnan(differences[1:])]
    if np.isnan(differences[0]) or not len(draws):
        return None
    return [float(differences[0]), *np.quantile(draws, (0.025, 0.975)).tolist()]


def weighted_metrics(
    y: np.ndarray, scores: np.ndarray, thresholds: Mapping[str, float]
) -> dict[str, Weighted]:
    """The columns of the tables as functions of weights. Scores are sorted once for all draws.

    The result has no F1 if the threshold of F1 is unknown.
    """
    pooled, per_label = (_roc_auc(y, scores, pooled=pooled) for pooled in (True, False))

    def macro_auc(weight: np.ndarray) -> np.ndarray:
        values = per_label(weight)
        defined = ~np.isnan(values)
        return _ratio(np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0))

    metrics = {"roc_auc_micro": lambda weight: pooled(weight)[0], "roc_auc_macro": macro_auc}
    for key in ("f1_micro", "f1_macro"):
        if key in thresholds:
            metrics[key] = _f1(y == 1, scores >= thresholds[key], pooled=key == "f1_micro")
    ranking = {"R@10": recall_at_k, "NDCG@10": ndcg_at_k}
    return {**metrics, **{key: _mean_of(metric, y, scores) for key, metric in ranking.items()}}


def _f1(positive: np.ndarray, predicted: np.ndarray, *, pooled: bool) -> Weighted:
    """F1 of all entries, or the mean F1 of labels. The F1 of a label without hits is 0."""
    hits, total = positive & predicted, positive.astype(int) + predicted
    if pooled:
        hits, total = hits.sum(axis=1), total.sum(axis=1)
        return lambda weight: 2 * (hits @ weight) / np.maximum(total @ weight, 1)
    hits, total = (counts.T.astype(np.float32) for counts in (hits, total))

    def macro(weight: np.ndarray) -> np.ndarray:
        weight = weight.astype(np.float32)
        return np.mean(2 * (hits @ weight) / np.maximum(total @ weight, 1), axis=0)

    return macro


def _mean_of(
    metric: Callable[[np.ndarray, np.ndarray], float], y: np.ndarray, scores: np.ndarray
) -> Weighted:
    """A metric that is a mean over samples. Samples where it is NaN do not count."""
    values = np.array([metric(y[[row]], scores[[row]]) for row in range(len(y))])
    defined = ~np.isnan(values)
    return lambda weight: _ratio(values[defined] @ weight[defined], weight[defined].sum(axis=0))


def _ratio(dividend: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """The quotient, NaN where the divisor is not positive."""
    return np.divide(dividend, divisor, out=np.full(divisor.shape, np.nan), where=divisor > 0)


def _roc_auc(y: np.ndarray, scores: np.ndarray, *, pooled: bool) -> Weighted:
    """Areas under ROC curves of labels, or of all entries; NaN if one class has no weight."""
    label = np.zeros(y.size, np.int64) if pooled else np.tile(np.arange(y.shape[1]), len(y))
    order = np.lexsort((scores.ravel(), label))
    label, score, row = label[order], scores.ravel()[order], order // y.shape[1]
    positive = y.ravel()[order] == 1
    # Indices of the first entry of each label, and of each group of equal scores of a label.
    label_starts = np.flatnonzero(np.append(True, np.diff(label) != 0))
    tie_starts = np.flatnonzero(np.append(True, (np.diff(label) != 0) | (np.diff(score) != 0)))
    label_of_tie = np.searchsorted(label_starts, tie_starts, side="right") - 1
    first_tie = np.searchsorted(tie_starts, label_starts)

    def areas(weight: np.ndarray) -> np.ndarray:
        row_count = weight[row]
        pos, neg = (np.add.reduceat(row_count * mask, tie_starts) for mask in (positive, ~positive))
        below = np.cumsum(neg) - neg
        # Half of the negatives in a tie count as below.
        pairs = pos * (below - below[first_tie][label_of_tie] + neg / 2)
        sums = (np.add.reduceat(values, first_tie) for values in (pairs, pos, neg))
        better, positives, negatives = sums
        return _ratio(better, positives * negatives)

    return lambda weights: np.stack([areas(weight) for weight in weights.T], axis=1)


def resamples(entity: np.ndarray, draws: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Bootstrap counts of each row. Entities are drawn with replacement, with all their rows."""
    rng = np.random.default_rng(seed)
    names, index = np.unique(entity, return_inverse=True)
    for _ in range(draws):
        counts = np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))
        yield counts[index].astype(np.float64)
