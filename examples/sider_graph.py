"""Label message passing on the side effects of drugs.

Labels are 27 classes of side effects. Each attends to the atoms, fingerprints and descriptors of a
drug, and along a label graph to the other labels. Models start from the base scores of a random
forest and of kernel ridge regression, to which messages add nothing at first. The epoch with the
lowest validation loss is kept.

The first table compares label graphs with the base scores alone, with classifiers of Morgan
fingerprints and with the LaMP paper. With so few drugs most of the score comes from the base
scores. The second table is of functional groups, which messages along the bonds find better than
any of these classifiers.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from jsonargparse import auto_cli
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from tg_mlc import explain
from tg_mlc.baselines import ForestBaseline, LabelFrequency, LinearBaseline
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.datasets import DatasetUnavailableError
from tg_mlc.datasets.moleculenet import LICENSE_NOTE
from tg_mlc.inputs.molecules import with_vectors
from tg_mlc.metrics import DECISION_METRICS, Evaluation
from tg_mlc.ops import keep_heap
from tg_mlc.papers.recipes import RECIPES

SILENT = "base scores alone"
METRICS = (*DECISION_METRICS, "roc_auc_macro")
TITLES = ("subset acc.", "Hamming acc.", "samples F1", "micro F1", "macro F1", "ROC-AUC")
#: Tables 7, 8 and 1 to 3 of arXiv:1904.08049, which give no ROC-AUC.
PAPER = {
    "paper, FMP + LaMP_el": (0.007, 0.748, 0.766, 0.795, 0.664),
    "paper, FMP + LaMP_fc": (0.014, 0.749, 0.764, 0.795, 0.668),
    "paper, FMP + LaMP_pr": (0.007, 0.747, 0.766, 0.797, 0.664),
}


def main(
    dataset: Literal["sider", "nci"] = "sider",
    graphs: str = "edgeless,complete,prior",
    node_messages: bool = True,
    split: Literal["random", "scaffold", "stratified"] = "random",
    seed: int = 10,
    root: Path = Path("data"),
    output: Path = Path("runs/sider_graph"),
    max_epochs: int | None = None,
    accelerator: str = "auto",
    contrast: bool = True,
    resume: bool = False,
) -> None:
    """Trains label message passing on molecules and prints tables of test results.

    Args:
        dataset: Side effects of drugs (sider), or groups of atoms (nci), which come with RDKit and
            need no network.
        graphs: The label graphs to train with, joined by commas.
        node_messages: Whether atoms send messages along the bonds first.
        split: How molecules are divided into training, validation and test sets.
        seed: Seed of the split, the weights and the order of training.
        root: Folder that keeps the data.
        output: Folder for predictions, checkpoints, logs and pictures.
        max_epochs: Number of epochs, if not that of the recipe.
        accelerator: Lightning's name of the device, e.g. cpu or gpu.
        contrast: Whether to train on NCI too after SIDER, with the last of the label graphs, for a
            second table.
        resume: Whether to go on from the last checkpoints in the output folder, bit for bit on one
            CPU.
    """
    kinds = graphs.split(",")
    if not {*kinds} <= {"edgeless", "complete", "prior"}:
        expected = "--graphs to be some of edgeless,complete,prior, joined by commas"
        raise SystemExit(f"Expected {expected} (got {graphs})")
    options: dict[str, Any] = {"seed": seed, "accelerator": accelerator}
    options["node_messages"] = node_messages
    options |= {} if max_epochs is None else {"max_epochs": max_epochs}
    try:
        molecules = RECIPES[dataset].load_dataset(root)
    except DatasetUnavailableError as error:
        print(f"SIDER cannot be had, so this is NCI's functional groups instead. {error}")
        dataset, molecules = "nci", RECIPES["nci"].load_dataset(root)
    compare(dataset, molecules, kinds, split, output, resume, options)
    if dataset == "sider" and contrast:
        print("\nWhere labels can be found in the graph of a molecule, messages do the work:")
        # Fewer epochs than in the recipe are enough to show it.
        options = {"max_epochs": 12, **options, "node_messages": True}
        molecules = RECIPES["nci"].load_dataset(root)
        compare("nci", molecules, kinds[-1:], split, output, resume, options)


def compare(
    name: str,
    molecules: MultiLabelDataset,
    kinds: list[str],
    method: str,
    output: Path,
    resume: bool,
    options: Any,
) -> None:
    """Trains along every label graph and prints one table."""
    recipe, output = RECIPES[name], output / name
    split = recipe.split(molecules, method, options["seed"])
    if name == "sider":
        print(LICENSE_NOTE)
    sizes = f"{split.sizes} molecules, {molecules.num_labels} labels"
    print(f"{name}: {sizes}, split {split.hash[:12]}", flush=True)
    if split.report:
        print(split.report)
    scores = baselines(molecules, split, options["seed"])
    molecules = recipe.prepare(molecules, split)
    _, val, test = (molecules[part] for part in split.parts)
    if recipe.classifiers:
        scores[SILENT] = recipe.untrained_scores(molecules, split)
    for kind in kinds:
        start, folder = time.perf_counter(), output / kind
        graph = recipe.label_graph(kind, molecules, split)
        graph.plot(path=folder / "label_graph.png")
        continues = resume and (folder / "last.ckpt").exists()
        config = {"dataset": name}
        result, _ = recipe.train(
            molecules, split, graph, folder, config=config, resume=continues, **options
        )
        scores[f"LaMP {kind}"] = result.scores(val), result.scores(test)
        predictions = pd.DataFrame(scores[f"LaMP {kind}"][1], test.smiles, molecules.label_names)
        predictions.to_csv(folder / "predictions.csv", index_label="smiles", float_format="%.4f")
        taken = time.perf_counter() - start
        print(f"LaMP {kind}: label graph of density {graph.density:.2f}, {taken:.0f} s", flush=True)

    rows = {row: recipe.evaluate(molecules, split, *pair) for row, pair in scores.items()}
    print_table(rows)
    evaluations = {row: evaluation.to_dict() for row, evaluation in rows.items()}
    results = {"split": split.hash, "rows": evaluations}
    (output / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    explain(result.model, test[:5]).to_html(output / "report.html", f"Why these labels of {name}")
    print(f"Predictions, checkpoints, logs and pictures are in {output}")
    print(f"Why five test molecules get their labels: open {output / 'report.html'} in a browser")


def baselines(molecules: MultiLabelDataset, split: Split, seed: int) -> dict[str, Any]:
    """Scores of validation and of test molecules by classifiers of Morgan fingerprints."""
    train, val, test = (part.numpy() for part in split.parts)
    bits = with_vectors(molecules, {"morgan": None}).rows("morgan").numpy() > 0
    unit_rows, y = normalize(csr_matrix(bits, dtype="float32")), molecules.y.numpy()
    forest = ForestBaseline(500, criterion="gini", random_state=seed, n_jobs=-1)
    frequency = LabelFrequency().fit(bits[train], y[train])
    fitted: dict[str, Any] = {"label frequency": (frequency, bits)}
    fitted["random forest"] = forest.fit(bits[train], y[train]), bits
    for row, loss in (("linear SVM", "hinge"), ("logistic regression", "logistic")):
        model = LinearBaseline.tuned(unit_rows[train], y[train], unit_rows[val], y[val], loss=loss)
        fitted[row] = model, unit_rows
    return {
        row: [model.predict_proba(x[part]) for part in (val, test)]
        for row, (model, x) in fitted.items()
    }


def print_table(rows: dict[str, Evaluation]) -> None:
    """Prints all rows, the paper's figures, and where the score of the last row comes from."""
    on_sider = SILENT in rows
    values = {row: [evaluation[metric] for metric in METRICS] for row, evaluation in rows.items()}
    ours = pd.DataFrame(values, TITLES).T
    paper = pd.DataFrame(PAPER, TITLES[:-1]).T if on_sider else None
    table = pd.concat([ours, paper])
    print("\n" + table.to_string(float_format="{:.3f}".format, na_rep="-", col_space=12))
    if on_sider:
        print("The paper's accuracies and F1 are about those of a constant (label frequency), so")
        print("compare ROC-AUC (the mean over labels), which is 0.5 for any constant.")
    last, column = ours.index[-1], ours["ROC-AUC" if on_sider else "subset acc."]
    for note in rows[last].notes:
        print(f"{last}: {note}")
    sizes = f"One split with {rows[last].num_samples} test molecules"
    print(f"{sizes}; docs/results/sider.md has the spread of several.")
    others = [row for row in (SILENT, "random forest", "linear SVM") if row in rows]
    gains = ", ".join(f"{column[last] - column[row]:+.3f} against {row}" for row in others)
    result = f"{column.name} of {last} is {column[last]:.3f}, which is {gains}"
    print(f"The result that counts on this split: {result}.")


if __name__ == "__main__":
    keep_heap()
    try:
        auto_cli(main, as_positional=False, description=__doc__)
    except KeyboardInterrupt:
        print("Interrupted", file=sys.stderr)
        sys.exit(130)
