"""The default beside the classifiers that it is made of, on data sets that it was not tuned to.

    python -m benchmarks.accuracy.auto --datasets emotions,scene --seeds 5

Every seed divides all samples anew, 70% for training and 30% for testing, stratified by labels; there are no validation
samples. Each classifier is tuned on training samples as the default tunes it, with thresholds of the same kind, fitted
to scores of classifiers that had not seen a sample. Rows that were made within the same time are kept: the same command
goes on.
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
#: The default as it would be without label message passing.
COMBINED = "these classifiers combined"
DATASETS = (
    "yeast", "scene", "emotions", "genbase", "corel5k", "mediamill", "rcv1-sample", "reuters", "tox21", "clintox"
)  # fmt: skip
#: Larger data sets are cut to as many samples, drawn once.
MAX_SAMPLES = 6000
#: By default, for each model.
SECONDS = 300.0
SHARES = (0.7, 0.0, 0.3)
#: Labels are counted apart by how many training samples have them, up to these numbers.
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
        seconds: The time that the default may take.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    check_replacement(replace, seconds=seconds < SECONDS)
    torch.set_num_threads(1)
    load_once = lru_cache(1)(lambda name: part_of(load(name, root)))
    calls = {
        key: delayed(measure)(load_once, *key, seconds)
        for key in product(datasets.split(","), range(seeds))
    }
    collect(
        NAME, {"seconds": seconds}, calls, itemgetter("dataset", "seed"), _in_short, replace=replace
    )


def _in_short(run: Run) -> str:
    return f"{run['dataset']} {in_short(run)}"


def part_of(dataset: MultiLabelDataset) -> MultiLabelDataset:
    """All samples, or some of a large data set."""
    if len(dataset) <= MAX_SAMPLES:
        return dataset
    share = MAX_SAMPLES / len(dataset)
    return dataset[random_split(len(dataset), (share, 0.0, 1 - share), seed=0).train].copy()


def measure(
    load: Callable[[str], MultiLabelDataset], name: str, seed: int, seconds: float
) -> list[Run]:
    """The rows of one data set and seed."""
    dataset = load(name)
    split = stratified_split(dataset.y, SHARES, seed)
    train, test = dataset[split.train], dataset[split.test]
    shared = {"dataset": name, "seed": seed, "split": split.hash, **describe_dataset(name, dataset)}
    del shared["name"]

    def run(
        model: str, evaluation: Evaluation, scores: np.ndarray, seconds: float, chosen: Any = None
    ) -> Run:
        values, apart = (
            evaluation.to_dict()["values"],
            by_positives(train.y.numpy(), test.y.numpy(), scores),
        )
        made = {"metrics": values, "by_positives": apart}
        return {**shared, "model": model, "seconds": seconds, **made, "chosen": chosen}

    start = time.perf_counter()
    model = auto(train, seconds, seed)
    evaluation, taken = model.evaluate(test), time.perf_counter() - start
    ours = run(OURS, evaluation, model.probabilities(test), taken, model.report)
    frequency = LabelFrequency().fit(train, train.y)
    on_train, on_test = (frequency.predict_proba(part) for part in (train, test))
    tuners = tune_thresholds(train.y, on_train, "cross_fitted")
    runs = [run(FREQUENCY, evaluate(test.y, on_test, tuners), on_test, 0.0)]
    found = classifier_scores(model, test)
    rows = {title: (each.held_out, each.scores, each.seconds) for title, each in found.items()}
    parts = zip(*((each.held_out, each.scores) for each in found.values()), strict=True)
    held_out, scores = (SCORE_SCALE * logit(np.stack(part, axis=-1)) for part in parts)
    start = time.perf_counter()
    combination, _ = best_combination(held_out, train.y.numpy(), list(found))
    combined = combination.predict_proba(held_out), combination.predict_proba(scores)
    taken = sum(each.seconds for each in found.values()) + time.perf_counter() - start
    for title, (on_train, on_test, time_taken) in {**rows, COMBINED: (*combined, taken)}.items():
        tuners = tune_thresholds(train.y, on_train, "cross_fitted", seed=seed)
        runs.append(run(title, evaluate(test.y, on_test, tuners), on_test, time_taken))
    return [*runs, ours]


def by_positives(
    y_train: np.ndarray, y_test: np.ndarray, scores: np.ndarray
) -> dict[str, dict[str, float | None]]:
    """How labels that a test sample has are ranked, apart by how many training samples have them."""
    number, counted, least = np.nansum(y_train, axis=0), np.nansum(y_test, axis=0) > 0, -1
    found: dict[str, dict[str, float | None]] = {}
    for name, most in POSITIVES.items():
        labels, least = counted & (number > least) & (number <= most), most
        if labels.any():
            y, own = y_test[:, labels], scores[:, labels]
            values = {
                "roc_auc": macro_roc_auc(y, own),
                "average_precision": macro_average_precision(y, own),
            }
            defined = {
                metric: None if np.isnan(value) else value for metric, value in values.items()
            }
            found[name] = {"labels": int(labels.sum()), **defined}
    return found


if __name__ == "__main__":
    sys.exit(run(main))
