"""Explanations: do scores find the atoms that make a label true, and the labels that move another? Are they faithful?

    python -m benchmarks.accuracy.explanations --seeds 3

- **Atoms:** the drop-in layer of docs/training.md learns the functional groups of NCI's molecules, whose substructures
  tell the atoms that make a label true; and the substructure logic of the `"Evaluating Attribution for Graph Neural
  Networks" <https://papers.nips.cc/paper/2020/hash/417fbbf2e9d5a28a855a11894b2e795a-Abstract.html>`_ paper, on
  molecules of NCI, SIDER and Tox21 instead of its own.
- **Labels:** LaMP learns samples drawn from a known label graph; do effects of labels on each other find its edges?
- **Faithfulness:** areas between insertion and deletion curves of test samples; the method that validation samples
  choose, beside each method, the same method after the network's weights were shuffled, and a random order.

No label is looked at to make an explanation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from tg_mlc.explanations import faithfulness as measured
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
#: The substructures that a molecule has to have all of, by the names of the published tasks.
LOGIC = {
    "benzene": ("c1ccccc1",),
    "logic7": ("[FX1]", "[CX3]=O"),
    "logic8": ("[R0;D2,D1][R0;D2][R0;D2,D1]", "[CX3]=O"),
    "logic10": ("[NX3;H2]", "[OD2](C)C", "[cX3]1[cX3H][cX3H][cX3H][cX3H][cX3H]1"),
}
#: Groups that take the place of a hydrogen to give a molecule each substructure, in the order above.
GRAFTS = dict(
    zip(
        dict.fromkeys(chain(*LOGIC.values())),
        ("c1ccccc1", "F", "C=O", "CCC", "N", "OC", "c1ccccc1"),
        strict=True,
    )
)
#: molecules of each combination of substructures that a task asks for, present or absent
NUM_LOGIC = 200
#: of a substructure whose unions are all taken for true; of more, each, and all together
MOST_MATCHES = 4
FAITHFUL = ("sider", "nci", "bibtex", "reuters", "yeast")
EPOCHS, NUM_TEST, MIN_CASES = 12, 250, 5
#: For faithfulness: training samples, explained samples, and labels, the most frequent ones; half of the epochs.
NUM_TRAINING, NUM_FAITHFUL, NUM_LABELS, CHANNELS = 1000, 8, 5, 64
NUM_PLANTED = 1000  #: samples of a planted label graph

#: From a molecule and the patterns of a label to the sets of atoms that make it true :math:`(S, n)`.
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
        first_seed: The first of them.
        epochs: Number of epochs.
        num_test: Number of test molecules.
        tasks: Which tasks, joined by commas.
        root: Folder that keeps the data.
        jobs: How many tasks run at a time, each on one thread.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    measure: dict[str, Callable[..., Run]] = {
        "nci": groups,
        "nci-size": sizes,
        "logic": logic,
        "planted": planted,
    }
    chosen = range(first_seed, first_seed + seeds)
    content = {
        "datasets": {
            name: describe_dataset(name, RECIPES[name].load_dataset(root)) for name in FAITHFUL
        },
        "seeds": list(chosen),
        "settings": {
            "epochs": epochs,
            "num_test": num_test,
            "min_cases": MIN_CASES,
            "num_logic": NUM_LOGIC,
        }
        | {
            "num_training": NUM_TRAINING,
            "num_faithful": NUM_FAITHFUL,
            "num_labels": NUM_LABELS,
            "channels": CHANNELS,
        },
    }
    calls = {
        (task, seed): delayed(_one)(measure.get(task, faithful), task, root, seed, epochs, num_test)
        for seed in chosen
        for task in tasks.split(",")
    }
    collect(NAME, content, calls, itemgetter("task", "seed"), _in_short, jobs=jobs, replace=replace)


def _one(
    measure: Callable[..., Run], task: str, root: Path, seed: int, epochs: int, num_test: int
) -> list[Run]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return [
        {
            "task": task,
            "seed": seed,
            **measure(task.removesuffix("-faithful"), root, seed, epochs, num_test),
        }
    ]


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
    split = random_split(len(samples), (0.9, 0.0, 0.1), seed)
    train, test = samples[split.train], samples[split.test[:num_test]]
    return _atoms(train, test, _groups_of_nci(), _all_matches, seed, epochs)


def sizes(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The same of a floor that needs no network: the size of the largest group that an atom belongs to."""
    samples, patterns = RECIPES["nci"].load_dataset(root), _groups_of_nci()
    test = samples[random_split(len(samples), (0.9, 0.0, 0.1), seed).test[:num_test]]
    y, found = test.y.numpy(), {}
    for row, smiles in enumerate(test.smiles):
        mol = parse_smiles(smiles)
        matches = [np.zeros((1, mol.GetNumAtoms()))]
        matches += [each for (pattern,) in patterns.values() if len(each := _matches(mol, pattern))]
        size = np.concatenate([each * each.sum(axis=1, keepdims=True) for each in matches]).max(
            axis=0
        )
        for label in np.flatnonzero((y[row] == 1) & (y.sum(axis=0) >= MIN_CASES)):
            truth = _all_matches(mol, patterns[name := test.label_names[label]])
            if not truth.all():
                found.setdefault(name, []).append(_auroc(truth, size))
    return {"areas": {SIZE: _means(found)}}


def _means(found: Mapping[str, list[float]]) -> dict[str, float]:
    return {label: float(np.mean(each)) for label, each in found.items()}


def _groups_of_nci() -> dict[str, list[Any]]:
    patterns = {}

    def below(nodes: Any) -> None:
        for node in nodes:
            patterns[node.label] = [node.pattern]
            below(node.children)

    below(require("rdkit.Chem.FunctionalGroups", extra="molecules").BuildFuncGroupHierarchy())
    return patterns


def logic(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The same for the substructure logic of the published tasks, whose networks take twice the epochs."""
    chem = require("rdkit.Chem", extra="molecules")
    patterns = {
        task: [chem.MolFromSmarts(smarts) for smarts in parts] for task, parts in LOGIC.items()
    }
    found = [*RECIPES["nci"].load_dataset(root).smiles, *RECIPES["sider"].load_dataset(root).smiles]
    found += registry.load("tox21", root).smiles
    rng = np.random.default_rng(seed)
    mols = [parse_smiles(each) for each in sorted(set(found)) if "." not in each and len(each) < 80]
    mols = [mols[row] for row in rng.permutation(len(mols))]
    smiles: dict[str, None] = {}
    for task, parts in patterns.items():
        has = np.array([[mol.HasSubstructMatch(part) for part in parts] for mol in mols])
        for wanted in product((False, True), repeat=len(parts)):
            rows = np.flatnonzero((has == wanted).all(axis=1))[:NUM_LOGIC]
            made = {chem.MolToSmiles(mols[row]) for row in rows}
            rest = iter(np.flatnonzero((has <= wanted).all(axis=1) & (has != wanted).any(axis=1)))
            while len(made) < NUM_LOGIC:
                row = next(rest)
                mol = mols[row]
                for smarts in np.array(LOGIC[task])[np.array(wanted) & ~has[row]]:
                    mol = _grafted(mol, GRAFTS[str(smarts)], rng)
                if mol is not None and tuple(map(mol.HasSubstructMatch, parts)) == wanted:
                    made.add(chem.MolToSmiles(mol))
            smiles |= dict.fromkeys(sorted(made))
    y = [
        [all(map(parse_smiles(each).HasSubstructMatch, parts)) for parts in patterns.values()]
        for each in smiles
    ]
    samples = MoleculeDataset.from_smiles(list(smiles), np.array(y, dtype=np.float32), list(LOGIC))
    split = random_split(len(samples), (0.9, 0.0, 0.1), seed)
    # Those with the rarest labels first.
    rarity = (samples.y[split.test] / samples.y.sum(dim=0)).max(dim=1).values
    test = samples[split.test[rarity.argsort(descending=True, stable=True)][:num_test]]
    return _atoms(samples[split.train], test, patterns, _unions, seed, 2 * epochs)


def _grafted(mol: Any, graft: str, rng: np.random.Generator) -> Any:
    """A molecule with a fragment in place of a hydrogen at a saturated carbon; :obj:`None` if there is none."""
    chem = require("rdkit.Chem", extra="molecules")
    places = (
        []
        if mol is None
        else [at for (at,) in mol.GetSubstructMatches(chem.MolFromSmarts("[CX4;!H0]"))]
    )
    if not places:
        return None
    joined = chem.RWMol(chem.CombineMols(mol, chem.MolFromSmiles(graft)))
    joined.AddBond(int(rng.choice(places)), mol.GetNumAtoms(), chem.BondType.SINGLE)
    return chem.MolFromSmiles(chem.MolToSmiles(joined))


def _matches(mol: Any, pattern: Any) -> np.ndarray:
    """The atoms :math:`(M, n)` of each match of a pattern."""
    return np.array(
        [np.isin(np.arange(mol.GetNumAtoms()), match) for match in mol.GetSubstructMatches(pattern)]
    )


def _all_matches(mol: Any, patterns: Sequence[Any]) -> np.ndarray:
    """All atoms of any match."""
    return np.concatenate([_matches(mol, pattern) for pattern in patterns]).any(
        axis=0, keepdims=True
    )


def _unions(mol: Any, patterns: Sequence[Any]) -> np.ndarray:
    """All sets of atoms that make a conjunction true: unions of some matches of each substructure."""

    def of_one(matches: np.ndarray) -> np.ndarray:
        number = len(matches)
        sizes = range(1, number + 1) if number <= MOST_MATCHES else (1, number)
        chosen: Iterator[tuple[int, ...]] = chain(
            *(combinations(range(number), size) for size in sizes)
        )
        return np.array([matches[list(each)].any(axis=0) for each in chosen])

    found = [of_one(_matches(mol, pattern)) for pattern in patterns]
    return reduce(lambda one, two: (one[:, None] | two).reshape(-1, mol.GetNumAtoms()), found)


def _auroc(truths: np.ndarray, scores: np.ndarray) -> float:
    """The area under the ROC curve of the truth that scores agree with best, as the published tasks are measured."""
    positives = truths.sum(axis=1)
    areas = (truths @ rankdata(scores) - positives * (positives + 1) / 2) / (
        positives * (truths.shape[1] - positives)
    )
    return float(areas.max())


def _atoms(
    train: MultiLabelDataset,
    test: MultiLabelDataset,
    patterns: Mapping[str, Sequence[Any]],
    truths: Truths,
    seed: int,
    epochs: int,
) -> Run:
    network = trained(networks_of_page()[1](train.num_labels), train, seed, epochs)
    y, names = test.y.numpy(), train.label_names
    labels = [name for place, name in enumerate(names) if y[:, place].sum() >= MIN_CASES]
    explanation = tg_mlc.explain(network, test, labels, label_names=names)
    rng, areas, shares = np.random.default_rng(seed), {}, {}
    for sample in explanation:
        mol = parse_smiles(sample.smiles)
        by_chance = {RANDOM: rng.random(mol.GetNumAtoms())}
        for place, label in enumerate(labels):
            if sample.truth[place] != 1:
                continue
            found = truths(mol, patterns[label])
            found = found[~found.all(axis=1)]
            if not len(found):
                continue
            for method, scores in (
                {name: each[:, place] for name, each in sample.scores.items()} | by_chance
            ).items():
                areas.setdefault(method, {}).setdefault(label, []).append(_auroc(found, scores))
            shares.setdefault(label, []).append(found.any(axis=0).mean())
    probabilities = np.stack([sample.probability for sample in explanation])
    return {
        "areas": {name: _means(found) for name, found in areas.items()},
        "shares": _means(shares),
        "roc_auc": float(roc_auc_score(y[:, list(map(names.index, labels))], probabilities)),
        "chosen": explanation.method,
    }


def planted(name: str, root: Path, seed: int, epochs: int, num_test: int) -> Run:
    """The average precision of what finds the edges of a planted label graph."""
    samples = Planted(NUM_PLANTED, share=0.25, seed=seed)
    split = samples.official_split()
    train = samples[split.train]
    network = trained(
        node_lamp(train, fully_connected(samples.label_names), num_steps=2), train, seed, epochs
    )
    explanation = tg_mlc.explain(network, samples[split.test[:num_test]], method="attention")
    off = ~np.eye(samples.num_labels, dtype=bool)
    truth = np.zeros_like(off)
    truth[tuple(samples.true_graph.edge_index.numpy())] = True
    found = {
        "effects": np.mean([np.abs(sample.label_effects) for sample in explanation], axis=0),
        "attention": np.mean(
            [sample.label_attention.mean(axis=(0, 1)) for sample in explanation], axis=0
        ),
        "co-occurrence": np.abs(np.corrcoef(train.y.numpy().T)),
        RANDOM: np.random.default_rng(seed).random(off.shape),
    }
    values = {
        way: float(average_precision_score(truth[off], each[off])) for way, each in found.items()
    }
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
    graph = fully_connected(samples.label_names)
    network = build(samples[chosen], graph, channels=CHANNELS, **options)
    trained(network, samples[chosen], seed, epochs // 2)
    frequent = samples.y[chosen].nansum(dim=0).argsort(descending=True)[:NUM_LABELS].tolist()
    labels, names = [samples.label_names[label] for label in frequent], samples.label_names
    val, test = (samples[part[:NUM_FAITHFUL]] for part in (split.val, split.test))
    explanation = tg_mlc.explain(network, test, labels, label_names=names, validation=val)
    method = explanation.method
    shuffled = deepcopy(network)
    with torch.no_grad():
        for weight in shuffled.parameters():
            weight.copy_(weight.flatten()[torch.randperm(weight.numel())].view_as(weight))
    others = tg_mlc.explain(shuffled, test, labels, method, label_names=names)
    scores = [
        {**one.scores, SHUFFLED: two.scores[method]}
        for one, two in zip(explanation, others, strict=True)
    ]
    question = Question(network, test, names)
    areas = measured.faithfulness(question, question.samples, scores, frequent)
    columns = (
        pair for each in scores for pair in zip(each[method].T, each[SHUFFLED].T, strict=True)
    )
    alike = [spearmanr(*pair).statistic for pair in columns]
    gains = {name: each.gain for name, each in areas.items()}
    return {"gains": gains, "chosen": method, "alike": float(np.nanmean(alike))}


if __name__ == "__main__":
    sys.exit(run(main))
