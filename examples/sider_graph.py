"""Label message passing on the side effects of drugs.

Labels are 27 classes of side effects. Each label attends to the atoms, fingerprints and descriptors of a drug, takes in
the scores that a random forest and kernel ridge regression give it (the base scores), and attends to the other labels
along a label graph: edgeless, complete, or a prior from training labels. Models start from the base scores, to which
messages contribute nothing at first, and the epoch with the lowest validation loss is kept.

Every variant is compared with the base scores without messages, the label frequencies alone, a random forest, a linear
SVM and logistic regression on Morgan fingerprints (both tuned on the validation set), and the figures of the LaMP
paper. On so few drugs most of the score comes from the base scores. A second table is of functional groups, which
messages along the bonds find better than any classifier of fingerprints. At the end, a report shows why five test
molecules get their labels.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import time
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
import torch.nn.functional as F
from jsonargparse import ArgumentParser
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.loader import DataLoader

from tg_mlc import explain
from tg_mlc._optional import require
from tg_mlc.baselines import ForestBaseline, LabelFrequency, LinearBaseline
from tg_mlc.baselines.linear import Loss
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.datasets import DatasetUnavailableError
from tg_mlc.datasets.moleculenet import LICENSE_NOTE
from tg_mlc.inputs.molecules import with_vectors
from tg_mlc.metrics import Evaluation, evaluate, tune_thresholds
from tg_mlc.ops import keep_heap
from tg_mlc.papers.recipes import RECIPES

#: The start of every model: the scores of a random forest and of kernel ridge regression together.
SILENT = "base scores alone"
#: For the second table, in which fewer epochs show enough.
CONTRAST = {"max_epochs": 12}
#: Metrics by how the table writes them.
COLUMNS = {
    "subset_accuracy": "subset acc.",
    "hamming_accuracy": "Hamming acc.",
    "f1_samples": "samples F1",
    "f1_micro": "micro F1",
    "f1_macro": "macro F1",
    "roc_auc_macro": "ROC-AUC",
}
#: In the same order: Tables 7, 8 and 1 to 3 of arXiv:1904.08049, rows "FMP + LaMP"; the paper gives no ROC-AUC.
PAPER = {
    "edgeless": (0.007, 0.748, 0.766, 0.795, 0.664),
    "complete": (0.014, 0.749, 0.764, 0.795, 0.668),
    "prior": (0.007, 0.747, 0.766, 0.797, 0.664),
}
#: What the paper calls these graphs.
LETTERS = {"edgeless": "el", "complete": "fc", "prior": "pr"}


def main(
    dataset: Literal["sider", "nci"] = "sider",
    graphs: str = "edgeless,complete,prior",
    node_messages: bool = True,
    atoms: bool = True,
    split: Literal["random", "scaffold", "stratified"] = "random",
    seed: int = 10,
    root: Path = Path("data"),
    output: Path = Path("runs/sider_graph"),
    max_epochs: int | None = None,
    precision: str = "32-true",
    accelerator: str = "auto",
    contrast: bool = True,
    resume: bool = False,
) -> None:
    """Trains label message passing on molecules and prints tables of test results.

    Args:
        dataset: The data set: side effects of drugs (sider), or functional groups of molecules (nci), which comes with
            RDKit and needs no network.
        graphs: The label graphs to train with, joined by commas.
        node_messages: Whether atoms send messages along the bonds first.
        atoms: Whether labels attend to the atoms, or only to fingerprints and descriptors (sider only).
        split: How molecules are divided into training, validation and test sets.
        seed: Seed of the split, the weights and the order of training.
        root: Folder that keeps the data.
        output: Folder for predictions, checkpoints, logs and pictures.
        max_epochs: Number of epochs, if not that of the recipe.
        precision: Lightning's name of the precision, e.g. bf16-mixed.
        accelerator: Lightning's name of the device, e.g. cpu or gpu.
        contrast: Whether to train on NCI too after SIDER, with the last of the label graphs, for a second table.
        resume: Whether to go on from the last checkpoints in the output folder, bit for bit on one CPU.
    """
    kinds = graphs.split(",")
    if not set(kinds) <= set(PAPER):
        raise SystemExit(f"Expected --graphs to be some of {','.join(PAPER)}, joined by commas (got {graphs})")
    for package, extra in (("matplotlib", "plot"), ("jinja2", "explain")):
        require(package, extra)  # for the pictures at the end: better to fail now
    options: dict[str, Any] = {"node_messages": node_messages, "precision": precision, "accelerator": accelerator}
    if not atoms:
        options["model_options"] = {"atoms": False}
    if max_epochs is not None:
        options["max_epochs"] = max_epochs
    found, molecules = load_or_fall_back(dataset, root)
    if found == "sider":
        print(LICENSE_NOTE)
    compare(found, molecules, kinds, split, seed, (root, output), resume, options)
    if found == "sider" and contrast:
        print("\nWhere labels are there to be found in the graph of a molecule, messages do the work:")
        molecules, options = (
            RECIPES["nci"].load_dataset(root),
            {**CONTRAST, **options, "node_messages": True, "model_options": {}},
        )
        compare("nci", molecules, kinds[-1:], split, seed, (root, output), resume, options)


def compare(
    name: str,
    molecules: MultiLabelDataset,
    kinds: list[str],
    method: str,
    seed: int,
    folders: tuple[Path, Path],
    resume: bool,
    options: dict[str, Any],
) -> None:
    """Trains along every label graph and prints one table."""
    recipe, root, output = RECIPES[name], folders[0] / name, folders[1] / name
    parts = recipe.split(molecules, method, seed)
    print(f"{name}: {parts.sizes} molecules, {molecules.num_labels} labels, split {parts.hash[:12]}", flush=True)
    if parts.report:
        print(parts.report)

    rows = baselines(name, molecules, parts, seed)
    molecules = recipe.prepare(molecules, parts, root)
    if "base_scores" in molecules[0]:
        rows[SILENT] = without_messages(name, molecules, parts)
    for kind in kinds:
        start = time.perf_counter()
        folder = output / kind
        label_graph = recipe.label_graph(kind, molecules, parts)
        continues = resume and (folder / "last.ckpt").exists()
        result, data = recipe.train(
            molecules,
            parts,
            label_graph,
            folder,
            seed=seed,
            config={"dataset": name},
            resume=continues,
            **options,
        )
        scores = result.predict(data.test_dataloader())
        on_val = result.predict(data.val_dataloader())
        rows[f"LaMP {kind}"] = evaluate_counted(name, molecules, parts, on_val, scores)
        save_predictions(folder / "predictions.csv", molecules, parts, scores)
        label_graph.plot(path=folder / "label_graph.png")
        print(
            f"LaMP {kind}: label graph of density {label_graph.density:.2f}, {time.perf_counter() - start:.0f} s",
            flush=True,
        )

    explain(result.predictor, molecules[parts.test][:5]).to_html(output / "report.html", f"Why these labels of {name}")
    print_table(rows, PAPER if name == "sider" else {})
    print(f"One split with {len(parts.test)} test molecules; docs/results/sider.md has the mean and spread of several.")
    print_what_counts(rows, f"LaMP {kinds[-1]}")
    save_results(output / "results.json", rows, parts)
    print(f"Predictions, checkpoints, logs and pictures are in {output}")
    print(f"Why five test molecules get their labels: open {output / 'report.html'} in a browser")


def load_or_fall_back(name: str, root: Path) -> tuple[Any, MultiLabelDataset]:
    """Loads a data set, or the one that needs no network if SIDER cannot be had."""
    try:
        return name, RECIPES[name].load_dataset(root)
    except DatasetUnavailableError as error:
        print(f"SIDER cannot be had, so this is NCI's functional groups instead. {error}")
        return "nci", RECIPES["nci"].load_dataset(root)


def baselines(name: str, molecules: MultiLabelDataset, split: Split, seed: int) -> dict[str, Evaluation]:
    """Evaluates the baselines, with thresholds tuned the same way."""
    train_set, val, _ = (molecules[part] for part in split.parts)
    described = with_vectors(molecules, {"morgan": None})  # Morgan fingerprints, as far as molecules lack them
    bits = [described[part].rows("morgan").numpy() > 0 for part in split.parts]
    frequency = LabelFrequency().fit(bits[0], train_set.y)
    forest = ForestBaseline(500, criterion="gini", random_state=seed, n_jobs=-1).fit(bits[0], train_set.y)
    scores = {
        "label frequency": (frequency.predict_proba(bits[1]), frequency.predict_proba(bits[2])),
        "random forest": (forest.predict_proba(bits[1]), forest.predict_proba(bits[2])),
    }
    x_train, x_val, x_test = (csr_array(F.normalize(torch.from_numpy(part).float()).numpy()) for part in bits)
    losses: dict[str, Loss] = {"linear SVM": "hinge", "logistic regression": "logistic"}
    for row, loss in losses.items():
        linear = LinearBaseline.tuned(x_train, train_set.y, x_val, val.y, loss=loss)
        scores[row] = linear.predict_proba(x_val), linear.predict_proba(x_test)
    return {
        row: evaluate_counted(name, molecules, split, torch.as_tensor(on_val), torch.as_tensor(on_test))
        for row, (on_val, on_test) in scores.items()
    }


def without_messages(name: str, molecules: MultiLabelDataset, split: Split) -> Evaluation:
    """Evaluates models before they are trained, when messages contribute nothing yet."""
    recipe = RECIPES[name]
    model = recipe.build(molecules[split.train], recipe.label_graph("edgeless", molecules, split), **recipe.model)
    model.eval().requires_grad_(False)
    on_val, on_test = (model(next(iter(DataLoader(molecules[part], len(part))))) for part in split.parts[1:])
    return evaluate_counted(name, molecules, split, on_val.sigmoid(), on_test.sigmoid())


def evaluate_counted(
    name: str, molecules: MultiLabelDataset, split: Split, on_val: Tensor, on_test: Tensor
) -> Evaluation:
    """Evaluates the labels that are frequent enough, with one threshold for each metric tuned on validation data."""
    counted = RECIPES[name].counted_labels(molecules)
    names = [label for label, counts in zip(molecules.label_names, counted.tolist(), strict=True) if counts]
    tuners = tune_thresholds(molecules[split.val].y[:, counted], on_val[:, counted])
    return evaluate(molecules[split.test].y[:, counted], on_test[:, counted], tuners, names)


def print_table(rows: dict[str, Evaluation], paper: dict[str, tuple[float, ...]]) -> None:
    """Prints all rows, the paper's figures below ours."""
    found = {name: [evaluation[column] for column in COLUMNS] for name, evaluation in rows.items()}
    found |= {f"paper, FMP + LaMP_{LETTERS[kind]}": [*values, math.nan] for kind, values in paper.items()}
    table = pd.DataFrame.from_dict(found, orient="index", columns=list(COLUMNS.values()))
    print("", table.to_string(float_format="{:.3f}".format, na_rep="-", col_space=12), sep="\n")
    if paper:
        print(
            "Accuracies and F1 of the paper are about those of a constant (label frequency): they show nothing here.\n"
            "Compare ROC-AUC (the mean over labels), which is 0.5 for any constant."
        )
    undefined = next(iter(rows.values())).undefined
    if undefined:
        names = ", ".join(undefined)
        print(f"ROC-AUC leaves out {len(undefined)} labels with one class only in the test set: {names}")
    for name, evaluation in rows.items():
        if evaluation.undefined_f1:
            labels = ", ".join(evaluation.undefined_f1)
            print(f"Macro F1 of {name} counts as 0 for labels without positives and predictions: {labels}")


def print_what_counts(rows: dict[str, Evaluation], main_row: str) -> None:
    """Prints in a sentence where the score of a row comes from, on this split."""
    column = "roc_auc_macro" if SILENT in rows else "subset_accuracy"
    value = rows[main_row][column]
    others = [row for row in (SILENT, "random forest", "linear SVM") if row in rows]
    print(
        f"What counts on this split: {COLUMNS[column]} of {main_row} is {value:.3f}, which is "
        + ", ".join(f"{value - rows[row][column]:+.3f} against {row}" for row in others)
        + "."
    )


def save_predictions(path: Path, molecules: MultiLabelDataset, split: Split, scores: Tensor) -> None:
    """Writes the probability of every label for every test molecule."""
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", *molecules.label_names])
        for smiles, row in zip(molecules[split.test].smiles, scores.tolist(), strict=True):
            writer.writerow([smiles, *(f"{score:.4f}" for score in row)])
    unfinished.replace(path)


def save_results(path: Path, rows: dict[str, Evaluation], split: Split) -> None:
    """Writes the whole table as JSON."""
    content = {"split": split.hash, "rows": {name: evaluation.to_dict() for name, evaluation in rows.items()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(content, indent=2) + "\n")
    unfinished.replace(path)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_function_arguments(main, skip={"resume"})
    parser.add_argument(
        "--resume",
        action="store_true",
        help="Go on from the last checkpoints in the output folder, bit for bit on one CPU.",
    )
    keep_heap()
    try:
        main(**parser.parse_args().as_dict())
    except KeyboardInterrupt:
        print("Interrupted", file=sys.stderr)
        sys.exit(130)
