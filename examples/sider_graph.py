"""Label message passing on the side effects of drugs.

Each of 27 classes of side effects attends to the atoms, fingerprints and descriptors of a drug, then to the other
classes along a label graph: edgeless (el), fully connected (fc), or a prior from training labels (pr). A linear path
leads from fingerprints and descriptors to the classes beside the messages. Every variant stands beside the label
frequencies alone, a random forest, a linear SVM and logistic regression on Morgan fingerprints (both tuned on the
validation set), and the figures of the LaMP paper.
"""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jsonargparse import ArgumentParser
from scipy.sparse import csr_array
from torch import Tensor

from tg_mlc._optional import require
from tg_mlc.baselines import LabelFrequency, LinearBaseline, MorganForest
from tg_mlc.baselines.linear import Loss
from tg_mlc.data import Split
from tg_mlc.datasets import DatasetUnavailableError, MultiLabelDataset
from tg_mlc.datasets.sider import LICENSE_NOTE
from tg_mlc.metrics import Evaluation, evaluate, tune_per_metric
from tg_mlc.recipes import RECIPES, EncoderName

COLUMNS = ("ACC", "HA", "ebF1", "miF1", "maF1", "maAUC")
# Tables 1 to 3, 7 and 8 of arXiv:1904.08049, rows "FMP + LaMP"; the paper gives no ROC-AUC.
PAPER = {
    "el": {"ACC": 0.007, "HA": 0.748, "ebF1": 0.766, "miF1": 0.795, "maF1": 0.664},
    "fc": {"ACC": 0.014, "HA": 0.749, "ebF1": 0.764, "miF1": 0.795, "maF1": 0.668},
    "pr": {"ACC": 0.007, "HA": 0.747, "ebF1": 0.766, "miF1": 0.797, "maF1": 0.664},
}


def main(
    dataset: Literal["sider", "nci"] = "sider",
    graphs: str = "el,fc,pr",
    encoder: EncoderName = "fmp",
    split: Literal["random", "scaffold", "stratified"] = "random",
    seed: int = 10,
    root: Path = Path("data"),
    output: Path = Path("runs/sider_graph"),
    max_epochs: int | None = None,
    precision: str = "32-true",
    accelerator: str = "auto",
    resume: bool = False,
) -> None:
    """Trains label message passing on molecules and prints one table of test results.

    Args:
        dataset: The data set: side effects of drugs (sider), or functional groups of molecules (nci), which comes with
            RDKit and needs no network.
        graphs: The label graphs to train with, joined by commas.
        encoder: Whether messages pass along the bonds first (fmp) or not (emb), or atoms are left out and labels attend
            to fingerprints and descriptors only (vectors, sider only).
        split: How molecules are divided into training, validation and test sets.
        seed: Seed of the split, the weights and the order of training.
        root: Folder that keeps the data.
        output: Folder for predictions, checkpoints, logs and pictures.
        max_epochs: Number of epochs, if not that of the recipe.
        precision: Lightning's name of the precision, e.g. bf16-mixed.
        accelerator: Lightning's name of the device, e.g. cpu or gpu.
        resume: Whether to go on from the last checkpoints in the output folder, bit for bit on one CPU.
    """
    kinds = graphs.split(",")
    if not set(kinds) <= set(PAPER):
        raise SystemExit(f"Expected --graphs to be some of {','.join(PAPER)}, joined by commas (got {graphs})")
    require("matplotlib", extra="plot")  # for the pictures at the end: better to know now
    dataset, molecules = load_or_fall_back(dataset, root)
    recipe = RECIPES[dataset]
    if dataset == "sider":
        print(LICENSE_NOTE)
    parts = recipe.split(molecules, split, seed)
    print(f"{dataset}: {parts.sizes} molecules, {molecules.num_labels} labels, split {parts.hash[:12]}", flush=True)
    if parts.report:
        print(parts.report)

    rows = baselines(dataset, molecules, parts, seed)
    options: dict[str, Any] = {"precision": precision, "accelerator": accelerator}
    if max_epochs is not None:
        options["max_epochs"] = max_epochs
    for kind in kinds:
        start = time.perf_counter()
        folder = output / dataset / kind
        label_graph = recipe.label_graph(kind, molecules, parts)
        continues = resume and (folder / "last.ckpt").exists()
        result, data = recipe.train(
            molecules,
            parts,
            label_graph,
            folder,
            encoder=encoder,
            seed=seed,
            config={"dataset": dataset},
            resume=continues,
            **options,
        )
        scores = result.predict(data.test_dataloader())
        on_val = result.predict(data.val_dataloader())
        rows[f"LaMP {kind}"] = evaluate_counted(dataset, molecules, parts, on_val, scores)
        save_predictions(folder / "predictions.csv", molecules, parts, scores)
        label_graph.plot(path=folder / "label_graph.png")
        print(
            f"LaMP {kind}: label graph of density {label_graph.density:.2f}, {time.perf_counter() - start:.0f} s",
            flush=True,
        )

    print_table(rows, PAPER if dataset == "sider" else {})
    print(f"One split with {len(parts.test)} test molecules; the README's table has the mean and spread of several.")
    save_results(output / dataset / "results.json", rows, parts)
    print(f"Predictions, checkpoints, logs and pictures are in {output / dataset}")


def load_or_fall_back(name: str, root: Path) -> tuple[Any, MultiLabelDataset]:
    """Loads a data set, or the one that needs no network if SIDER cannot be had."""
    try:
        return name, RECIPES[name].load_dataset(root)
    except DatasetUnavailableError as error:
        print(f"SIDER cannot be had, so this is NCI's functional groups instead. {error}")
        return "nci", RECIPES["nci"].load_dataset(root)


def baselines(name: str, molecules: MultiLabelDataset, split: Split, seed: int) -> dict[str, Evaluation]:
    """Evaluates what every model has to beat, with thresholds tuned the same way."""
    train_set, val, test = (molecules[part] for part in split.parts)
    frequency = LabelFrequency().fit(train_set.y)
    forest = MorganForest(seed=seed).fit(train_set.smiles, train_set.y)
    scores = {
        "label frequency": (frequency.predict_proba(len(val)), frequency.predict_proba(len(test))),
        "random forest": (forest.predict_proba(val.smiles), forest.predict_proba(test.smiles)),
    }
    bits = [torch.from_numpy(forest.fingerprints(part.smiles)) for part in (train_set, val, test)]
    x_train, x_val, x_test = (csr_array(F.normalize(part.float()).numpy()) for part in bits)
    losses: dict[str, Loss] = {"linear SVM": "hinge", "logistic regression": "logistic"}
    for row, loss in losses.items():
        linear = LinearBaseline.tuned(x_train, train_set.y, x_val, val.y, loss=loss)
        scores[row] = linear.predict_proba(x_val), linear.predict_proba(x_test)
    return {
        row: evaluate_counted(name, molecules, split, torch.as_tensor(on_val), torch.as_tensor(on_test))
        for row, (on_val, on_test) in scores.items()
    }


def evaluate_counted(
    name: str, molecules: MultiLabelDataset, split: Split, on_val: Tensor, on_test: Tensor
) -> Evaluation:
    """Evaluates the labels that are frequent enough, with one threshold for each metric tuned on validation data."""
    counted = RECIPES[name].counted_labels(molecules)
    names = [label for label, counts in zip(molecules.label_names, counted.tolist(), strict=True) if counts]
    tuners = tune_per_metric(molecules[split.val].y[:, counted], on_val[:, counted])
    return evaluate(molecules[split.test].y[:, counted], on_test[:, counted], tuners, names)


def print_table(rows: dict[str, Evaluation], paper: dict[str, dict[str, float]]) -> None:
    """Prints all rows, the papers' figures below ours."""
    print(f"\n{'test set':<22}" + "".join(f"{name:>8}" for name in COLUMNS))
    for name, evaluation in rows.items():
        print(f"{name:<22}" + "".join(f"{evaluation[column]:8.3f}" for column in COLUMNS))
    for kind, values in paper.items():
        name = f"paper, FMP + LaMP_{kind}"
        print(f"{name:<22}" + "".join(f"{values[c]:8.3f}" if c in values else f"{'-':>8}" for c in COLUMNS))
    if paper:
        print(
            "ACC, HA and F1 of the paper are about those of a constant (label frequency): they show nothing here.\n"
            "Compare macro ROC-AUC (maAUC), which is 0.5 for any constant."
        )
    undefined = next(iter(rows.values())).undefined
    if undefined:
        print(f"maAUC leaves out {len(undefined)} labels with one class only in the test set: {', '.join(undefined)}")
    for name, evaluation in rows.items():
        if evaluation.undefined_f1:
            labels = ", ".join(evaluation.undefined_f1)
            print(f"maF1 of {name} counts as 0, for want of positives and predictions: {labels}")


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
    main(**parser.parse_args().as_dict())
