"""Tables 3, 4 and 5 and Figures 3 and 4 of the LANET paper, on any public data set of histories.

    python -m benchmarks.accuracy.lanet_tables --data complete_journey --seeds 0,1,2
    python -m benchmarks.accuracy.lanet_tables --cells table_3.lanet --batches 400
    python -m benchmarks.accuracy.lanet_tables --data demand --folder DIR --tables "table 4,table 5"
    python -m benchmarks.accuracy.lanet_tables --tables short --against "TIFU-KNN;last set"

Every cell of every seed is a file in benchmarks/runs/lanet/, beside the scores of its test targets.
A file is reused while targets, options and settings are the same; interrupted training continues. A
cell that lacks a new column gets it from its checkpoint without further training. At the end, all
cells are printed and written to a file of results, with a paired bootstrap over entities against
the rows of --against. Pictures of Figure 3, if it has points, and of the attention among labels
(Figure 4) are in the folder of the cells.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from itertools import islice, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import files
from benchmarks.accuracy.label_graphs import mean_label_attention
from benchmarks.accuracy.lanet_bootstrap import compare
from benchmarks.accuracy.lanet_models import BASELINES, CELLS, ORDER, TABLES, described, title_of
from benchmarks.command_line import chosen as checked
from benchmarks.command_line import run
from benchmarks.files import check_kept, check_replacement, name_of, read_file, write_results
from benchmarks.report import lanet as report
from tg_mlc.data import EventSequences, Split
from tg_mlc.datasets import load_events
from tg_mlc.metrics import evaluate, hit_rate_at_k, ndcg_at_k, recall_at_k, tune_thresholds
from tg_mlc.metrics.ranking import roc_auc_per_label
from tg_mlc.sequences import EventPreprocessor, time_split
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, Training, fit, seed_everything

#: Numbers of labels and of batches for a picture of attention.
DRAWN_LABELS, DRAWN_BATCHES = 40, 8
#: Default options.
MIN_EVENTS, DRAWS = 7, 200
#: Labels with at least this number of positive test targets count as frequent.
FEW = 10
#: Tables of the paper. The table "short" is ours.
PAPER_TABLES = ",".join(table for table in TABLES if table != "short")
Content = dict[str, Any]


def main(
    data: str = "complete_journey",
    folder: Path | None = None,
    label: str | None = None,
    min_events: int = MIN_EVENTS,
    tables: str = PAPER_TABLES,
    cells: str = "",
    seeds: str = "0,1,2,3,4",
    batches: int | None = None,
    max_epochs: int | None = None,
    against: str = "",
    draws: int = DRAWS,
    replace: bool = False,
) -> None:
    """Makes the cells that are missing, and prints the tables.

    Args:
        data: A name that tg_mlc.datasets.load_events knows.
        folder: Folder of the data set's files.
        label: The column of labels, if there are several.
        min_events: The minimum number of events of an entity.
        tables: Tables whose cells to make, joined by commas; "short" has our own settings.
        cells: Cells to make instead, by the names of their files.
        seeds: Seeds, joined by commas.
        batches: Batches of an epoch, drawn anew each time; all by default.
        max_epochs: Number of epochs instead of that of the settings.
        against: Titles of rows to compare all others with, joined by semicolons. Default: the rows
            that the page of results names.
        draws: Draws of the bootstrap, 0 for none.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    check_replacement(replace, max_epochs=max_epochs, batches=batches, draws=draws < DRAWS)
    events = load_events(data, folder, label=label).with_at_least(min_events)
    split = time_split(events)
    inner = time_split(events, min_history=3, cross_borders=False)
    print(f"{events}\n{split}\nwindows that cross no border: {inner}")
    limits = {"max_epochs": max_epochs, "limit_train_batches": batches}
    options = {name: value for name, value in limits.items() if value is not None}
    # Reduced runs have a separate folder, so that they do not replace full runs.
    reduced = {**({} if min_events == MIN_EVENTS else {"min_events": min_events}), **options}
    suffixes = [f"{key}={value}" for key, value in reduced.items()]
    results = files.RUNS / "lanet" / name_of(data, label or "", *suffixes)
    table_names = [] if cells else checked("tables", tables, TABLES)
    chosen = [CELLS[name] for name in (checked("cells", cells, list(CELLS)) if cells else CELLS)]
    chosen = [cell for cell in chosen if cells or cell.table in table_names]
    references = [title.strip() for title in against.split(";") if title.strip()]
    if unknown := sorted(set(references) - set(ORDER)):
        raise ValueError(f"Expected 'against' to be some of {'; '.join(ORDER)} (got {unknown})")
    name, all_seeds = name_of("lanet", data, label or ""), [int(seed) for seed in seeds.split(",")]

    def current() -> list[Path]:
        return [path for path in sorted(results.glob("*.json")) if is_current(path, split, options)]

    identities = {(cell.title, seed) for cell in chosen for seed in all_seeds}
    identities |= {(title, 0) for title in BASELINES}
    identities |= {(run["model"], run["seed"]) for run in runs(current())}
    check_kept(name, itemgetter("model", "seed"), identities, replace=replace)
    for seed, key in (*product([0], BASELINES), *product(all_seeds, (cell.key for cell in chosen))):
        make(key, seed, events, split, results, options)
    settings = {"data": data, "label": label, "min_events": min_events}
    settings |= {"limits": options, "draws": draws}
    paths = current()
    dataset = EventPreprocessor().fit_transform(events, split)
    counts = {"entities": len(dataset.ptr) - 1, "events": len(dataset)}
    counts |= {"labels": dataset.num_labels}
    counts |= dict(zip(("train", "val", "test"), split.sizes, strict=True))
    content = {"settings": settings, "counts": counts, "runs": runs(paths), "differences": {}}
    if draws:
        present = dict.fromkeys(run["model"] for run in content["runs"])
        references = references or [title for title in present if title in report.AGAINST]
        content["differences"] = compare(paths, events, split, references, draws)
    print("\n".join(["", *report.cells(content)]))
    if points := report.figure_3_numbers(content):
        report.draw_figure_3(points).savefig(results / "figure_3.svg")
    print(f"\nWrote {write_results(name, content, replace=replace)}")


def is_current(path: Path, split: Split, options: Content) -> bool:
    """Whether a file has a cell with the split's targets, the options, all columns and settings."""
    if not path.exists():
        return False
    content = read_file(path)
    settings = described(content["cell"])
    if settings is None or (content["split"], content["settings"]) != (split.hash, settings):
        return False
    # Predictors without a network take no options.
    same_options = content.get("options", options) == options
    return same_options and set(report.COLUMNS) <= set(content["metrics"])


def make(
    name: str, seed: int, events: EventSequences, split: Split, folder: Path, options: Content
) -> None:
    """Trains and tests a cell, or a predictor without a network, unless the file is current."""
    path = folder / f"{name}-{seed}.json"
    if is_current(path, split, options):
        return
    start, content = time.perf_counter(), {"cell": name, "seed": seed}
    if name in BASELINES:
        dataset = EventPreprocessor().fit_transform(events, split)
        baseline = BASELINES[name]().fit(dataset, split.train)
        targets = {"val": split.val, "test": split.test}
        scores = {key: baseline.predict_proba(dataset, target) for key, target in targets.items()}
        content["fitted_by"] = getattr(baseline, "fitted_by", None)
    else:
        cell, run_folder = CELLS[name], folder / path.stem
        seed_everything(seed, verbose=False)
        dataset = EventPreprocessor(window_size=cell.window_size).fit_transform(events, split)
        model = cell.build(dataset, split, cell.channels)
        module = MultiLabelModule(model, dataset.label_names, **cell.preset["module"])
        loader = MultiLabelDataModule(dataset, split, seed=seed, **cell.preset["data"])
        settings = {**cell.preset["fit"], **options, "logger": False}
        settings["resume"] = (run_folder / "last.ckpt").exists()
        training = fit(module, loader, run_folder, **settings).training
        loaders = {"val": loader.val_dataloader(), "test": loader.test_dataloader()}
        scores = {key: training.scores(batches).numpy() for key, batches in loaders.items()}
        content |= {"epochs": training.num_epochs, "options": options}
    content |= {"seconds": time.perf_counter() - start, "split": split.hash}
    content["settings"] = described(name)
    y = {key: dataset.y[getattr(split, key).numpy()].toarray() for key in ("train", "val", "test")}
    content["metrics"], content["thresholds"] = metrics(y, scores)
    path.parent.mkdir(parents=True, exist_ok=True)
    for key, stem in {"test": path.stem, "val": f"{path.stem}.val"}.items():
        np.save(path.parent / f"{stem}.npy", scores[key].astype(np.float32))
    write_results(str(path.relative_to(files.RUNS).with_suffix("")), content)
    texts = (f"{key} {report.number(content['metrics'][key])}" for key in report.COLUMNS)
    print(f"{path.name}: {', '.join(texts)}", flush=True)
    if name not in BASELINES:
        draw(training, loader, split, folder / f"{path.stem}.svg")


def metrics(y: Content, scores: Content) -> tuple[dict[str, float | None], dict[str, float]]:
    """The columns of the tables, :obj:`None` where undefined, and global thresholds of F1."""
    tuners = {
        "": tune_thresholds(y["val"], scores["val"]),
        " per label": tune_thresholds(y["val"], scores["val"], "per_label"),
        " by frequency": tune_thresholds(y["val"], scores["val"], "frequency", y_train=y["train"]),
    }
    evaluations = {key: evaluate(y["test"], scores["test"], tuner) for key, tuner in tuners.items()}
    frequent = y["test"].sum(axis=0) >= FEW
    areas = []
    if frequent.any():
        areas = roc_auc_per_label(y["test"][:, frequent], scores["test"][:, frequent])
    defined = [area for area in areas if not np.isnan(area)]
    values = {key: evaluations[""][key] for key in ("roc_auc_micro", "roc_auc_macro")}
    values["roc_auc_macro10"] = np.mean(defined) if defined else np.nan
    for name, evaluation in evaluations.items():
        values |= {f"{key}{name}": evaluation[key] for key in ("f1_micro", "f1_macro")}
    ranking = {"R@10": recall_at_k, "NDCG@10": ndcg_at_k, "HR@10": hit_rate_at_k}
    values |= {key: compute(y["test"], scores["test"]) for key, compute in ranking.items()}
    thresholds = {key: tuners[""][key].threshold for key in ("f1_micro", "f1_macro")}
    plain = {key: None if np.isnan(value) else float(value) for key, value in values.items()}
    return plain, thresholds


def draw(training: Training, loader: MultiLabelDataModule, split: Split, path: Path) -> None:
    """Draws the mean attention among the most frequent labels, if the model has label attention."""
    model = training.module.model
    if not hasattr(model, "labels"):
        return
    weights = mean_label_attention(model, islice(loader.test_dataloader(), DRAWN_BATCHES)).numpy()
    dataset: Any = loader.dataset
    frequency = np.asarray(dataset.y[split.train.numpy()].sum(axis=0)).ravel()
    labels = np.argsort(-frequency, kind="stable")[:DRAWN_LABELS]
    names = [dataset.label_names[label] for label in labels]
    report.draw_attention(weights[np.ix_(labels, labels)], names).savefig(path)


def runs(paths: Iterable[Path]) -> list[Content]:
    """The runs of all cells, in the order of the tables."""
    cells = [{"model": title_of(content["cell"]), **content} for content in map(read_file, paths)]
    return sorted(cells, key=lambda run: ORDER.index(run["model"]))


if __name__ == "__main__":
    sys.exit(run(main))
