"""Trains in one of several processes: ``processes.py FOLDER BATCH_SIZE OPTIONS``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from tests.training.conftest import LabelModel, ToyGraphs, make_module
from tg_mlc.data import predefined_split
from tg_mlc.training import MultiLabelDataModule, fit


def main(folder: Path, batch_size: int, options: dict) -> None:
    """Trains and saves the results. Only the first process has a sample in the last batches."""
    split = predefined_split(range(33), range(33, 50), range(50, 61), 61)
    data = MultiLabelDataModule(ToyGraphs(61), split, batch_size=batch_size)
    options = {"accelerator": "cpu", "patience": None, "logger": False, **options}
    exact = {"precision": "64-true", "max_epochs": 4, "gradient_clip": 1.0}
    module = make_module(lambda: LabelModel(dropout=0.0), lr=0.03)
    result = fit(module, data, folder / "net", **exact, **options).training
    logged = {name: float(value) for name, value in result.trainer.callback_metrics.items()}
    thresholds = {k: torch.as_tensor(v.thresholds) for k, v in result.module.tuners.items()}
    results = {
        "logged": logged,
        "scores": result.scores(data.part(split.test)),
        "best": torch.tensor(result.best_value),
        "epoch": torch.load(result.checkpoint, weights_only=True)["epoch"],
        "thresholds": thresholds,
        "test": dict(result.evaluate().values),
        "weights": dict(result.module.state_dict()),
    }
    torch.save(results, folder / f"found-{result.trainer.global_rank}.pt")
    for name, epochs in (("straight", [3]), ("stopped", [1, 3])):
        for max_epochs in epochs:
            resume = {"ema_decay": 0.9, "max_epochs": max_epochs, "resume": max_epochs != epochs[0]}
            fit(make_module(LabelModel), data, folder / name, **resume, **options)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
