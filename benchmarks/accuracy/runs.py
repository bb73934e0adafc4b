"""Runs of a comparison: one row of one seed each."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from benchmarks.accuracy.rows import Row, Settings
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.graphs import LabelGraph
from tg_mlc.metrics import DECISION_METRICS, LabelSets, evaluate, tune_by_frequency, tune_per_metric
from tg_mlc.papers.recipes import RECIPES, EncoderName, Recipe
from tg_mlc.training import FitResult, MultiLabelDataModule

Metrics = dict[str, float | None]


@dataclass
class Run:
    """One row of one seed."""

    row: Row
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
    on_validation: Metrics = field(default_factory=dict)  #: the metrics of validation samples, with the same thresholds
    recovery: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields of the row beside all others."""
        found = asdict(self)
        return {**found.pop("row"), **found}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        """What :meth:`to_dict` wrote."""
        names = [each.name for each in fields(Row)]
        rest = {name: value for name, value in values.items() if name not in names}
        return cls(Row(**{name: values[name] for name in names}), **rest)


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

    def with_settings(self, settings: Settings | None) -> Task:
        """The task with the recipe of these settings."""
        return replace(self, changed=self.recipe.as_published()) if settings == "published" else self

    @property
    def counted(self) -> torch.Tensor:
        """Which labels are frequent enough."""
        return self.recipe.counted_labels(self.dataset)

    def train(
        self, split: Split, seed: int, label_graph: LabelGraph, encoder: EncoderName, options: dict[str, Any]
    ) -> tuple[FitResult, MultiLabelDataModule]:
        """Trains, on the CPU unless an option says otherwise, and keeps no files."""
        with tempfile.TemporaryDirectory() as folder:
            return self.recipe.train(
                self.dataset,
                split,
                label_graph,
                folder,
                encoder=encoder,
                seed=seed,
                config={"dataset": self.name},
                **{"accelerator": "cpu", "logger": False, **options},
            )

    def run(self, row: Row, split: Split, seed: int, seconds: float, on_val: ArrayLike, on_test: ArrayLike) -> Run:
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
            row,
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
            on_validation=evaluate(y_val, scores[0], tuners, names).to_dict()["values"],
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
