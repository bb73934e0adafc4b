"""Rows of several kinds of input, compared with each single kind and with boosted trees.

    python -m benchmarks.accuracy.mixed --tables planted,reuters --seeds 5

Every table has columns of two kinds or more, and labels that may need several of them:

* ``planted``: each label needs a word of a text and a number.
* ``doses``: a molecule of Tox21 at a drawn dose. A label applies if the molecule is active and the
  dose exceeds a threshold of the label.
* ``assays``: a molecule of Tox21, and its results in the assays of nuclear receptors (NR) as
  columns, from which its results in the assays of stress response (SR) are predicted.
* ``reuters``: the text of a story, its places and people, and the month, weekday and hour.

Every seed divides the rows anew, 70% for training and 30% for testing. The default is fitted to all
columns, and to the columns of each kind. Trees are boosted on the views of all kinds side by side,
by LightGBM if it is installed, else by scikit-learn.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from joblib import delayed
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.accuracy.runs import in_short
from benchmarks.command_line import run
from benchmarks.files import Run, check_replacement, collect
from tg_mlc.data import MultiLabelDataset, Split, from_arrays, stratified_split
from tg_mlc.datasets.registry import load
from tg_mlc.inputs import Chain, kind_of
from tg_mlc.inputs.kinds import views_of
from tg_mlc.inputs.part_columns import as_names
from tg_mlc.metrics import evaluate
from tg_mlc.stacking import auto

NAME, OURS, TREES = "mixed", "all kinds", "boosted trees on all kinds"
MAX_ROWS = 3000  #: larger tables are reduced to this number of rows, the same ones for all seeds
#: Time limit of each fit of the default, in seconds.
SECONDS = 300.0
SHARES = (0.7, 0.0, 0.3)
NUM_FACTORS = 200  # Dense columns that sparse views become for scikit-learn's trees.


class Table(NamedTuple):
    """A table with its labels."""

    frame: pd.DataFrame
    y: pd.DataFrame
    columns: dict[str, Any]  #: the columns of each kind


def planted(root: Path) -> Table:
    """Returns rows whose labels need a word of a text and a number."""
    rng, size = np.random.default_rng(0), 1500
    words = [f"word{number}" for number in range(60)]
    counts = rng.random((size, len(words))) < 0.15
    numbers = rng.normal(size=(size, 5))
    texts = [" ".join(np.take(words, np.flatnonzero(row))) or "nothing" for row in counts]
    frame = pd.DataFrame(numbers.round(3), columns=[f"x{number}" for number in range(5)])
    pairs = {f"l{index}": (3 * index, index % 5) for index in range(8)}
    labels = {
        name: (counts[:, word : word + 3].any(axis=1)) & (numbers[:, column] > 0)
        for name, (word, column) in pairs.items()
    }
    columns = {"text": "text", "features": list(frame.columns)}
    return Table(frame.assign(text=texts), pd.DataFrame(labels).astype(float), columns)


def doses(root: Path) -> Table:
    """Returns molecules of Tox21 at drawn doses."""
    smiles, y = _tox21(root)
    rng = np.random.default_rng(0)
    dose = rng.uniform(0, 2, len(y))
    is_high = dose[:, None] > rng.uniform(0.3, 1.5, y.shape[1])
    labels = y.where(y.isna() | is_high, 0.0)
    frame = pd.DataFrame({"smiles": smiles, "dose": dose.round(3)})
    return Table(frame, labels, {"smiles": "smiles", "features": ["dose"]})


def assays(root: Path) -> Table:
    """Returns molecules of Tox21 with their results in assays of nuclear receptors."""
    smiles, y = _tox21(root)
    receptors = [name for name in y if name.startswith("NR-")]
    results = y[receptors].replace({0.0: "inactive", 1.0: "active"}).astype(object)
    frame = results.where(y[receptors].notna(), None).assign(smiles=smiles)
    return Table(frame, y.drop(columns=receptors), {"smiles": "smiles", "features": receptors})


def _tox21(root: Path) -> tuple[list[str], pd.DataFrame]:
    dataset = load("tox21", root)
    return dataset.smiles, pd.DataFrame(dataset.y.numpy(), columns=dataset.label_names)


def reuters(root: Path) -> Table:
    """Returns stories of Reuters with their places, people and dates."""
    dataset = load("reuters", root)
    stories = dataset.stories
    dates = [
        datetime.strptime(story.date.partition(".")[0], "%d-%b-%Y %H:%M:%S") for story in stories
    ]
    frame = pd.DataFrame(
        {
            "text": [story.text for story in stories],
            "places": [" ".join(story.places) or None for story in stories],
            "people": [" ".join(story.people) or None for story in stories],
            "month": [date.month for date in dates],
            "weekday": [date.strftime("%A") for date in dates],
            "hour": [date.hour for date in dates],
        }
    )
    columns = {"text": ["text", "places", "people"], "features": ["month", "weekday", "hour"]}
    return Table(frame, pd.DataFrame(dataset.y.numpy(), columns=dataset.label_names), columns)


TABLES: dict[str, Callable[[Path], Table]] = {
    function.__name__: function for function in (planted, doses, assays, reuters)
}


def main(
    tables: str = ",".join(TABLES),
    seeds: int = 5,
    seconds: float = SECONDS,
    max_rows: int = MAX_ROWS,
    root: Path = Path("data"),
    replace: bool = False,
) -> None:
    """Fits all rows with every seed and writes benchmarks/runs/.

    Args:
        tables: Names of tables, joined by commas.
        seeds: Number of seeds, of splits and of everything else.
        seconds: Time limit of each fit of the default.
        max_rows: The maximum number of rows of a table.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    check_replacement(replace, seconds=seconds < SECONDS, max_rows=max_rows < MAX_ROWS)
    torch.set_num_threads(1)
    trees = "LightGBM" if find_spec("lightgbm") else "HistGradientBoostingClassifier"
    content = {"seconds": seconds, "max_rows": max_rows, "trees": trees}
    keys = product(tables.split(","), range(seeds))
    calls = {key: delayed(measure)(*key, seconds, max_rows, root) for key in keys}
    collect(NAME, content, calls, itemgetter("table", "seed"), _in_short, replace=replace)


def _in_short(run: Run) -> str:
    return f"{run['table']} {in_short(run)}"


def measure(name: str, seed: int, seconds: float, max_rows: int, root: Path) -> list[Run]:
    """Returns the runs of all rows on one table with one seed."""
    frame, y, columns = TABLES[name](root)
    rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:max_rows])
    frame, y = frame.iloc[rows].reset_index(drop=True), y.iloc[rows].reset_index(drop=True)
    y = y.loc[:, (y == 1).sum() >= 10]
    split = stratified_split(y.to_numpy(), SHARES, seed)
    parts = {OURS: columns} | {_only(kind, names): {kind: names} for kind, names in columns.items()}
    test = y.iloc[split.test.numpy()].to_numpy()
    shared = {"table": name, "seed": seed, "split": split.hash, "num_rows": len(frame)}
    runs, start = list[Run](), time.perf_counter()

    def add(model: str, scores: np.ndarray) -> None:
        nonlocal start
        metrics, elapsed = evaluate(test, scores).to_dict()["values"], time.perf_counter() - start
        runs.append({**shared, "model": model, "metrics": metrics, "seconds": elapsed})
        start = time.perf_counter()

    for model, kind in parts.items():
        add(model, default_scores(frame, y, kind, split, seconds, seed))
    add(TREES, tree_scores(from_arrays(frame, y, kind=columns), split, seed))
    return runs


def _only(kind: str, names: Any) -> str:
    return f"only {kind}: {', '.join(as_names(names))}"


def default_scores(
    frame: pd.DataFrame,
    y: pd.DataFrame,
    kind: dict[str, Any],
    split: Split,
    seconds: float,
    seed: int,
) -> np.ndarray:
    """Returns the probabilities of test rows by the default. Rows that lack all columns of a kind
    get the frequencies of labels.
    """
    names = [name for value in kind.values() for name in as_names(value)]
    has_inputs = frame[names].notna().any(axis=1).to_numpy()
    train = split.train.numpy()
    train = train[has_inputs[train]]
    samples = from_arrays(frame.iloc[train], y.iloc[train], kind=kind)
    scores = auto(samples, seconds, seed).predict(frame.iloc[split.test.numpy()])
    probabilities = scores["probability"].to_numpy()
    return np.where(np.isnan(probabilities), y.iloc[train].mean().to_numpy(), probabilities)


def tree_scores(dataset: MultiLabelDataset, split: Split, seed: int) -> np.ndarray:
    """Returns the probabilities of test rows by boosted trees on the views of all kinds."""
    steps = Chain(*kind_of(dataset).steps())
    samples = steps.fit_transform(dataset, split)
    x = views_of(samples)["first_views"].fit(samples[split.train]).matrix(samples)
    train, test, y = split.train.numpy(), split.test.numpy(), dataset.y.numpy()
    make: Any = HistGradientBoostingClassifier
    options: dict[str, Any] = {"random_state": seed}
    if find_spec("lightgbm"):
        make = __import__("lightgbm").LGBMClassifier
        options |= {"n_jobs": 1, "verbose": -1}
    elif sp.issparse(x):
        size = min(NUM_FACTORS, *(number - 1 for number in x[train].shape))
        x = TruncatedSVD(size, random_state=seed).fit(x[train]).transform(x)
    scores = np.empty((len(test), y.shape[1]))
    for label in range(y.shape[1]):
        known = train[~np.isnan(y[train, label])]
        targets = y[known, label]
        if len({*targets}) < 2:
            scores[:, label] = targets.mean() if len(targets) else 0.5
            continue
        scores[:, label] = make(**options).fit(x[known], targets).predict_proba(x[test])[:, 1]
    return scores


if __name__ == "__main__":
    sys.exit(run(main))
