"""Runs of a comparison, and what they say together."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.stats import t as student_t

from benchmarks.accuracy.rows import variant
from tg_mlc.data import Split
from tg_mlc.datasets import MultiLabelDataset
from tg_mlc.graphs import LabelGraph
from tg_mlc.metrics import DECISION_METRICS, LabelSets, evaluate, tune_by_frequency, tune_per_metric
from tg_mlc.recipes import RECIPES, EncoderName, Recipe
from tg_mlc.training import FitResult, MultiLabelDataModule

#: Differences of metrics that are no larger come from the order of sums.
ROUNDING = 1e-12
TESTED = ("ACC", "ebF1", "miF1", "maF1", "maAUC")
Metrics = dict[str, float | None]


@dataclass
class Run:
    """One row of one seed."""

    model: str
    seed: int
    split: str
    seconds: float
    metrics: Metrics
    undefined: list[str]
    test: str = ""  #: the hash of the test rows
    per_label: Metrics = field(default_factory=dict)  #: the same with a threshold for each label
    by_frequency: Metrics = field(default_factory=dict)  #: the same with thresholds that follow frequencies
    by_label_set: Metrics = field(default_factory=dict)  #: those of the likeliest label set of training samples
    preferred: Metrics = field(default_factory=dict)  #: of these two, for every metric the better on validation samples
    thresholds: dict[str, float] = field(default_factory=dict)
    density: float | None = None
    validation: float | None = None
    recovery: dict[str, Any] = field(default_factory=dict)


@dataclass
class Task:
    """A data set, how to train on it, and which of its labels count."""

    name: str
    dataset: MultiLabelDataset
    changed: Recipe | None = None  #: in place of the data set's own recipe

    @property
    def recipe(self) -> Recipe:
        """How to train on it."""
        return self.changed or RECIPES[self.name]

    @property
    def counted(self) -> torch.Tensor:
        """Which labels are frequent enough."""
        return self.recipe.counted_labels(self.dataset)

    def train(
        self, split: Split, seed: int, label_graph: LabelGraph, encoder: EncoderName, options: dict[str, Any]
    ) -> tuple[FitResult, MultiLabelDataModule]:
        """Trains on the CPU and keeps no files."""
        with tempfile.TemporaryDirectory() as folder:
            return self.recipe.train(
                self.dataset,
                split,
                label_graph,
                folder,
                encoder=encoder,
                seed=seed,
                config={"dataset": self.name},
                accelerator="cpu",
                logger=False,
                **options,
            )

    def run(self, model: str, split: Split, seed: int, seconds: float, on_val: ArrayLike, on_test: ArrayLike) -> Run:
        """All metrics on the test set; thresholds, one per metric or one per label, come from the validation set."""
        keep, y = self.counted, self.dataset.y
        names = [name for name, counts in zip(self.dataset.label_names, keep.tolist(), strict=True) if counts]
        scores = [torch.as_tensor(np.asarray(s), dtype=torch.float64)[:, keep] for s in (on_val, on_test)]
        y_val, y_test = y[split.val][:, keep], y[split.test][:, keep]
        tuners = tune_per_metric(y_val, scores[0])
        evaluation = evaluate(y_test, scores[1], tuners, names)
        per_label = evaluate(y_test, scores[1], tune_per_metric(y_val, scores[0], per_label=True), names)
        following = tune_by_frequency(y_val, scores[0], y[split.train][:, keep])
        by_frequency = evaluate(y_test, scores[1], following, names)
        on_val, by_label_set = _by_label_set(y[split.train][:, keep], y_val, y_test, *scores)
        preferred = {
            name: by_label_set[name]
            if _exceeds(on_val[name], tuner.best_value)
            else by_frequency.to_dict()["values"][name]
            for name, tuner in following.items()
        }
        return Run(
            model,
            seed,
            split.hash,
            seconds,
            evaluation.to_dict()["values"],
            evaluation.undefined,
            hashlib.sha256(split.test.numpy().tobytes()).hexdigest(),
            per_label.to_dict()["values"],
            by_frequency.to_dict()["values"],
            by_label_set,
            preferred,
            {name: float(np.asarray(tuner.thresholds).item()) for name, tuner in tuners.items()},
        )


def _by_label_set(
    y_train: torch.Tensor, y_val: torch.Tensor, y_test: torch.Tensor, on_val: torch.Tensor, on_test: torch.Tensor
) -> tuple[Metrics, Metrics]:
    """The metrics of label sets on validation and test samples, all undefined where no training sample is known
    entirely.
    """
    if y_train.isnan().any(dim=1).all():
        return dict.fromkeys(DECISION_METRICS), dict.fromkeys(DECISION_METRICS)
    sets = LabelSets.tuned(y_train, y_val, on_val)
    values = [
        evaluate(y, sets.predict(scores).double()).to_dict()["values"]
        for y, scores in ((y_val, on_val), (y_test, on_test))
    ]
    return {name: values[0][name] for name in DECISION_METRICS}, {name: values[1][name] for name in DECISION_METRICS}


def _exceeds(value: float | None, other: float | None) -> bool:
    return value is not None and (other is None or value > other)


def summarise(runs: Sequence[Run]) -> dict[str, Any]:
    """Mean and standard deviation of every metric over the seeds, and how well they all recover graphs."""
    recovered = {
        score: {name: _mean([run.recovery[score][name] for run in runs]) for name in values}
        for score, values in runs[0].recovery.items()
        # Those from before a comparison was broken off may have been compared with more graphs.
        if all(score in run.recovery for run in runs)
    }
    densities = [run.density for run in runs if run.density is not None]
    return {
        "metrics": _spread([run.metrics for run in runs]),
        "per_label": _spread([run.per_label for run in runs]),
        "by_label_set": _spread([run.by_label_set for run in runs]),
        "by_frequency": _spread([run.by_frequency for run in runs]),
        "preferred": _spread([run.preferred for run in runs]),
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


def compare(runs: Sequence[Run], encoder: str, graph: str, against: str = "el") -> list[dict[str, Any]]:
    """Paired t-tests of a graph against another one over the seeds."""
    tests = compare_rows(runs, variant(encoder, graph), variant(encoder, against))
    return [{**test, "row": f"{encoder} {graph}", "against": against} for test in tests]


def compare_rows(runs: Sequence[Run], row: str, against: str) -> list[dict[str, Any]]:
    """Paired t-tests of a row against another one over the seeds.

    Where every seed has test rows of its own, the variance is corrected for test sets that are drawn again from the
    same samples (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).
    """
    ours, theirs = ({run.seed: run for run in runs if run.model == name} for name in (row, against))
    shared = sorted(ours.keys() & theirs.keys())
    if len(shared) < 2:
        return []
    resampled = len({ours[seed].test for seed in shared}) > 1
    tests = []
    for metric in TESTED:
        a, b = (np.array([rows[seed].metrics.get(metric) for seed in shared], dtype=float) for rows in (ours, theirs))
        difference = a - b
        if np.isnan(difference).any():
            continue
        tests.append(
            {
                "row": row,
                "against": against,
                "metric": metric,
                "num_seeds": len(shared),
                "mean_difference": float(difference.mean()),
                "sd": float(difference.std(ddof=1)),
                "test": "corrected paired t-test" if resampled else "paired t-test",
                "p": corrected_p_value(difference) if resampled else corrected_p_value(difference, test_share=0.0),
            }
        )
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
