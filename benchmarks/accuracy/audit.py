"""Audit: finding recorded labels that are wrong, beside the scores of cleanlab.

    python -m benchmarks.accuracy.audit --datasets emotions,yeast --draws 10

Labels are made wrong before anything is fitted: single labels are flipped, some of the present
labels are lost, or whole rows of labels are swapped among samples. All rows get the same held-out
probabilities (``benchmarks.accuracy.base_scores``). Nothing sees the right labels. cleanlab (``pip
install cleanlab``) scores every label by these probabilities alone; if it is not installed, its
rows are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import delayed
from scipy.special import expit
from sklearn.metrics import average_precision_score

from benchmarks.accuracy.base_scores import Inputs, Kernel, fitted
from benchmarks.accuracy.base_scores import load as load_inputs
from benchmarks.accuracy.completion import Array
from benchmarks.command_line import run
from benchmarks.files import Run, collect
from tg_mlc._optional import require
from tg_mlc.joint.auditing import FOLDS, suspects
from tg_mlc.nn import ResidualMessages
from tg_mlc.stacking.given import GivenLabelStacking

NAME = "audit"
DATASETS = ("emotions", "yeast", "scene", "sider", "bibtex", "toxcast")
#: Kinds of noise, with the fraction of labels, of present labels, or of rows.
NOISE = {"2% flipped": 0.02, "5% flipped": 0.05, "20% of present lost": 0.2, "10% of rows": 0.1}
INPUTS, OTHERS, OURS = "inputs alone", "inputs and all other labels", "audit"
#: Scores of cleanlab, with their options. Its self-confidence of a label is that of INPUTS.
CLEANLAB: dict[str, dict[str, Any]] = {
    "cleanlab, self-confidence": {"method": "self_confidence"},
    "cleanlab, adjusted self-confidence": {"method": "self_confidence", "adjust_pred_probs": True},
    "cleanlab, adjusted margin": {"method": "normalized_margin", "adjust_pred_probs": True},
    "cleanlab, weighted entropy": {"method": "confidence_weighted_entropy"},
}


def main(
    datasets: str = ",".join(DATASETS),
    draws: int = 10,
    root: Path = Path("data"),
    replace: bool = False,
) -> None:
    """Audits labels with each kind of noise, and writes benchmarks/runs/.

    Args:
        datasets: Names of data sets, joined by commas. Existing runs of others are kept.
        draws: Number of draws of each kind of noise.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    torch.set_num_threads(1)
    calls = {
        key: delayed(measure)(*key, root)
        for key in product(datasets.split(","), NOISE, range(draws))
    }
    content = {"noise": NOISE, "cleanlab": _cleanlab_version()}
    identity = itemgetter("dataset", "noise", "draw")
    collect(NAME, content, calls, identity, _in_short, replace=replace)


def _in_short(run: Run) -> str:
    title = f"{run['dataset']}, {run['noise']}, draw {run['draw']}: {run['row']:<36}"
    by_row = "" if run["rows"] is None else f", rows {run['rows']:.3f}"
    return f"{title} labels {run['cells']:.3f}{by_row} ({run['seconds']:.1f} s)"


@lru_cache(1)
def load(name: str, root: Path) -> tuple[Inputs, list[Kernel]]:
    """Loads a data set, and makes kernels of all its samples."""
    inputs = load_inputs(name, root)
    everything = np.arange(len(inputs.y))
    return inputs, inputs.kernels(everything, everything[:0])


def measure(name: str, noise: str, draw: int, root: Path) -> list[Run]:
    """The runs of all rows for one draw of one kind of noise."""
    inputs, kernels = load(name, root)
    y = inputs.y
    # The same draws for each data set, whatever is run beside them.
    rng = np.random.default_rng([draw, list(NOISE).index(noise)])
    recorded = with_noise(y, noise, rng)
    is_known = ~np.isnan(y)
    is_wrong = is_known & (recorded != y)
    logits, _, chosen = fitted(recorded, kernels, draw)
    shared = {"dataset": name, "noise": noise, "draw": draw, "base": chosen, "data": inputs.about}
    shared["wrong"] = int(is_wrong.sum())
    runs = []
    start = time.perf_counter()
    for row, (cells, by_row, seconds) in scored(recorded, logits, start).items():
        values = {"cells": float(average_precision_score(is_wrong[is_known], cells[is_known]))}
        any_wrong = is_wrong.any(axis=1)
        values["rows"] = None if by_row is None else _row_precision(any_wrong, by_row)
        runs.append({**shared, "row": row, "seconds": seconds, **values})
    return runs


def _row_precision(any_wrong: Array, by_row: Array) -> float | None:
    if any_wrong.all():
        return None
    return float(average_precision_score(any_wrong, by_row))


def with_noise(y: Array, noise: str, rng: np.random.Generator) -> Array:
    """Returns labels with one kind of noise."""
    fraction = NOISE[noise]
    if noise.endswith("flipped"):
        return np.where(rng.random(y.shape) < fraction, 1 - y, y)
    if noise.endswith("lost"):
        return np.where((rng.random(y.shape) < fraction) & (y == 1), 0.0, y)
    recorded, rows = y.copy(), rng.permutation(len(y))[: int(fraction * len(y))]
    # What is known of a sample stays known.
    swapped = y[np.roll(rows, 1)]
    is_both = ~np.isnan(y[rows]) & ~np.isnan(swapped)
    recorded[rows] = np.where(is_both, swapped, y[rows])
    return recorded


def scored(
    recorded: Array, logits: Array, start: float
) -> dict[str, tuple[Array, Array | None, float]]:
    """Returns scores of labels and of samples, the largest for the most suspicious, by row."""
    by_inputs = np.where(recorded == 1, expit(-logits), expit(logits))
    rows: dict[str, tuple[Array, Array | None, float]] = {INPUTS: (by_inputs, None, 0.0)}
    stage = GivenLabelStacking(names=["closed form"]).fit(logits, recorded)
    messages = stage.parts["closed form"]
    assert isinstance(messages, ResidualMessages)
    rng, num_labels = np.random.default_rng(0), recorded.shape[1]
    fold, names = rng.permutation(len(recorded)) % FOLDS, [str(i) for i in range(num_labels)]
    found = suspects(messages, names, logits, recorded, fold, rng)
    place = found.cells["row"].to_numpy(), found.cells["label"].astype(int).to_numpy()
    probability, suspicion = np.ones_like(logits), np.zeros_like(logits)
    probability[place] = found.cells["probability"]
    suspicion[place] = found.cells["suspicion"]
    of_row = np.zeros(len(logits))
    of_row[found.rows["row"]] = found.rows["suspicion"]
    seconds = time.perf_counter() - start
    rows[OTHERS] = 1 - probability, None, seconds
    rows[OURS] = suspicion, of_row, seconds
    return rows | dict(_by_cleanlab(recorded, expit(logits)))


def _cleanlab_version() -> str | None:
    try:
        return str(require("cleanlab", "cleanlab").__version__)
    except ImportError:
        return None


def _by_cleanlab(recorded: Array, p: Array) -> Iterator[tuple[str, tuple[Array, Any, float]]]:
    if _cleanlab_version() is None:
        return
    rank = require("cleanlab.multilabel_classification.rank", "cleanlab")
    is_complete = not np.isnan(recorded).any()
    for title, options in CLEANLAB.items():
        start, cells, of_row = time.perf_counter(), np.zeros_like(p), None
        for label in range(p.shape[1]):
            known = np.flatnonzero(~np.isnan(recorded[:, label]))
            lists, column = _lists(recorded[known][:, [label]]), p[known][:, [label]]
            quality = rank.get_label_quality_scores_per_class(lists, column, **options)
            cells[known, label] = 1 - np.asarray(quality).ravel()
        if is_complete:
            of_row = 1 - rank.get_label_quality_scores(_lists(recorded), p, **options)
        yield title, (cells, of_row, time.perf_counter() - start)


def _lists(y: Array) -> list[list[int]]:
    return [np.flatnonzero(row == 1).tolist() for row in y]


if __name__ == "__main__":
    sys.exit(run(main))
