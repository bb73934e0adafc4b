"""Rows of comparisons, and their runs: what one seed of a row gives."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from benchmarks.files import describe_dataset
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.graphs import LabelGraph
from tg_mlc.metrics import DECISION_METRICS, LabelSets, evaluate, tune_thresholds
from tg_mlc.papers.recipes import RECIPES, Recipe
from tg_mlc.training import MultiLabelDataModule, Training

#: The settings that were best here, or those of the paper where a model learns with these.
Settings = Literal["best", "published"]
LAMP = "LaMP"
#: How titles write that components send messages to each other.
WITH_MESSAGES = "with node messages"
#: The first row of every comparison.
FREQUENCY = "label frequency"
#: Rows that those with messages on molecules are tested against, if a comparison has them.
SILENT = "base scores without messages"
BASELINES = ("random forest", "linear path alone", SILENT)
#: The scores of label pairs that are compared with priors.
LEARNED = "learned attention"
#: Parts of a recipe that are recorded.
RECORDED = ("model", "module", "fit", "batch_size", "settings")
#: Parts of a run that hold numbers by metric.
BY_METRIC = ("metrics", "per_label", "by_frequency", "by_label_set", "preferred", "thresholds")
Metrics = dict[str, float | None]


@dataclass(frozen=True)
class Row:
    """Identity of a row of results.

    Args:
        model: The model: LaMP, or a classifier or a network without a label graph.
        node_messages: Whether components send messages to each other, if the model is a network.
        graph: The label graph.
        settings: The settings, best or published, of models that a paper has settings for.
        change: The change that an ablation makes.
    """

    model: str
    node_messages: bool | None = None
    graph: str | None = None
    settings: Settings | None = None
    change: str | None = None

    @classmethod
    def of(cls, run: Mapping[str, Any]) -> Row:
        """The row of a stored run."""
        return cls(**{each.name: run[each.name] for each in fields(cls)})

    @property
    def title(self) -> str:
        """All of it in one line."""
        parts = (self.model, WITH_MESSAGES if self.node_messages else None, self.graph)
        return ", ".join([" ".join(filter(None, parts)), *self.remarks])

    @property
    def remarks(self) -> list[str]:
        """Differences from the best settings."""
        return [
            *(["as published"] if self.settings == "published" else []),
            *([self.change] if self.change else []),
        ]


def recorded(recipe: Recipe) -> dict[str, Any]:
    """The parts of a recipe that files of results keep."""
    return {key: getattr(recipe, key) for key in RECORDED} | {
        "module": {**recipe.objective, **recipe.module}
    }


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
    #: the same with thresholds that follow frequencies
    by_frequency: Metrics = field(default_factory=dict)
    #: those of the likeliest label set of training samples
    by_label_set: Metrics = field(default_factory=dict)
    #: of these two, for every metric the better on validation samples
    preferred: Metrics = field(default_factory=dict)
    thresholds: dict[str, float] = field(default_factory=dict)
    density: float | None = None
    validation: float | None = None
    #: the metrics of validation samples, with the same thresholds
    on_validation: Metrics = field(default_factory=dict)
    recovery: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields of the row beside all others."""
        found = asdict(self)
        return {**found.pop("row"), **found}


def frame(runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Stored runs as a table, whose columns are the fields, ``metrics.f1_micro`` and the like, and ``row`` where they
    tell one.
    """
    return pd.DataFrame(
        {
            **({"row": Row.of(run)} if "node_messages" in run else {}),
            **{key: value for key, value in run.items() if key not in BY_METRIC},
            **{
                f"{part}.{name}": value
                for part in BY_METRIC
                for name, value in run.get(part, {}).items()
            },
        }
        for run in runs
    )


def row_and_seed(run: Mapping[str, Any]) -> tuple[Row, int]:
    """The row and the seed, which identify a stored run."""
    return Row.of(run), run["seed"]


def in_short(run: Mapping[str, Any]) -> str:
    """A stored run in one line: some metrics and the time."""
    names = (
        "subset_accuracy",
        "f1_samples",
        "f1_micro",
        "f1_macro",
        "roc_auc_macro",
        "average_precision_macro",
    )
    values = [
        f"{name} {run['metrics'][name]:.4f}"
        for name in names
        if run["metrics"].get(name) is not None
    ]
    row = Row.of(run).title if "node_messages" in run else run["model"]
    return f"{row:<28} seed {run['seed']}: {', '.join(values)} ({run['seconds']:.0f} s)"


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
        return (
            replace(self, changed=self.recipe.as_published()) if settings == "published" else self
        )

    @property
    def counted(self) -> torch.Tensor:
        """Which labels are frequent enough."""
        return self.recipe.counted_labels(self.dataset)

    def train(
        self,
        split: Split,
        seed: int,
        label_graph: LabelGraph,
        node_messages: bool,
        options: dict[str, Any],
    ) -> tuple[Training, MultiLabelDataModule]:
        """Trains, on the CPU unless an option says otherwise, and keeps no files."""
        given = {"node_messages": node_messages, "seed": seed, "config": {"dataset": self.name}}
        options = {"accelerator": "cpu", "logger": False, **options, **given}
        with tempfile.TemporaryDirectory() as folder:
            return self.recipe.train(self.dataset, split, label_graph, folder, **options)

    def run(
        self,
        row: Row,
        split: Split,
        seed: int,
        seconds: float,
        on_val: ArrayLike,
        on_test: ArrayLike,
    ) -> Run:
        """All metrics on the test set; thresholds, one per metric or one per label, come from the validation set."""
        keep, y = self.counted, self.dataset.y
        names = [
            name
            for name, counts in zip(self.dataset.label_names, keep.tolist(), strict=True)
            if counts
        ]
        val, test = (
            torch.as_tensor(np.asarray(s), dtype=torch.float64)[:, keep] for s in (on_val, on_test)
        )
        y_train, y_val, y_test = (y[part][:, keep] for part in split.parts)
        tuners = tune_thresholds(y_val, val)
        following = tune_thresholds(y_val, val, "frequency", y_train=y_train)
        evaluation = evaluate(y_test, test, tuners, names)

        def values(y: torch.Tensor, scores: torch.Tensor, tuners: Any = None) -> Metrics:
            found: Metrics = evaluate(y, scores, tuners, names).to_dict()["values"]
            return found

        per_label, by_frequency = (
            tune_thresholds(y_val, val, "per_label"),
            values(y_test, test, following),
        )
        by_set_on_val: Metrics = dict.fromkeys(DECISION_METRICS)
        by_label_set: Metrics = dict.fromkeys(DECISION_METRICS)
        # Sets are undefined where no training sample is known entirely.
        if not y_train.isnan().any(dim=1).all():
            sets = LabelSets.tuned(y_train, y_val, val)
            on_val, on_test = (
                values(y, sets.predict(s).double()) for y, s in ((y_val, val), (y_test, test))
            )
            by_set_on_val, by_label_set = (
                {name: on[name] for name in DECISION_METRICS} for on in (on_val, on_test)
            )
        preferred = {
            name: by_label_set[name]
            if _exceeds(by_set_on_val[name], tuner.best_value)
            else by_frequency[name]
            for name, tuner in following.items()
        }
        run = Run(
            row, seed, split.hash, seconds, evaluation.to_dict()["values"], evaluation.undefined
        )
        run.test = hashlib.sha256(split.test.numpy().tobytes()).hexdigest()
        run.per_label, run.by_frequency = values(y_test, test, per_label), by_frequency
        run.by_label_set, run.preferred, run.on_validation = (
            by_label_set,
            preferred,
            values(y_val, val, tuners),
        )
        run.thresholds = {
            name: float(np.asarray(tuner.thresholds).item()) for name, tuner in tuners.items()
        }
        return run


def _exceeds(value: float | None, other: float | None) -> bool:
    return value is not None and (other is None or value > other)


class Samples:
    """Data sets and their parts, read and preprocessed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._raw: dict[str, MultiLabelDataset] = {}
        self._prepared: dict[Any, MultiLabelDataset] = {}
        self.describe = cache(self._describe)

    def raw(self, name: str, recipe: Recipe) -> MultiLabelDataset:
        """A data set as its file has it."""
        if name not in self._raw:
            self._raw[name] = recipe.load_dataset(self.root)
        return self._raw[name]

    def _describe(self, name: str) -> dict[str, Any]:
        """The sizes and the hash of a data set."""
        return describe_dataset(name, self.raw(name, RECIPES[name]))

    def trial(
        self, name: str, recipe: Recipe, seed: int, method: str | None = None
    ) -> tuple[Task, Split]:
        """The samples as a recipe takes them, and the parts of a seed."""
        raw = self.raw(name, recipe) if recipe.redraw is None else recipe.redraw(seed)
        split = recipe.split(raw, method or recipe.splits[0], seed)
        drawn = split if recipe.redraw is None else seed
        key = (name, drawn, recipe.data.preprocess, recipe.classifiers)
        if key not in self._prepared:
            self._prepared[key] = recipe.prepare(raw, split)
        return Task(name, self._prepared[key], recipe), split
