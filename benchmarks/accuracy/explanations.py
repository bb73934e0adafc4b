"""Explanations: do scores find the atoms that make a label true, and the labels that move another? Are they faithful?

    python -m benchmarks.accuracy.explanations --seeds 3

- **Atoms:** the drop-in layer of docs/training.md learns the functional groups of NCI's molecules, whose substructures
  tell the atoms that make a label true; and the substructure logic of the `"Evaluating Attribution for Graph Neural
  Networks" <https://papers.nips.cc/paper/2020/hash/417fbbf2e9d5a28a855a11894b2e795a-Abstract.html>`_ paper, on
  molecules of NCI and Tox21 instead of its own.
- **Labels:** LaMP learns samples drawn from a known label graph; do effects of labels on each other find its edges?
- **Faithfulness:** areas between insertion and deletion curves of test samples; the method that validation samples
  choose, beside each method and a random order.

No label is looked at to make an explanation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from joblib import delayed
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn
from torch_geometric.loader import DataLoader

import tg_mlc
from benchmarks.accuracy.learning_curve import networks_of_page
from benchmarks.command_line import run
from benchmarks.files import Run, collect, describe_dataset
from tg_mlc._optional import require
from tg_mlc.data import MultiLabelDataset, Split, random_split
from tg_mlc.datasets import Planted, registry
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import kind_of
from tg_mlc.inputs.molecule_dataset import MoleculeDataset
from tg_mlc.inputs.smiles import parse_smiles
from tg_mlc.models import molecule_lamp, node_lamp, table_lamp
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.graphs import MOLECULES

NAME = "explanations"
RANDOM = "random"
#: The substructures that a molecule has to have all of, by the names of the published tasks.
LOGIC = {
    "benzene": ("c1ccccc1",),
    "logic7": ("[FX1]", "[CX3]=O"),
    "logic8": ("[R0;D2,D1][R0;D2][R0;D2,D1]", "[CX3]=O"),
    "logic10": ("[NX3;H2]", "[OD2](C)C", "[cX3]1[cX3H][cX3H][cX3H][cX3H][cX3H]1"),
}
FAITHFUL = ("sider", "nci", "bibtex", "reuters", "yeast")
EPOCHS, NUM_TEST, MIN_CASES = 12, 250, 5
#: For faithfulness: training samples, explained samples, and labels, the most frequent ones; half of the epochs.
NUM_TRAINING, NUM_FAITHFUL, NUM_LABELS = 2000, 30, 20
NUM_PLANTED = 1000  #: samples of a planted label graph

#: From a molecule and a label to which atoms make it true.
Atoms = Callable[[Any, str], np.ndarray]


def main(
    seeds: int = 3,
    first_seed: int = 0,
    epochs: int = EPOCHS,
    num_test: int = NUM_TEST,
    tasks: str = "nci,logic,planted,sider,nci-faithful,bibtex,reuters,yeast",
    root: Path = Path("data"),
    jobs: int = 1,
    replace: bool = False,
) -> None:
    """Measures every task with every seed, and writes benchmarks/runs/.

    Args:
        seeds: Number of seeds, of splits, weights and the order of samples.
        first_seed: The first of them.
        epochs: Number of epochs.
        num_test: Number of test molecules.
        tasks: Which tasks, joined by commas.
        root: Folder that keeps the data.
        jobs: How many tasks run at a time, each on one thread.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    measure: dict[str, Callable[..., Run]] = {"nci": groups, "logic": logic, "planted": planted}
    chosen = range(first_seed, first_seed + seeds)
    content = {
        "datasets": {name: describe_dataset(name, RECIPES[name].load_dataset(root)) for name in FAITHFUL},
        "seeds": list(chosen),
        "settings": {"epochs": epochs, "num_test": num_test, "min_cases": MIN_CASES},
    }
    calls = {
        (task, seed): delayed(_one)(measure.get(task, faithful), task, root, seed, epochs, num_test)
        for seed in chosen
        for task in tasks.split(",")
    }
    path = collect(NAME, content, calls, itemgetter("task", "seed"), _in_short, jobs=jobs, replace=replace)
    print(f"Wrote {path}")


def _one(measure: Callable[..., Run], task: str, root: Path, seed: int, epochs: int, num_test: int) -> list[Run]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return [{"task": task, "seed": seed, **measure(task.removesuffix("-faithful"), root, seed, epochs, num_test)}]


def _in_short(found: Run) -> str:
    values = {name: value for name, value in found.items() if name not in ("task", "seed")}
    return f"{found['task']:<14} seed {found['seed']}: {str(values)[:500]}"


def trained(network: nn.Module, samples: MultiLabelDataset, seed: int, epochs: int) -> nn.Module:
    """A network after some epochs of Adam."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        network.train()
        for batch in DataLoader(samples, batch_size=32, shuffle=True, generator=order):
            known = ~batch.y.isnan()
            loss = F.binary_cross_entropy_with_logits(network(batch)[known], batch.y[known])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network.eval()


def groups(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The AUROC of each method for the atoms of NCI's functional groups."""
    samples = RECIPES["nci"].load_dataset(root)
    patterns = {}

    def below(nodes: Any) -> None:
        for node in nodes:
            patterns[node.label] = node.pattern
            below(node.children)

    below(require("rdkit.Chem.FunctionalGroups", extra="molecules").BuildFuncGroupHierarchy())
    return _atoms(samples, lambda mol, label: _matched(mol, [patterns[label]]), seed, epochs, num_test)


def logic(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The same for the substructure logic of the published tasks."""
    chem = require("rdkit.Chem", extra="molecules")
    patterns = {task: [chem.MolFromSmarts(smarts) for smarts in parts] for task, parts in LOGIC.items()}
    smiles = [*RECIPES["nci"].load_dataset(root).smiles, *registry.load("tox21", root).smiles]
    smiles = sorted({each for each in smiles if "." not in each and len(each) < 80})
    mols = [parse_smiles(each) for each in smiles]
    y = [[all(map(mol.HasSubstructMatch, parts)) for parts in patterns.values()] for mol in mols]
    samples = MoleculeDataset.from_smiles(smiles, np.array(y, dtype=np.float32), list(LOGIC))
    return _atoms(samples, lambda mol, label: _matched(mol, patterns[label]), seed, epochs, num_test)


def _matched(mol: Any, patterns: Sequence[Any]) -> np.ndarray:
    found = np.zeros(mol.GetNumAtoms(), bool)
    for pattern in patterns:
        for match in mol.GetSubstructMatches(pattern):
            found[list(match)] = True
    return found


def _atoms(samples: MultiLabelDataset, atoms: Atoms, seed: int, epochs: int, num_test: int) -> Run:
    split = random_split(len(samples), (0.9, 0.0, 0.1), seed)
    network = trained(networks_of_page()[1](samples.num_labels), samples[split.train], seed, epochs)
    test = (
        samples[split.test[:num_test]]
        if samples.num_labels > len(LOGIC)
        else samples[_positives_first(samples, split)[:num_test]]
    )
    y = test.y.numpy()
    labels = [name for place, name in enumerate(test.label_names) if y[:, place].sum() >= MIN_CASES]
    explanation = tg_mlc.explain(network, test, labels, label_names=test.label_names)
    rng, areas, shares = np.random.default_rng(seed), {}, {}
    for sample in explanation:
        mol = parse_smiles(sample.smiles)
        for place, label in enumerate(labels):
            truth = atoms(mol, label)
            if sample.truth[place] != 1 or truth.all() or not truth.any():
                continue
            scores = {name: each[:, place] for name, each in sample.scores.items()} | {RANDOM: rng.random(len(truth))}
            for method, found in scores.items():
                areas.setdefault(method, {}).setdefault(label, []).append(roc_auc_score(truth, found))
            shares.setdefault(label, []).append(truth.mean())
    untrained = tg_mlc.explain(
        networks_of_page()[1](samples.num_labels),
        test[:NUM_FAITHFUL],
        labels,
        "integrated gradients",
        label_names=test.label_names,
    )
    pairs = zip(untrained, explanation, strict=False)
    alike = [
        spearmanr(*(each.scores["integrated gradients"][:, place] for each in pair)).statistic
        for pair in pairs
        for place in range(len(labels))
        if len(pair[0].components) > 2
    ]
    means = {method: {label: float(np.mean(each)) for label, each in found.items()} for method, found in areas.items()}
    accuracy = roc_auc_score(y[:, [test.label_names.index(label) for label in labels]], explanation_matrix(explanation))
    return {
        "areas": means,
        "shares": {label: float(np.mean(each)) for label, each in shares.items()},
        "roc_auc": float(accuracy),
        "untrained": float(np.nanmean(np.abs(alike))),
        "chosen": explanation.method,
    }


def _positives_first(samples: MultiLabelDataset, split: Split) -> torch.Tensor:
    """Test samples, those with the rarest labels first."""
    rarity = (samples.y[split.test] / samples.y.sum(dim=0).clamp_min(1)).max(dim=1).values
    return split.test[rarity.argsort(descending=True, stable=True)]


def explanation_matrix(explanation: Any) -> np.ndarray:
    """The probabilities :math:`(N, L)` of an explanation."""
    return np.stack([sample.probability for sample in explanation])


def planted(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The average precision of what finds the edges of a planted label graph."""
    samples = Planted(NUM_PLANTED, share=0.25, seed=seed)
    split = samples.official_split()
    network = trained(
        node_lamp(samples[split.train], fully_connected(samples.label_names), num_steps=2),
        samples[split.train],
        seed,
        epochs,
    )
    explanation = tg_mlc.explain(network, samples[split.test[:num_test]], method="attention")
    off = ~np.eye(samples.num_labels, dtype=bool)
    truth = np.zeros_like(off)
    truth[tuple(samples.true_graph.edge_index.numpy())] = True
    correlation = np.abs(np.corrcoef(samples.y[split.train].numpy().T))
    found = {
        "effects": np.mean([np.abs(sample.label_effects) for sample in explanation], axis=0),
        "attention": np.mean([sample.label_attention.mean(axis=(0, 1)) for sample in explanation], axis=0),
        "co-occurrence": correlation,
        RANDOM: np.random.default_rng(seed).random(off.shape),
    }
    values = {way: float(average_precision_score(truth[off], each[off])) for way, each in found.items()}
    return {"average_precision": values, "share": float(truth[off].mean())}


def faithful(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The areas between curves of test samples, by method, and which method validation samples choose."""
    samples = RECIPES[name].load_dataset(root)
    split = random_split(len(samples), (0.8, 0.1, 0.1), seed)
    chosen = split.train[:NUM_TRAINING]
    if name in MOLECULES:
        build, options = molecule_lamp, {"vectors": ()}
    else:
        samples = kind_of(samples).steps(scaled=True)[-1].fit_transform(samples, split)
        build, options = table_lamp, {}
    network = build(samples[chosen], fully_connected(samples.label_names), **options)
    trained(network, samples[chosen], seed, epochs // 2)
    frequent = samples.y[chosen].nansum(dim=0).argsort(descending=True)[:NUM_LABELS]
    labels = [samples.label_names[label] for label in frequent]
    on_val, on_test = (
        tg_mlc.explain(network, samples[part[:NUM_FAITHFUL]], labels, label_names=samples.label_names)
        for part in (split.val, split.test)
    )
    gains = {method: each.gain for method, each in on_test.faithfulness.items()}
    return {"gains": gains, "chosen": on_val.method}


if __name__ == "__main__":
    sys.exit(run(main))
