"""Comparison of label graphs, classifiers and own models on the same splits of a data set."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from torch import nn

from tg_mlc._files import replace_when_done
from tg_mlc._names import few, shorten
from tg_mlc._optional import require
from tg_mlc._options import argument, check_choice, check_count, check_number
from tg_mlc._warnings import warn
from tg_mlc.data import MultiLabelDataset, Split, random_split, stratified_split
from tg_mlc.data._label_values import check_known
from tg_mlc.graphs import LabelGraph, co_occurrence, edgeless, fully_connected, learned
from tg_mlc.graphs.plot import write_figure
from tg_mlc.inference.batches import logits_of, make_loader
from tg_mlc.inputs import Chain, kind_of
from tg_mlc.metrics import evaluate, tune_thresholds
from tg_mlc.metrics.paired import Difference, corrected_difference, holm
from tg_mlc.stacking.classifiers import ranks_and_decides
from tg_mlc.stacking.combination import LogitStacking
from tg_mlc.stacking.features import StackingFeatures
from tg_mlc.stacking.folds import (
    BATCH_SIZE,
    MAX_EPOCHS,
    NUM_STEPS,
    PATIENCE,
    TOP_K,
    seconds_per_epoch,
    settings_of,
)
from tg_mlc.stacking.markup import aligned_table, latex_float, markdown_table
from tg_mlc.training.fitting import train_model

GRAPHS = ("edgeless", "complete", "prior", "learned")
#: Rows without messages: the best classifier by held-out scores, and all classifiers combined.
SINGLE, STACK = "best classifier", "stack without messages"
SHARES = (0.7, 0.1, 0.2)  #: fractions of samples to train, to validate and to test
METRICS = ("average_precision_macro", "roc_auc_macro", "f1_micro", "f1_macro", "subset_accuracy")
ALPHA = 0.05
MIN_EPOCHS = 8  #: after fewer epochs, models still predict their base scores
_SPLITS = {"random": random_split, "stratified": stratified_split}
# Fractions of the time per seed for fitting classifiers and for training LaMP.
_CLASSIFIERS, _TRAININGS = 0.25, 0.5


class RowTest(NamedTuple):
    """A test of a row against another row, by the metric of the comparison."""

    row: str
    against: str
    difference: Difference
    p: float  #: p-value after Holm's correction for all tests

    @property
    def outcome(self) -> Literal["better", "worse", "no difference"]:
        """The outcome of the test at a level of 5 %."""
        if self.p >= ALPHA:
            return "no difference"
        return "better" if self.difference.mean > 0 else "worse"

    def __str__(self) -> str:
        row, mean, interval, p, _ = self.cells
        return f"{row}: {mean} ({interval}), p = {p}"

    @property
    def cells(self) -> tuple[str, ...]:
        """The rows, the mean difference, its interval, the p-value and the outcome."""
        mean, low, high, _ = self.difference
        rows, interval = f"{self.row} - {self.against}", f"{low:+.4f} to {high:+.4f}"
        return rows, f"{mean:+.4f}", interval, f"{self.p:.3g}", self.outcome


@dataclass(frozen=True)
class Comparison:
    """The result of :func:`compare`. It prints as table, tests and conclusion."""

    values: dict[str, dict[str, list[float]]]  #: values of all seeds, by row and metric
    metric: str  #: the metric of the tests
    seeds: list[int]  #: the seeds that were completed
    wanted: int  #: the requested number of seeds
    sizes: tuple[int, int, int]  #: numbers of samples to train, to validate and to test
    epochs: list[int]  #: the largest number of epochs per graph, for each seed
    models: Sequence[str] = ()  #: the rows of own models

    @property
    def graphs(self) -> list[str]:
        """The rows of label graphs."""
        return [row for row in self.values if row not in (SINGLE, STACK, *self.models)]

    @property
    def tests(self) -> list[RowTest]:
        """Tests of each distinct label graph against the edgeless one and rows without messages,
        and of own models against the rows of classifiers.
        """
        values = [self.values[row] for row in self.graphs]
        graphs = [row for i, row in enumerate(self.graphs) if values[i] not in values[:i]]
        others = [row for row in ("edgeless", SINGLE, STACK, *self.models) if row in self.values]
        pairs = [(row, other) for row in graphs for other in others if row != other]
        pairs += [(model, other) for model in self.models for other in (SINGLE, STACK)]
        differences = []
        for pair in pairs:
            first, second = (np.asarray(self.values[row][self.metric]) for row in pair)
            differences.append(corrected_difference(first - second, self.sizes[2], self.sizes[0]))
        p = holm([1.0 if result.p is None else result.p for result in differences])
        rows = zip(pairs, differences, p, strict=True)
        return [RowTest(*pair, difference, corrected) for pair, difference, corrected in rows]

    @property
    def conclusion(self) -> str:
        """The outcome of the tests in words, with intervals of the differences."""
        num_seeds, tests = len(self.seeds), self.tests
        if num_seeds < 2:
            got = f"{num_seeds} of {self.wanted} seeds is done, and a test takes two or more"
            return f"No conclusion: {got}; give it more seconds, or fewer graphs."
        sentences = []
        if self.graphs and (epochs := min(self.epochs)) < MIN_EPOCHS:
            expected = f"Time was too short to train along a graph for {MIN_EPOCHS} epochs"
            hint = "give it more seconds, or fewer seeds or graphs"
            sentences.append(f"{expected} (got {epochs}), which may hide what messages do: {hint}.")
        edgeless_tests = [test for test in tests if test.against == "edgeless"]
        for outcome, verb in (("better", "Messages help"), ("worse", "Messages harm")):
            if chosen := [test for test in edgeless_tests if test.outcome == outcome]:
                sentences.append(f"{verb} along these label graphs: {'; '.join(map(str, chosen))}.")
        if equal := [test for test in edgeless_tests if test.outcome == "no difference"]:
            low, high = min(t.difference.low for t in equal), max(t.difference.high for t in equal)
            graphs = ", ".join(test.row for test in equal)
            gain = f"a gain in {self.metric} lies between {low:+.4f} and {high:+.4f}"
            splits = f"in these {num_seeds} splits"
            sentences.append(f"No difference between edgeless and {graphs} {splits}: {gain}.")
        for row, other in combinations(self.graphs, 2):
            if self.values[row] == self.values[other]:
                reason = "because they are the same in every split"
                sentences.append(f"{row} and {other} are tested once, {reason}.")
        sentences += map(self._standing, self.models)
        if not self.graphs:
            return " ".join(sentences)
        better = {(test.row, test.against) for test in tests if test.outcome == "better"}
        best = [row for row in sorted(self.graphs) if {(row, SINGLE), (row, STACK)} <= better]
        rows = f"the {SINGLE} and the {STACK}"
        best_sentence = f"No label graph is significantly better than {rows}: these are simpler."
        if best:
            best_sentence = f"Better than both rows without messages: {', '.join(best)}."
        return " ".join([*sentences, best_sentence])

    def _standing(self, model: str) -> str:
        """The rows that one's own model is better or worse than."""
        rows: dict[str, list[str]] = {"better": [], "worse": [], "no difference": []}
        opposite = {"better": "worse", "worse": "better"}
        for test in self.tests:
            if test.row == model:
                rows[test.outcome].append(test.against)
            elif test.against == model:
                rows[opposite.get(test.outcome, test.outcome)].append(test.row)
        better, worse = few(rows["better"]) or "no row", few(rows["worse"]) or "none"
        return f"{model} is significantly better than {better}, and worse than {worse}."

    def __str__(self) -> str:
        lines = [aligned_table(self._cells), self._conditions, ""]
        if len(self.seeds) > 1:
            lines += [f"{self._heading}:", *(f"  {test}" for test in self.tests), ""]
        return "\n".join([*lines, self.conclusion])

    def to_markdown(self) -> str:
        """Returns tables of values and tests, the conditions and the conclusion in Markdown."""
        paragraphs = [markdown_table(self._cells), f"{self._conditions}."]
        if len(self.seeds) > 1:
            paragraphs += [f"{self._heading}:", markdown_table(self._test_cells)]
        return "\n\n".join([*paragraphs, self.conclusion]) + "\n"

    def to_latex(self) -> str:
        """Returns tables of values and tests in LaTeX (package booktabs). The caption holds the
        conditions and the conclusion.
        """
        tables, captions = [self._cells], [f"{self._conditions}."]
        if len(self.seeds) > 1:
            tables.append(self._test_cells)
            captions.append(f"{self._heading}.")
        return latex_float(tables, " ".join([*captions, self.conclusion])) + "\n"

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        """The metrics, then means and standard deviations of each row."""
        cells: list[tuple[str, ...]] = [("", *METRICS)]
        for row, values in self.values.items():
            columns = [np.asarray(values[metric]) for metric in METRICS]
            spreads = [f" ± {x.std(ddof=1):.4f}" if len(x) > 1 else "" for x in columns]
            pairs = zip(columns, spreads, strict=True)
            cells.append((row, *(f"{x.mean():.4f}{spread}" for x, spread in pairs)))
        return cells

    @property
    def _test_cells(self) -> list[tuple[str, ...]]:
        header = "difference", "mean", "95 % interval", "p", "outcome"
        return [header, *(test.cells for test in self.tests)]

    @property
    def _conditions(self) -> str:
        split = f"a split of {self.sizes} samples to train, validate and test"
        spread = "; mean ± standard deviation" if len(self.seeds) > 1 else ""
        epochs = " to ".join(map(str, sorted({min(self.epochs), max(self.epochs)})))
        limit = f"; at most {epochs} epochs" if self.graphs else ""
        return f"{len(self.seeds)} of {self.wanted} seeds, each with {split}{spread}{limit}"

    @property
    def _heading(self) -> str:
        method = "95 % intervals, p by corrected t-tests with Holm's correction"
        return f"Differences in {self.metric}, {method}"

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain values."""
        tests = []
        for test in self.tests:
            difference = test.difference._asdict()
            tests.append({**test._asdict(), "difference": difference, "outcome": test.outcome})
        return {**vars(self), "tests": tests, "conclusion": self.conclusion}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one file, if the path ends in ``.json``, ``.csv``, ``.md`` or ``.tex``; else a
        folder with all four as ``comparison.*`` and, with the extra ``plot``, a picture.
        """
        path, writers = Path(path), self._writers
        if writer := writers.get(path.suffix):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_when_done(path) as unfinished:
                # Files of csv have line ends of their own.
                unfinished.write_bytes(writer().encode())
            return
        for suffix in writers:
            self.save(path / f"comparison{suffix}")
        if find_spec("matplotlib") is not None:
            self.plot(path / "comparison.png")

    @property
    def _writers(self) -> dict[str, Callable[[], str]]:
        """The functions that return the content of a file, by the ending of its name."""
        return {
            ".json": self._to_json,
            ".csv": self._to_csv,
            ".md": self.to_markdown,
            ".tex": self.to_latex,
        }

    def _to_json(self) -> str:
        # JSON cannot represent infinity; null replaces it.
        finite = json.loads(json.dumps(self.to_dict()), parse_constant=lambda _: None)
        return json.dumps(finite, indent=1)

    def _to_csv(self) -> str:
        rows = []
        for row, values in self.values.items():
            columns = zip(self.seeds, *(values[metric] for metric in METRICS), strict=True)
            rows += [[row, *line] for line in columns]
        file = io.StringIO()
        csv.writer(file).writerows([["row", "seed", *METRICS], *rows])
        return file.getvalue()

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Returns a :class:`matplotlib.figure.Figure` of all values and the means."""
        size = 7, 1 + 0.4 * len(self.values)
        figure = require("matplotlib.figure", extra="plot").Figure(figsize=size)
        ax = figure.add_subplot()
        for index, metrics in enumerate(self.values.values()):
            values = metrics[self.metric]
            ax.plot(values, [index] * len(values), "o", color="#1b2a41", alpha=0.4)
            ax.plot(np.mean(values), index, "|", color="#1b2a41", markersize=18)
        ax.set_yticks(range(len(self.values)), list(self.values))
        ax.invert_yaxis()
        ax.set(xlabel=self.metric, title=f"{len(self.seeds)} splits, and their mean")
        if path is not None:
            write_figure(figure, path)
        return figure


def compare(
    dataset: MultiLabelDataset,
    graphs: Sequence[str | os.PathLike[str] | LabelGraph] = GRAPHS,
    *,
    models: Mapping[str, Any] | None = None,
    seeds: int = 5,
    seconds: float = 600.0,
    metric: str = METRICS[0],
    split: str = "random",
    first_seed: int = 0,
) -> Comparison:
    """Compares label graphs: trains classifiers, own models, and LaMP with each graph, on the same
    splits.

    .. code-block:: python

        songs = from_csv("songs.csv", label_columns=["calm", "sad"])
        print(compare(songs, ["edgeless", "complete", "mine.csv"]))

    Args:
        dataset (MultiLabelDataset): Samples of any kind that :func:`auto` takes.
        graphs (list, optional): :obj:`"edgeless"`, :obj:`"complete"`, :obj:`"prior"` (labels that
            occur together in training samples), :obj:`"learned"` (the largest attention of a model
            along the complete graph), files for :meth:`LabelGraph.read
            <tg_mlc.graphs.LabelGraph.read>`, or label graphs. (default: the four names)
        models (dict, optional): Own models by name. Estimators and their classes, with ``fit`` and
            ``predict_proba`` as in scikit-learn, get the matrix that most classifiers get, and
            targets with NaN for unknown. A function of data set and split trains anything else on
            ``split.train`` and returns probabilities of all samples. (default: :obj:`None`)
        seeds (int, optional): The number of splits. (default: :obj:`5`)
        seconds (float, optional): The approximate time of all seeds. If it is too short for them by
            the time of the first seed, a warning says how many will run. (default: :obj:`600`)
        metric (str, optional): The metric to test differences in, one of :obj:`METRICS`.
            (default: :obj:`"average_precision_macro"`)
        split (str, optional): :obj:`"random"` or :obj:`"stratified"`. (default: :obj:`"random"`)
        first_seed (int, optional): The seed of the first split. (default: :obj:`0`)

    Raises:
        ImportError: If scikit-learn is not installed (extra ``data``).
        TypeError: If a model is neither an estimator nor a function.
        ValueError: If a graph is unknown or has other labels, no sample knows a label, or a model
            returns no probabilities.
    """
    from lightning.pytorch.utilities.seed import isolate_rng  # The import is slow.

    check_count("seeds", seeds)
    check_number("seconds", seconds)
    check_choice("metric", metric, METRICS)
    check_choice("split", split, _SPLITS)
    check_known(dataset.y, dataset.label_names)
    label_graphs = _read_graphs(graphs, dataset)
    models = _read_models(models or {}, label_graphs)
    values: dict[str, dict[str, list[float]]] = {
        row: {name: [] for name in METRICS} for row in (SINGLE, STACK, *models, *label_graphs)
    }
    completed, epochs, planned = list[int](), list[int](), seeds
    while len(completed) < planned:
        start, seed = time.monotonic(), first_seed + len(completed)
        samples = len(dataset) if split == "random" else dataset.y
        parts = _SPLITS[split](samples, SHARES, seed)  # type: ignore[operator]
        trial = _Seed(dataset, parts, seed, seeds, seconds)
        with isolate_rng():
            rows = trial.rows(models, label_graphs)
        for row, metrics in rows.items():
            for name in METRICS:
                values[row][name].append(metrics[name])
        completed.append(seed)
        epochs.append(trial.epochs)
        if len(completed) == 1:
            planned = _num_affordable(seeds, seconds, time.monotonic() - start)
    return Comparison(values, metric, completed, seeds, parts.sizes, epochs, [*models])


def _num_affordable(seeds: int, seconds: float, first: float) -> int:
    """Returns how many seeds end in time if each takes as long as the first, and warns if they are
    fewer than requested.
    """
    number = min(seeds, max(1, int(seconds / first)))
    if number < seeds:
        got = f"{argument('seconds', seconds)}, and the first seed took {math.ceil(first)}"
        expected = f"{math.ceil(first * seeds)} seconds for {seeds} seeds"
        warn(f"Expected {expected} (got {got}); {number} of {seeds} seeds will run", stacklevel=3)
    return number


def _read_models(models: Mapping[str, Any], others: Mapping[str, Any]) -> Mapping[str, Any]:
    """Checks names and types of own models."""
    if not models and not others:
        raise ValueError("Expected 'graphs' or 'models' to compare (got none of both)")
    for name, model in models.items():
        if name in (*others, SINGLE, STACK):
            raise ValueError(f"Expected 'models' with names of their own (got {name!r:.80} twice)")
        is_estimator = hasattr(model, "fit") and hasattr(model, "predict_proba")
        if not is_estimator and (not callable(model) or isinstance(model, (nn.Module, type))):
            expected = (
                f"'models[{name!r:.80}]' to have 'fit' and 'predict_proba', or to be a function"
            )
            hint = "train networks by tg_mlc.fit in such a function of data set and split"
            raise TypeError(f"Expected {expected} (got {type(model).__name__}); {hint}")
    return models


def _read_graphs(graphs: Sequence[Any], dataset: MultiLabelDataset) -> dict[str, LabelGraph | None]:
    """Returns label graphs by row; :obj:`None` for graphs that depend on the split."""
    names, rows = dataset.label_names, dict[str, LabelGraph | None]()
    fixed = {"edgeless": edgeless(names), "complete": fully_connected(names)}
    for graph in graphs:
        if isinstance(graph, str) and graph in GRAPHS:
            row, value = graph, fixed.get(graph)
        elif isinstance(graph, LabelGraph):
            row, value = graph.kind, graph.add_self_loops()
        elif Path(graph).suffix:
            row, value = Path(graph).name, LabelGraph.read(graph, names).add_self_loops()
            if value.edge_weight is not None:
                reason = "because messages run along all edges alike; skip edges of low weight"
                warnings.warn(f"The weights of {row!r} have no effect, {reason}", stacklevel=3)
        else:
            expected = f"Expected 'graphs' among {', '.join(GRAPHS)}, files and LabelGraphs"
            raise ValueError(f"{expected} (got {shorten(repr(graph))})")
        own_names = names if value is None else value.label_names or names
        if value is not None and (value.num_labels != len(names) or own_names != names):
            expected = f"Expected the graph {row!r} to have the labels of the samples, in order"
            raise ValueError(f"{expected} (got {value.num_labels} labels: {few(own_names)})")
        if row in (*rows, SINGLE, STACK):
            raise ValueError(f"Expected 'graphs' to have different names (got {row!r} twice)")
        rows[row] = value
    return rows


class _Seed:
    """Trains and evaluates all rows of a comparison on one split."""

    def __init__(
        self, dataset: MultiLabelDataset, split: Split, seed: int, num_seeds: int, seconds: float
    ) -> None:
        self.dataset, self.split, self.seed, self.num_seeds = dataset, split, seed, num_seeds
        self.seconds = seconds / num_seeds
        self.complete: nn.Module | None = None

    def rows(
        self, models: Mapping[str, Any], graphs: Mapping[str, LabelGraph | None]
    ) -> dict[str, dict[str, float]]:
        """Returns the metrics of test samples by row."""
        features = StackingFeatures(seconds=self.seconds * _CLASSIFIERS, seed=self.seed)
        steps = Chain(*kind_of(self.dataset).steps())
        read = steps.fit_transform(self.dataset, self.split)
        self.samples = features.fit_transform(read, self.split)
        train, y = self.split.train.numpy(), self.dataset.y.numpy()
        logits = self.samples.rows("base_scores").double().numpy()
        # Base scores are scaled logits, which does not change ranks.
        held_out = expit(logits[train])
        num_classifiers = logits.shape[-1]
        values = [ranks_and_decides(y[train], held_out[..., i]) for i in range(num_classifiers)]
        metrics = {}
        for row, inputs in ((SINGLE, logits[..., [int(np.argmax(values))]]), (STACK, logits)):
            stacking = LogitStacking().fit(inputs[train], y[train])
            metrics[row] = self._evaluate(stacking.predict_proba(inputs))
        if models:
            x = features.views[features.scaling].matrix(read)
            metrics |= {row: self._run_model(row, model, x) for row, model in models.items()}
        self.settings, self.epochs = settings_of(self.samples), 0
        if graphs:
            num_trainings = len(graphs) + ("learned" in graphs and "complete" not in graphs)
            self.epochs = self._epochs(num_trainings)
        for row, graph in graphs.items():
            metrics[row] = self._run(row, graph)
        return metrics

    def _run_model(self, row: str, model: Any, x: Any) -> dict[str, float]:
        """Trains one's own model on training samples, and evaluates it as all rows."""
        from lightning.pytorch import seed_everything  # The import is slow.
        from sklearn.base import clone

        seed_everything(self.seed, verbose=False)
        if hasattr(model, "fit"):
            estimator = model() if isinstance(model, type) else clone(model, safe=False)
            y = self.dataset.y[self.split.train].numpy()
            estimator.fit(x[self.split.train.numpy()], y if np.isnan(y).any() else y.astype(int))
            scores = _matrix(estimator.predict_proba(x), estimator)
        else:
            scores = _matrix(model(self.dataset, self.split), model)
        name, expected = f"'models[{row!r:.80}]'", list(self.dataset.y.shape)
        if scores.shape != self.dataset.y.shape:
            got = f"shape {list(scores.shape)}"
            raise ValueError(
                f"Expected {name} to give probabilities of shape {expected} (got {got})"
            )
        if not ((scores >= 0) & (scores <= 1)).all():
            got = f"numbers from {scores.min():.3g} to {scores.max():.3g}"
            raise ValueError(f"Expected {name} to give probabilities between 0 and 1 (got {got})")
        return self._evaluate(scores)

    def _epochs(self, num_trainings: int) -> int:
        """Returns the number of epochs per training that the time allows."""
        train = self.samples[self.split.train]
        graph = fully_connected(self.dataset.label_names)
        model = self.settings.build(train, graph, **self.settings.model)
        affordable = _TRAININGS * self.seconds / num_trainings / seconds_per_epoch(model, train)
        target = np.clip(NUM_STEPS * BATCH_SIZE / len(train), MIN_EPOCHS, MAX_EPOCHS)
        # Two seeds with enough epochs are more informative than many seeds with too few.
        minimum = min(MIN_EPOCHS, affordable * self.num_seeds / 2)
        return max(1, int(min(target, max(affordable, minimum))))

    def _run(self, row: str, graph: LabelGraph | None) -> dict[str, float]:
        names = self.dataset.label_names
        if row == "prior" and graph is None:
            graph = co_occurrence(self.dataset.y, label_names=names, split=self.split)
        elif graph is None:
            model = self.complete or self._train(fully_connected(names))
            loader = make_loader(self.samples[self.split.train], batch_size=256)
            top_k = min(TOP_K, max(1, len(names) // 3))
            graph = learned(model, loader, top_k=top_k, label_names=names)
        model = self._train(graph)
        self.complete = model if row == "complete" else self.complete
        return self._evaluate(expit(logits_of(model, self.samples).double().numpy()))

    def _train(self, graph: LabelGraph) -> nn.Module:
        settings, train = self.settings, self.settings.train
        fit = {**train.fit, "max_epochs": self.epochs, "patience": PATIENCE}

        def build(samples: MultiLabelDataset) -> nn.Module:
            return settings.build(samples, graph, **settings.model)

        with tempfile.TemporaryDirectory() as folder:
            options = replace(train, fit=fit), folder
            result = train_model(build, self.samples, self.split, *options, seed=self.seed)
        return result.module.model.eval()

    def _evaluate(self, scores: np.ndarray) -> dict[str, float]:
        y, (_, val, test) = self.dataset.y.numpy(), (part.numpy() for part in self.split.parts)
        values = evaluate(y[test], scores[test], tune_thresholds(y[val], scores[val])).values
        return {metric: float(values[metric]) for metric in METRICS}


def _matrix(scores: Any, model: Any) -> np.ndarray:
    """Returns probabilities :math:`(N, L)`. Forests of scikit-learn return a list with the
    probabilities of both classes for each label, or of one class if training had no other.
    """
    if not isinstance(scores, list):
        return np.asarray(scores.toarray() if sp.issparse(scores) else scores, dtype=float)
    columns = []
    for label, classes in enumerate(scores):
        is_known = np.shape(classes)[1] > 1
        constant = 0.0 if is_known else float(model.classes_[label][0])
        columns.append(classes[:, 1] if is_known else np.full(len(classes), constant))
    return np.stack(columns, axis=1)
