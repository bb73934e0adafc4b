"""Rows of comparisons, and their runs: the results of one row with one seed."""

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

#: The best settings found here, or the paper's settings if a model learns with them.
Settings = Literal["best", "published"]
LAMP = "LaMP"
#: The part of a title for components that send messages to each other.
WITH_MESSAGES = "with node messages"
#: The first row of every comparison.
FREQUENCY = "label frequency"
#: Baselines on molecules. Rows with messages are tested against each baseline that was run.
SILENT = "base scores without messages"
BASELINES = ("random forest", "linear path alone", SILENT)
#: The scores of label pairs that are compared with priors.
LEARNED = "learned attention"
#: Attributes of a recipe that files of results record.
RECORDED = ("model", "module", "fit", "batch_size", "settings")
#: Fields of a run that hold values by metric.
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
        return cls(**{part.name: run[part.name] for part in fields(cls)})

    @property
    def title(self) -> str:
        """The whole identity in one line."""
        parts = (self.model, WITH_MESSAGES if self.node_messages else None, self.graph)
        return ", ".join([" ".join(filter(None, parts)), *self.remarks])

    @property
    def remarks(self) -> list[str]:
        """Differences from the best settings."""
        published = ["as published"] if self.settings == "published" else []
        return [*published, *([self.change] if self.change else [])]


def recorded(recipe: Recipe) -> dict[str, Any]:
    """The attributes of a recipe that files of results record."""
    parts = {key: getattr(recipe, key) for key in RECORDED}
    return {**parts, "module": {**recipe.objective, **recipe.module}}


@dataclass
class Run:
    """The results of one row with one seed."""

    row: Row
    seed: int
    split: str
    seconds: float
    metrics: Metrics
    undefined: list[str]
    test: str = ""  #: The hash of the test rows.
    per_label: Metrics = field(default_factory=dict)  #: Metrics with a threshold for each label.
    by_frequency: Metrics = field(default_factory=dict)  #: Metrics with thresholds by frequency.
    by_label_set: Metrics = field(default_factory=dict)  #: Metrics of the likeliest known set.
    #: For each metric, ``by_frequency`` or ``by_label_set``, as is better on validation samples.
    preferred: Metrics = field(default_factory=dict)
    thresholds: dict[str, float] = field(default_factory=dict)
    density: float | None = None
    validation: float | None = None
    on_validation: Metrics = field(default_factory=dict)  #: ``metrics`` of validation samples.
    recovery: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All fields, including those of the row."""
        values = asdict(self)
        return {**values.pop("row"), **values}


def frame(runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Stored runs as a table with columns such as ``metrics.f1_micro``, and ``row`` if stored."""
    rows = []
    for run in runs:
        row = {"row": Row.of(run)} if "node_messages" in run else {}
        row |= {key: value for key, value in run.items() if key not in BY_METRIC}
        for group in BY_METRIC:
            row |= {f"{group}.{name}": value for name, value in run.get(group, {}).items()}
        rows.append(row)
    return pd.DataFrame(rows)


def row_and_seed(run: Mapping[str, Any]) -> tuple[Row, int]:
    """The row and the seed, which identify a stored run."""
    return Row.of(run), run["seed"]


def in_short(run: Mapping[str, Any]) -> str:
    """A stored run in one line: some metrics and the time."""
    names = ("subset_accuracy", "f1_samples", "f1_micro", "f1_macro")
    names += ("roc_auc_macro", "average_precision_macro")
    metrics = {name: run["metrics"].get(name) for name in names}
    values = [f"{name} {value:.4f}" for name, value in metrics.items() if value is not None]
    row = Row.of(run).title if "node_messages" in run else run["model"]
    return f"{row:<28} seed {run['seed']}: {', '.join(values)} ({run['seconds']:.0f} s)"


@dataclass
class Task:
    """A data set with its recipe and a mask of the labels that count."""

    name: str
    dataset: MultiLabelDataset
    changed: Recipe | None = None  #: Replaces the data set's own recipe.

    @property
    def recipe(self) -> Recipe:
        """The recipe for training on the data set."""
        return self.changed or RECIPES[self.name]

    def with_settings(self, settings: Settings | None) -> Task:
        """The task with the recipe of these settings."""
        published = settings == "published"
        return replace(self, changed=self.recipe.as_published()) if published else self

    @property
    def counted(self) -> torch.Tensor:
        """A mask of the labels that are frequent enough."""
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
        fixed = {"node_messages": node_messages, "seed": seed, "config": {"dataset": self.name}}
        options = {"accelerator": "cpu", "logger": False, **options, **fixed}
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
        """All metrics of the test set; thresholds are tuned on the validation set."""
        mask, y = self.counted, self.dataset.y
        labels = zip(self.dataset.label_names, mask.tolist(), strict=True)
        names = [name for name, is_counted in labels if is_counted]
        val, test = (
            torch.as_tensor(np.asarray(s), dtype=torch.float64)[:, mask] for s in (on_val, on_test)
        )
        y_train, y_val, y_test = (y[part][:, mask] for part in split.parts)
        tuners = tune_thresholds(y_val, val)
        frequency_tuners = tune_thresholds(y_val, val, "frequency", y_train=y_train)
        evaluation = evaluate(y_test, test, tuners, names)

        def values(y: torch.Tensor, scores: torch.Tensor, tuners: Any = None) -> Metrics:
            metrics: Metrics = evaluate(y, scores, tuners, names).to_dict()["values"]
            return metrics

        metrics = evaluation.to_dict()["values"]
        run = Run(row, seed, split.hash, seconds, metrics, evaluation.undefined)
        run.test = hashlib.sha256(split.test.numpy().tobytes()).hexdigest()
        run.per_label = values(y_test, test, tune_thresholds(y_val, val, "per_label"))
        run.by_frequency = values(y_test, test, frequency_tuners)
        run.on_validation = values(y_val, val, tuners)
        run.by_label_set = dict.fromkeys(DECISION_METRICS)
        on_validation = dict.fromkeys(DECISION_METRICS)
        # Label sets are undefined if no training sample has all labels known.
        if not y_train.isnan().any(dim=1).all():
            sets = LabelSets.tuned(y_train, y_val, val)
            both = [values(y, sets.predict(s).double()) for y, s in ((y_val, val), (y_test, test))]
            on_validation, run.by_label_set = (
                {name: by_metric[name] for name in DECISION_METRICS} for by_metric in both
            )
        for name, tuner in frequency_tuners.items():
            sets_win = _exceeds(on_validation[name], tuner.best_value)
            run.preferred[name] = (run.by_label_set if sets_win else run.by_frequency)[name]
        for name, tuner in tuners.items():
            run.thresholds[name] = float(np.asarray(tuner.thresholds).item())
        return run


def _exceeds(value: float | None, other: float | None) -> bool:
    return value is not None and (other is None or value > other)


class Samples:
    """Data sets and their splits. Each data set is read and preprocessed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._raw: dict[str, MultiLabelDataset] = {}
        self._prepared: dict[Any, MultiLabelDataset] = {}
        self.describe = cache(self._describe)

    def raw(self, name: str, recipe: Recipe) -> MultiLabelDataset:
        """A data set before preprocessing."""
        if name not in self._raw:
            self._raw[name] = recipe.load_dataset(self.root)
        return self._raw[name]

    def _describe(self, name: str) -> dict[str, Any]:
        """The sizes and the hash of a data set."""
        return describe_dataset(name, self.raw(name, RECIPES[name]))

    def trial(
        self, name: str, recipe: Recipe, seed: int, method: str | None = None
    ) -> tuple[Task, Split]:
        """The samples, preprocessed as in the recipe, and their split with a seed."""
        raw = self.raw(name, recipe) if recipe.redraw is None else recipe.redraw(seed)
        split = recipe.split(raw, method or recipe.splits[0], seed)
        origin = split if recipe.redraw is None else seed
        key = (name, origin, recipe.data.preprocess, recipe.classifiers)
        if key not in self._prepared:
            self._prepared[key] = recipe.prepare(raw, split)
        return Task(name, self._prepared[key], recipe), split
