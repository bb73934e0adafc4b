"""Given labels: how well the other labels of a sample are predicted if some are known already.

    python -m benchmarks.accuracy.given_labels --dataset sider --seeds 3

The default learns from given labels by messages of residuals over its held-out logits. Its rivals are logistic
regressions of every label, on the inputs or on the default's held-out logits, and what is known of the other labels;
training samples that are alike in their given labels; and LaMP trained with random label masks on a complete label
graph. From 0 to 90% of the labels of each test sample are given, the same labels to all; the scores are those of the
labels that are not given. Beside them stand the scores of the very same labels if none is given. Settings are chosen on
validation samples with masks like those of training.
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
from scipy.special import expit, softmax
from torch import Tensor
from torch_geometric.loader import DataLoader

from benchmarks.accuracy.baselines import fingerprints
from benchmarks.accuracy.runs import FREQUENCY, Task, recorded
from benchmarks.command_line import run
from benchmarks.files import Run, check_replacement, collect, describe_dataset
from tg_mlc.baselines import LabelFrequency, LinearBaseline
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import inputs_of, with_attribute
from tg_mlc.inference import Model
from tg_mlc.inference.decisions import GivenLabels
from tg_mlc.metrics import macro_average_precision, macro_roc_auc, micro_roc_auc
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY
from tg_mlc.papers.recipes.graphs import MOLECULES
from tg_mlc.papers.recipes.tables import TABLES
from tg_mlc.sklearn.estimator import log_odds
from tg_mlc.stacking import auto
from tg_mlc.stacking.given import GivenLabelStacking

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
WITH_MASKS, PLAIN = "LaMP complete, with masks", "LaMP complete, without masks"
LOGISTIC = "logistic regression, with masks"
OWN_SCORE = "logistic regression on a label's own score, with masks"
NEIGHBOURS = "neighbours by given labels, and the default's scores"
CLOSED = "default, residual messages in closed form"
DEFAULT = "default"
WITHOUT_LAMP = "-without-lamp"
#: Settings of neighbours: how fast their weight falls with disagreement, and their weight beside the default's scores.
NEIGHBOUR_GRID = tuple(product((0.5, 1.0, 2.0, 4.0), (0.0, 0.25, 0.5, 0.75, 1.0)))
METRICS = {
    "roc_auc_macro": macro_roc_auc,
    "roc_auc_micro": micro_roc_auc,
    "average_precision_macro": macro_average_precision,
}
#: Masks that the regression sees of every training sample, once it is tuned with one; LaMP sees a new one in every
#: epoch.
NUM_MASKS = 4
C_GRID = (0.1, 1.0, 10.0, 100.0)

#: From given labels of the test samples, if any, to scores of all labels.
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
        first_seed: The first of them; the recipes of molecules were found with seeds 0 to 3.
        root: Folder that keeps the data.
        jobs: How many trainings run at a time, each on one thread.
        max_epochs: Number of epochs, if not that of the recipe.
        lamp: Whether to train LaMP, which takes hours on many labels; without it, the file has a name of its own.
        seconds: The time that fitting the default may take.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    check_replacement(replace, max_epochs=max_epochs)
    if dataset not in {**TABLES, **MOLECULES}:
        raise SystemExit(
            f"Expected --dataset to be one of {', '.join({**TABLES, **MOLECULES})} (got {dataset})"
        )
    options, recipe = {} if max_epochs is None else {"max_epochs": max_epochs}, RECIPES[dataset]
    raw, name = recipe.load_dataset(root), f"given_labels-{dataset}{'' if lamp else WITHOUT_LAMP}"
    members = {member: recorded(recipe.as_member(FAMILY[member])) for member in FAMILY_ROWS}
    content: dict[str, Any] = {
        "dataset": {
            **describe_dataset(dataset, raw),
            "counted_labels": int(recipe.counted_labels(raw).sum()),
        },
        "split": recipe.splits[0],
        "seeds": list(range(first_seed, first_seed + seeds)),
        "seconds": seconds,
        "recipes": {
            member: {**found, "fit": {**found["fit"], **options}}
            for member, found in members.items()
        },
        "logistic": {"num_masks": NUM_MASKS, "C": C_GRID, "encodings": list(ENCODINGS)},
    }
    calls = {
        (row, seed): delayed(run_row)(dataset, raw, seed, row, options, seconds)
        for seed, row in product(content["seeds"], ROWS)
        if lamp or row not in (PLAIN, WITH_MASKS)
    }
    collect(
        name, content, calls, itemgetter("model", "seed"), _in_short, jobs=jobs, replace=replace
    )


def _in_short(run: Run) -> str:
    values = ", ".join(
        f"{metric} {run[metric]:.4f}" for metric in METRICS if run[metric] is not None
    )
    which = f"{run['share']:.0%} {'given' if run['given'] else 'none given'}"
    return f"{run['model']:<32} seed {run['seed']}, {which}: {values} ({run['seconds']:.0f} s)"


class Trial(NamedTuple):
    """The samples, the parts and the options of one seed."""

    task: Task
    split: Split
    seed: int
    options: dict[str, Any]
    raw: MultiLabelDataset
    seconds: float

    def given(self, part: Tensor, share: float | Tensor) -> Tensor:
        """The labels of a part of which a share is given; those of a smaller share are among those of a larger one."""
        y = self.task.dataset.y
        draws = torch.rand(y.shape, generator=torch.Generator().manual_seed(self.seed))
        return torch.where(draws < share, y, torch.nan)[part]

    def masked(self, part: Tensor, seed: int) -> Tensor:
        """The labels of a part of which random shares are given, up to that of training."""
        y, draw = self.task.dataset.y[part], torch.Generator().manual_seed(seed)
        share = self.task.recipe.objective["max_given"] * torch.rand(len(y), 1, generator=draw)
        return torch.where(torch.rand(y.shape, generator=draw) < share, y, torch.nan)


def run_row(
    name: str,
    raw: MultiLabelDataset,
    seed: int,
    row: str,
    options: dict[str, Any],
    seconds: float,
) -> list[Run]:
    """The scores of one row of one seed, for every share."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    recipe = RECIPES[name].as_member(FAMILY["lamp-given"])
    split = recipe.split(raw, recipe.splits[0], seed)
    task = Task(name, recipe.prepare(raw, split), recipe)
    trial = Trial(task, split, seed, options, raw, seconds)
    predict, settings = ROWS[row](trial)
    shared = {
        "model": row,
        "seed": seed,
        "seconds": time.perf_counter() - start,
        "settings": settings,
    }
    y, counted, alone = trial.task.dataset.y[split.test], trial.task.counted, predict(None)
    runs = []
    for share in SHARES:
        given = trial.given(split.test, share)
        rest = _hide(y, given)[:, counted]
        ways = {False: alone, **({True: predict(given)} if row in TAKE_GIVEN and share > 0 else {})}
        for is_given, scores in ways.items():
            found = torch.as_tensor(np.asarray(scores), dtype=torch.float64)[:, counted]
            values = {metric: compute(rest, found) for metric, compute in METRICS.items()}
            values = {
                metric: None if math.isnan(value) else value for metric, value in values.items()
            }
            runs.append({**shared, "share": share, "given": is_given, **values})
    return runs


def _frequency(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    frequency = LabelFrequency().fit(trial.split.train, trial.task.dataset.y[trial.split.train])
    return lambda given: frequency.predict_proba(trial.split.test), {}


def _lamp(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    """LaMP with masks; it keeps the weights of the epoch that is best on validation samples with masks too."""
    dataset, split = trial.task.dataset, trial.split
    given = torch.full_like(dataset.y, torch.nan)
    given[split.val] = trial.masked(split.val, trial.seed)
    return _trained(
        trial._replace(task=replaced(trial.task, dataset=with_attribute(dataset, "given", given)))
    )


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
            test = with_attribute(
                test, "given", torch.full_like(test.y, torch.nan) if given is None else given
            )
        return result.scores(DataLoader(test, task.recipe.batch_size))

    return predict, {"best_value": result.best_value, "node_messages": node_messages}


def _indicators(given: Tensor, frequency: Tensor) -> Tensor:
    """Two columns for each label: known to apply, and known not to."""
    return torch.cat([given == 1, given == 0], dim=1).float()


def _filled(given: Tensor, frequency: Tensor) -> Tensor:
    """One column for each label, in which its frequency stands for unknown, less that frequency."""
    return (given - frequency).nan_to_num(0.0)


#: How what is known enters the logistic regression; the better one on validation samples is taken.
ENCODINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "indicators": _indicators,
    "filled": _filled,
}


def _logistic(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    """For every label a regression on the inputs and on what is known of the others: where a label is given, its own
    regression has no target.
    """
    (train, val, test), y = trial.split.parts, trial.task.dataset.y
    rows = train.repeat(NUM_MASKS)
    shown, on_val = trial.masked(rows, trial.seed + 1), trial.masked(val, trial.seed)
    first = shown[: len(train)]
    x = fingerprints(trial.task) if trial.task.name in MOLECULES else inputs_of(trial.task.dataset)
    frequency = y[train].nanmean(dim=0).nan_to_num(0.5)
    found = {}
    for name, encode in ENCODINGS.items():
        join = partial(_join, x, partial(encode, frequency=frequency))
        parts = join(train, first), _hide(y[train], first), join(val, on_val), _hide(y[val], on_val)
        model = LinearBaseline.tuned(*parts, loss="logistic", grid=C_GRID, metric=macro_roc_auc)
        found[name] = max(value for _, value in model.search), model.C, join
    best = max(found, key=lambda name: found[name][0])
    value, C, join = found[best]
    model = LinearBaseline("logistic", C).fit(join(rows, shown), _hide(y[rows], shown))

    def predict(given: Tensor | None) -> Any:
        return model.predict_proba(
            join(test, torch.full_like(y[test], torch.nan) if given is None else given)
        )

    return predict, {"best_value": value, "encoding": best, "C": C}


def _stacked(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    """For every label a regression on its own score by the default, and on what is known of the others."""
    (train, val, test), y, logits = trial.split.parts, trial.task.dataset.y, _base(trial).logits
    rows, frequency = train.repeat(NUM_MASKS), y[train].nanmean(dim=0).nan_to_num(0.5)
    shown, on_val = trial.masked(rows, trial.seed + 1), trial.masked(val, trial.seed)

    def fit(C: float, part: Tensor, given: Tensor) -> list[LinearBaseline]:
        known = _filled(given, frequency).numpy()
        columns = [
            np.column_stack([logits[part.numpy(), label], known]) for label in range(y.size(1))
        ]
        targets = _hide(y[part], given)
        return [
            LinearBaseline("logistic", C).fit(x, targets[:, [label]])
            for label, x in enumerate(columns)
        ]

    def scores(models: list[LinearBaseline], part: Tensor, given: Tensor | None) -> np.ndarray:
        known = _filled(
            torch.full_like(y[part], torch.nan) if given is None else given, frequency
        ).numpy()
        own = logits[part.numpy()]
        parts = [
            each.predict_proba(np.column_stack([own[:, label], known]))
            for label, each in enumerate(models)
        ]
        return np.hstack(parts)

    first = shown[: len(train)]
    values = {
        C: macro_roc_auc(_hide(y[val], on_val), scores(fit(C, train, first), val, on_val))
        for C in C_GRID[:3]
    }
    best = max(values, key=lambda C: values[C])
    models = fit(best, rows, shown)
    return lambda given: scores(models, test, given), {"best_value": values[best], "C": best}


def _join(x: Any, encode: Callable[[Tensor], Tensor], part: Tensor, given: Tensor) -> Any:
    """The inputs of a part beside what is known of its labels."""
    return sp.hstack(
        [sp.csr_array(x[part.numpy()]), sp.csr_array(encode(given).numpy())], format="csr"
    )


class Base(NamedTuple):
    """The default, fitted to training and validation samples."""

    model: Model
    logits: np.ndarray  #: of all samples, those of the default's own by fits without them
    known: Tensor  #: which samples it was fitted to


# The last one, for the rows that start from it, which follow each other.
_BASES: dict[tuple[int, str, int], Base] = {}


def _base(trial: Trial) -> Base:
    key, split = (id(trial.raw), trial.split.hash, trial.seed), trial.split
    if key not in _BASES:
        known = torch.cat([split.train, split.val])
        model = auto(trial.raw[known], trial.seconds, trial.seed)
        logits = np.empty(trial.raw.y.shape)
        logits[known.numpy()] = model.training.held_out
        logits[split.test.numpy()] = log_odds(model.probabilities(trial.raw[split.test]))
        _BASES.clear()
        _BASES[key] = Base(model, logits, known)
    return _BASES[key]


def _default(trial: Trial, closed: bool = False) -> tuple[Predict, dict[str, Any]]:
    base, test = _base(trial), trial.split.test.numpy()
    if closed:
        y = trial.task.dataset.y[base.known].double().numpy()
        stacking = GivenLabelStacking(names=["closed form"]).fit(
            base.logits[base.known], y, 0.0, trial.seed
        )
    else:
        stage = base.model.stage(GivenLabels)
        assert stage is not None
        stacking = stage.engine

    def predict(given: Tensor | None) -> Any:
        logits = base.logits[test]
        return expit(
            logits if given is None else stacking.decision_function(logits, given.double().numpy())
        )

    chosen = {key: value for key, value in stacking.report.items() if key != "seconds"}
    return predict, {"seconds": trial.seconds, **chosen}


def _neighbours(trial: Trial) -> tuple[Predict, dict[str, Any]]:
    """Averages the labels of training samples, by how they agree with the given ones, and the default's scores."""
    (train, val, test), y, base = (
        trial.split.parts,
        trial.task.dataset.y,
        expit(_base(trial).logits),
    )
    frequency = y[train].nanmean(dim=0).nan_to_num(0.5).numpy()
    spread = np.sqrt(frequency * (1 - frequency)) + 0.1
    labels = y[train].numpy()
    centred = np.nan_to_num((labels - frequency) / spread)

    def scores(part: Tensor, given: Tensor | None, rate: float, share: float) -> np.ndarray:
        own = base[part.numpy()]
        if given is None:
            return own
        shown = (given.numpy() - frequency) / spread
        number = np.maximum((~np.isnan(shown)).sum(axis=1, keepdims=True), 1)
        weight = softmax(rate * (np.nan_to_num(shown) @ centred.T / np.sqrt(number)), axis=1)
        return (1 - share) * own + share * weight @ np.nan_to_num(labels)

    shown = trial.masked(val, trial.seed)
    values = {
        each: macro_roc_auc(_hide(y[val], shown), scores(val, shown, *each))
        for each in NEIGHBOUR_GRID
    }
    rate, share = max(values, key=lambda each: values[each])
    return lambda given: scores(test, given, rate, share), {"rate": rate, "share": share}


def _hide(y: Tensor, given: Tensor) -> Tensor:
    return y.masked_fill(~given.isnan(), torch.nan)


ROWS: dict[str, Callable[[Trial], tuple[Predict, dict[str, Any]]]] = {
    FREQUENCY: _frequency,
    LOGISTIC: _logistic,
    OWN_SCORE: _stacked,
    NEIGHBOURS: _neighbours,
    CLOSED: partial(_default, closed=True),
    DEFAULT: _default,
    PLAIN: _plain,
    WITH_MASKS: _lamp,
}
TAKE_GIVEN = (LOGISTIC, OWN_SCORE, NEIGHBOURS, CLOSED, DEFAULT, WITH_MASKS)
FAMILY_ROWS = ("lamp", "lamp-given")


if __name__ == "__main__":
    sys.exit(run(main))
