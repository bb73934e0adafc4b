"""Explanations: do they find the atoms and labels that decide a label, and are they faithful?

    python -m benchmarks.accuracy.explanations --seeds 3

- **Atoms:** the drop-in layer of docs/training.md learns labels that known atoms make true: the
  functional groups of NCI's molecules, and the substructure logic of the
  `"Evaluating Attribution for Graph Neural Networks"
  <https://papers.nips.cc/paper/2020/hash/417fbbf2e9d5a28a855a11894b2e795a-Abstract.html>`_ paper,
  on molecules of NCI, SIDER and Tox21 instead of its own.
- **Labels:** LaMP learns samples drawn from a known label graph; do effects of labels on each other
  find its edges?
- **Faithfulness:** areas between insertion and deletion curves of test samples: of each method, of
  a random order, and of the method that is best on validation samples, applied to the network
  after its weights were shuffled.

No explanation uses the true labels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import reduce
from itertools import chain, combinations, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from joblib import delayed
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn
from torch_geometric.loader import DataLoader

import tg_mlc
from benchmarks.accuracy.learning_curve import networks_of_page
from benchmarks.command_line import run
from benchmarks.files import Run, collect, describe_dataset
from tg_mlc._optional import require
from tg_mlc.data import MultiLabelDataset, random_split
from tg_mlc.datasets import Planted, registry
from tg_mlc.explanations import methods as measured
from tg_mlc.explanations.question import Question
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import kind_of
from tg_mlc.inputs.molecule_dataset import MoleculeDataset
from tg_mlc.inputs.smiles import parse_smiles
from tg_mlc.models import molecule_lamp, node_lamp, table_lamp
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.graphs import MOLECULES

NAME = "explanations"
RANDOM, SIZE, SHUFFLED = measured.RANDOM, "size of the group", "shuffled weights"
#: The substructures that a molecule must contain, by published task.
LOGIC = {
    "benzene": ("c1ccccc1",),
    "logic7": ("[FX1]", "[CX3]=O"),
    "logic8": ("[R0;D2,D1][R0;D2][R0;D2,D1]", "[CX3]=O"),
    "logic10": ("[NX3;H2]", "[OD2](C)C", "[cX3]1[cX3H][cX3H][cX3H][cX3H][cX3H]1"),
}
#: Fragments that replace a hydrogen to give a molecule each substructure, in the order above.
_FRAGMENTS = ("c1ccccc1", "F", "C=O", "CCC", "N", "OC", "c1ccccc1")
GRAFTS = dict(zip(dict.fromkeys(chain(*LOGIC.values())), _FRAGMENTS, strict=True))
#: The number of molecules for each combination of present and absent substructures of a task.
NUM_LOGIC = 200
#: If a substructure has at most this many matches, all unions of them count as true; otherwise,
#: only single matches and the union of all.
MOST_MATCHES = 4
FAITHFUL = ("sider", "nci", "bibtex", "reuters", "yeast")
EPOCHS, NUM_TEST, MIN_CASES = 12, 250, 5
#: For faithfulness: numbers of training samples, of explained samples, of labels, of channels.
NUM_TRAINING, NUM_FAITHFUL, NUM_LABELS, CHANNELS = 1000, 8, 5, 64
NUM_PLANTED = 1000  #: Samples of a planted label graph.

#: Returns the sets of atoms :math:`(S, n)` that make a label's patterns true in a molecule.
Truths = Callable[[Any, Sequence[Any]], np.ndarray]


def main(
    seeds: int = 3,
    first_seed: int = 0,
    epochs: int = EPOCHS,
    num_test: int = NUM_TEST,
    tasks: str = "nci,nci-size,logic,planted,sider,nci-faithful,bibtex,reuters,yeast",
    root: Path = Path("data"),
    jobs: int = 1,
    replace: bool = False,
) -> None:
    """Measures every task with every seed, and writes benchmarks/runs/.

    Args:
        seeds: Number of seeds, of splits, weights and the order of samples.
        first_seed: The first seed.
        epochs: Number of epochs.
        num_test: Number of test molecules.
        tasks: Names of tasks, joined by commas.
        root: Folder that keeps the data.
        jobs: Number of simultaneous tasks, each on one thread.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    measure: dict[str, Callable[..., Run]] = {"nci": groups, "nci-size": sizes}
    measure |= {"logic": logic, "planted": planted}
    all_seeds = range(first_seed, first_seed + seeds)
    loaded = {name: RECIPES[name].load_dataset(root) for name in FAITHFUL}
    content = {
        "datasets": {name: describe_dataset(name, samples) for name, samples in loaded.items()},
        "seeds": list(all_seeds),
        "settings": {
            "epochs": epochs,
            "num_test": num_test,
            "min_cases": MIN_CASES,
            "num_logic": NUM_LOGIC,
            "num_training": NUM_TRAINING,
            "num_faithful": NUM_FAITHFUL,
            "num_labels": NUM_LABELS,
            "channels": CHANNELS,
        },
    }
    calls = {
        (task, seed): delayed(_run)(measure.get(task, faithful), task, root, seed, epochs, num_test)
        for seed in all_seeds
        for task in tasks.split(",")
    }
    collect(NAME, content, calls, itemgetter("task", "seed"), _in_short, jobs=jobs, replace=replace)


def _run(
    measure: Callable[..., Run], task: str, root: Path, seed: int, epochs: int, num_test: int
) -> list[Run]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    values = measure(task.removesuffix("-faithful"), root, seed, epochs, num_test)
    return [{"task": task, "seed": seed, **values}]


def _in_short(run: Run) -> str:
    values = {name: value for name, value in run.items() if name not in ("task", "seed")}
    return f"{run['task']:<14} seed {run['seed']}: {str(values)[:500]}"


def trained(network: nn.Module, samples: MultiLabelDataset, seed: int, epochs: int) -> nn.Module:
    """Trains a network with Adam, and returns it in evaluation mode."""
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
    split = random_split(len(samples), (0.9, 0.0, 0.1), seed)
    train, test = samples[split.train], samples[split.test[:num_test]]
    return _atom_aurocs(train, test, _groups_of_nci(), _all_matches, seed, epochs)


def sizes(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The AUROC of a baseline without a network: the size of the largest group of each atom."""
    samples, patterns = RECIPES["nci"].load_dataset(root), _groups_of_nci()
    test = samples[random_split(len(samples), (0.9, 0.0, 0.1), seed).test[:num_test]]
    y, areas = test.y.numpy(), {}
    for row, smiles in enumerate(test.smiles):
        mol = parse_smiles(smiles)
        group_sizes = [np.zeros((1, mol.GetNumAtoms()))]
        for (pattern,) in patterns.values():
            if len(matches := _matches(mol, pattern)):
                group_sizes.append(matches * matches.sum(axis=1, keepdims=True))
        size = np.concatenate(group_sizes).max(axis=0)
        for label in np.flatnonzero((y[row] == 1) & (y.sum(axis=0) >= MIN_CASES)):
            truth = _all_matches(mol, patterns[name := test.label_names[label]])
            if not truth.all():
                areas.setdefault(name, []).append(_auroc(truth, size))
    return {"areas": {SIZE: _means(areas)}}


def _means(by_label: Mapping[str, list[float]]) -> dict[str, float]:
    return {label: float(np.mean(values)) for label, values in by_label.items()}


def _groups_of_nci() -> dict[str, list[Any]]:
    patterns = {}

    def add(nodes: Any) -> None:
        for node in nodes:
            patterns[node.label] = [node.pattern]
            add(node.children)

    add(require("rdkit.Chem.FunctionalGroups", extra="molecules").BuildFuncGroupHierarchy())
    return patterns


def logic(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The AUROC for the substructure logic of the published tasks, trained for twice the epochs."""
    chem = require("rdkit.Chem", extra="molecules")
    patterns = {task: [chem.MolFromSmarts(part) for part in parts] for task, parts in LOGIC.items()}
    drugs = [*RECIPES["nci"].load_dataset(root).smiles, *RECIPES["sider"].load_dataset(root).smiles]
    drugs += registry.load("tox21", root).smiles
    rng = np.random.default_rng(seed)
    small_smiles = (text for text in sorted(set(drugs)) if "." not in text and len(text) < 80)
    mols = [parse_smiles(text) for text in small_smiles]
    mols = [mols[row] for row in rng.permutation(len(mols))]
    smiles: dict[str, None] = {}
    for task, parts in patterns.items():
        has = np.array([[mol.HasSubstructMatch(part) for part in parts] for mol in mols])
        for mask in product((False, True), repeat=len(parts)):
            rows = np.flatnonzero((has == mask).all(axis=1))[:NUM_LOGIC]
            chosen = {chem.MolToSmiles(mols[row]) for row in rows}
            lacking = iter(np.flatnonzero((has <= mask).all(axis=1) & (has != mask).any(axis=1)))
            while len(chosen) < NUM_LOGIC:
                row = next(lacking)
                mol = mols[row]
                for smarts in np.array(LOGIC[task])[np.array(mask) & ~has[row]]:
                    mol = _grafted(mol, GRAFTS[str(smarts)], rng)
                if mol is not None and tuple(map(mol.HasSubstructMatch, parts)) == mask:
                    chosen.add(chem.MolToSmiles(mol))
            smiles |= dict.fromkeys(sorted(chosen))
    y = []
    for mol in map(parse_smiles, smiles):
        y.append([all(map(mol.HasSubstructMatch, parts)) for parts in patterns.values()])
    samples = MoleculeDataset.from_smiles(list(smiles), np.array(y, dtype=np.float32), list(LOGIC))
    split = random_split(len(samples), (0.9, 0.0, 0.1), seed)
    # Samples with rare labels come first, so that the first ``num_test`` samples include them.
    rarity = (samples.y[split.test] / samples.y.sum(dim=0)).max(dim=1).values
    test = samples[split.test[rarity.argsort(descending=True, stable=True)][:num_test]]
    return _atom_aurocs(samples[split.train], test, patterns, _unions, seed, 2 * epochs)


def _grafted(mol: Any, graft: str, rng: np.random.Generator) -> Any:
    """A molecule with a fragment in place of a hydrogen at a saturated carbon, if it has one."""
    chem = require("rdkit.Chem", extra="molecules")
    if mol is None:
        return None
    atoms = [atom for (atom,) in mol.GetSubstructMatches(chem.MolFromSmarts("[CX4;!H0]"))]
    if not atoms:
        return None
    combined = chem.RWMol(chem.CombineMols(mol, chem.MolFromSmiles(graft)))
    combined.AddBond(int(rng.choice(atoms)), mol.GetNumAtoms(), chem.BondType.SINGLE)
    return chem.MolFromSmiles(chem.MolToSmiles(combined))


def _matches(mol: Any, pattern: Any) -> np.ndarray:
    """The atoms :math:`(M, n)` of each match of a pattern."""
    atoms, matches = np.arange(mol.GetNumAtoms()), mol.GetSubstructMatches(pattern)
    return np.array([np.isin(atoms, match) for match in matches])


def _all_matches(mol: Any, patterns: Sequence[Any]) -> np.ndarray:
    """All atoms of any match."""
    matches = np.concatenate([_matches(mol, pattern) for pattern in patterns])
    return matches.any(axis=0, keepdims=True)


def _unions(mol: Any, patterns: Sequence[Any]) -> np.ndarray:
    """Sets of atoms that make a conjunction true: unions of matches of each substructure."""

    def subset_unions(matches: np.ndarray) -> np.ndarray:
        number = len(matches)
        sizes = range(1, number + 1) if number <= MOST_MATCHES else (1, number)
        subsets = chain(*(combinations(range(number), size) for size in sizes))
        return np.array([matches[list(subset)].any(axis=0) for subset in subsets])

    unions = [subset_unions(_matches(mol, pattern)) for pattern in patterns]
    return reduce(lambda sets, more: (sets[:, None] | more).reshape(-1, mol.GetNumAtoms()), unions)


def _auroc(truths: np.ndarray, scores: np.ndarray) -> float:
    """The largest area under the ROC curve over all true sets of atoms, as published."""
    positives = truths.sum(axis=1)
    wins = truths @ rankdata(scores) - positives * (positives + 1) / 2
    return float((wins / (positives * (truths.shape[1] - positives))).max())


def _atom_aurocs(
    train: MultiLabelDataset,
    test: MultiLabelDataset,
    patterns: Mapping[str, Sequence[Any]],
    truths: Truths,
    seed: int,
    epochs: int,
) -> Run:
    network = trained(networks_of_page()[1](train.num_labels), train, seed, epochs)
    y, names = test.y.numpy(), train.label_names
    labels = [name for index, name in enumerate(names) if y[:, index].sum() >= MIN_CASES]
    explanation = tg_mlc.explain(network, test, labels, label_names=names)
    rng, areas, fractions = np.random.default_rng(seed), {}, {}
    for sample in explanation:
        mol = parse_smiles(sample.smiles)
        random = rng.random(mol.GetNumAtoms())
        for index, label in enumerate(labels):
            if sample.truth[index] != 1:
                continue
            sets = truths(mol, patterns[label])
            sets = sets[~sets.all(axis=1)]
            if not len(sets):
                continue
            methods = {name: scores[:, index] for name, scores in sample.scores.items()}
            for method, scores in {**methods, RANDOM: random}.items():
                areas.setdefault(method, {}).setdefault(label, []).append(_auroc(sets, scores))
            fractions.setdefault(label, []).append(sets.any(axis=0).mean())
    probabilities = np.stack([sample.probability for sample in explanation])
    return {
        "areas": {name: _means(by_label) for name, by_label in areas.items()},
        "shares": _means(fractions),
        "roc_auc": float(roc_auc_score(y[:, list(map(names.index, labels))], probabilities)),
        "chosen": explanation.method,
    }


def planted(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The average precision of rankings of pairs of labels against a planted label graph."""
    samples = Planted(NUM_PLANTED, share=0.25, seed=seed)
    split = samples.official_split()
    train = samples[split.train]
    model = node_lamp(train, fully_connected(samples.label_names), num_steps=2)
    network = trained(model, train, seed, epochs)
    explanation = tg_mlc.explain(network, samples[split.test[:num_test]], method="attention")
    off_diagonal = ~np.eye(samples.num_labels, dtype=bool)
    truth = np.zeros_like(off_diagonal)
    truth[tuple(samples.true_graph.edge_index.numpy())] = True
    attention = [sample.label_attention.mean(axis=(0, 1)) for sample in explanation]
    rankings = {
        "effects": np.mean([np.abs(sample.label_effects) for sample in explanation], axis=0),
        "attention": np.mean(attention, axis=0),
        "co-occurrence": np.abs(np.corrcoef(train.y.numpy().T)),
        RANDOM: np.random.default_rng(seed).random(off_diagonal.shape),
    }
    values = {}
    for method, ranking in rankings.items():
        values[method] = float(average_precision_score(truth[off_diagonal], ranking[off_diagonal]))
    return {"average_precision": values, "share": float(truth[off_diagonal].mean())}


def faithful(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """Areas between curves of test samples by method, and the method chosen in validation."""
    samples = RECIPES[name].load_dataset(root)
    split = random_split(len(samples), (0.8, 0.1, 0.1), seed)
    train = split.train[:NUM_TRAINING]
    if name in MOLECULES:
        build, options = molecule_lamp, {"vectors": ()}
    else:
        samples = kind_of(samples).steps(scaled=True)[-1].fit_transform(samples, split)
        build, options = table_lamp, {}
    graph = fully_connected(samples.label_names)
    network = build(samples[train], graph, channels=CHANNELS, **options)
    trained(network, samples[train], seed, epochs // 2)
    frequent = samples.y[train].nansum(dim=0).argsort(descending=True)[:NUM_LABELS].tolist()
    labels, names = [samples.label_names[label] for label in frequent], samples.label_names
    val, test = (samples[rows[:NUM_FAITHFUL]] for rows in (split.val, split.test))
    explanation = tg_mlc.explain(network, test, labels, label_names=names, validation=val)
    method = explanation.method
    shuffled = deepcopy(network)
    with torch.no_grad():
        for weight in shuffled.parameters():
            weight.copy_(weight.flatten()[torch.randperm(weight.numel())].view_as(weight))
    shuffled_explanation = tg_mlc.explain(shuffled, test, labels, method, label_names=names)
    pairs = zip(explanation, shuffled_explanation, strict=True)
    scores = [{**sample.scores, SHUFFLED: other.scores[method]} for sample, other in pairs]
    question = Question(network, test, names)
    areas = measured.faithfulness(question, scores, frequent)
    correlations = []
    for sample in scores:
        columns = zip(sample[method].T, sample[SHUFFLED].T, strict=True)
        correlations += [spearmanr(*pair).statistic for pair in columns]
    gains = {name: area.gain for name, area in areas.items()}
    return {"gains": gains, "chosen": method, "alike": float(np.nanmean(correlations))}


if __name__ == "__main__":
    sys.exit(run(main))
