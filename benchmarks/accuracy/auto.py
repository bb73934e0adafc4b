"""Compares the default with the classifiers that it combines, on data sets it was not tuned on.

    python -m benchmarks.accuracy.auto --datasets emotions,scene --seeds 5

Every seed divides all samples anew, 70% for training and 30% for testing, stratified by labels;
there are no validation samples. Each classifier is tuned on training samples as in the default, and
its thresholds are fitted to its held-out scores of training samples, also as in the default. Runs
with the same time limit are kept, so that repeating the command continues an interrupted run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import delayed
from scipy.special import logit

from benchmarks.accuracy.runs import FREQUENCY, in_short
from benchmarks.command_line import run
from benchmarks.files import Run, check_replacement, collect, describe_dataset
from tg_mlc.baselines import LabelFrequency
from tg_mlc.data import MultiLabelDataset, random_split, stratified_split
from tg_mlc.datasets.registry import load
from tg_mlc.metrics import (
    Evaluation,
    evaluate,
    macro_average_precision,
    macro_roc_auc,
    tune_thresholds,
)
from tg_mlc.stacking import auto
from tg_mlc.stacking.automatic import best_combination, classifier_scores
from tg_mlc.stacking.classifiers import SCORE_SCALE

NAME, OURS = "default", "default"
#: The default without label message passing.
COMBINED = "these classifiers combined"
DATASETS = (
    *("yeast", "scene", "emotions", "genbase", "corel5k"),
    *("mediamill", "rcv1-sample", "reuters", "tox21", "clintox"),
)
#: Larger data sets are reduced to this number of samples, the same ones for all seeds.
MAX_SAMPLES = 6000
#: Time limit of each fit of the default, in seconds.
SECONDS = 300.0
SHARES = (0.7, 0.0, 0.3)
#: Groups of labels by frequency: the maximum number of training samples with such a label.
POSITIVES = {"0": 0, "1 to 4": 4, "5 to 19": 19, "20 or more": sys.maxsize}


def main(
    datasets: str = ",".join(DATASETS),
    seeds: int = 5,
    seconds: float = SECONDS,
    root: Path = Path("data"),
    replace: bool = False,
) -> None:
    """Fits the default with every seed and writes benchmarks/runs/.

    Args:
        datasets: Names of data sets, joined by commas.
        seeds: Number of seeds, of splits and of everything else.
        seconds: Time limit of the default.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    check_replacement(replace, seconds=seconds < SECONDS)
    torch.set_num_threads(1)
    load_once = lru_cache(1)(lambda name: part_of(load(name, root)))
    keys = product(datasets.split(","), range(seeds))
    calls = {key: delayed(measure)(load_once, *key, seconds) for key in keys}
    identity = itemgetter("dataset", "seed")
    collect(NAME, {"seconds": seconds}, calls, identity, _in_short, replace=replace)


def _in_short(run: Run) -> str:
    return f"{run['dataset']} {in_short(run)}"


def part_of(dataset: MultiLabelDataset) -> MultiLabelDataset:
    """All samples, or a random subset of a large data set."""
    if len(dataset) <= MAX_SAMPLES:
        return dataset
    fraction = MAX_SAMPLES / len(dataset)
    return dataset[random_split(len(dataset), (fraction, 0.0, 1 - fraction), seed=0).train].copy()


def measure(
    load: Callable[[str], MultiLabelDataset], name: str, seed: int, seconds: float
) -> list[Run]:
    """The runs of all rows on one data set with one seed."""
    dataset = load(name)
    split = stratified_split(dataset.y, SHARES, seed)
    train, test = dataset[split.train], dataset[split.test]
    shared = {"dataset": name, "seed": seed, "split": split.hash, **describe_dataset(name, dataset)}
    del shared["name"]

    def run(
        model: str, evaluation: Evaluation, scores: np.ndarray, seconds: float, chosen: Any = None
    ) -> Run:
        metrics = evaluation.to_dict()["values"]
        by_group = by_positives(train.y.numpy(), test.y.numpy(), scores)
        results = {"metrics": metrics, "by_positives": by_group}
        return {**shared, "model": model, "seconds": seconds, **results, "chosen": chosen}

    start = time.perf_counter()
    model = auto(train, seconds, seed)
    evaluation, elapsed = model.evaluate(test), time.perf_counter() - start
    ours = run(OURS, evaluation, model.probabilities(test), elapsed, model.report)
    frequency = LabelFrequency().fit(train, train.y)
    on_train, on_test = (frequency.predict_proba(samples) for samples in (train, test))
    tuners = tune_thresholds(train.y, on_train, "cross_fitted")
    runs = [run(FREQUENCY, evaluate(test.y, on_test, tuners), on_test, 0.0)]
    parts = classifier_scores(model, test)
    rows = {title: (part.held_out, part.scores, part.seconds) for title, part in parts.items()}
    pairs = zip(*((part.held_out, part.scores) for part in parts.values()), strict=True)
    held_out, scores = (SCORE_SCALE * logit(np.stack(arrays, axis=-1)) for arrays in pairs)
    start = time.perf_counter()
    combination, _ = best_combination(held_out, train.y.numpy(), list(parts))
    combined = combination.predict_proba(held_out), combination.predict_proba(scores)
    elapsed = sum(part.seconds for part in parts.values()) + time.perf_counter() - start
    for title, (on_train, on_test, time_taken) in {**rows, COMBINED: (*combined, elapsed)}.items():
        tuners = tune_thresholds(train.y, on_train, "cross_fitted", seed=seed)
        runs.append(run(title, evaluate(test.y, on_test, tuners), on_test, time_taken))
    return [*runs, ours]


def by_positives(
    y_train: np.ndarray, y_test: np.ndarray, scores: np.ndarray
) -> dict[str, dict[str, float | None]]:
    """Ranking metrics of labels that occur in test samples, by frequency in training samples."""
    num_positives, tested = np.nansum(y_train, axis=0), np.nansum(y_test, axis=0) > 0
    groups: dict[str, dict[str, float | None]] = {}
    smallest = -1
    for name, largest in POSITIVES.items():
        labels, smallest = tested & (num_positives > smallest) & (num_positives <= largest), largest
        if labels.any():
            y, group_scores = y_test[:, labels], scores[:, labels]
            values = (macro_roc_auc(y, group_scores), macro_average_precision(y, group_scores))
            roc_auc, precision = (None if np.isnan(value) else value for value in values)
            group = {"roc_auc": roc_auc, "average_precision": precision}
            groups[name] = {"labels": int(labels.sum()), **group}
    return groups


if __name__ == "__main__":
    sys.exit(run(main))
