"""Single side effects of drugs: new drugs, drugs of which some effects are known, and missing pairs of known drugs.

    python -m benchmarks.accuracy.side_effects --seeds 5

New drugs are those of a published fold, which models of the other nine folds have not seen. The same drugs are then
given some of their effects: 1, 3, 10 or half of those that they have, or half of all, present and absent; the scores
are those of the others. For known drugs, a tenth of all pairs is hidden in turn, and is to be told from the pairs that
were never reported, as in studies of association. Settings of every row are chosen among a few by drugs or pairs of the
training part alone, by the sum of ROC-AUC and average precision. Runs of one fold are made together; the same command
goes on.
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
from tg_mlc.stacking.automatic import GIVEN_SHARE
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
#: Known effects: a number of the present ones, a share of them, or a share of all labels of both values.
AMOUNTS: dict[str, tuple[str, float]] = {
    "1 present": ("present", 1),
    "3 present": ("present", 3),
    "10 present": ("present", 10),
    "half of the present": ("present", 0.5),
    "half of all": ("both", 0.5),
}
#: Amounts that models are told to expect: masks of training drugs are drawn from these.
EXPECTED = {"present": (1, 3, 10, 0.5), "both": (0.1, 0.3, 0.5, 0.7)}
NUM_PARTS, NEGATIVES, TOP_K = 5, 0.1, 64

STRUCTURE, LABEL_SIDE, DRUG_SIDE = (
    "kernel ridge on structures",
    "EASE",
    "EASE over drugs and structures",
)
BOTH_SIDES, FACTORS = "both EASE, their mean", "factors"
FACTORS_SETTING: dict[str, Any] = {"rank": 20, "penalty": 30.0, "weight": 10.0}
PRIOR_SIDE, RESIDUALS, ALL = (
    "EASE with term classes",
    "the same and residuals of similar drugs",
    "these and factors",
)


def main(
    seeds: int = 5,
    folds: int = 10,
    given_folds: int = 5,
    default_folds: int = 1,
    seconds: float = 300.0,
    root: Path = Path("data"),
    replace: bool = False,
) -> None:
    """Runs all rows of every fold, and writes benchmarks/runs/; a run that stopped early goes on.

    Args:
        seeds: Number of seeds of hidden pairs; masks of new drugs have one.
        folds: How many of the ten folds, of whole drugs and of pairs.
        given_folds: How many of them for drugs of which some effects are known.
        default_folds: How many of them for the default.
        seconds: The time that the default may take for each.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    torch.set_num_threads(1)
    dataset = SideEffectFrequencies(root / "side-effects")
    content: dict[str, Any] = {
        "dataset": describe_dataset("side-effects", dataset),
        "expected": EXPECTED,
    }
    calls = {(NEW, fold, 0): delayed(new_drugs)(root, fold) for fold in range(folds)}
    every = product(range(seeds), range(folds))
    pairs = {(HIDDEN, fold, seed): delayed(hidden_pairs)(root, fold, seed) for seed, fold in every}
    calls |= {key: call for key, call in pairs.items() if key[2] == 0}
    calls |= {(GIVEN, fold, 0): delayed(with_given)(root, fold) for fold in range(given_folds)}
    calls |= pairs
    calls |= {
        (DEFAULT, fold, 0): delayed(default)(root, fold, seconds) for fold in range(default_folds)
    }
    collect(NAME, content, calls, itemgetter("part", "fold", "seed"), _in_short, replace=replace)


def _in_short(run: Run) -> str:
    values = ", ".join(
        f"{metric} {run[metric]:.4f}" for metric in (*METRICS, "precision_at_10") if run.get(metric)
    )
    what = f"{run['task']}{', ' * bool(run['given'])}{run['given']}"
    return f"{what}, fold {run['fold']}, seed {run['seed']}: {run['model']:<50} {values} ({run['seconds']:.0f} s)"


class Drugs(NamedTuple):
    """All drugs: effects, folds, two kernels of structures, and the cosine of the term classes of effects."""

    y: Array
    fold: Array
    kernels: dict[str, Array]
    classes: Array
    term_graph: LabelGraph


@cache
def load(root: Path) -> Drugs:
    """Loads the drugs and computes kernels once; a file keeps these."""
    dataset, kept = (
        SideEffectFrequencies(root / "side-effects"),
        root / "side-effects" / "kernels.npz",
    )
    if not kept.exists():
        np.savez(kept, **_kernels([data.smiles for data in dataset]))
    with np.load(kept) as kernels:
        known = {name: kernels[name] for name in (MORGAN, MEAN)}
    classes = cosine(dataset.classes.numpy().astype(float))
    return Drugs(
        dataset.y.numpy().astype(float), dataset.fold.numpy(), known, classes, dataset.label_graph
    )


def _kernels(smiles: list[str]) -> dict[str, Array]:
    """The Tanimoto kernel of substructures within two bonds, and the mean of six kinds of them and descriptors."""
    chem, maccs, descriptors = (
        require(f"rdkit.Chem{part}", extra="molecules")
        for part in ("", ".MACCSkeys", ".Descriptors")
    )
    make = require("rdkit.Chem.rdFingerprintGenerator", extra="molecules")
    features = make.GetMorganFeatureAtomInvGen()
    generators = [
        make.GetMorganGenerator(2, fpSize=4096),
        make.GetMorganGenerator(2, fpSize=4096, atomInvariantsGenerator=features),
        make.GetAtomPairGenerator(fpSize=8192),
        make.GetTopologicalTorsionGenerator(fpSize=4096),
    ]
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        molecules = [chem.MolFromSmiles(each) for each in smiles]
        counts = [
            [each.GetCountFingerprintAsNumPy(mol) for mol in molecules] for each in generators
        ]
        paths = make.GetRDKitFPGenerator(fpSize=4096)
        counts += [
            [paths.GetFingerprintAsNumPy(mol) for mol in molecules],
            [np.array(maccs.GenMACCSKeys(mol)) for mol in molecules],
        ]
        described = np.array(
            [[compute(mol) for _, compute in descriptors.descList] for mol in molecules],
            dtype=float,
        )
    found = [fill.tanimoto(np.array(each, dtype=float)) for each in counts]
    ranks = np.nan_to_num(described, posinf=0, neginf=0).argsort(axis=0).argsort(axis=0) / len(
        smiles
    )
    apart = np.square(ranks[:, None] - ranks[None]).mean(axis=-1)
    return {MORGAN: found[0], MEAN: np.mean([*found, np.exp(-apart / apart.mean())], axis=0)}


class Part(NamedTuple):
    """Some drugs, with base logits of models that have not seen them."""

    y: Array
    base: Array
    drugs: Array  #: their numbers

    def at(self, rows: Array) -> Part:
        """Some of them, some of these perhaps several times."""
        return Part(self.y[rows], self.base[rows], self.drugs[rows])


def new_drugs(root: Path, fold: int) -> list[Run]:
    """All rows of the drugs of a fold of which nothing is known."""
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
    """Held-out scores of training drugs and scores of test drugs by every method, the stack at last."""
    y, rows = drugs.y[train], {}
    frequency = (y.sum(axis=0) + 0.5) / (len(y) + 1)
    rows[FREQUENCY] = (
        np.tile(frequency, (len(train), 1)),
        np.tile(frequency, (len(test), 1)),
        {},
        0.0,
    )
    correlated = np.eye(y.shape[1]) + cosine(y.T)

    def add(
        name: str, fit: Callable[..., tuple[Array, Array]], candidates: Iterable[dict[str, Any]]
    ) -> None:
        start, best = time.perf_counter(), (-math.inf, {}, (y, y))
        for setting in candidates:
            found = fit(**setting)
            best = max(best, (goodness(y, found[0]), setting, found), key=lambda each: each[0])
        rows[name] = *best[2], best[1], time.perf_counter() - start

    for kind, kernel in drugs.kernels.items():
        among, to = kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]

        def nearest(
            least: float, power: float, prior: float, among: Array = among, to: Array = to
        ) -> tuple[Array, Array]:
            scaled = (among - least) / (1 - least)
            np.fill_diagonal(scaled, 0.0)
            found = (
                fill.neighbours(each, y, frequency, power, prior)
                for each in (scaled, (to - least) / (1 - least))
            )
            return next(found), next(found)

        def regress(
            alpha: float, labels: Array | None = None, among: Array = among, to: Array = to
        ) -> tuple[Array, Array]:
            held_out, dual = fill.ridge(among, y - frequency, alpha, labels)
            return frequency + held_out, frequency + to @ dual

        grid = product((0.0, 0.2), (1.0, 2.0, 3.0, 4.0), (0.3, 1.0))
        add(
            f"{KNN}, {kind}",
            nearest,
            (dict(zip(("least", "power", "prior"), each, strict=True)) for each in grid),
        )
        add(f"{RIDGE}, {kind}", regress, ({"alpha": alpha} for alpha in (1.0, 3.0, 6.0, 10.0)))
    add(
        f"{LABELS}, {MEAN}",
        partial(regress, labels=correlated),
        ({"alpha": alpha} for alpha in (5.0, 10.0, 20.0)),
    )
    # for the highest ranks
    start, sharper = time.perf_counter(), [nearest(0.2, 4.0, 0.1), regress(1.0)]
    together = [*(rows[f"{each}, {MEAN}"] for each in (KNN, RIDGE, LABELS)), *sharper]
    inputs = [_pairs([each[part] for each in together], frequency) for part in (0, 1)]
    model = (
        require("sklearn.linear_model", extra="data")
        .LogisticRegression(max_iter=300)
        .fit(inputs[0], y.ravel())
    )
    scores = [model.decision_function(each).reshape(-1, y.shape[1]) for each in inputs]
    rows[STACK] = (
        scores[0],
        scores[1],
        {"weights": model.coef_[0].tolist()},
        time.perf_counter() - start,
    )
    return rows


def _pairs(scores: list[Array], frequency: Array) -> Array:
    """Scores, their log odds, and those of the frequency, with a row for each pair."""
    own = np.broadcast_to(logit(frequency), scores[0].shape)
    return np.stack([each.ravel() for each in (*scores, *map(logit, scores), own)], axis=1)


def draw_given(y: Array, kind: str, amount: float, rng: np.random.Generator) -> Array:
    """Known effects of each drug, NaN elsewhere; if only present ones are known, at least one is left to be found."""
    if kind == "both":
        return np.where(rng.random(y.shape) < amount, y, np.nan)
    given = np.full_like(y, np.nan)
    for row, own in enumerate(y):
        present = rng.permutation(np.flatnonzero(own))
        number = len(present) // 2 if amount < 1 else min(int(amount), len(present) - 1)
        given[row, present[: max(number, 0)]] = 1
    return given


def with_given(root: Path, fold: int) -> list[Run]:
    """All rows of the drugs of a fold of which some effects are known, over the stack of :func:`new_drugs`."""
    drugs, runs = load(root), list[Run]()
    rng, of_test = (np.random.default_rng([fold, each]) for each in range(2))
    rows = np.flatnonzero(drugs.fold != fold), np.flatnonzero(drugs.fold == fold)
    stack = base_rows(drugs, *rows)[STACK]
    train, test = (Part(drugs.y[each], stack[part], each) for part, each in enumerate(rows))
    fold_of, frequency = rng.permutation(len(train.y)) % NUM_PARTS, train.y.mean(axis=0).clip(1e-3)
    for kind, amounts in EXPECTED.items():
        repeated = np.tile(np.arange(len(train.y)), len(amounts))
        given = np.concatenate([draw_given(train.y, kind, amount, rng) for amount in amounts])
        rest = np.where(np.isnan(given), train.y[repeated], np.nan)
        held_out: dict[str, Array] = {}
        settings, seconds = {}, {}
        for name, (method, candidates) in _methods(drugs).items():
            start, best = time.perf_counter(), -math.inf
            for setting in candidates:
                found = np.empty_like(given)
                for each in range(NUM_PARTS):
                    mine, known = (
                        fold_of[repeated] == each,
                        train.at(np.flatnonzero(fold_of != each)),
                    )
                    found[mine] = method(
                        drugs, known, train.at(repeated[mine]), given[mine], **setting
                    )
                parts = zip(
                    np.split(rest, len(amounts)), np.split(found, len(amounts)), strict=True
                )
                if (value := sum(starmap(goodness, parts))) > best:
                    best, settings[name], held_out[name] = value, setting, found
            seconds[name] = time.perf_counter() - start
        start = time.perf_counter()
        inputs = _described(held_out, train.base[repeated], given, frequency)
        combined, weights = _boosted(inputs, rest, held_out[EASE], fold_of[repeated] == 0, rng)
        settings[TOGETHER], seconds[TOGETHER] = {"weights": weights}, time.perf_counter() - start
        for title, (_, amount) in (
            (title, each) for title, each in AMOUNTS.items() if each[0] == kind
        ):
            known, scores = draw_given(test.y, kind, amount, of_test), {BASE: test.base}
            for name, (method, _) in _methods(drugs).items():
                scores[name] = method(drugs, train, test, known, **settings[name])
            scores[TOGETHER] = combined(
                _described(scores, test.base, known, frequency), scores[EASE], known
            )
            for model, found in scores.items():
                shared = {
                    "part": GIVEN,
                    "task": GIVEN,
                    "given": title,
                    "fold": fold,
                    "seed": 0,
                    "model": model,
                }
                made = {"settings": settings.get(model, {}), "seconds": seconds.get(model, 0.0)}
                runs.append({**shared, **made, **_of_the_rest(test.y, found, known)})
    return runs


def _of_the_rest(y: Array, scores: Array, given: Array) -> dict[str, float]:
    """Metrics of effects that are not known, and the share of the ten best among these of each drug that it has."""
    unknown = np.isnan(given)
    rest = np.where(unknown, y, np.nan)
    best = np.argsort(-np.where(unknown, scores, -np.inf), axis=1, kind="stable")[:, :10]
    hits = float(np.take_along_axis(y, best, axis=1).mean())
    return {
        **{metric: compute(rest, scores) for metric, compute in METRICS.items()},
        "precision_at_10": hits,
    }


def _overlap(
    drugs: Drugs, train: Part, part: Part, given: Array, power: float, prior: float
) -> Array:
    """Neighbours that are alike in structure and have the known effects."""
    known, present = ~np.isnan(given), np.nan_to_num(given)
    agree = present @ train.y.T + (known - present) @ (1 - train.y.T)
    share = (agree + 0.05) / (known.sum(axis=1, keepdims=True) + 0.05)
    similarity = drugs.kernels[MEAN][np.ix_(part.drugs, train.drugs)].clip(0.02) * share
    frequency = (train.y.sum(axis=0) + 0.5) / (len(train.y) + 1)
    return logit(fill.neighbours(similarity, train.y, frequency, power, prior))


def _fold_in(
    drugs: Drugs, train: Part, part: Part, given: Array, penalty: float, prior: float
) -> Array:
    return np.asarray(
        np.nan_to_num(given)
        @ fill.autoencoder(fill.weighted_gram(train.y), penalty, prior * drugs.classes)
    )


def _messages(
    drugs: Drugs, train: Part, part: Part, given: Array, graph: str, damping: float, power: float
) -> Array:
    label_graphs: dict[str, Callable[[], LabelGraph]] = {
        "term classes": lambda: drugs.term_graph,
        "learned": lambda: co_occurrence(train.y, weight="correlation", top_k=TOP_K),
        "complete": lambda: fully_connected(train.y.shape[1]),
    }
    net = ResidualMessages(label_graphs[graph]())
    base, y, new, known = (
        torch.from_numpy(each).float() for each in (train.base, train.y, part.base, given)
    )
    with torch.inference_mode():
        return net.start_from_residuals(base, y, damping, power)(new, known).double().numpy()


def _methods(drugs: Drugs) -> Mapping[str, tuple[Callable[..., Array], list[dict[str, Any]]]]:
    """Methods that take known effects, with the settings that are tried."""
    overlap = [{"power": power, "prior": 0.02} for power in (1.0, 2.0, 3.0)]
    linear = [
        {"penalty": penalty, "prior": prior} for penalty in (200.0, 400.0) for prior in (0.0, 10.0)
    ]
    closed = [
        {"damping": damping, "power": power}
        for damping, power in ((3.0, 0.5), (10.0, 0.25), (10.0, 0.5))
    ]
    messages = {
        f"{MESSAGES}, {graph}": (partial(_messages, graph=graph), closed) for graph in GRAPHS
    }
    return {OVERLAP: (_overlap, overlap), EASE: (_fold_in, linear), **messages}


def _described(
    scores: Mapping[str, Array], base: Array, given: Array, frequency: Array
) -> list[Array]:
    """Inputs of boosted trees for every pair."""
    number = (~np.isnan(given)).sum(axis=1, keepdims=True)
    linear = scores[EASE]
    apart = (linear - linear.mean(axis=1, keepdims=True)) / (
        linear.std(axis=1, keepdims=True) + 0.01
    )
    present, total = (each.sum(axis=1, keepdims=True) for each in (np.nan_to_num(given), linear))
    by_drug = (np.log1p(number), np.log1p(present), total)
    messages, overlap = scores[f"{MESSAGES}, complete"], scores[OVERLAP]
    wide = (np.broadcast_to(each, base.shape) for each in (*by_drug, logit(frequency)))
    return [base, linear, apart, linear / np.sqrt(number.clip(1)), messages, overlap, *wide]


def _boosted(
    inputs: list[Array], rest: Array, linear: Array, choosing: Array, rng: np.random.Generator
) -> tuple[Callable[[list[Array], Array, Array], Array], list[float]]:
    """Boosted trees, and for each number of known effects a multiple of a linear score that is added to their log odds,
    as trees do not rank within their leaves: chosen by drugs that the trees were not fitted to.
    """
    known = ~np.isnan(rest)
    used = known & ~choosing[:, None] & ((rest == 1) | (rng.random(rest.shape) < NEGATIVES))
    x, y = np.stack([each[used] for each in inputs], axis=1), rest[used]
    options = {
        "max_iter": 150,
        "learning_rate": 0.06,
        "max_leaf_nodes": 15,
        "min_samples_leaf": 200,
        "random_state": 0,
    }
    trees = require("sklearn.ensemble", extra="data").HistGradientBoostingClassifier(**options)
    trees.fit(x, y, sample_weight=np.where(y == 1, 1, 1 / NEGATIVES))
    scale = linear[known].std()

    def odds(inputs: list[Array]) -> Array:
        flat = np.stack([each.ravel() for each in inputs], axis=1)
        return logit(trees.predict_proba(flat)[:, 1].reshape(inputs[0].shape), 1e-6)

    found, mine = odds([each[choosing] for each in inputs]), rest[choosing]
    bounds = (2, 5, 12, math.inf)
    number = np.isnan(mine).sum(axis=1)
    weights, least = [], -1.0
    for bound in bounds:
        rows = (number > least) & (number <= bound)
        tried = (0.0, 0.5, 1.0, 2.0) if np.nansum(mine[rows]) else (0.0,)
        values = [
            goodness(mine[rows], found[rows] + w * linear[choosing][rows] / scale)
            if len(tried) > 1
            else 0
            for w in tried
        ]
        weights.append(tried[int(np.argmax(values))])
        least = bound

    def predict(inputs: list[Array], linear: Array, given: Array) -> Array:
        number = (~np.isnan(given)).sum(axis=1)
        weight = np.array(weights)[np.searchsorted(bounds, number)]
        return np.asarray(odds(inputs) + weight[:, None] * linear / scale)

    return predict, weights


def hidden_pairs(root: Path, fold: int, seed: int) -> list[Run]:
    """All rows of known drugs of which a tenth of the pairs is hidden; settings are chosen by a tenth of the others."""
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
        found = {metric: compute(target, scores) for metric, compute in METRICS.items()}
        shared = {
            "part": HIDDEN,
            "task": HIDDEN,
            "given": "",
            "fold": fold,
            "seed": seed,
            "model": name,
        }
        runs.append(
            {**shared, "settings": setting, "seconds": time.perf_counter() - start, **found}
        )
        start = time.perf_counter()
    return runs


def completed(
    drugs: Drugs, x: Array, best: Mapping[str, dict[str, float]]
) -> Iterator[tuple[str, dict[str, float], Array]]:
    """The scores of all pairs by every row, with all settings, or with those that were chosen."""

    def tried(name: str, **grid: tuple[float, ...]) -> Iterable[dict[str, float]]:
        every = (dict(zip(grid, each, strict=True)) for each in product(*grid.values()))
        return [best[name]] if name in best else every

    structure, frequency = drugs.kernels[MEAN], np.tile(x.mean(axis=0), (len(x), 1))
    yield FREQUENCY, {}, frequency
    for setting in tried(STRUCTURE, alpha=(3.0, 10.0, 30.0)):
        yield STRUCTURE, setting, frequency + fill.ridge(structure, x - frequency, **setting)[0]
    sides: dict[str, Array] = {}
    for setting in tried(LABEL_SIDE, penalty=(100.0, 200.0, 400.0)):
        sides[LABEL_SIDE] = x @ fill.autoencoder(x.T @ x, **setting)
        yield LABEL_SIDE, setting, sides[LABEL_SIDE]
    for setting in tried(DRUG_SIDE, penalty=(100.0, 200.0, 400.0), structure=(20.0, 60.0)):
        sides[DRUG_SIDE] = (
            fill.autoencoder(x @ x.T, setting["penalty"], setting["structure"] * structure).T @ x
        )
        yield DRUG_SIDE, setting, sides[DRUG_SIDE]
    if best:
        yield BOTH_SIDES, {}, _standard(sides[LABEL_SIDE], x) + _standard(sides[DRUG_SIDE], x)
    latent = fill.factors(x, **FACTORS_SETTING)
    yield FACTORS, FACTORS_SETTING, latent
    alike, effects = cosine(x) + structure, np.eye(x.shape[1]) + cosine(x.T) / 2
    for setting in tried(PRIOR_SIDE, penalty=(150.0, 250.0)):
        yield (
            PRIOR_SIDE,
            setting,
            x @ fill.autoencoder(fill.weighted_gram(x), setting["penalty"], 10 * drugs.classes),
        )
    for setting in tried(RESIDUALS, penalty=(150.0, 250.0), alpha=(10.0, 20.0)):
        linear = x @ fill.autoencoder(fill.weighted_gram(x), setting["penalty"], 10 * drugs.classes)
        scores = linear + fill.crossed(alike, effects, x - linear, setting["alpha"])
        yield RESIDUALS, setting, scores
        yield ALL, setting, _standard(scores, x) + np.tanh(_standard(latent, x))


def _standard(scores: Array, x: Array) -> Array:
    """Scores of which those of unknown pairs have mean 0 and variance 1."""
    rest = scores[x == 0]
    return np.asarray((scores - rest.mean()) / rest.std())


def default(root: Path, fold: int, seconds: float) -> list[Run]:
    """The default on the drugs of a fold, of which nothing is known, or what :func:`with_given` gives too."""
    dataset, start = SideEffectFrequencies(root / "side-effects"), time.perf_counter()
    train, test = (dataset[rows].copy() for rows in (dataset.fold != fold, dataset.fold == fold))
    model = auto(train, seconds, 0)
    y, scores = test.y.numpy().astype(float), model.probabilities(test)
    shared = {
        "part": DEFAULT,
        "fold": fold,
        "seed": 0,
        "model": DEFAULT,
        "settings": {"seconds": seconds},
    }
    values = {metric: compute(y, scores) for metric, compute in METRICS.items()}
    runs = [{**shared, "task": NEW, "given": "", "seconds": time.perf_counter() - start, **values}]
    # As auto(..., given_masks="present") does, without fitting all else again.
    present = GivenLabelStacking("present").fit(
        model.training.held_out, train.y.numpy(), GIVEN_SHARE * seconds
    )
    stage, of_test = model.stage(GivenLabels), np.random.default_rng([fold, 1])
    assert stage is not None
    engines = {"both": stage.engine, "present": present}
    for title, (kind, amount) in AMOUNTS.items():
        known, start, stage.engine = (
            draw_given(y, kind, amount, of_test),
            time.perf_counter(),
            engines[kind],
        )
        values = _of_the_rest(y, model.probabilities(test, given=known), known)
        runs.append(
            {
                **shared,
                "task": GIVEN,
                "given": title,
                "seconds": time.perf_counter() - start,
                **values,
            }
        )
    return runs


if __name__ == "__main__":
    sys.exit(run(main))
