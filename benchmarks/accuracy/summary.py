"""Summary of runs: means, spreads and paired tests over the seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student_t

from benchmarks.accuracy.rows import BASELINES, Row
from benchmarks.accuracy.runs import Run

#: Ways to decide, beside one threshold for each metric, and what their rows are called.
OTHER_DECISIONS = {
    "by_frequency": "thresholds by frequency",
    "per_label": "a threshold per label",
    "by_label_set": "likeliest known label set",
    "preferred": "by frequency or label set",
}
#: Differences of metrics that are no larger come from the order of sums.
ROUNDING = 1e-12
TESTED = ("subset_accuracy", "f1_samples", "f1_micro", "f1_macro", "roc_auc_macro")


class PairedTest(NamedTuple):
    """A paired test of a row against another."""

    row: Row
    against: Row
    metric: str
    num_seeds: int
    mean_difference: float
    sd: float
    name: str
    p: float | None


def by_row(runs: Sequence[Run]) -> dict[Row, dict[str, Any]]:
    """The summary of every row."""
    return {row: summarise([run for run in runs if run.row == row]) for row in dict.fromkeys(run.row for run in runs)}


def summarise(runs: Sequence[Run]) -> dict[str, Any]:
    """Mean and standard deviation of every metric over the seeds, and how well they all recover graphs."""
    recovered = {
        score: {name: _mean([run.recovery[score][name] for run in runs]) for name in values}
        for score, values in runs[0].recovery.items()
        # Those from before a comparison stopped early may have been compared with more graphs.
        if all(score in run.recovery for run in runs)
    }
    densities = [run.density for run in runs if run.density is not None]
    return {
        **{key: _spread([getattr(run, key) for run in runs]) for key in ("metrics", *OTHER_DECISIONS)},
        "thresholds": {name: [run.thresholds[name] for run in runs] for name in runs[0].thresholds},
        "seconds": float(np.mean([run.seconds for run in runs])),
        "density": float(np.mean(densities)) if densities else None,
        "recovery": recovered,
    }


def _spread(metrics: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
    values = {name: np.array([each[name] for each in metrics], dtype=float) for name in metrics[0]}
    return {
        name: {"mean": _defined(v.mean()), "sd": _defined(v.std(ddof=1)) if len(v) > 1 else None}
        for name, v in values.items()
    }


def _mean(values: Sequence[float | None]) -> float | None:
    return _defined(np.mean(np.array(values, dtype=float)))


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def paired_tests(runs: Sequence[Run]) -> list[PairedTest]:
    """Tests of all pairs of rows that tell something."""
    rows = list(dict.fromkeys(run.row for run in runs))
    return [test for pair in _pairs(rows) for test in compare_rows(runs, *pair)]


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Rows with messages and what they have to beat; rows that differ in their graph alone; rows with and without a
    change.
    """
    with_graph = [row for row in rows if row.graph]
    for baseline in BASELINES:
        yield from ((row, Row(baseline)) for row in with_graph if Row(baseline) in rows)
    for row, other in combinations(sorted(with_graph, key=lambda row: row.graph != "el"), 2):
        if replace(row, graph=None) == replace(other, graph=None):
            yield other, row
    for row in (row for row in rows if row.change):
        yield row, next(whole for whole in with_graph if not whole.change)


def compare_rows(runs: Sequence[Run], row: Row, against: Row, metrics: Sequence[str] = TESTED) -> list[PairedTest]:
    """Paired t-tests of a row against another one over the seeds.

    Where every seed has test rows of its own, the variance is corrected for test sets that are drawn again from the
    same samples (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).
    """
    ours, theirs = ({run.seed: run for run in runs if run.row == each} for each in (row, against))
    shared = sorted(ours.keys() & theirs.keys())
    if len(shared) < 2:
        return []
    resampled = len({ours[seed].test for seed in shared}) > 1
    tests = []
    for metric in metrics:
        a, b = (np.array([rows[seed].metrics.get(metric) for seed in shared], dtype=float) for rows in (ours, theirs))
        difference = a - b
        if np.isnan(difference).any():
            continue
        p = corrected_p_value(difference) if resampled else corrected_p_value(difference, test_share=0.0)
        name = "corrected paired t-test" if resampled else "paired t-test"
        mean, sd = float(difference.mean()), float(difference.std(ddof=1))
        tests.append(PairedTest(row, against, metric, len(shared), mean, sd, name, p))
    return tests


def corrected_p_value(difference: np.ndarray, test_share: float = 0.1, train_share: float = 0.8) -> float | None:
    """The two-sided p-value of a mean difference over random splits of one data set; :obj:`None` where it is the same
    for all, up to rounding, from which no test can tell chance.
    """
    n = len(difference)
    spread = np.sqrt((1 / n + test_share / train_share) * difference.var(ddof=1))
    if spread < ROUNDING:
        return 1.0 if abs(difference.mean()) < ROUNDING else None
    return float(2 * student_t.sf(abs(difference.mean()) / spread, df=n - 1))


def in_words(values: Mapping[str, float | None]) -> str:
    """Numbers by name."""
    return ", ".join(f"{name} {'undefined' if value is None else f'{value:.3f}'}" for name, value in values.items())


def p_in_words(p: float | None) -> str:
    """A p-value."""
    if p is None:
        return "undefined, as all seeds differ by the same"
    return "p < 0.01" if p < 0.01 else f"p = {p:.2f}"
