"""Statistics of runs: spreads and paired tests over seeds, and ranks of models over data sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import f as f_distribution
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from benchmarks.accuracy.runs import BASELINES, Row
from tg_mlc.metrics.paired import ROUNDING, corrected_difference

#: The level of all tests.
ALPHA = 0.05
TESTED = ("subset_accuracy", "f1_samples", "f1_micro", "f1_macro", "roc_auc_macro")
Spread = Mapping[str, float | None]


def spread(values: Iterable[float | None] | None) -> dict[str, float | None]:
    """Mean and standard deviation over seeds, None if a value is undefined. One seed has no sd."""
    scores = np.array([] if values is None else list(values), dtype=float)
    if not len(scores) or np.isnan(scores).any():
        return {"mean": None, "sd": None}
    sd = float(scores.std(ddof=1)) if len(scores) > 1 else None
    return {"mean": float(scores.mean()), "sd": sd}


class PairedTest(NamedTuple):
    """A paired test of a row against another row."""

    row: Row
    against: Row
    metric: str
    num_seeds: int
    mean_difference: float
    sd: float
    name: str
    p: float | None
    low: float  #: The lower end of the 95 % interval.
    high: float


def paired_tests(runs: pd.DataFrame) -> list[PairedTest]:
    """Tests of rows against baselines, and of pairs of rows that differ in one setting."""
    pairs = _pairs(list(runs["row"].unique()))
    return [test for pair in pairs for test in compare_rows(runs, *pair)]


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs (row with a graph, baseline), and pairs of rows that differ only in graph or change."""
    with_graph = [row for row in rows if row.graph]
    for baseline in BASELINES:
        yield from ((row, Row(baseline)) for row in with_graph if Row(baseline) in rows)
    for row, other in combinations(sorted(with_graph, key=lambda row: row.graph != "edgeless"), 2):
        if replace(row, graph=None) == replace(other, graph=None):
            yield other, row
    for row in (row for row in rows if row.change):
        yield row, next(unchanged for unchanged in with_graph if not unchanged.change)


def compare_rows(
    runs: pd.DataFrame, row: Row, against: Row, metrics: Sequence[str] = TESTED
) -> list[PairedTest]:
    """Paired t-tests of a row against another row over the seeds.

    If every seed has its own test samples, the variance is corrected for test sets that are drawn
    repeatedly from the same samples (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).
    """
    ours, theirs = (runs[runs["row"] == tested].set_index("seed") for tested in (row, against))
    seeds = sorted(ours.index.intersection(theirs.index))
    if len(seeds) < 2:
        return []
    resampled = ours.loc[seeds, "test"].nunique() > 1
    tests = []
    for metric in metrics:
        column = f"metrics.{metric}"
        if column not in runs:
            continue
        first, second = (df.loc[seeds, column].to_numpy(dtype=float) for df in (ours, theirs))
        difference = first - second
        if np.isnan(difference).any():
            continue
        mean, low, high, p = corrected_difference(difference, test_share=0.1 if resampled else 0.0)
        name = "corrected paired t-test" if resampled else "paired t-test"
        sd = float(difference.std(ddof=1))
        tests.append(PairedTest(row, against, metric, len(seeds), mean, sd, name, p, low, high))
    return tests


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of models over data sets, 1 for the best, as in the `"Statistical Comparisons of
    Classifiers over Multiple Data Sets" <https://jmlr.org/papers/v7/demsar06a.html>`_ paper.
    """

    mean: dict[str, float]
    num_datasets: int
    statistic: float  #: Iman and Davenport's F, from Friedman's chi-square corrected for ties.
    p: float

    @classmethod
    def of(cls, scores: Mapping[str, Sequence[float]]) -> Ranks:
        """Ranks models by their scores, one for each data set. Equal scores share a mean rank."""
        values = np.array(list(scores.values()))
        ranks = rankdata(-values, axis=0).mean(axis=1)
        statistic, p = iman_davenport(friedmanchisquare(*values).statistic, *values.shape)
        return cls(dict(zip(scores, ranks.tolist(), strict=True)), values.shape[1], statistic, p)

    def critical_difference(self, alpha: float = ALPHA) -> float:
        """The difference of mean ranks above which Nemenyi's test is significant."""
        k, n = len(self.mean), self.num_datasets
        q = studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2)
        return float(q * np.sqrt(k * (k + 1) / (6 * n)))

    def cliques(self, alpha: float = ALPHA) -> list[list[str]]:
        """Maximal groups of two or more models that do not differ significantly, sorted by rank."""
        names = sorted(self.mean, key=lambda name: self.mean[name])
        limit = self.critical_difference(alpha)
        groups: list[list[str]] = []
        for start, first in enumerate(names):
            group = [name for name in names[start:] if self.mean[name] - self.mean[first] <= limit]
            if len(group) > 1 and not (groups and set(group) <= set(groups[-1])):
                groups.append(group)
        return groups


def iman_davenport(chi_square: float, num_models: int, num_datasets: int) -> tuple[float, float]:
    """F and p of a test that is less cautious than Friedman's chi-square (`Iman and Davenport 1980
    <https://doi.org/10.1080/03610928008827904>`_).
    """
    k, n = num_models, num_datasets
    denominator = n * (k - 1) - chi_square
    # The denominator is zero if all data sets rank the models in the same way.
    statistic = np.inf if denominator < ROUNDING else (n - 1) * chi_square / denominator
    return float(statistic), float(f_distribution.sf(statistic, k - 1, (k - 1) * (n - 1)))
