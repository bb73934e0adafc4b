"""Cells of the papers' tables that tests make up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from benchmarks.accuracy.cells import table_of
from benchmarks.accuracy.runs import Row, Run
from benchmarks.report.papers import METRICS

Content = dict[str, Any]


def stored(row: Row, seed: int, value: float, dataset: str = "bibtex", **settings: Any) -> Content:
    """A cell all metrics of which have a value."""
    names = (*METRICS, "roc_auc_macro", "average_precision_macro")
    metrics: dict[str, float | None] = dict.fromkeys(names, value)
    model = {"channels": 128, "num_steps": 2, **settings}
    versions = {"torch": "2", "torch-geometric": "2"}
    common = {"split": "official", "module": {"lr": 2e-4}, "batch_size": 32, "parts": {}}
    return {
        "environment": {"cuda": None, "processor": "CPU", "versions": versions},
        "dataset": {"name": dataset, "num_samples": 7395, "sha256": "0" * 64},
        "settings": {**common, "model": model},
        "epochs": 14,
        "run": Run(row, seed, "", 1.0, metrics, []).to_dict(),
    }


def seeds_of(
    row: Row, values: Mapping[int, float], dataset: str = "bibtex", *, drawn: bool = True
) -> list[Content]:
    """Cells by seed, each with test samples of its own if they are drawn anew."""
    cells = [stored(row, seed, value, dataset) for seed, value in values.items()]
    for cell in cells:
        cell["run"]["test"] = str(cell["run"]["seed"]) if drawn else ""
    return cells


def table(cells: Iterable[Content]) -> pd.DataFrame:
    """Cells as they are read."""
    return table_of(cells)
