"""Trust in probabilities: whether label sets reach their coverage, and what calibration changes.

    python -m benchmarks.accuracy.trust --seeds 1

The default is fitted to a random half of the samples. The scores of the other half are divided at
random, 100 times, into samples that calibrate label sets and samples that test them; thresholds for
micro-F1 are tested too. Then the default and each of its classifiers are calibrated on the held-out
scores of the first half, and tested on the whole other half.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from itertools import product
from operator import itemgetter
from pathlib import Path

import numpy as np
import torch
from joblib import delayed
from scipy.special import expit
from sklearn.metrics import log_loss

from benchmarks.command_line import run
from benchmarks.files import Run, collect, describe_dataset
from tg_mlc.data import random_split
from tg_mlc.metrics import evaluate
from tg_mlc.metrics.calibration import Calibration
from tg_mlc.metrics.coverage import ConformalThresholds, Coverage
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.stacking import auto
from tg_mlc.stacking.automatic import classifier_scores

NAME = "trust"
SECONDS = {"emotions": 60.0, "yeast": 120.0, "sider": 120.0, "bibtex": 300.0}
SHARES = (0.8, 0.9)
NUM_RESPLITS = 100
TOLERANCE = 0.01  #: Tolerance of the coverage of a label, besides the finite-sample term.
DEFAULT, PLAIN = "the default", "thresholds for micro-F1"


def main(
    datasets: str = ",".join(SECONDS),
    seeds: int = 1,
    root: Path = Path("data"),
    seconds: float | None = None,
    replace: bool = False,
) -> None:
    """Fits the default to half of each data set, and writes benchmarks/runs/.

    A run that was interrupted continues.

    Args:
        datasets: Names of data sets, joined by commas.
        seeds: Number of seeds, of halves and fits.
        root: Folder that keeps the data.
        seconds: Time limit of a fit, if not that of the data set.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    names = datasets.split(",")
    limits = {name: seconds or SECONDS.get(name, 300.0) for name in names}
    described = {name: describe_dataset(name, RECIPES[name].load_dataset(root)) for name in names}
    content = {
        "datasets": described,
        "settings": {"resplits": NUM_RESPLITS, "seconds": limits},
        "seeds": list(range(seeds)),
    }
    calls = {
        (name, seed): delayed(run_dataset)(name, seed, root, limits[name])
        for seed, name in product(range(seeds), names)
    }
    collect(NAME, content, calls, itemgetter("dataset", "seed"), _in_short, replace=replace)


def _in_short(run: Run) -> str:
    floats = {key: value for key, value in run.items() if isinstance(value, float)}
    values = ", ".join(f"{key} {value:.4f}" for key, value in floats.items())
    return f"{run['dataset']} seed {run['seed']}, {run.get('sets') or run['model']}: {values}"


def run_dataset(name: str, seed: int, root: Path, seconds: float) -> list[Run]:
    """All runs on a data set with one seed."""
    torch.set_num_threads(1)
    dataset, begin = RECIPES[name].load_dataset(root), time.monotonic()
    split = random_split(len(dataset), (0.5, 0.0, 0.5), seed)
    train, held_out = dataset[split.train], dataset[split.test]
    model, y = auto(train, seconds=seconds, seed=seed), held_out.y.numpy()
    scores = model.probabilities(held_out)
    pairs = {DEFAULT: (expit(model.training.held_out), scores)}
    pairs |= {title: entry[:2] for title, entry in classifier_scores(model, held_out).items()}
    runs = [*sets(y, scores, seed), *_plain(y, model.answer(held_out).decisions)]
    for title, pair in pairs.items():
        runs += calibrated(title, train.y.numpy(), y, *pair)
    shared = {"dataset": name, "seed": seed, "seconds": time.monotonic() - begin}
    return [{**shared, **run} for run in runs]


def sets(
    y: np.ndarray, scores: np.ndarray, seed: int, resplits: int = NUM_RESPLITS
) -> Iterator[Run]:
    """Yields runs: the coverage of label sets, over random divisions of the same scores."""
    names = [str(label) for label in range(y.shape[1])]
    for share, per in product(SHARES, ("label", "sample")):
        generator, divisions = np.random.default_rng(seed), []
        for _ in range(resplits):
            order = generator.permutation(len(y))
            calib, new = order[::2], order[1::2]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Warns that rare labels are in all sets.
                thresholds = ConformalThresholds(y[calib], scores[calib])
                tuner = thresholds.tuner(Coverage(share, per), names)
            predicted = tuner.predict(scores[new]) == 1
            term = 1 / ((y[calib] == 1).sum(axis=0) + 1)
            divisions.append((*_covered(y[new], predicted), predicted.sum(axis=1).mean(), term))
        labels, samples, sizes, term = zip(*divisions, strict=True)
        coverage, limit = np.nanmean(labels, axis=0), share + TOLERANCE + np.mean(term, axis=0)
        within = (coverage >= share - TOLERANCE) & (coverage <= limit)
        yield {
            "sets": f"{share:.0%} per {per}",
            "per": per,
            "share": share,
            "of labels": float(coverage.mean()),
            "least label": float(coverage.min()),
            "most label": float(coverage.max()),
            "labels within": int(within.sum()),
            "labels": len(coverage),
            "of samples": float(np.mean(samples)),
            "sd of samples": float(np.std(samples)),
            "size": float(np.mean(sizes)),
            "true size": float(np.nansum(y) / len(y)),
        }


def _covered(y: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, float]:
    """The fraction of present labels that are predicted, by label and as a mean over samples."""
    positive = y == 1
    hits, nonempty = positive & predicted, positive.any(axis=1)
    with np.errstate(invalid="ignore"):
        by_label = hits.sum(axis=0) / positive.sum(axis=0)
    return by_label, float((hits.sum(axis=1)[nonempty] / positive.sum(axis=1)[nonempty]).mean())


def _plain(y: np.ndarray, predicted: np.ndarray) -> Iterator[Run]:
    by_label, of_samples = _covered(y, predicted)
    yield {
        "sets": PLAIN,
        "per": "threshold",
        "of labels": float(np.nanmean(by_label)),
        "least label": float(np.nanmin(by_label)),
        "of samples": of_samples,
        "size": float(predicted.sum(axis=1).mean()),
        "true size": float(np.nansum(y) / len(y)),
    }


def calibrated(
    title: str, y_train: np.ndarray, y: np.ndarray, held_out: np.ndarray, scores: np.ndarray
) -> Iterator[Run]:
    """Errors of probabilities before and after calibration by held-out scores."""
    calibration = Calibration.fit(y_train, held_out)
    after = calibration.probabilities(torch.from_numpy(scores)).numpy()
    changed = sum(method != "identity" for method in calibration.methods)
    for is_calibrated, probabilities in ((False, scores), (True, after)):
        values, known = evaluate(y, probabilities).values, ~np.isnan(y)
        errors = {"ece": values["ece_macro"], "brier": values["brier_macro"]}
        errors["log loss"] = float(log_loss(y[known], probabilities[known]))
        yield {"model": title, "calibrated": is_calibrated, "changed labels": changed, **errors}


if __name__ == "__main__":
    sys.exit(run(main))
