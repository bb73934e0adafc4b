"""Given labels: how well the other labels of a sample are predicted if some are known already.

    python -m benchmarks.accuracy.given_labels --dataset sider --seeds 3

The default learns from given labels by messages of residuals over its held-out logits. Beside it
are logistic regressions of every label, on the inputs and what is known of the other labels, and
LaMP trained with random label masks on a complete label graph. From 0 to 90% of the labels of each
test sample are given, the same labels to all rows. Scores are computed on the labels that are not
given, with and without the given labels as input. Settings are chosen on validation samples with
masks like those of training. ``benchmarks.accuracy.complete`` compares what the default adds to its
base scores with other ways to use given labels.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace as replaced
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from joblib import delayed
from scipy.special import expit
from torch import Tensor
from torch_geometric.loader import DataLoader

from benchmarks.accuracy.baselines import fingerprints
from benchmarks.accuracy.runs import FREQUENCY, Task, recorded
from benchmarks.command_line import run
from benchmarks.files import Run, check_replacement, collect, describe_dataset
from tg_mlc.baselines import LabelFrequency, LinearBaseline
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import inputs_of, with_attribute
from tg_mlc.inference.decisions import GivenLabels
from tg_mlc.metrics import macro_average_precision, macro_roc_auc, micro_roc_auc
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY
from tg_mlc.papers.recipes.graphs import MOLECULES
from tg_mlc.papers.recipes.tables import TABLES
from tg_mlc.sklearn.estimator import log_odds
from tg_mlc.stacking import auto

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
WITH_MASKS, PLAIN = "LaMP complete, with masks", "LaMP complete, without masks"
LOGISTIC = "logistic regression, with masks"
DEFAULT = "default"
WITHOUT_LAMP = "-without-lamp"
METRICS = {
    "roc_auc_macro": macro_roc_auc,
    "roc_auc_micro": micro_roc_auc,
    "average_precision_macro": macro_average_precision,
}
#: Number of masks of each training sample for the final regression. LaMP draws masks anew.
NUM_MASKS = 4
C_GRID = (0.1, 1.0, 10.0, 100.0)

#: Returns scores of all labels of the test samples. The argument is the given labels, or None.
Predict = Callable[[Tensor | None], Any]


def main(
    dataset: str = "sider",
    seeds: int = 3,
    first_seed: int = 10,
    root: Path = Path("data"),
    jobs: int = 1,
    max_epochs: int | None = None,
    lamp: bool = True,
    seconds: float = 150.0,
    replace: bool = False,
) -> None:
    """Trains every row with every seed, gives more and more labels, and writes benchmarks/runs/.

    Args:
        dataset: A data set of words, vectors or molecules.
        seeds: Number of seeds, of splits, weights and masks.
        first_seed: The first seed; the recipes of molecules were found with seeds 0 to 3.
        root: Folder that keeps the data.
        jobs: Number of simultaneous trainings, each on one thread.
        max_epochs: Number of epochs, if not that of the recipe.
        lamp: Whether to train LaMP, which takes hours on many labels. Without it, the name of the
            file ends in "-without-lamp".
        seconds: Time limit for fitting the default.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    check_replacement(replace, max_epochs=max_epochs)
    valid = {**TABLES, **MOLECULES}
    if dataset not in valid:
        raise SystemExit(f"Expected --dataset to be one of {', '.join(valid)} (got {dataset})")
    options, recipe = {} if max_epochs is None else {"max_epochs": max_epochs}, RECIPES[dataset]
    raw, name = recipe.load_dataset(root), f"given_labels-{dataset}{'' if lamp else WITHOUT_LAMP}"
    described = describe_dataset(dataset, raw)
    recipes = {member: recorded(recipe.as_member(FAMILY[member])) for member in FAMILY_ROWS}
    for settings in recipes.values():
        settings["fit"] = {**settings["fit"], **options}
    content: dict[str, Any] = {
        "dataset": {**described, "counted_labels": int(recipe.counted_labels(raw).sum())},
        "split": recipe.splits[0],
        "seeds": list(range(first_seed, first_seed + seeds)),
        "seconds": seconds,
        "recipes": recipes,
        "logistic": {"num_masks": NUM_MASKS, "C": C_GRID, "encodings": list(ENCODINGS)},
    }
    calls = {
        (row, seed): delayed(run_row)(dataset, raw, seed, row, options, seconds)
        for seed, row in product(content["seeds"], ROWS)
        if lamp or row not in (PLAIN, WITH_MASKS)
    }
    identity = itemgetter("model", "seed")
    collect(name, content, calls, identity, _in_short, jobs=jobs, replace=replace)


def _in_short(run: Run) -> str:
    defined = {metric: run[metric] for metric in METRICS if run[metric] is not None}
    values = ", ".join(f"{metric} {value:.4f}" for metric, value in defined.items())
    condition = f"{run['share']:.0%} {'given' if run['given'] else 'none given'}"
    return f"{run['model']:<32} seed {run['seed']}, {condition}: {values} ({run['seconds']:.0f} s)"


class Trial(NamedTuple):
    """The samples, the split and the options of one seed."""

    task: Task
    split: Split
    seed: int
    options: dict[str, Any]
    raw: MultiLabelDataset
    seconds: float

    def given(self, part: Tensor, fraction: float | Tensor) -> Tensor:
        """Labels of ``part``, NaN unless given. A larger fraction gives a superset of labels."""
        y = self.task.dataset.y
        draws = torch.rand(y.shape, generator=torch.Generator().manual_seed(self.seed))
        return torch.where(draws < fraction, y, torch.nan)[part]

    def masked(self, part: Tensor, seed: int) -> Tensor:
        """Labels of ``part``, NaN unless given: a random fraction up to the maximum in training."""
        y, draw = self.task.dataset.y[part], torch.Generator().manual_seed(seed)
        fraction = self.task.recipe.objective["max_given"] * torch.rand(len(y), 1, generator=draw)
        return torch.where(torch.rand(y.shape, generator=draw) < fraction, y, torch.nan)


def run_row(
    name: str,
    raw: MultiLabelDataset,
    seed: int,
    row: str,
    options: dict[str, Any],
    seconds: float,
) -> list[Run]:
    """The scores of one row of one seed, for every fraction of given labels."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    recipe = RECIPES[name].as_member(FAMILY["lamp-given"])
    split = recipe.split(raw, recipe.splits[0], seed)
    task = Task(name, recipe.prepare(raw, split), recipe)
    trial = Trial(task, split, seed, options, raw, seconds)
    predict, settings = ROWS[row](trial)
    seconds = time.perf_counter() - start
    shared = {"model": row, "seed": seed, "seconds": seconds, "settings": settings}
    y, counted, without_given = trial.task.dataset.y[split.test], trial.task.counted, predict(None)
    runs = []
    for fraction in SHARES:
        given = trial.given(split.test, fraction)
        hidden = _hide(y, given)[:, counted]
        by_given = {False: without_given}
        if row in TAKE_GIVEN and fraction > 0:
            by_given[True] = predict(given)
        for is_given, scores in by_given.items():
            columns = torch.as_tensor(np.asarray(scores), dtype=torch.float64)[:, counted]
            values = {metric: compute(hidden, columns) for metric, compute in METRICS.items()}
            values = {name: None if math.isnan(value) else value for name, value in values.items()}
            runs.append({**shared, "share": fraction, "given": is_given, **values})
    return runs


def _frequency(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    frequency = LabelFrequency().fit(trial.split.train, trial.task.dataset.y[trial.split.train])
    return lambda given: frequency.predict_proba(trial.split.test), {}


def _lamp(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    """LaMP with masks. Keeps the epoch that is best on validation samples with masks."""
    dataset, split = trial.task.dataset, trial.split
    given = torch.full_like(dataset.y, torch.nan)
    given[split.val] = trial.masked(split.val, trial.seed)
    task = replaced(trial.task, dataset=with_attribute(dataset, "given", given))
    return _trained(trial._replace(task=task))


def _plain(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    recipe = RECIPES[trial.task.name].as_member(FAMILY["lamp"])
    return _trained(trial._replace(task=replaced(trial.task, changed=recipe)))


def _trained(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    task, split, seed, options, *_ = trial
    node_messages = task.name in MOLECULES
    label_graph = task.recipe.label_graph("complete", task.dataset, split)
    result, _ = task.train(split, seed, label_graph, node_messages, options)

    def predict(given: Tensor | None) -> Tensor:
        test = task.dataset[split.test]
        if "given" in test[0]:
            nothing = torch.full_like(test.y, torch.nan)
            test = with_attribute(test, "given", nothing if given is None else given)
        return result.scores(DataLoader(test, task.recipe.batch_size))

    return predict, {"best_value": result.best_value, "node_messages": node_messages}


def _indicators(given: Tensor, frequency: Tensor) -> Tensor:
    """Two columns for each label: known to apply, and known not to apply."""
    return torch.cat([given == 1, given == 0], dim=1).float()


def _filled(given: Tensor, frequency: Tensor) -> Tensor:
    """One column for each label: the value minus the label's frequency, or 0 if unknown."""
    return (given - frequency).nan_to_num(0.0)


#: Encodings of known labels for logistic regression; validation samples choose one.
ENCODINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "indicators": _indicators,
    "filled": _filled,
}


def _logistic(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    """A regression for every label, on the inputs and the other known labels.

    The regression of a label is not trained on samples whose label is given.
    """
    (train, val, test), y = trial.split.parts, trial.task.dataset.y
    rows = train.repeat(NUM_MASKS)
    masked, on_val = trial.masked(rows, trial.seed + 1), trial.masked(val, trial.seed)
    first = masked[: len(train)]
    x = fingerprints(trial.task) if trial.task.name in MOLECULES else inputs_of(trial.task.dataset)
    frequency = y[train].nanmean(dim=0).nan_to_num(0.5)
    searches = {}
    for name, encode in ENCODINGS.items():
        join = partial(_join, x, partial(encode, frequency=frequency))
        parts = join(train, first), _hide(y[train], first), join(val, on_val), _hide(y[val], on_val)
        model = LinearBaseline.tuned(*parts, loss="logistic", grid=C_GRID, metric=macro_roc_auc)
        searches[name] = max(value for _, value in model.search), model.C, join
    best = max(searches, key=lambda name: searches[name][0])
    value, C, join = searches[best]
    model = LinearBaseline("logistic", C).fit(join(rows, masked), _hide(y[rows], masked))

    def predict(given: Tensor | None) -> Any:
        given = torch.full_like(y[test], torch.nan) if given is None else given
        return model.predict_proba(join(test, given))

    return predict, {"best_value": value, "encoding": best, "C": C}


def _join(x: Any, encode: Callable[[Tensor], Tensor], part: Tensor, given: Tensor) -> Any:
    """The inputs of ``part``, followed by the encoded given labels."""
    known = sp.csr_array(encode(given).numpy())
    return sp.hstack([sp.csr_array(x[part.numpy()]), known], format="csr")


def _default(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    (train, val, test), raw = trial.split.parts, trial.raw
    model = auto(raw[torch.cat([train, val])], trial.seconds, trial.seed)
    stage = model.stage(GivenLabels)
    assert stage is not None
    report = {key: value for key, value in stage.engine.report.items() if key != "seconds"}
    logits = log_odds(model.probabilities(raw[test]))

    def predict(given: Tensor | None) -> Any:
        if given is None:
            return expit(logits)
        return expit(stage.engine.decision_function(logits, given.double().numpy()))

    return predict, {"seconds": trial.seconds, **report}


def _hide(y: Tensor, given: Tensor) -> Tensor:
    return y.masked_fill(~given.isnan(), torch.nan)


ROWS: dict[str, Callable[[Trial], tuple[Predict, dict[str, Any]]]] = {
    FREQUENCY: _frequency,
    LOGISTIC: _logistic,
    DEFAULT: _default,
    PLAIN: _plain,
    WITH_MASKS: _lamp,
}
TAKE_GIVEN = (LOGISTIC, DEFAULT, WITH_MASKS)
FAMILY_ROWS = ("lamp", "lamp-given")


if __name__ == "__main__":
    sys.exit(run(main))
