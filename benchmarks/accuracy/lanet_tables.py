"""Tables 3, 4 and 5 and Figures 3 and 4 of the LANET paper, on any of its public data sets or Complete Journey.

    python -m benchmarks.accuracy.lanet_tables --data complete_journey --seeds 0,1,2
    python -m benchmarks.accuracy.lanet_tables --cells table_3.lanet,table_3.lanet_with_memory --batches 400
    python -m benchmarks.accuracy.lanet_tables --data demand --folder DIR --tables "table 4,table 5"

Every cell of every seed is a file in benchmarks/runs/lanet/, which is not made again from the same targets with the
same options, with the scores of its test targets beside it; training goes on where it stopped. At the end, all such
cells that are there become a file of results and are printed, with a paired bootstrap over entities against the row
that --against names. Pictures of the attention among labels (Figure 4) lie beside the cells.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks import files
from benchmarks.accuracy.lanet_bootstrap import compare
from benchmarks.accuracy.lanet_models import BASELINES, CELLS, Cell
from benchmarks.command_line import run
from benchmarks.environment import describe_environment
from benchmarks.files import check_kept, check_replacement, name_of, write_results
from benchmarks.report import lanet as report
from tg_mlc.data import EventSequences, Split
from tg_mlc.datasets import load_events
from tg_mlc.graphs import learned
from tg_mlc.metrics import evaluate, ndcg_at_k, recall_at_k, roc_auc_per_label, tune_per_metric
from tg_mlc.sequences import EventPreprocessor, NextSetDataset, time_split
from tg_mlc.training import FitResult, MultiLabelDataModule, MultiLabelModule, fit, seed_everything

#: Labels and batches of a picture of attention: more are not to be read.
DRAWN_LABELS, DRAWN_BATCHES = 40, 8
#: By default.
MIN_EVENTS, DRAWS = 7, 200
Found = dict[str, Any]


def main(
    data: str = "complete_journey",
    folder: Path | None = None,
    label: str | None = None,
    min_events: int = MIN_EVENTS,
    tables: str = "table 3,table 4,table 5,figure 3a,figure 3b",
    cells: str = "",
    seeds: str = "0,1,2,3,4",
    batches: int | None = None,
    max_epochs: int | None = None,
    against: str = "TIFU-KNN",
    draws: int = DRAWS,
    replace: bool = False,
) -> None:
    """Makes the cells that are missing, and prints the tables.

    Args:
        data: A name that tg_mlc.datasets.load_events knows.
        folder: Where its files lie.
        label: The column of labels, where there are several.
        min_events: The number of events that an entity needs.
        tables: Which cells to make, by table, joined by commas.
        cells: Which cells to make instead, by the names of their files.
        seeds: Seeds, joined by commas.
        batches: Batches of an epoch, drawn anew each time; all by default.
        max_epochs: Instead of those of the settings.
        against: The row that others are compared with, in points that differ.
        draws: Draws of the bootstrap, none for 0.
        replace: Whether to replace the tracked file in benchmarks/results/, instead of writing benchmarks/runs/.
    """
    check_replacement(replace, max_epochs=max_epochs, batches=batches, draws=draws < DRAWS)
    events = load_events(data, folder, label=label).with_at_least(min_events)
    split = time_split(events)
    print(f"{events}\n{split}\nwindows that cross no border: {time_split(events, min_history=3, cross_borders=False)}")
    limits = {"max_epochs": max_epochs, "limit_train_batches": batches}
    options = {name: value for name, value in limits.items() if value is not None}
    place = _place(name_of(data, label or ""), {"min_events": min_events, **options})
    chosen = [CELLS[name] for name in cells.split(",")] if cells else _of(tables.split(","))
    name, all_seeds = name_of("lanet", data, label or ""), [int(seed) for seed in seeds.split(",")]
    kept = rows(_kept(place, split, options))
    made = {(cell.title, seed) for cell in chosen for seed in all_seeds} | {(title, 0) for title in BASELINES}
    check_kept(name, _rows_and_seeds, made | _rows_and_seeds({"rows": kept}), replace=replace)
    for seed in all_seeds:
        for cell in chosen:
            make(cell, seed, events, split, place, options)
    for title in BASELINES:
        make_baseline(title, events, split, place)
    settings = {"data": data, "label": label, "min_events": min_events, "seeds": seeds, "limits": options}
    paths = _kept(place, split, options)
    differences = compare(paths, events, split, against, draws) if draws else {}
    content = {"settings": settings, "rows": rows(paths), "against": against, "differences": differences}
    print("\n".join(["", *report.cells(content)]))
    print(f"\nWrote {write_results(name, content, replace=replace)}")


def _place(name: str, options: dict[str, int]) -> Path:
    """The folder of cells; reduced runs have their own, so that neither replaces, or goes on from, the other."""
    other = [f"{key}={value}" for key, value in options.items() if (key, value) != ("min_events", MIN_EVENTS)]
    return files.RUNS / "lanet" / name_of(name, *other)


def _kept(place: Path, split: Split, options: Found) -> list[Path]:
    return [path for path in sorted(place.glob("*.json")) if is_kept(path, split, options)]


def is_kept(path: Path, split: Split, options: Found) -> bool:
    """Whether there is a cell that was made from the same targets with the same options."""
    if not path.exists():
        return False
    found = json.loads(path.read_text())
    # Predictors without a network take no options.
    return bool(found["split"] == split.hash and found.get("options", options) == options)


def _rows_and_seeds(content: Found) -> set[tuple[str, int]]:
    return {(row["title"], run["seed"]) for row in content["rows"] for run in row["runs"]}


def _of(tables: Iterable[str]) -> list[Cell]:
    wanted = [name.strip() for name in tables]
    return [cell for cell in CELLS.values() if cell.table in wanted]


def make(cell: Cell, seed: int, events: EventSequences, split: Split, place: Path, options: Found) -> None:
    """Trains and tests one cell, unless it is kept."""
    path = place / f"{cell.key}-{seed}.json"
    if is_kept(path, split, options):
        return
    start = time.perf_counter()
    seed_everything(seed, verbose=False)
    dataset = EventPreprocessor(tau=cell.tau).fit_transform(events, split)
    model = cell.build(dataset, split, cell.channels)
    module = MultiLabelModule(model, dataset.label_names, **cell.preset["module"])
    loader = MultiLabelDataModule(dataset, split, seed=seed, **cell.preset["data"])
    run_folder = place / path.stem
    resume = (run_folder / "last.ckpt").exists()
    result = fit(module, loader, run_folder, resume=resume, logger=False, **{**cell.preset["fit"], **options})
    scores = {name: result.predict(part).numpy() for name, part in _parts(loader).items()}
    found = {"cell": cell.key, "seed": seed, "epochs": result.num_epochs, "options": options}
    _write(path, {**found, "seconds": time.perf_counter() - start}, dataset, split, scores)
    draw(result, loader, place / f"{path.stem}.svg")


def _parts(loader: MultiLabelDataModule) -> Found:
    return {"val": loader.val_dataloader(), "test": loader.test_dataloader()}


def make_baseline(name: str, events: EventSequences, split: Split, place: Path) -> None:
    """Fits and tests a predictor without a network, unless it is kept."""
    path = place / f"{name}-0.json"
    if is_kept(path, split, {}):
        return
    start = time.perf_counter()
    dataset = EventPreprocessor().fit_transform(events, split)
    baseline = BASELINES[name]().fit(dataset, split.train)
    scores = {key: baseline.predict_proba(dataset, getattr(split, key)) for key in ("val", "test")}
    _write(path, {"cell": name, "seed": 0, "seconds": time.perf_counter() - start}, dataset, split, scores)


def _write(path: Path, found: Found, dataset: NextSetDataset, split: Split, scores: Found) -> None:
    y = {key: dataset.y[getattr(split, key).numpy()].toarray() for key in scores}
    values = metrics(y["val"], scores["val"], y["test"], scores["test"])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path.parent / f"{path.stem}.npy", scores["test"].astype(np.float32))
    content = {**found, "split": split.hash, "metrics": values, "environment": describe_environment()}
    path.write_text(json.dumps(content, indent=1))
    print(f"{path.name}: " + ", ".join(f"{key} {values[key]:.4f}" for key in report.COLUMNS), flush=True)


def metrics(y_val: np.ndarray, val: np.ndarray, y_test: np.ndarray, test: np.ndarray) -> dict[str, float]:
    """The columns of the tables, with one threshold for all labels, and the F1 with one for each."""
    one, each = (evaluate(y_test, test, tune_per_metric(y_val, val, per_label=by)) for by in (False, True))
    frequent = y_test.sum(axis=0) >= 10
    return {
        **{key: float(one[key]) for key in ("miAUC", "maAUC", "miF1", "maF1")},
        "maAUC10": float(np.nanmean(roc_auc_per_label(y_test[:, frequent], test[:, frequent]))),
        **{f"{key} per label": float(each[key]) for key in ("miF1", "maF1")},
        "R@10": recall_at_k(y_test, test),
        "NDCG@10": ndcg_at_k(y_test, test),
    }


def draw(result: FitResult, loader: MultiLabelDataModule, path: Path) -> None:
    """Draws the mean attention among the first labels on test targets, where the model has any."""
    model = result.module.model
    if not hasattr(model, "labels"):
        return
    graph = learned(model, [batch for batch, _ in zip(loader.test_dataloader(), range(DRAWN_BATCHES), strict=False)])
    weights = np.zeros((graph.num_labels, graph.num_labels))
    weights[graph.edge_index[1].numpy(), graph.edge_index[0].numpy()] = graph.edge_weight.numpy()
    figure = Figure(figsize=(6, 5))
    axes = figure.subplots()
    figure.colorbar(axes.imshow(weights[:DRAWN_LABELS, :DRAWN_LABELS], cmap="viridis"))
    axes.set(xlabel="label attended to", ylabel="label", title="mean attention over heads, layers and targets")
    figure.savefig(path)


def rows(paths: Iterable[Path]) -> list[Found]:
    """The runs of every cell."""
    found: dict[str, list[Found]] = {}
    for path in paths:
        content = json.loads(path.read_text())
        found.setdefault(content["cell"], []).append(content)
    return [{"title": CELLS[cell].title if cell in CELLS else cell, "runs": runs} for cell, runs in found.items()]


if __name__ == "__main__":
    sys.exit(run(main))
