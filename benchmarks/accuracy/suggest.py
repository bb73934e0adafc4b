"""Suggest: which labels to look up next, beside labels at random and the most uncertain ones.

    python -m benchmarks.accuracy.suggest --datasets emotions,toxcast --seeds 5

Labels of test samples are looked up one after the other, and the default predicts the others from
them. All rules start from the same base scores (``benchmarks.accuracy.base_scores``). Where most
labels are unknown (ToxCast), a random half of the known labels of each sample may be looked up, and
the other half is scored; else any label may be, and those that are left are scored.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import delayed
from scipy.special import expit
from torch import Tensor

from benchmarks.accuracy.base_scores import base_scores
from benchmarks.accuracy.completion import Array
from benchmarks.command_line import run
from benchmarks.files import Run, collect
from tg_mlc.joint.suggesting import Gains
from tg_mlc.metrics import macro_average_precision, macro_roc_auc
from tg_mlc.nn import ResidualMessages
from tg_mlc.stacking.given import GivenLabelStacking

NAME = "suggest"
DATASETS = ("emotions", "yeast", "sider", "nci", "toxcast")
RANDOM, UNCERTAIN, ASKED = "random", "most uncertain, updated", "most uncertain, at once"
BITS, AT_ONCE = "most bits, updated", "most bits, at once"
#: Numbers of labels that are looked up.
STEPS = (1, 3, 5, 10)
#: The largest share of unknown labels with which any label may be looked up.
MAX_UNKNOWN = 0.01
_ROWS = 32  # Samples whose gains are computed at a time.


class Rows(NamedTuple):
    """Test samples, with what may be looked up and what is scored."""

    logits: Array
    y: Array
    is_candidate: Array
    is_target: Array


def main(
    datasets: str = ",".join(DATASETS),
    seeds: int = 5,
    root: Path = Path("data"),
    replace: bool = False,
) -> None:
    """Looks up labels by every rule, and writes benchmarks/runs/. An interrupted run continues.

    Args:
        datasets: Names of data sets, joined by commas. Existing runs of others are kept.
        seeds: Number of seeds, of splits and random choices.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    torch.set_num_threads(1)
    calls = {
        (name, seed): delayed(measure)(name, seed, root)
        for name, seed in product(datasets.split(","), range(seeds))
    }
    content = {"steps": STEPS}
    collect(NAME, content, calls, itemgetter("dataset", "seed"), _in_short, replace=replace)


def _in_short(run: Run) -> str:
    names = ("errors", "bits", "predicted", "realised", "roc_auc_macro")
    values = ", ".join(f"{name} {run[name]:.3f}" for name in names if run[name] is not None)
    title = f"{run['dataset']} seed {run['seed']}, {run['looked_up']}: {run['rule']:<24}"
    return f"{title} {values} ({run['seconds']:.0f} s)"


def measure(name: str, seed: int, root: Path) -> list[Run]:
    """The runs of all rules on one split."""
    base, runs = base_scores(name, seed, root), []
    stage = GivenLabelStacking().fit(base.logits, base.y.astype(float), seed)
    y, rng = base.y_test.astype(float), np.random.default_rng(seed)
    is_known = ~np.isnan(y)
    is_candidate = is_target = is_known
    if is_known.mean() < 1 - MAX_UNKNOWN:
        is_candidate = is_known & (rng.random(y.shape) < 0.5)
        is_target = is_known & ~is_candidate
    rows = Rows(base.test_logits, y, is_candidate, is_target)
    for rule in RULES:
        start = time.perf_counter()
        found = looked_up(stage, rows, rule, np.random.default_rng([seed, 1]))
        shared = {"dataset": name, "seed": seed, "rule": rule, "base": base.about}
        shared["seconds"] = time.perf_counter() - start
        runs.extend({**shared, **values} for values in found)
    return runs


def looked_up(
    stage: GivenLabelStacking, rows: Rows, rule: str, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Metrics before a look-up and after each number in STEPS."""
    given, logits = np.full_like(rows.y, np.nan), rows.logits
    choose = RULES[rule](stage, rows, rng)
    predicted, before = 0.0, None
    results = []
    for step in range(max(STEPS) + 1):
        is_left = rows.is_target & np.isnan(given)
        if step in (0, *STEPS) and is_left.any():
            values = _metrics(rows, logits, is_left)
            before = values["bits"] if before is None else before
            expected = None if math.isnan(predicted) else float(predicted)
            gains = {"predicted": expected, "realised": before - values["bits"]}
            results.append({"looked_up": step, **values, **gains})
        is_open = rows.is_candidate & np.isnan(given)
        samples = np.flatnonzero(is_open.any(axis=1))
        if step == max(STEPS) or not len(samples):
            continue
        labels, bits = choose(logits, given, is_open)
        given[samples, labels[samples]] = rows.y[samples, labels[samples]]
        predicted = predicted + bits[samples].sum() / len(rows.y)
        logits = stage.decision_function(rows.logits, given)
    return results


def _metrics(rows: Rows, logits: Array, is_left: Array) -> dict[str, float | None]:
    """Wrong labels and bits per sample, and ranking metrics, of the labels that are left."""
    p, y = expit(logits), np.where(is_left, rows.y, np.nan)
    likelihood = np.where(y == 1, np.logaddexp(0, -logits), np.logaddexp(0, logits))
    values = {
        "errors": float((((p > 0.5) != (y == 1)) & is_left).sum(axis=1).mean()),
        "bits": float(np.where(is_left, likelihood, 0).sum(axis=1).mean() / np.log(2)),
        "roc_auc_macro": float(macro_roc_auc(y, p)),
        "average_precision_macro": float(macro_average_precision(y, p)),
    }
    return {name: None if math.isnan(value) else value for name, value in values.items()}


#: Returns the label of each sample to look up, and the expected gain in bits (NaN if unknown), from
#: logits, given labels and labels that may be looked up.
Choose = Callable[[Array, Array, Array], tuple[Array, Array]]


def _by_score(score: Callable[[Array], Array]) -> Choose:
    def choose(logits: Array, given: Array, is_open: Array) -> tuple[Array, Array]:
        scores = np.where(is_open, score(logits), -np.inf)
        return scores.argmax(axis=1), np.full(len(scores), np.nan)

    return choose


def _random(stage: GivenLabelStacking, rows: Rows, rng: np.random.Generator) -> Choose:
    return _by_score(lambda logits: rng.random(logits.shape))


def _uncertain(stage: GivenLabelStacking, rows: Rows, rng: np.random.Generator) -> Choose:
    return _by_score(lambda logits: -np.abs(logits))


def _uncertain_at_once(stage: GivenLabelStacking, rows: Rows, rng: np.random.Generator) -> Choose:
    return _by_score(lambda logits: -np.abs(rows.logits))


def _messages(stage: GivenLabelStacking) -> ResidualMessages:
    messages = stage.parts["closed form"]
    assert isinstance(messages, ResidualMessages)
    return messages


def _bits(stage: GivenLabelStacking, rows: Rows, rng: np.random.Generator) -> Choose:
    """The label with the most bits, after each answer."""

    def choose(logits: Array, given: Array, is_open: Array) -> tuple[Array, Array]:
        labels, bits = np.zeros(len(given), dtype=int), np.zeros(len(given))
        for chunk in np.array_split(np.arange(len(given)), math.ceil(len(given) / _ROWS)):
            gains = _gains(stage, rows, chunk, logits[chunk], given[chunk])
            costs = torch.ones(given.shape[1], dtype=torch.double)
            for row, found in zip(
                chunk, gains.look_up(_tensor(is_open[chunk]), costs), strict=True
            ):
                if found is not None:
                    labels[row], _, bits[row], _ = found
        return labels, bits

    return choose


def _bits_at_once(stage: GivenLabelStacking, rows: Rows, rng: np.random.Generator) -> Choose:
    """The labels that :meth:`~tg_mlc.inference.Model.suggest` returns together."""
    number = max(STEPS)
    labels = np.zeros((len(rows.y), number), dtype=int)
    bits = np.zeros((len(rows.y), number))
    nothing = np.full_like(rows.y, np.nan)
    costs = torch.ones(rows.y.shape[1], dtype=torch.double)
    for chunk in np.array_split(np.arange(len(rows.y)), math.ceil(len(rows.y) / _ROWS)):
        gains = _gains(stage, rows, chunk, rows.logits[chunk], nothing[chunk])
        for step in range(number):
            suggestions = gains.look_up(_tensor(rows.is_candidate[chunk]), costs)
            for row, found in zip(chunk, suggestions, strict=True):
                if found is not None:
                    labels[row, step], _, bits[row, step], _ = found
    steps = iter(range(number))

    def choose(logits: Array, given: Array, is_open: Array) -> tuple[Array, Array]:
        step = next(steps)
        return labels[:, step], bits[:, step]

    return choose


def _gains(
    stage: GivenLabelStacking, rows: Rows, chunk: Array, logits: Array, given: Array
) -> Gains:
    p, is_known = torch.from_numpy(expit(logits)), _tensor(~np.isnan(given))
    return Gains(_messages(stage), p, is_known, _tensor(rows.is_target[chunk]))


def _tensor(mask: Array) -> Tensor:
    return torch.from_numpy(mask)


RULES: dict[str, Callable[[GivenLabelStacking, Rows, np.random.Generator], Choose]] = {
    RANDOM: _random,
    ASKED: _uncertain_at_once,
    UNCERTAIN: _uncertain,
    AT_ONCE: _bits_at_once,
    BITS: _bits,
}

if __name__ == "__main__":
    sys.exit(run(main))
