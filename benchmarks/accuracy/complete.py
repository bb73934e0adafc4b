"""Complete: how well the other labels of a sample are predicted if some are known already.

    python -m benchmarks.accuracy.complete --datasets emotions,toxcast --seeds 5

All rows start from the same base scores (``benchmarks.accuracy.base_scores``). From 10 to 90% of
the known labels of each test sample are given, the same ones to all rows, and the others are
scored. The rivals are logistic regressions on a label's own base score and the given labels;
training samples that agree with the given labels; a low rank of residuals (softImpute); partial
least squares on the profile of predictions, as in `profile-QSAR
<https://doi.org/10.1021/acs.jcim.7b00166>`_; and an autoencoder of present labels (EASE). They are
trained with masks like those of the default, and tuned on a fifth of the training samples by the
sum of macro ROC-AUC and macro average precision.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import delayed
from scipy.special import expit, softmax
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.accuracy import completion
from benchmarks.accuracy.base_scores import BaseScores, base_scores
from benchmarks.accuracy.completion import Array, logit
from benchmarks.command_line import run
from benchmarks.files import Run, collect
from tg_mlc.data.given import MAX_GIVEN, draw_given
from tg_mlc.metrics import macro_average_precision, macro_roc_auc, micro_average_precision
from tg_mlc.stacking.given import GivenLabelStacking

NAME = "complete"
DATASETS = ("emotions", "yeast", "sider", "tox21", "nci", "bibtex", "side-effects", "toxcast")
SHARES = tuple(tenth / 10 for tenth in range(1, 10))
METRICS = {
    "roc_auc_macro": macro_roc_auc,
    "average_precision_macro": macro_average_precision,
    "average_precision_micro": micro_average_precision,
}
BASE, DEFAULT, CLOSED = "nothing given", "default", "residual messages alone"
LOGISTIC, NEIGHBOURS = "logistic regression", "neighbours"
SOFT_IMPUTE, PLS, EASE = "softImpute", "profile-QSAR (PLS)", "EASE"
#: Masks of each training sample, fewer with more labels than MANY.
NUM_MASKS, MANY = 4, 300
RANK, COMPONENTS = 32, 20

#: Returns probabilities or scores of all labels from base logits and given labels.
Predict = Callable[[Array, Array], Array]


class Masked(NamedTuple):
    """Samples with given labels, and the targets that are left."""

    logits: Array
    given: Array
    rest: Array
    y: Array  #: all known labels of the samples, once for each sample
    base: Array  #: base logits, once for each sample


def main(
    datasets: str = ",".join(DATASETS),
    seeds: int = 5,
    root: Path = Path("data"),
    replace: bool = False,
) -> None:
    """Gives more and more labels, and writes benchmarks/runs/. An interrupted run continues.

    Args:
        datasets: Names of data sets, joined by commas. Existing runs of others are kept.
        seeds: Number of seeds, of splits and masks.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    torch.set_num_threads(1)
    calls = {
        (name, seed): delayed(measure)(name, seed, root)
        for name, seed in product(datasets.split(","), range(seeds))
    }
    content = {"shares": SHARES, "masks": {"number": NUM_MASKS, "many": MANY}}
    collect(NAME, content, calls, itemgetter("dataset", "seed"), _in_short, replace=replace)


def _in_short(run: Run) -> str:
    half = SHARES.index(0.5)
    values = ", ".join(f"{name} {run[name][half]:.4f}" for name in METRICS if run[name][half])
    title = f"{run['dataset']} seed {run['seed']}, half given: {run['model']:<24}"
    return f"{title} {values} ({run['seconds']:.0f} s)"


def measure(name: str, seed: int, root: Path) -> list[Run]:
    """The runs of all rows of one split, with a score for each share of given labels."""
    base, runs = base_scores(name, seed, root), []
    draws = np.random.default_rng(seed).random(base.y_test.shape)
    for model, fit in ROWS.items():
        start = time.perf_counter()
        predict, settings = fit(base, seed)
        seconds = time.perf_counter() - start
        shared = {"dataset": name, "seed": seed, "model": model, "seconds": seconds}
        shared |= {"settings": settings, "base": base.about}
        scores: dict[str, list[float | None]] = {metric: [] for metric in METRICS}
        for share in SHARES:
            given = np.where(draws < share, base.y_test, np.nan)
            rest = np.where(np.isnan(given), base.y_test, np.nan)
            predicted = predict(base.test_logits, given)
            for metric, compute in METRICS.items():
                value = float(compute(rest, predicted))
                scores[metric].append(None if math.isnan(value) else value)
        runs.append({**shared, **scores})
    return runs


def masked(base: Array, y: Array, seed: int) -> Masked:
    """Draws given labels of samples, several times each, as for the default."""
    repeats = NUM_MASKS if y.shape[1] <= MANY else 1
    generator = torch.Generator().manual_seed(seed)
    rows = np.tile(np.arange(len(y)), repeats)
    given, rest = draw_given(torch.from_numpy(y[rows]), MAX_GIVEN, generator)
    return Masked(base[rows], given.numpy(), rest.numpy(), y, base)


def tuned(
    fit: Callable[..., Iterable[tuple[dict[str, Any], Predict]]],
) -> Callable[[BaseScores, int], tuple[Predict, dict[str, Any]]]:
    """Chooses a setting of a rival on a fifth of the training samples, and fits it to all.

    A rival is a function of training samples that yields its settings, each with its predictions;
    with ``only``, it yields that setting alone.
    """

    def chosen(base: BaseScores, seed: int) -> tuple[Predict, dict[str, Any]]:
        y, logits = base.y.astype(float), base.logits
        is_held_out = np.random.default_rng(seed).permutation(len(y)) % 5 == 0
        inner = masked(logits[~is_held_out], y[~is_held_out], seed)
        held_out = masked(logits[is_held_out], y[is_held_out], seed + 1)

        def value(predict: Predict) -> float:
            scores = predict(held_out.logits, held_out.given)
            found = macro_roc_auc(held_out.rest, scores)
            return float(found + macro_average_precision(held_out.rest, scores))

        values = [(value(predict), setting) for setting, predict in fit(inner)]
        _, best = max(values, key=itemgetter(0))
        ((_, predict),) = fit(masked(logits, y, seed), only=best)
        return predict, best

    return chosen


def _settings(only: dict[str, Any] | None, **grid: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    if only is not None:
        yield only
        return
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def logistic(
    train: Masked, only: dict[str, Any] | None = None
) -> Iterator[tuple[dict[str, Any], Predict]]:
    """Regressions of every label, on its own base score and the given labels, fitted at once."""
    frequency = np.nan_to_num(np.nanmean(train.y, axis=0), nan=0.5)
    own, rest = (torch.from_numpy(array).float() for array in (train.logits, train.rest))
    known = torch.from_numpy(np.nan_to_num(train.given - frequency)).float()
    for setting in _settings(only, C=(0.1, 1.0, 10.0, 100.0)):
        weight, scale, bias = _regressions(own, known, rest, setting["C"])

        def predict(
            logits: Array,
            given: Array,
            weight: Array = weight,
            scale: Array = scale,
            bias: Array = bias,
        ) -> Array:
            known = np.nan_to_num(given - frequency)
            return np.asarray(expit(logits * scale + known @ weight + bias))

        yield setting, predict


def _regressions(own: Tensor, known: Tensor, rest: Tensor, C: float) -> tuple[Array, ...]:
    """Weights of given labels :math:`(L, L)`, of base scores and biases :math:`(L)`."""
    num_labels, is_target = rest.size(1), ~rest.isnan()
    weight = torch.zeros(num_labels, num_labels, requires_grad=True)
    scale = torch.ones(num_labels, requires_grad=True)
    bias = torch.zeros(num_labels, requires_grad=True)
    parameters = weight, scale, bias
    options = {"max_iter": 150, "tolerance_grad": 1e-7, "line_search_fn": "strong_wolfe"}
    optimizer = torch.optim.LBFGS(parameters, **options)

    def closure() -> Tensor:
        optimizer.zero_grad()
        logits = own * scale + known @ weight + bias
        loss = binary_cross_entropy_with_logits(logits, rest.nan_to_num(0.0), reduction="none")
        penalty = (weight.square().sum() + scale.square().sum()) / (2 * C)
        total: Tensor = ((loss * is_target).sum() + penalty) / is_target.sum()
        total.backward()
        return total

    optimizer.step(closure)
    return tuple(parameter.detach().double().numpy() for parameter in parameters)


def neighbours(
    train: Masked, only: dict[str, Any] | None = None
) -> Iterator[tuple[dict[str, Any], Predict]]:
    """Base probabilities, averaged with labels of training samples that agree with given labels."""
    frequency = np.nan_to_num(np.nanmean(train.y, axis=0), nan=0.5)
    deviation = np.sqrt(frequency * (1 - frequency)) + 0.1
    centred = np.nan_to_num((train.y - frequency) / deviation)
    is_known = (~np.isnan(train.y)).astype(float)
    labels = np.nan_to_num(train.y)
    for setting in _settings(only, rate=(0.5, 1.0, 2.0, 4.0), share=(0.25, 0.5, 0.75, 1.0)):

        def predict(
            logits: Array,
            given: Array,
            rate: float = setting["rate"],
            share: float = setting["share"],
        ) -> Array:
            query = np.nan_to_num((given - frequency) / deviation)
            num_given = np.maximum((~np.isnan(given)).sum(axis=1, keepdims=True), 1)
            weight = softmax(rate * (query @ centred.T) / np.sqrt(num_given), axis=1)
            # Where labels of neighbours are unknown, a little weight of the frequency decides.
            found = (weight @ labels + 1e-3 * frequency) / (weight @ is_known + 1e-3)
            return np.asarray((1 - share) * expit(logits) + share * found)

        yield setting, predict


def soft_impute(
    train: Masked, only: dict[str, Any] | None = None
) -> Iterator[tuple[dict[str, Any], Predict]]:
    """A matrix of low rank of standardised residuals. New samples get factors of given labels."""
    deviation, residual = _residuals(train)
    z, is_known = np.nan_to_num(residual), ~np.isnan(residual)
    rank = min(RANK, z.shape[1])
    for setting in _settings(only, penalty=(1.0, 3.0, 10.0, 30.0)):
        labels = completion.soft_impute(z, is_known, rank, setting["penalty"])

        def predict(
            logits: Array, given: Array, labels: Array = labels, penalty: float = setting["penalty"]
        ) -> Array:
            residual = (given - expit(logits)) / deviation
            known = ~np.isnan(residual)
            samples = completion.factors_of(np.nan_to_num(residual), known, labels, penalty)
            return np.asarray(expit(logits) + deviation * (samples @ labels.T))

        yield setting, predict


def _residuals(train: Masked) -> tuple[Array, Array]:
    residual = train.y - expit(train.base)
    deviation = np.sqrt(np.nan_to_num(np.nanmean(residual**2, axis=0)) + 1e-4)
    return deviation, residual / deviation


def profile(
    train: Masked, only: dict[str, Any] | None = None
) -> Iterator[tuple[dict[str, Any], Predict]]:
    """Partial least squares of every label on the profile: base probabilities and given labels."""
    x = np.where(np.isnan(train.given), expit(train.logits), train.given)
    num_labels = x.shape[1]
    coefficients = np.zeros((COMPONENTS, num_labels, num_labels))
    intercepts = np.zeros((COMPONENTS, num_labels))
    for label in range(num_labels):
        is_target = ~np.isnan(train.rest[:, label])
        if is_target.any():
            fitted = completion.partial_least_squares(
                x[is_target], train.rest[is_target, label], COMPONENTS
            )
            coefficients[:, :, label], intercepts[:, label] = fitted
    for setting in _settings(only, components=(1, 2, 3, 5, 10, COMPONENTS)):
        index = int(setting["components"]) - 1

        def predict(logits: Array, given: Array, index: int = index) -> Array:
            values = np.where(np.isnan(given), expit(logits), given)
            return np.asarray(values @ coefficients[index] + intercepts[index])

        yield setting, predict


def autoencoder(
    train: Masked, only: dict[str, Any] | None = None
) -> Iterator[tuple[dict[str, Any], Predict]]:
    """Base log odds plus scores of given present labels by a linear autoencoder."""
    present = np.nan_to_num(train.y)
    grid = {"penalty": (1.0, 3.0, 10.0, 30.0, 100.0), "weight": (0.5, 1.0, 2.0, 4.0, 8.0)}
    for setting in _settings(only, **grid):
        weight = completion.autoencoder(present.T @ present, setting["penalty"])

        def predict(
            logits: Array, given: Array, weight: Array = weight, factor: float = setting["weight"]
        ) -> Array:
            return logit(expit(logits)) + factor * (np.nan_to_num(given) @ weight)

        yield setting, predict


def _default(*names: str) -> Callable[[BaseScores, int], tuple[Predict, dict[str, Any]]]:
    def fit(base: BaseScores, seed: int) -> tuple[Predict, dict[str, Any]]:
        stage = GivenLabelStacking(names=names or None)
        stage.fit(base.logits, base.y.astype(float), seed)

        def predict(logits: Array, given: Array) -> Array:
            return np.asarray(expit(stage.decision_function(logits, given)))

        return predict, {key: value for key, value in stage.report.items() if key != "seconds"}

    return fit


def _nothing(base: BaseScores, seed: int) -> tuple[Predict, dict[str, Any]]:
    return lambda logits, given: np.asarray(expit(logits)), {}


ROWS: dict[str, Callable[[BaseScores, int], tuple[Predict, dict[str, Any]]]] = {
    BASE: _nothing,
    LOGISTIC: tuned(logistic),
    NEIGHBOURS: tuned(neighbours),
    SOFT_IMPUTE: tuned(soft_impute),
    PLS: tuned(profile),
    EASE: tuned(autoencoder),
    CLOSED: _default("closed form"),
    DEFAULT: _default(),
}

if __name__ == "__main__":
    sys.exit(run(main))
