"""Single side effects of drugs: new drugs, drugs with some known effects, and missing pairs.

    python -m benchmarks.accuracy.side_effects --seeds 5

New drugs are those of a published fold; models are fitted to the other nine folds. Some effects of
these drugs are then given: 1, 3, 10 or half of the present ones, or half of all, present and
absent; metrics are those of the other effects. For known drugs, each tenth of the reported pairs is
hidden in turn, and has to be distinguished from pairs that were never reported, as in studies of
association. The settings of each row are chosen from a few by the sum of ROC-AUC and average
precision on drugs or pairs of the training set alone. Runs of one fold are made together; repeating
the command continues an interrupted run.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import product, starmap
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import delayed

from benchmarks.accuracy import completion as fill
from benchmarks.accuracy.completion import Array, cosine, goodness, logit
from benchmarks.accuracy.runs import FREQUENCY
from benchmarks.command_line import run
from benchmarks.files import Run, collect, describe_dataset
from tg_mlc._optional import require
from tg_mlc.datasets import SideEffectFrequencies
from tg_mlc.graphs import LabelGraph, co_occurrence, fully_connected
from tg_mlc.inference.decisions import GivenLabels
from tg_mlc.metrics import macro_roc_auc, micro_average_precision, micro_roc_auc
from tg_mlc.nn import ResidualMessages
from tg_mlc.stacking import auto
from tg_mlc.stacking.given import GivenLabelStacking

NAME = "side_effects"
NEW, GIVEN, HIDDEN = "new drug", "effects given", "pairs hidden"
METRICS = {
    "roc_auc": micro_roc_auc,
    "average_precision": micro_average_precision,
    "roc_auc_macro": macro_roc_auc,
}

KNN, RIDGE, LABELS = "nearest neighbours", "kernel ridge", "kernel ridge, times correlated effects"
MORGAN, MEAN = "Tanimoto", "mean of seven kernels"
STACK, DEFAULT = "these on seven kernels, stacked", "the default"

BASE, OVERLAP, EASE = "nothing known", "nearest neighbours by known effects and structure", "EASE"
MESSAGES, TOGETHER = "residual messages", "all of these, by boosted trees"
GRAPHS = ("term classes", "learned", "complete")
#: Amounts of known effects: a number or fraction of present effects, or a fraction of all effects.
AMOUNTS: dict[str, tuple[str, float]] = {
    "1 present": ("present", 1),
    "3 present": ("present", 3),
    "10 present": ("present", 10),
    "half of the present": ("present", 0.5),
    "half of all": ("both", 0.5),
}
#: Amounts of known effects in training: masks of training drugs are drawn with all of these.
EXPECTED = {"present": (1, 3, 10, 0.5), "both": (0.1, 0.3, 0.5, 0.7)}
NUM_PARTS, NEGATIVES, TOP_K = 5, 0.1, 64

STRUCTURE, LABEL_SIDE = "kernel ridge on structures", "EASE"
DRUG_SIDE = "EASE over drugs and structures"
BOTH_SIDES, FACTORS = "both EASE, their mean", "factors"
FACTORS_SETTING: dict[str, Any] = {"rank": 20, "penalty": 30.0, "weight": 10.0}
PRIOR_SIDE, RESIDUALS = "EASE with term classes", "the same and residuals of similar drugs"
ALL = "these and factors"


def main(
    seeds: int = 5,
    folds: int = 10,
    given_folds: int = 5,
    default_folds: int = 1,
    seconds: float = 300.0,
    root: Path = Path("data"),
    replace: bool = False,
) -> None:
    """Runs all rows of every fold, and writes benchmarks/runs/. An interrupted run continues.

    Args:
        seeds: Number of seeds of hidden pairs; masks of new drugs have one.
        folds: The number of the ten folds to run, of whole drugs and of pairs.
        given_folds: The number of these folds for drugs with some known effects.
        default_folds: The number of these folds for the default.
        seconds: Time limit of the default for each fold.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    torch.set_num_threads(1)
    dataset = SideEffectFrequencies(root / "side-effects")
    described = describe_dataset("side-effects", dataset)
    content: dict[str, Any] = {"dataset": described, "expected": EXPECTED}
    calls = {(NEW, fold, 0): delayed(new_drugs)(root, fold) for fold in range(folds)}
    trials = product(range(seeds), range(folds))
    pairs = {(HIDDEN, fold, seed): delayed(hidden_pairs)(root, fold, seed) for seed, fold in trials}
    calls |= {key: call for key, call in pairs.items() if key[2] == 0}
    calls |= {(GIVEN, fold, 0): delayed(with_given)(root, fold) for fold in range(given_folds)}
    calls |= pairs
    for fold in range(default_folds):
        calls[DEFAULT, fold, 0] = delayed(default)(root, fold, seconds)
    collect(NAME, content, calls, itemgetter("part", "fold", "seed"), _in_short, replace=replace)


def _in_short(run: Run) -> str:
    names = (*METRICS, "precision_at_10")
    values = ", ".join(f"{name} {run[name]:.4f}" for name in names if run.get(name))
    task = f"{run['task']}{', ' * bool(run['given'])}{run['given']}"
    title = f"{task}, fold {run['fold']}, seed {run['seed']}: {run['model']:<50}"
    return f"{title} {values} ({run['seconds']:.0f} s)"


class Drugs(NamedTuple):
    """Effects and folds of all drugs, kernels of their structures, cosines of term classes."""

    y: Array
    fold: Array
    kernels: dict[str, Array]
    classes: Array
    term_graph: LabelGraph


@cache
def load(root: Path) -> Drugs:
    """Loads the drugs and computes kernels once. A file caches the kernels."""
    folder = root / "side-effects"
    dataset, path = SideEffectFrequencies(folder), folder / "kernels.npz"
    if not path.exists():
        np.savez(path, **_kernels([data.smiles for data in dataset]))
    with np.load(path) as kernels:
        loaded = {name: kernels[name] for name in (MORGAN, MEAN)}
    classes, y = cosine(dataset.classes.numpy().astype(float)), dataset.y.numpy().astype(float)
    return Drugs(y, dataset.fold.numpy(), loaded, classes, dataset.label_graph)


def _kernels(smiles: list[str]) -> dict[str, Array]:
    """The Tanimoto kernel of Morgan fingerprints, and the mean of seven kernels."""
    modules = ("", ".MACCSkeys", ".Descriptors", ".rdFingerprintGenerator")
    chem, maccs, descriptors, make = (
        require(f"rdkit.Chem{module}", extra="molecules") for module in modules
    )
    features = make.GetMorganFeatureAtomInvGen()
    generators = [
        make.GetMorganGenerator(2, fpSize=4096),
        make.GetMorganGenerator(2, fpSize=4096, atomInvariantsGenerator=features),
        make.GetAtomPairGenerator(fpSize=8192),
        make.GetTopologicalTorsionGenerator(fpSize=4096),
    ]
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        mols = [chem.MolFromSmiles(text) for text in smiles]
        counts = [[gen.GetCountFingerprintAsNumPy(mol) for mol in mols] for gen in generators]
        paths = make.GetRDKitFPGenerator(fpSize=4096)
        counts.append([paths.GetFingerprintAsNumPy(mol) for mol in mols])
        counts.append([np.array(maccs.GenMACCSKeys(mol)) for mol in mols])
        rows = [[compute(mol) for _, compute in descriptors.descList] for mol in mols]
    kernels = [fill.tanimoto(np.array(vectors, dtype=float)) for vectors in counts]
    values = np.nan_to_num(np.array(rows, dtype=float), posinf=0, neginf=0)
    ranks = values.argsort(axis=0).argsort(axis=0) / len(smiles)
    distance = np.square(ranks[:, None] - ranks[None]).mean(axis=-1)
    by_descriptors = np.exp(-distance / distance.mean())
    return {MORGAN: kernels[0], MEAN: np.mean([*kernels, by_descriptors], axis=0)}


class Part(NamedTuple):
    """Some drugs, with base logits of models that were fitted without them."""

    y: Array
    base: Array
    drugs: Array  #: Indices of the drugs.

    def at(self, rows: Array) -> Part:
        """The drugs at the specified rows. Rows may repeat."""
        return Part(self.y[rows], self.base[rows], self.drugs[rows])


def new_drugs(root: Path, fold: int) -> list[Run]:
    """All rows for the drugs of a fold, without known effects."""
    drugs = load(root)
    train, test = np.flatnonzero(drugs.fold != fold), np.flatnonzero(drugs.fold == fold)
    shared, runs = {"part": NEW, "task": NEW, "given": "", "fold": fold, "seed": 0}, []
    for model, (_, scores, settings, seconds) in base_rows(drugs, train, test).items():
        values = {metric: compute(drugs.y[test], scores) for metric, compute in METRICS.items()}
        runs.append({**shared, "model": model, "settings": settings, "seconds": seconds, **values})
    return runs


def base_rows(
    drugs: Drugs, train: Array, test: Array
) -> dict[str, tuple[Array, Array, dict[str, Any], float]]:
    """Held-out scores of training drugs, scores of test drugs, settings and seconds by row."""
    y, rows = drugs.y[train], {}
    frequency = (y.sum(axis=0) + 0.5) / (len(y) + 1)
    train_scores, test_scores = (np.tile(frequency, (len(indices), 1)) for indices in (train, test))
    rows[FREQUENCY] = train_scores, test_scores, {}, 0.0
    effect_kernel = np.eye(y.shape[1]) + cosine(y.T)

    def add(
        name: str, fit: Callable[..., tuple[Array, Array]], candidates: Iterable[dict[str, Any]]
    ) -> None:
        start, best = time.perf_counter(), (-math.inf, {}, (y, y))
        for setting in candidates:
            scores = fit(**setting)
            best = max(best, (goodness(y, scores[0]), setting, scores), key=lambda trial: trial[0])
        rows[name] = *best[2], best[1], time.perf_counter() - start

    for kind, kernel in drugs.kernels.items():
        gram, cross = kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]

        def nearest(
            least: float, power: float, prior: float, gram: Array = gram, cross: Array = cross
        ) -> tuple[Array, Array]:
            scaled = (gram - least) / (1 - least)
            np.fill_diagonal(scaled, 0.0)
            similarities = (scaled, (cross - least) / (1 - least))
            held_out, scores = (
                fill.neighbours(similarity, y, frequency, power, prior)
                for similarity in similarities
            )
            return held_out, scores

        def regress(
            alpha: float, labels: Array | None = None, gram: Array = gram, cross: Array = cross
        ) -> tuple[Array, Array]:
            held_out, dual = fill.ridge(gram, y - frequency, alpha, labels)
            return frequency + held_out, frequency + cross @ dual

        grid = product((0.0, 0.2), (1.0, 2.0, 3.0, 4.0), (0.3, 1.0))
        names = ("least", "power", "prior")
        settings = (dict(zip(names, values, strict=True)) for values in grid)
        add(f"{KNN}, {kind}", nearest, settings)
        add(f"{RIDGE}, {kind}", regress, ({"alpha": alpha} for alpha in (1.0, 3.0, 6.0, 10.0)))
    alphas = ({"alpha": alpha} for alpha in (5.0, 10.0, 20.0))
    add(f"{LABELS}, {MEAN}", partial(regress, labels=effect_kernel), alphas)
    # Two more rows, with sharper settings, improve the highest ranks.
    start, sharper = time.perf_counter(), [nearest(0.2, 4.0, 0.1), regress(1.0)]
    stacked = [*(rows[f"{name}, {MEAN}"] for name in (KNN, RIDGE, LABELS)), *sharper]
    inputs = [_pairs([row[index] for row in stacked], frequency) for index in (0, 1)]
    regression = require("sklearn.linear_model", extra="data").LogisticRegression(max_iter=300)
    regression.fit(inputs[0], y.ravel())
    scores = [regression.decision_function(pairs).reshape(-1, y.shape[1]) for pairs in inputs]
    settings = {"weights": regression.coef_[0].tolist()}
    rows[STACK] = (*scores, settings, time.perf_counter() - start)
    return rows


def _pairs(scores: list[Array], frequency: Array) -> Array:
    """A row for each pair: scores, log odds of the scores, and log odds of the frequency."""
    prior = np.broadcast_to(logit(frequency), scores[0].shape)
    return np.stack([column.ravel() for column in (*scores, *map(logit, scores), prior)], axis=1)


def draw_given(y: Array, kind: str, amount: float, rng: np.random.Generator) -> Array:
    """Draws known effects, NaN elsewhere. With "present", some present effects stay unknown."""
    if kind == "both":
        return np.where(rng.random(y.shape) < amount, y, np.nan)
    given = np.full_like(y, np.nan)
    for row, effects in enumerate(y):
        present = rng.permutation(np.flatnonzero(effects))
        num_known = len(present) // 2 if amount < 1 else min(int(amount), len(present) - 1)
        given[row, present[: max(num_known, 0)]] = 1
    return given


def with_given(root: Path, fold: int) -> list[Run]:
    """All rows for the drugs of a fold with some known effects, based on scores of the stack."""
    drugs, runs = load(root), list[Run]()
    rng, test_rng = (np.random.default_rng([fold, stream]) for stream in range(2))
    rows = np.flatnonzero(drugs.fold != fold), np.flatnonzero(drugs.fold == fold)
    stack = base_rows(drugs, *rows)[STACK]
    train, test = (Part(drugs.y[index], stack[item], index) for item, index in enumerate(rows))
    fold_of, frequency = rng.permutation(len(train.y)) % NUM_PARTS, train.y.mean(axis=0).clip(1e-3)
    for kind, amounts in EXPECTED.items():
        repeated = np.tile(np.arange(len(train.y)), len(amounts))
        given = np.concatenate([draw_given(train.y, kind, amount, rng) for amount in amounts])
        target = np.where(np.isnan(given), train.y[repeated], np.nan)
        held_out: dict[str, Array] = {}
        settings, seconds = {}, {}
        for name, (method, candidates) in _methods(drugs).items():
            start, best = time.perf_counter(), -math.inf
            for setting in candidates:
                scores = np.empty_like(given)
                for part in range(NUM_PARTS):
                    mask = fold_of[repeated] == part
                    inner, new = train.at(np.flatnonzero(fold_of != part)), train.at(repeated[mask])
                    scores[mask] = method(drugs, inner, new, given[mask], **setting)
                by_amount = (np.split(array, len(amounts)) for array in (target, scores))
                if (value := sum(starmap(goodness, zip(*by_amount, strict=True)))) > best:
                    best, settings[name], held_out[name] = value, setting, scores
            seconds[name] = time.perf_counter() - start
        start = time.perf_counter()
        inputs = _tree_inputs(held_out, train.base[repeated], given, frequency)
        predict, weights = _boosted(inputs, target, held_out[EASE], fold_of[repeated] == 0, rng)
        settings[TOGETHER], seconds[TOGETHER] = {"weights": weights}, time.perf_counter() - start
        for title, (amount_kind, amount) in AMOUNTS.items():
            if amount_kind != kind:
                continue
            known, by_model = draw_given(test.y, kind, amount, test_rng), {BASE: test.base}
            for name, (method, _) in _methods(drugs).items():
                by_model[name] = method(drugs, train, test, known, **settings[name])
            inputs = _tree_inputs(by_model, test.base, known, frequency)
            by_model[TOGETHER] = predict(inputs, by_model[EASE], known)
            shared = {"part": GIVEN, "task": GIVEN, "given": title, "fold": fold, "seed": 0}
            for model, scores in by_model.items():
                details = {"settings": settings.get(model, {}), "seconds": seconds.get(model, 0.0)}
                values = _metrics_of_unknown(test.y, scores, known)
                runs.append({**shared, "model": model, **details, **values})
    return runs


def _metrics_of_unknown(y: Array, scores: Array, given: Array) -> dict[str, float]:
    """Metrics of unknown effects, and the precision of the ten highest scores of each drug."""
    unknown = np.isnan(given)
    target = np.where(unknown, y, np.nan)
    best = np.argsort(-np.where(unknown, scores, -np.inf), axis=1, kind="stable")[:, :10]
    values = {metric: compute(target, scores) for metric, compute in METRICS.items()}
    return {**values, "precision_at_10": float(np.take_along_axis(y, best, axis=1).mean())}


def _overlap(
    drugs: Drugs, train: Part, part: Part, given: Array, power: float, prior: float
) -> Array:
    """Log odds by neighbours, weighted by similar structure and agreement of known effects."""
    known, present = ~np.isnan(given), np.nan_to_num(given)
    agree = present @ train.y.T + (known - present) @ (1 - train.y.T)
    fraction = (agree + 0.05) / (known.sum(axis=1, keepdims=True) + 0.05)
    similarity = drugs.kernels[MEAN][np.ix_(part.drugs, train.drugs)].clip(0.02) * fraction
    frequency = (train.y.sum(axis=0) + 0.5) / (len(train.y) + 1)
    return logit(fill.neighbours(similarity, train.y, frequency, power, prior))


def _fold_in(
    drugs: Drugs, train: Part, part: Part, given: Array, penalty: float, prior: float
) -> Array:
    weights = fill.autoencoder(fill.weighted_gram(train.y), penalty, prior * drugs.classes)
    return np.asarray(np.nan_to_num(given) @ weights)


def _messages(
    drugs: Drugs, train: Part, part: Part, given: Array, graph: str, noise: float, adds_logits: bool
) -> Array:
    label_graphs: dict[str, Callable[[], LabelGraph]] = {
        "term classes": lambda: drugs.term_graph,
        "learned": lambda: co_occurrence(train.y, weight="correlation", top_k=TOP_K),
        "complete": lambda: fully_connected(train.y.shape[1]),
    }
    net = ResidualMessages(label_graphs[graph]())
    arrays = (train.base, train.y, part.base, given)
    base, y, new, known = (torch.from_numpy(array).float() for array in arrays)
    with torch.inference_mode():
        return net.start_from_residuals(base, y, noise, adds_logits)(new, known).double().numpy()


def _methods(drugs: Drugs) -> Mapping[str, tuple[Callable[..., Array], list[dict[str, Any]]]]:
    """Methods that take known effects, with the settings that are tried."""
    overlap = [{"power": power, "prior": 0.02} for power in (1.0, 2.0, 3.0)]
    penalties = product((200.0, 400.0), (0.0, 10.0))
    linear = [{"penalty": penalty, "prior": prior} for penalty, prior in penalties]
    pairs = ((1.0, False), (3.0, False), (10.0, True))
    closed = [{"noise": noise, "adds_logits": adds_logits} for noise, adds_logits in pairs]
    messages = {f"{MESSAGES}, {name}": (partial(_messages, graph=name), closed) for name in GRAPHS}
    return {OVERLAP: (_overlap, overlap), EASE: (_fold_in, linear), **messages}


def _tree_inputs(
    scores: Mapping[str, Array], base: Array, given: Array, frequency: Array
) -> list[Array]:
    """Inputs of boosted trees for every pair."""
    num_known = (~np.isnan(given)).sum(axis=1, keepdims=True)
    linear = scores[EASE]
    centred, sd = linear - linear.mean(axis=1, keepdims=True), linear.std(axis=1, keepdims=True)
    present, total = (array.sum(axis=1, keepdims=True) for array in (np.nan_to_num(given), linear))
    by_drug = (np.log1p(num_known), np.log1p(present), total)
    messages, overlap = scores[f"{MESSAGES}, complete"], scores[OVERLAP]
    columns = (np.broadcast_to(array, base.shape) for array in (*by_drug, logit(frequency)))
    scaled = linear / np.sqrt(num_known.clip(1))
    return [base, linear, centred / (sd + 0.01), scaled, messages, overlap, *columns]


def _boosted(
    inputs: list[Array], target: Array, linear: Array, held_out: Array, rng: np.random.Generator
) -> tuple[Callable[[list[Array], Array, Array], Array], list[float]]:
    """Boosted trees plus a multiple of a linear score, as trees do not rank within their leaves.

    The multiple depends on the number of known effects. It is chosen on drugs that the trees were
    not fitted to.
    """
    known = ~np.isnan(target)
    is_used = known & ~held_out[:, None] & ((target == 1) | (rng.random(target.shape) < NEGATIVES))
    x, y = np.stack([values[is_used] for values in inputs], axis=1), target[is_used]
    options = {"max_iter": 150, "learning_rate": 0.06, "max_leaf_nodes": 15}
    options |= {"min_samples_leaf": 200, "random_state": 0}
    trees = require("sklearn.ensemble", extra="data").HistGradientBoostingClassifier(**options)
    trees.fit(x, y, sample_weight=np.where(y == 1, 1, 1 / NEGATIVES))
    scale = linear[known].std()

    def odds(inputs: list[Array]) -> Array:
        flat = np.stack([values.ravel() for values in inputs], axis=1)
        return logit(trees.predict_proba(flat)[:, 1].reshape(inputs[0].shape), 1e-6)

    scores, held_target = odds([values[held_out] for values in inputs]), target[held_out]
    bounds = (2, 5, 12, math.inf)
    num_known = np.isnan(held_target).sum(axis=1)
    weights, smallest = [], -1.0
    for bound in bounds:
        rows = (num_known > smallest) & (num_known <= bound)
        weight, best = 0.0, -math.inf
        if np.nansum(held_target[rows]):
            for candidate in (0.0, 0.5, 1.0, 2.0):
                total = scores[rows] + candidate * linear[held_out][rows] / scale
                if (value := goodness(held_target[rows], total)) > best:
                    weight, best = candidate, value
        weights.append(weight)
        smallest = bound

    def predict(inputs: list[Array], linear: Array, given: Array) -> Array:
        num_known = (~np.isnan(given)).sum(axis=1)
        weight = np.array(weights)[np.searchsorted(bounds, num_known)]
        return np.asarray(odds(inputs) + weight[:, None] * linear / scale)

    return predict, weights


def hidden_pairs(root: Path, fold: int, seed: int) -> list[Run]:
    """All rows of known drugs with a tenth of the pairs hidden, and a tenth for validation."""
    drugs = load(root)
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(np.argwhere(drugs.y > 0))
    hidden = np.arange(len(pairs)) % 10 == fold
    known, inner = np.zeros_like(drugs.y), np.zeros_like(drugs.y)
    known[tuple(pairs[~hidden].T)] = 1
    inner[tuple(rng.permutation(pairs[~hidden])[len(pairs) // 10 :].T)] = 1
    target, runs = np.where(known == 1, np.nan, drugs.y), []
    values, best = {}, {}
    for name, setting, scores in completed(drugs, inner, {}):
        value = goodness(np.where(inner == 1, np.nan, known), scores)
        if value > values.get(name, -math.inf):
            values[name], best[name] = value, setting
    start = time.perf_counter()
    for name, setting, scores in completed(drugs, known, best):
        metrics = {metric: compute(target, scores) for metric, compute in METRICS.items()}
        shared = {"part": HIDDEN, "task": HIDDEN, "given": "", "fold": fold, "seed": seed}
        details = {"settings": setting, "seconds": time.perf_counter() - start}
        runs.append({**shared, "model": name, **details, **metrics})
        start = time.perf_counter()
    return runs


def completed(
    drugs: Drugs, x: Array, best: Mapping[str, dict[str, float]]
) -> Iterator[tuple[str, dict[str, float], Array]]:
    """Yields (row, setting, scores of all pairs): the best setting if known, else all settings."""

    def tried(name: str, **grid: tuple[float, ...]) -> Iterable[dict[str, float]]:
        settings = (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))
        return [best[name]] if name in best else settings

    structure, frequency = drugs.kernels[MEAN], np.tile(x.mean(axis=0), (len(x), 1))
    yield FREQUENCY, {}, frequency
    for setting in tried(STRUCTURE, alpha=(3.0, 10.0, 30.0)):
        yield STRUCTURE, setting, frequency + fill.ridge(structure, x - frequency, **setting)[0]
    sides: dict[str, Array] = {}
    for setting in tried(LABEL_SIDE, penalty=(100.0, 200.0, 400.0)):
        sides[LABEL_SIDE] = x @ fill.autoencoder(x.T @ x, **setting)
        yield LABEL_SIDE, setting, sides[LABEL_SIDE]
    for setting in tried(DRUG_SIDE, penalty=(100.0, 200.0, 400.0), structure=(20.0, 60.0)):
        prior = setting["structure"] * structure
        sides[DRUG_SIDE] = fill.autoencoder(x @ x.T, setting["penalty"], prior).T @ x
        yield DRUG_SIDE, setting, sides[DRUG_SIDE]
    if best:
        yield BOTH_SIDES, {}, _standard(sides[LABEL_SIDE], x) + _standard(sides[DRUG_SIDE], x)
    latent = fill.factors(x, **FACTORS_SETTING)
    yield FACTORS, FACTORS_SETTING, latent
    drug_kernel, effect_kernel = cosine(x) + structure, np.eye(x.shape[1]) + cosine(x.T) / 2

    def with_classes(penalty: float) -> Array:
        weights = fill.autoencoder(fill.weighted_gram(x), penalty, 10 * drugs.classes)
        return np.asarray(x @ weights)

    for setting in tried(PRIOR_SIDE, penalty=(150.0, 250.0)):
        yield PRIOR_SIDE, setting, with_classes(**setting)
    for setting in tried(RESIDUALS, penalty=(150.0, 250.0), alpha=(10.0, 20.0)):
        linear = with_classes(setting["penalty"])
        scores = linear + fill.crossed(drug_kernel, effect_kernel, x - linear, setting["alpha"])
        yield RESIDUALS, setting, scores
        yield ALL, setting, _standard(scores, x) + np.tanh(_standard(latent, x))


def _standard(scores: Array, x: Array) -> Array:
    """Scores shifted and scaled so that scores of unknown pairs have mean 0 and variance 1."""
    unknown = scores[x == 0]
    return np.asarray((scores - unknown.mean()) / unknown.std())


def default(root: Path, fold: int, seconds: float) -> list[Run]:
    """The default on the drugs of a fold, without and with known effects."""
    dataset, start = SideEffectFrequencies(root / "side-effects"), time.perf_counter()
    train, test = (dataset[rows].copy() for rows in (dataset.fold != fold, dataset.fold == fold))
    model = auto(train, seconds, 0)
    y, scores = test.y.numpy().astype(float), model.probabilities(test)
    shared = {"part": DEFAULT, "fold": fold, "seed": 0, "model": DEFAULT}
    shared["settings"] = {"seconds": seconds}
    values = {metric: compute(y, scores) for metric, compute in METRICS.items()}
    runs = [{**shared, "task": NEW, "given": "", "seconds": time.perf_counter() - start, **values}]
    # The same as auto(..., given_masks="present"), without fitting all else again.
    present = GivenLabelStacking("present")
    present.fit(model.training.held_out, train.y.numpy())
    stage, test_rng = model.stage(GivenLabels), np.random.default_rng([fold, 1])
    assert stage is not None
    engines = {"both": stage.engine, "present": present}
    for title, (kind, amount) in AMOUNTS.items():
        known, start = draw_given(y, kind, amount, test_rng), time.perf_counter()
        stage.engine = engines[kind]
        values = _metrics_of_unknown(y, model.probabilities(test, given=known), known)
        details = {"given": title, "seconds": time.perf_counter() - start}
        runs.append({**shared, "task": GIVEN, **details, **values})
    return runs


if __name__ == "__main__":
    sys.exit(run(main))
