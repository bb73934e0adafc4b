"""The default beside the classifiers that it is made of, on data sets that nobody tuned it to.

    python -m benchmarks.accuracy.auto --datasets emotions,scene --seeds 5

Every seed divides all samples anew, 70% for training and 30% for testing, stratified by labels; there are no validation
samples. Each classifier is tuned on training samples as the default tunes it, with thresholds of the same kind, fitted
to scores of classifiers that had not seen a sample. Rows that were made within the same time are kept: the same command
goes on.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import logit

from benchmarks.accuracy.rows import FREQUENCY
from benchmarks.command_line import run
from benchmarks.environment import describe_dataset
from benchmarks.files import check_kept, check_replacement, earlier_file, write_partial, write_results
from tg_mlc.baselines import LabelFrequency
from tg_mlc.data import MultiLabelDataset, random_split, stratified_split
from tg_mlc.datasets.registry import load
from tg_mlc.metrics import evaluate, tune_cross_fitted
from tg_mlc.stacking import AutoModel, auto
from tg_mlc.stacking.automatic import best_combination
from tg_mlc.stacking.tuned_scores import SCORE_SCALE

NAME, OURS = "default", "default"
#: The default as it would be without label message passing.
COMBINED = "these classifiers combined"
DATASETS = (
    "yeast", "scene", "emotions", "genbase", "corel5k", "mediamill", "rcv1-sample", "tox21", "clintox"
)  # fmt: skip
#: Larger data sets are cut to as many samples, drawn once.
MAX_SAMPLES = 6000
#: By default, for each model.
SECONDS = 300.0
SHARES = (0.7, 0.0, 0.3)


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
    points, names = _earlier_points(seconds, replace), datasets.split(",")
    made = {(name, seed) for name in names for seed in range(seeds)}
    check_kept(NAME, _names_and_seeds, made | _names_and_seeds({"points": points}), replace=replace)
    for name in names:
        done = {point["seed"] for point in points if (point["dataset"], point["row"]) == (name, COMBINED)}
        dataset = None if done >= set(range(seeds)) else part_of(load(name, root))
        for seed in (seed for seed in range(seeds) if dataset is not None and seed not in done):
            others = [point for point in points if (point["dataset"], point["seed"]) != (name, seed)]
            points = others + measure(name, dataset, seed, seconds)
            write_partial(NAME, {"seconds": seconds, "points": points}, replace=replace)
    print(f"Wrote {write_results(NAME, {'seconds': seconds, 'points': points}, replace=replace)}")


def _earlier_points(seconds: float, replace: bool) -> list[dict[str, Any]]:
    """The rows that are there, none if their models had more or less time."""
    file = earlier_file(NAME, replace=replace)
    found = json.loads(file.read_text()) if file else {"seconds": None}
    points: list[dict[str, Any]] = found["points"] if found["seconds"] == seconds else []
    return points


def _names_and_seeds(content: dict[str, Any]) -> set[tuple[str, int]]:
    return {(point["dataset"], point["seed"]) for point in content["points"]}


def part_of(dataset: MultiLabelDataset) -> MultiLabelDataset:
    """All samples, or some of a large data set."""
    if len(dataset) <= MAX_SAMPLES:
        return dataset
    share = MAX_SAMPLES / len(dataset)
    return dataset[random_split(len(dataset), (share, 0.0, 1 - share), seed=0).train].copy()


def measure(name: str, dataset: MultiLabelDataset, seed: int, seconds: float) -> list[dict[str, Any]]:
    """The rows of one data set and seed."""
    split = stratified_split(dataset.y, SHARES, seed)
    train, test = dataset[split.train], dataset[split.test]
    start = time.perf_counter()
    model = auto(train, seconds, seed)
    points = [_point(OURS, model.evaluate(test).values, time.perf_counter() - start, model.report)]
    frequency = LabelFrequency().fit(train.y)
    on_train, on_test = (frequency.predict_proba(len(part)) for part in (train, test))
    values = evaluate(test.y, on_test, tune_cross_fitted(train.y, on_train)).values
    points = [_point(FREQUENCY, values, 0.0), *_classifiers(model, train, test, seed), *points]
    for point in points:
        print(f"{name} {seed} {point['row']}: {_in_short(point['metrics'])} ({point['seconds']:.0f} s)", flush=True)
    shared = {"dataset": name, "seed": seed, "split": split.hash, **describe_dataset(dataset)}
    return [{**shared, **point} for point in points]


def _classifiers(
    model: AutoModel, train: MultiLabelDataset, test: MultiLabelDataset, seed: int
) -> list[dict[str, Any]]:
    found, y = model.classifier_scores(test), train.y.numpy()
    held_out, scores = (
        SCORE_SCALE * logit(np.stack(part, axis=-1))
        for part in ([each.held_out for each in found.values()], [each.scores for each in found.values()])
    )
    start = time.perf_counter()
    combination, _ = best_combination(held_out, y, list(found))
    parts = {title: (each.held_out, each.scores, each.seconds) for title, each in found.items()}
    combined = combination.predict_proba(held_out), combination.predict_proba(scores)
    seconds = sum(each.seconds for each in found.values()) + time.perf_counter() - start
    points = []
    for title, (on_train, on_test, taken) in {**parts, COMBINED: (*combined, seconds)}.items():
        tuners = tune_cross_fitted(train.y, on_train, seed=seed)
        points.append(_point(title, evaluate(test.y, on_test, tuners).values, taken))
    return points


def _point(row: str, metrics: dict[str, float], seconds: float, chosen: Any = None) -> dict[str, Any]:
    values = {name: None if math.isnan(value) else value for name, value in metrics.items()}
    return {"row": row, "seconds": seconds, "metrics": values, "chosen": chosen}


def _in_short(metrics: dict[str, float | None]) -> str:
    return ", ".join(
        f"{name} {metrics[name] or 0:.4f}"
        for name in ("f1_samples", "f1_micro", "f1_macro", "roc_auc_macro", "average_precision_macro")
    )


if __name__ == "__main__":
    sys.exit(run(main))
