"""The papers' pictures of attention and intermediate predictions, on their data sets.

    python -m benchmarks.accuracy.figures

Writes Figures 2 and 3 of LaMP (Bibtex) and Figures 3 and 4 of MPED (Reuters) to docs/results/. The
page of explanations shows them after ``python -m benchmarks.report.render``. The sample is the test
sample of four labels or more whose predicted labels agree best with the true ones.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.accuracy.runs import Samples
from benchmarks.command_line import run
from tg_mlc import explain
from tg_mlc.explanations import Explanation
from tg_mlc.explanations.figures import plot_lines, plot_states
from tg_mlc.inference import Query
from tg_mlc.papers.recipes.family import FAMILY
from tg_mlc.papers.recipes.tables import TABLES

FOLDER = Path(__file__).parents[2] / "docs" / "results"


def main(root: Path = Path("data"), folder: Path = FOLDER, max_epochs: int | None = None) -> None:
    """Trains both models and writes the pictures.

    Args:
        root: Folder that keeps the data.
        folder: Folder for the pictures.
        max_epochs: Number of epochs, if not that of the recipe.
    """
    lamp = explained("bibtex", "lamp", "complete", root, max_epochs)
    for step in (1, 2):
        plot_states(lamp, step=step, path=folder / f"figures-lamp-{step + 1}.svg")
    mped = explained("reuters", "mped", "complete", root, max_epochs)
    plot_lines(mped, of="labels", step=2, path=folder / "figures-mped-3.svg")
    plot_lines(mped, of="components", step=1, path=folder / "figures-mped-4.svg")


def explained(
    dataset: str, model: str, graph: str, root: Path, max_epochs: int | None, least: int = 4
) -> Explanation:
    """The explanation of one test sample by attention, as the figures show it."""
    recipe = TABLES[dataset].as_member(FAMILY[model])
    store = Samples(root)
    task, split = store.trial(dataset, recipe, 0)
    samples, options = task.dataset, {} if max_epochs is None else {"max_epochs": max_epochs}
    label_graph = recipe.label_graph(graph, samples, split)
    with tempfile.TemporaryDirectory() as runs:
        training, _ = recipe.train(samples, split, label_graph, runs, **options)
        answer = training.prepared.answer(training.part("test"), Query(metric="f1_samples"))
    predicted, true = answer.decisions, samples[split.test].y.numpy() == 1
    f1 = 2 * (predicted & true).sum(axis=1) / (predicted.sum(axis=1) + true.sum(axis=1))
    best_index = split.test[[int(np.argmax(np.where(true.sum(axis=1) >= least, f1, -1)))]]
    sample = store.raw(dataset, recipe)[best_index]
    return explain(training.model, sample, method="attention", metric="f1_samples")


if __name__ == "__main__":
    sys.exit(run(main))
