"""Made-up cells of the papers' tables."""

from benchmarks.accuracy.cells import table_of
from benchmarks.accuracy.runs import Run
from benchmarks.report.papers import METRICS


def stored(row, seed, value, dataset="bibtex", **settings):
    """Returns a cell whose metrics are all equal to a value."""
    names = (*METRICS, "roc_auc_macro", "average_precision_macro")
    metrics = dict.fromkeys(names, value)
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


def seeds_of(row, values, dataset="bibtex", *, drawn=True):
    """Returns one cell per seed. With `drawn`, the seeds differ in their test samples."""
    cells = [stored(row, seed, value, dataset) for seed, value in values.items()]
    for cell in cells:
        cell["run"]["test"] = str(cell["run"]["seed"]) if drawn else ""
    return cells


def table(cells):
    """Returns the data frame of some cells."""
    return table_of(cells)
