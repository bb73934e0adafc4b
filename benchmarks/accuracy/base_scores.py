"""Base scores of the default, which all rows of a comparison share.

    python -m benchmarks.accuracy.base_scores --datasets yeast,sider --seeds 5 --seconds 60

Each seed divides the samples at random, 80% for training and 20% for testing. The scores are kept
in ``runs/base_scores/``, with the data set's hash and the time that the default took.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.command_line import run
from benchmarks.files import RUNS, describe_dataset
from tg_mlc.data import MultiLabelDataset, random_split
from tg_mlc.datasets import ToxCast
from tg_mlc.datasets.registry import load as load_published
from tg_mlc.sklearn.estimator import log_odds
from tg_mlc.stacking import auto

FOLDER = RUNS / "base_scores"
SHARES = (0.8, 0.0, 0.2)
DATASETS = ("emotions", "yeast", "sider", "tox21", "nci", "bibtex", "side-effects", "toxcast")


class BaseScores(NamedTuple):
    """Labels and logits of one split. Logits of training samples are held out."""

    logits: np.ndarray
    y: np.ndarray
    test_logits: np.ndarray
    y_test: np.ndarray
    about: dict[str, Any]  #: The data set, the seed, the split, the time limit and the time taken.


def main(
    datasets: str = ",".join(DATASETS),
    seeds: int = 5,
    seconds: float = 150.0,
    root: Path = Path("data"),
) -> None:
    """Fits the default to each split whose scores are missing.

    Args:
        datasets: Names of data sets, joined by commas.
        seeds: Number of seeds, of splits and of everything else.
        seconds: Time limit of the default.
        root: Folder that keeps the data.
    """
    torch.set_num_threads(1)
    for name, seed in product(datasets.split(","), range(seeds)):
        about = base_scores(name, seed, seconds, root).about
        print(f"{name}, seed {seed}: {about['taken']:.0f} s", flush=True)


def base_scores(name: str, seed: int, seconds: float, root: Path) -> BaseScores:
    """Returns the base scores of a split, from its file if there is one."""
    path = FOLDER / f"{name}-{seed}-{seconds:g}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays, about = _computed(name, seed, seconds, root)
        unfinished = path.with_suffix(".unfinished.npz")
        np.savez(unfinished, **arrays, about=json.dumps(about))
        unfinished.replace(path)
    with np.load(path) as stored:
        arrays = {key: stored[key] for key in stored.files if key != "about"}
        return BaseScores(**arrays, about=json.loads(str(stored["about"])))


def load(name: str, root: Path) -> MultiLabelDataset:
    """Loads a data set of the catalogue, or ToxCast."""
    if name == "toxcast":
        return ToxCast(root / name)
    return load_published(name, root)


def _computed(
    name: str, seed: int, seconds: float, root: Path
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    dataset = load(name, root)
    split = random_split(len(dataset), SHARES, seed)
    train, test = dataset[split.train], dataset[split.test]
    start = time.perf_counter()
    model = auto(train, seconds, seed)
    taken = time.perf_counter() - start
    arrays = {
        "logits": model.training.held_out,
        "y": train.y.numpy(),
        "test_logits": log_odds(model.probabilities(test)),
        "y_test": test.y.numpy(),
    }
    described = describe_dataset(name, dataset)
    return arrays, {**described, "split": split.hash, "seconds": seconds, "taken": taken}


if __name__ == "__main__":
    sys.exit(run(main))
